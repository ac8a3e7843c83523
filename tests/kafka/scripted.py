"""A stream of which everything is known: what is sent, when it arrives, who must be charged."""

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aiokafka import AIOKafkaProducer

from streamer.kafka.ending import end_client
from streamer.privacy.prices import FULL
from streamer.service.line_job import LineJob, run_lines
from streamer.service.startup import timing_of
from streamer.settings import Settings
from streamer.stream.pseudonyms import Pseudonyms
from tests.kafka import harness
from tests.service.repeatable import Repeatable

CONTRIBUTIONS = 3
PRIVACY = {"contributions": CONTRIBUTIONS, "value_every_steps": 2, "items": 50}
PARTITIONS = 3
SCRIPTED = {"trust_producer_timestamps": True}
"""Settings of a service that believes the arrivals of a script."""
_BATCH_BYTES = 1 << 19


@dataclass(frozen=True)
class Sent:
    """A record of the events topic; `time` and `arrival` in milliseconds since 1970."""

    partition: int
    arrival: int
    value: bytes
    time: int = 0
    counts: bool = True
    """Whether it is an event that arrives in time."""


def script(first_ms: int, steps: Iterable[int], seed: int = 1, length_ms: int = 1000) -> list[Sent]:
    """In the order of arrival: in each step sixteen users, most of them with one of three items.

    Some events arrive in the allowed time after their step, some after it (of an item
    that would be reported if they counted), and one record of each step is no event.
    """
    chance = random.Random(seed)
    made = []
    for step in steps:
        start = first_ms + step * length_ms
        for _ in range(16):
            user, item = chance.randrange(96), f"url:/{chance.randrange(40)}"
            item = chance.choice(["crash:A", "crash:B", "crash:C", item])
            time = start + chance.randrange(length_ms)
            arrival = time + chance.randrange(length_ms // 10)
            made.append(_event(user, item, time, arrival, chance))
        for user in range(200, 206) if step % 9 == 4 else ():
            time, arrival = start + length_ms - 1, start + 2 * length_ms
            made.append(_event(user, "error:late", time, arrival, chance, counts=False))
        value = b"no event of step %d" % step
        made.append(Sent(chance.randrange(PARTITIONS), start, value, counts=False))
    return sorted(made, key=lambda sent: sent.arrival)


def _event(
    user: int, item: str, time: int, arrival: int, chance: random.Random, counts: bool = True
) -> Sent:
    value = json.dumps({"user": f"u-{user}", "item": item, "time": time}).encode()
    return Sent(chance.randrange(PARTITIONS), arrival, value, time, counts)


async def make_topic(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> None:
    """An events topic whose producers tell the arrival, however long ago it was."""
    config = {"message_timestamp_type": "CreateTime", "retention_ms": "-1"}
    await harness.make_topic(bootstrap, topic, partitions, **config)


async def produce(bootstrap: str, topic: str, stream: Iterable[Sent]) -> int:
    """Send records with their arrivals; returns how many."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, max_batch_size=_BATCH_BYTES)
    await producer.start()
    open_batches = {}
    number = 0
    try:
        for number, sent in enumerate(stream, start=1):  # noqa: B007
            place = sent.partition
            batch = open_batches.setdefault(place, producer.create_batch())
            if batch.append(key=None, value=sent.value, timestamp=sent.arrival) is None:
                await producer.send_batch(batch, topic, partition=place)
                open_batches[place] = batch = producer.create_batch()
                batch.append(key=None, value=sent.value, timestamp=sent.arrival)
        for place, batch in open_batches.items():
            await producer.send_batch(batch, topic, partition=place)
        await producer.flush()
    finally:
        await producer.stop()
    return number


async def send_live(bootstrap: str, topic: str, seed: int = 1) -> None:
    """Send events for as long as it is let, twenty a second; each arrives when it arrives."""
    chance = random.Random(seed)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    await producer.start()
    try:
        while True:
            item = chance.choice(["crash:A", "crash:B", "crash:C", f"url:/{chance.randrange(40)}"])
            event = {"user": f"u-{chance.randrange(96)}", "item": item}
            # Nobody waits for it: what was sent is what the topic holds in the end.
            await producer.send(topic, json.dumps(event).encode())
            await asyncio.sleep(0.05)
    finally:
        await end_client(producer)  # also if there is no broker any more


async def arrived(bootstrap: str, topic: str) -> list[Sent]:
    """The events of a topic, each at the time of its arrival."""
    records = await harness.records_of(bootstrap, topic)
    return [
        Sent(
            record.partition,
            record.timestamp,
            json.dumps(json.loads(record.value) | {"time": record.timestamp}).encode(),
            record.timestamp,
        )
        for record in records
    ]


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run over a file of the same events decides."""

    hitters: list[dict]
    charged: Mapping[int, Mapping[int, int]]
    """By step, the pseudonyms of the users that it must charge, and their units."""
    last: int
    """The last step with an event."""


async def reference(stream: Iterable[Sent], settings: Settings, directory: Path) -> Reference:
    """Run a file of the events that count, with the noise that repeats itself."""
    source, sink = directory / "events.jsonl", directory / "hitters.jsonl"
    counted = [sent for sent in stream if sent.counts]
    source.write_bytes(b"".join(sent.value + b"\n" for sent in counted))
    await run_lines(LineJob(str(source), sink=sink), settings, asked_by=Repeatable())
    hitters = [json.loads(line) for line in sink.read_text().splitlines()]
    timing = timing_of(settings.stream)
    last = timing.step_at(max(sent.time for sent in counted))
    return Reference(hitters, dict(_recount(counted, hitters, settings)), last)


def _recount(
    stream: list[Sent], hitters: list[dict], settings: Settings
) -> Iterator[tuple[int, dict[int, int]]]:
    """Who is charged when these items are reported: counted again, in the plainest way."""
    timing, key = timing_of(settings.stream), settings.privacy.key
    held: dict[int, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for sent in stream:
        event = json.loads(sent.value)
        mine = held[timing.step_at(sent.time)][event["user"]]
        mine[event["item"]] = max(sent.time, mine.get(event["item"], sent.time))
    names = Pseudonyms(bytes.fromhex(key.get_secret_value()))
    paid = {
        (hitter["step"], hitter["item"])
        for hitter in hitters
        if hitter["state"] == "gone" or hitter["estimate"] is not None
    }
    charges: dict[tuple[int, str], int] = defaultdict(int)
    for step in sorted(held):
        period = step // settings.privacy.period_steps
        paying = {}
        for user, mine in held[step].items():
            left = settings.privacy.contributions - charges[period, user]
            latest = sorted(mine, key=lambda item: (mine[item], item), reverse=True)
            counting = latest[: min(left, settings.stream.items_per_step)]
            number = sum((step, item) in paid for item in counting)
            charges[period, user] += number
            if number:
                paying[user] = FULL * number
        if paying:
            yield step, dict(zip(names.of([*paying]).tolist(), paying.values(), strict=True))
