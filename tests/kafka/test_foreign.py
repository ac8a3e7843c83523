"""Programs that are not ours produce events and read results, each in its own way."""

import asyncio
import json
import shutil

import pytest

from tests.kafka.harness import Record, event, eventually, produce, records_of, running, tool
from tests.stream.making import RepeatingDecider

needs_kcat = pytest.mark.skipif(shutil.which("kcat") is None, reason="KCAT IS NOT INSTALLED")
# Nothing is held back when a service ends: what is decided is there to be read.
STREAM = {"step_seconds": 0.25, "lateness_seconds": 0.1, "publish_delay_seconds": 0.0}


async def kcat(world, *arguments, lines=()):
    """Run it with these lines as its input; the lines that it prints."""
    process = await asyncio.create_subprocess_exec(
        *("kcat", "-b", world.bootstrap, "-q", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, complaint = await process.communicate(b"".join(line + b"\n" for line in lines))
    assert process.returncode == 0, complaint.decode()
    return output.splitlines()


def service(world):
    return running(world.settings(stream=STREAM), asked_by=RepeatingDecider(threshold=1))


@needs_kcat
class TestKcat:
    async def send(self, world, lines, *arguments):
        await kcat(world, "-P", "-t", world.topic("events"), *arguments, lines=lines)

    async def test_its_events_count_with_and_without_keys_and_headers(self, world):
        keyed = [b"u-%d\t" % n + event(n, "crash") for n in range(30)]
        plain = [event(n, "crash") for n in range(30, 50)]
        decorated = [event(n, "crash") for n in range(50, 55)]
        async with service(world) as running_service:
            await self.send(world, keyed, "-K", "\t")
            await self.send(world, plain)
            await self.send(world, decorated, "-H", "traceparent=00-abc", "-H", "empty")
            await eventually(lambda: running_service.summary.accepted == 55)
            await eventually(lambda: not running_service.engine.intake.buffered)
            await eventually(lambda: running_service.summary.hitters)
        found = await self.read(world, "hitters")
        assert sum(json.loads(record["payload"])["estimate"] for record in found) == 55

    async def test_what_it_sends_as_tombstones_or_nonsense_is_rejected(self, world):
        async with service(world) as running_service:
            await self.send(world, [b"u-1\t", b"u-2\tno event"], "-K", "\t", "-Z")
            await eventually(lambda: running_service.summary.records == 2)
            assert running_service.summary.rejected == {"empty": 1, "not_json": 1}

    @pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
    async def test_its_compressed_events_count(self, world, codec):
        async with service(world) as running_service:
            await self.send(world, [event(n, "crash") for n in range(200)], "-z", codec)
            await eventually(lambda: running_service.summary.accepted == 200)

    async def test_it_reads_results_as_anybody_does(self, world):
        async with service(world) as running_service:
            events = [Record(event(n, f"crash {n % 3}"), n % 4) for n in range(60)]
            await produce(world.bootstrap, world.topic("events"), events)
            await eventually(lambda: running_service.summary.accepted == 60)
            await eventually(lambda: not running_service.engine.intake.buffered)
        for kind in ("hitters", "steps"):
            found = await self.read(world, kind)
            ours = await records_of(world.bootstrap, world.topic(kind))
            assert [(each["key"].encode(), each["payload"].encode()) for each in found] == [
                (record.key, record.value) for record in ours
            ]
            assert found

    async def read(self, world, kind):
        everything = ("-o", "beginning", "-e", "-J", "-X", "isolation.level=read_committed")
        lines = await kcat(world, "-C", "-t", world.topic(kind), *everything)
        return [json.loads(line) for line in lines]


async def test_kafka_s_console_consumer_reads_the_results(world):
    async with service(world) as running_service:
        events = [Record(event(n, "crash: ü"), 0) for n in range(20)]
        await produce(world.bootstrap, world.topic("events"), events)
        await eventually(lambda: running_service.summary.accepted == 20)
        await eventually(lambda: not running_service.engine.intake.buffered)
    ours = await records_of(world.bootstrap, world.topic("hitters"))
    told = await tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", world.bootstrap, "--topic", world.topic("hitters")),
        *("--from-beginning", "--isolation-level", "read_committed"),
        *("--max-messages", str(len(ours)), "--property", "print.key=true"),
    )
    lines = [line for line in told.splitlines() if line.startswith("crash: ü\t")]
    assert [line.partition("\t")[2] for line in lines] == [each.value.decode() for each in ours]
    assert sum(json.loads(each.value)["estimate"] for each in ours) == 20
