"""Logs of whole runs, with everything that can happen in them: never a word about anybody."""

import asyncio
import json
import re
import signal
import time

import pytest

from streamer.stream.pseudonyms import Pseudonyms
from tests.kafka.harness import Record, produce, values_of
from tests.kafka.served import serving

KEY = "5ec4e7" * 10 + "abcd"
STREAM = {"step_seconds": 1.0, "lateness_seconds": 1.0}
PRIVACY = {"key": KEY, "epsilon": 8.0, "contributions": 1, "items": 100}
USERS = [f"person-{n:04d}@example.org" for n in range(2_000)]
REPORTED = "crash:SharedByMany"
RARE = [f"https://private.example/{n:03d}" for n in range(50)]
LATE_USERS = [f"latecomer-{n:02d}" for n in range(20)]
WRONG_USERS = [f"wrongdoer-{n:02d}" for n in range(6)]
WRONG_ITEM = "error:OfAWrongRecord"


@pytest.fixture
def serve(tmp_path):
    with serving(tmp_path) as serve:
        yield serve


def event(user, item, **more):
    return json.dumps({"user": user, "item": item, **more}).encode()


def stream():
    """Accepted events, duplicates, late ones, and records of every kind of wrong."""
    now = round(time.time() * 1000) + 500
    yield from (event(user, REPORTED, time=now) for user in USERS)
    yield from (event(user, item, time=now) for user, item in zip(USERS, RARE, strict=False))
    yield from (event(user, "late:" + RARE[0], time=now - 3_600_000) for user in LATE_USERS)
    wrong = iter(WRONG_USERS)
    yield event(next(wrong), WRONG_ITEM, time="yesterday")
    yield event(next(wrong), WRONG_ITEM, time=now + 3_600_000)
    yield event(next(wrong), WRONG_ITEM * 100)
    yield event(next(wrong) * 100, WRONG_ITEM)
    yield event(next(wrong), WRONG_ITEM)[:-1]
    yield event(next(wrong), [WRONG_ITEM])


async def send(world):
    records = [Record(value, n % 4) for n, value in enumerate(stream())]
    await produce(world.bootstrap, world.topic("events"), records)
    return len(records)


def pseudonyms():
    """In every form that a program might print them in."""
    users = [*USERS, *LATE_USERS, *WRONG_USERS]
    for number in Pseudonyms(bytes.fromhex(KEY)).of(users).tolist():
        yield from (str(number), f"{number:x}", f"{number:X}", f"{number:016x}")
        yield number.to_bytes(8, "little").hex()


def found(text, words):
    """Which of many words are in a text, looked for all at once."""
    forms = re.compile("|".join(map(re.escape, sorted(set(words), key=len, reverse=True))))
    return sorted(set(forms.findall(text)))


async def test_no_user_and_no_item_that_was_not_reported_is_ever_logged(world, serve):
    settings = world.settings(stream=STREAM, privacy=PRIVACY)
    first = serve(settings)
    await first.ready()
    sent = await send(world)
    await first.measured(lambda figures: figures["hitters_total"])
    await send(world)  # by now everybody is exhausted
    await first.measured(lambda figures: figures["records_read_total"] == 2 * sent)
    first.send(signal.SIGKILL)
    await first.ended()
    second = serve(settings)
    await second.measured(lambda figures: figures["steps_closed_total"])
    third = serve(settings)
    assert await second.ended() == 3
    await third.measured(lambda figures: figures["steps_closed_total"])
    await third.finish()
    said = first.said + second.said + third.said
    assert said.count("closed, hitters: ") >= 3
    assert found(said, [*USERS, *LATE_USERS, *WRONG_USERS]) == []
    assert found(said, [*RARE, WRONG_ITEM, REPORTED]) == []
    assert found(said, pseudonyms()) == []
    assert KEY not in said


def test_the_search_finds_what_is_there():
    number = int(Pseudonyms(bytes.fromhex(KEY)).of([USERS[7]])[0])
    assert found(f"charged {number}", pseudonyms()) == [str(number)]
    assert found(f"{{'users': [0x{number:x}]}}", pseudonyms()) == [f"{number:x}"]
    assert found(f"user={USERS[7]}!", USERS) == [USERS[7]]


async def test_every_line_is_an_object_that_says_when_who_and_what(world, serve):
    service = serve(world.settings())
    await service.measured(lambda figures: figures["steps_closed_total"])
    await service.finish()
    assert all(list(line)[:4] == ["time", "level", "logger", "message"] for line in service.lines)
    assert {line["logger"].split(".")[0] for line in service.lines} == {"streamer"}
    messages = [line["message"] for line in service.lines]
    assert messages[0].startswith("metrics and health at http://127.0.0.1:")
    assert messages[-1] == "shutting down on SIGTERM" or "closed, hitters" in messages[-1]
    [unique] = [message for message in messages if "items of single users" in message]
    assert unique.endswith(" a year expected among 1,000,000 users")


async def test_each_record_of_the_steps_topic_is_one_line_and_nothing_more(world, serve):
    # One hitter in all: it is public in its own step only, and then its holders have no budget.
    paper = PRIVACY | {"attention": "every_step"}
    settings = world.settings(stream=STREAM, privacy=paper)
    lines = []
    for _ in range(2):
        service = serve(settings)
        await service.ready()
        await send(world)
        await service.measured(lambda figures: figures["records_read_total"] > len(USERS))
        await service.measured(lambda figures: figures["buffered_events"] == 0)
        await service.finish()
        lines += [line for line in service.lines if "closed, hitters" in line["message"]]
    records = await values_of(world.bootstrap, world.topic("steps"))
    told = ("step", "first", "end", "hitters", "period")
    assert [{name: line[name] for name in told} for line in lines] == [
        {"first": record["step"]} | {name: record[name] for name in told if name in record}
        for record in records
    ]
    assert sum(record["hitters"] for record in records) == 1
    assert {line["level"] for line in lines} == {"info"}
    ours = {"time", "level", "logger", "message"}
    assert {name for line in lines for name in line} - ours == set(told)


async def test_from_warning_on_a_run_that_goes_well_says_nothing(world, serve):
    service = serve(world.settings(log={"level": "warning"}, metrics={"port": 0}))
    await eventually_closed(world)
    await service.finish()
    assert service.said == ""


async def eventually_closed(world):
    """Wait for a step without the port, which is not told at this level."""
    async with asyncio.timeout(60):
        while True:
            try:
                if await values_of(world.bootstrap, world.topic("steps")):
                    return
            except TypeError:  # the topic is yet to be made
                await asyncio.sleep(0.1)


async def test_on_a_terminal_lines_are_for_people(world, serve):
    service = serve(world.settings(log={"format": "text"}))
    await service.measured(lambda figures: figures["steps_closed_total"])
    await service.finish()
    lines = service.said.splitlines()
    assert all(line.startswith("streamer: ") for line in lines)
    assert any(re.fullmatch(r"streamer: step \d+ closed, hitters: 0", line) for line in lines)
