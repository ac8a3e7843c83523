"""`streamer run` as a process: how it ends, and that it goes on where it was."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from tests.kafka.harness import (
    DEADLINE,
    Record,
    event,
    eventually,
    produce,
    running,
    values_of,
)
from tests.stream.making import RepeatingDecider

STREAM = {"step_seconds": 0.25, "lateness_seconds": 0.1}


class Process:
    """A process of the service, with what it has said."""

    def __init__(self, settings, directory):
        sections = settings.model_dump(exclude_unset=True)
        sections["privacy"]["key"] = settings.privacy.key.get_secret_value()
        given = {
            f"STREAMER_{section}__{name}".upper(): str(value)
            for section, values in sections.items()
            for name, value in values.items()
        }
        self._said = directory / "said"
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "streamer.cli", "run"],
                env=os.environ | given,
                stdout=said,
                stderr=said,
            )

    @property
    def said(self):
        return self._said.read_text()

    def send(self, what):
        self._process.send_signal(what)

    async def ended(self, seconds=DEADLINE):
        """Its exit code."""
        return await asyncio.to_thread(self._process.wait, seconds)

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def started(tmp_path):
    processes = []

    def started(settings):
        processes.append(Process(settings, tmp_path))
        return processes[-1]

    yield started
    for process in processes:
        process.close()


@asynccontextmanager
async def load(world):
    """Events all the time, a few hundred in each step."""
    enough = asyncio.Event()

    async def send():
        number = 0
        while not enough.is_set():
            events = [Record(event(number + n, "crash"), n % 4) for n in range(100)]
            await produce(world.bootstrap, world.topic("events"), events)
            number += 100

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        enough.set()
        await task


async def steps_of(world, number):
    """The records of steps, when there are so many of them."""
    records = []
    async with asyncio.timeout(DEADLINE):
        while len(records) < number:
            records = await values_of(world.bootstrap, world.topic("steps"))
    return records


@pytest.mark.parametrize("what", [signal.SIGTERM, signal.SIGINT], ids=lambda each: each.name)
async def test_it_ends_in_order_under_load_and_goes_on_later(world, started, what):
    settings = world.settings(stream=STREAM)
    process = started(settings)
    await eventually(lambda: "reading" in process.said)
    async with load(world):
        await steps_of(world, 4)
        process.send(what)
        assert await process.ended() == 0
        assert "Traceback" not in process.said
        before = await values_of(world.bootstrap, world.topic("steps"))
        decider = RepeatingDecider(threshold=1)
        async with running(settings, asked_by=decider) as service:
            await eventually(lambda: service.summary.steps >= 4)
    records = await values_of(world.bootstrap, world.topic("steps"))
    numbers = [record["step"] for record in records]
    assert len(records) > len(before)
    assert records[: len(before)] == before
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


class TestInAHurry:
    """A broker that takes a connection and never says a word: an orderly end takes a while."""

    @pytest.fixture
    def mute(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server

    def settings(self, world, mute, **kafka):
        host, port = mute.getsockname()
        return world.settings(kafka={"bootstrap_servers": f"{host}:{port}", **kafka})

    async def test_a_second_signal_ends_it_at_once(self, world, started, mute):
        process = started(self.settings(world, mute, request_timeout_seconds=600))
        connection, _ = await asyncio.to_thread(mute.accept)
        with connection:
            code = None
            async with asyncio.timeout(DEADLINE):
                while code is None:
                    process.send(signal.SIGINT)
                    try:
                        code = await process.ended(0.1)
                    except subprocess.TimeoutExpired:
                        continue
        assert code == 130
        assert "Traceback" not in process.said

    async def test_it_ends_with_its_deadline(self, world, started, mute):
        hurry = {"request_timeout_seconds": 600, "shutdown_seconds": 0.2}
        process = started(self.settings(world, mute, **hurry))
        connection, _ = await asyncio.to_thread(mute.accept)
        with connection:
            process.send(signal.SIGTERM)
            assert await process.ended() == 0
        assert "Traceback" not in process.said


async def test_a_process_that_is_replaced_says_so_and_ends_with_code_3(world, started):
    settings = world.settings(stream=STREAM)
    process = started(settings)
    await eventually(lambda: "reading" in process.said)
    async with running(settings):
        assert await process.ended() == 3
    last = json.loads(process.said.splitlines()[-1])
    assert (last["level"], last["message"], last["exit_code"]) == (
        "error",
        f"a newer instance has taken over transactional_id {world.name}: this one ends",
        3,
    )
    assert "Traceback" not in process.said
