"""A ledger that version 0.1.0 wrote is restored as 0.1.0 restored it, and goes on.

`data/0.1.0` was written by that version's own code: two periods, a snapshot in parts, charges
since, and a last decision that a crash kept from being noted as published. The file journal
comes with its key and its results, the last of them half written; the state topic as the last
value of each key. `restored.json` is what that version restored from each of them.
"""

import base64
import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from streamer.config import load
from streamer.errors import JournalWriteError, UnusableJournalError
from streamer.kafka.ledger_records import LifeRecord
from streamer.kafka.state_topic import interpret
from streamer.ledger import output_files
from streamer.ledger.contract import Entry, Life
from streamer.ledger.directory import JournalDirectory
from streamer.ledger.file_ledger import peek
from streamer.ledger.file_tables import Tables
from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter
from streamer.service.line_job import LineJob, run_lines
from streamer.service.resume import check_key
from streamer.stream.decided import Decided
from streamer.stream.periods import Period
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.timing import StepTiming, format_rfc3339
from tests.ledger.making import counters_of, entry, facts_of, publication_of, users
from tests.ledger.stores import FileStore, KafkaStore

DATA = Path(__file__).parent / "data" / "0.1.0"


def as_now(period):
    """A period of 0.1.0 with the fields that came later, which change nothing about it."""
    return msgspec.to_builtins(msgspec.convert(period, Period))


def restored_then():
    """What 0.1.0 restored."""
    facts = json.loads((DATA / "restored.json").read_text())
    facts["period"] = as_now(facts["period"])
    for decision in (facts["last"], *facts["history"]):
        decision[2] = as_now(decision[2])
    return facts


RESTORED = restored_then()
LIFE = Life(60_000, 1_767_225_600_000)
TIMING = StepTiming(LIFE.length_ms, LIFE.epoch_ms)
KEY = Pseudonyms(bytes.fromhex((DATA / "key").read_text()))
EVENTS = "events"
"""The topic whose events the state topic is about."""


def state_records():
    records = json.loads((DATA / "state-topic.json").read_text())
    return {key.encode(): base64.b64decode(value) for key, value in records.items()}


def written(directory):
    """The files that were left."""
    store = FileStore(directory)
    for name in ("key", "hitters.jsonl", "steps.jsonl"):
        shutil.copy(DATA / name, directory)
    store.path.write_bytes(gzip.decompress((DATA / "journal.sqlite.gz").read_bytes()))
    return store


@pytest.fixture(params=["file", pytest.param("kafka", marks=pytest.mark.kafka)])
async def store(request, tmp_path, monkeypatch):
    if request.param == "file":
        # The results were in another directory, whose name is in the journal.
        monkeypatch.setattr(output_files, "_name", lambda path: f"/results/{path.name}")
        return written(tmp_path)
    store = KafkaStore(request.getfixturevalue("world"))
    store.topics = replace(store.topics, events=EVENTS)
    await store.make()
    await store.put(state_records())
    return store


async def test_it_is_restored_as_it_was(store):
    restored = await store.restored(life=LIFE, key=KEY)
    assert facts_of(restored) == RESTORED
    check_key(restored, KEY)


async def test_it_goes_on(store):
    async with store.opened(life=LIFE, key=KEY) as ledger:
        restored = await ledger.restore()
        await ledger.claim()
        last = restored.last.decided
        await ledger.publish(publication_of(last, restored.published, TIMING))
        decided = Decided(
            15, 15, restored.state.period, (Hitter("new", 600),), Charges.full(users(5, 8))
        )
        await ledger.append(Entry(decided, {"0": 1500, "1": 15}))
        await ledger.publish(publication_of(decided, timing=TIMING))
    results, steps = await store.published()
    assert [(each["step"], each["item"], each["estimate"]) for each in results][-3:] == [
        *((14, hitter.item, hitter.estimate) for hitter in last.hitters),
        (15, "new", 600),
    ]
    assert len({(each["step"], each["item"]) for each in results}) == len(results)
    recorded = [each["step"] for each in steps]
    assert recorded == [*range(recorded[0], 16)]
    now = facts_of(await store.restored(life=LIFE, key=KEY))
    counters = dict(RESTORED["counters"])
    assert dict(now["counters"]) == {**counters, 5: counters[5] + 1, 8: 1}
    assert (now["closed"], now["published"], now["offsets"]) == (15, 15, {"0": 1500, "1": 15})
    assert now["history"][:-1] == RESTORED["history"]
    assert now["resting"] == {
        **{item: step for item, step in RESTORED["resting"].items() if step > 16},
        "new": 18,
    }


async def test_it_can_take_a_snapshot(store):
    state = (await store.restored(life=LIFE, key=KEY)).state
    async with store.resumed(life=LIFE, key=KEY) as ledger:
        await ledger.snapshot(state.charges)
    assert facts_of(await store.restored(life=LIFE, key=KEY)) == RESTORED


async def test_a_new_period_can_begin(store):
    period = (await store.restored(life=LIFE, key=KEY)).state.period
    async with store.resumed(life=LIFE, key=KEY) as ledger:
        charges = Charges.full(users(9))
        await ledger.append(Entry(Decided(20, 15, period.at(20, period.terms), (), charges)))
    assert counters_of(await store.restored(life=LIFE, key=KEY)) == {9: 1}


async def test_it_counts_one_item_of_a_user_in_a_step_until_its_period_is_over(store):
    assert (await store.restored(life=LIFE, key=KEY)).state.period.terms.items_per_step == 1


async def format_of(store):
    if isinstance(store, FileStore):
        return store.format
    return msgspec.json.decode((await store.state())["life"])["format"]


async def set_format(store, number):
    if isinstance(store, FileStore):
        store.alter(f"PRAGMA user_version = {number}")
    else:
        life = msgspec.json.decode((await store.state())["life"])
        await store.put({b"life": msgspec.json.encode(life | {"format": number})})


class TestConversion:
    """It is stored in units as soon as a run takes it over."""

    async def test_a_look_at_it_changes_nothing(self, store):
        before = await store.contents()
        await store.restored(life=LIFE, key=KEY)
        assert await store.contents() == before
        assert await format_of(store) == 1

    async def test_what_it_says_stays_the_same(self, store):
        for _ in range(2):
            async with store.resumed(life=LIFE, key=KEY):
                pass
            assert facts_of(await store.restored(life=LIFE, key=KEY)) == RESTORED

    async def test_earlier_versions_refuse_it_from_then_on(self, store):
        async with store.resumed(life=LIFE, key=KEY):
            pass
        known = (1, 2) if isinstance(store, FileStore) else (1,)
        assert await format_of(store) not in known

    async def test_its_new_format_is_not_taken_for_the_old_one(self, store):
        async with store.resumed(life=LIFE, key=KEY):
            pass
        await set_format(store, 1)
        with pytest.raises(UnusableJournalError, match=r"cannot be (read|used)"):
            await store.restored(life=LIFE, key=KEY)

    async def test_its_old_format_is_not_taken_for_the_new_one(self, store):
        await set_format(store, 3 if isinstance(store, FileStore) else 2)
        with pytest.raises(UnusableJournalError, match=r"cannot be (read|used)"):
            await store.restored(life=LIFE, key=KEY)

    async def test_one_that_is_interrupted_is_taken_back(self, tmp_path, monkeypatch):
        monkeypatch.setattr(output_files, "_name", lambda path: f"/results/{path.name}")
        store = written(tmp_path)
        with monkeypatch.context() as full:
            full.setattr(Tables, "put_snapshot", fails)
            with pytest.raises(JournalWriteError, match="nothing was changed"):
                async with store.resumed(life=LIFE, key=KEY):
                    pass
        assert store.format == 1
        assert facts_of(await store.restored(life=LIFE, key=KEY)) == RESTORED


def fails(*_):
    raise sqlite3.OperationalError("disk full")


def test_a_look_at_the_files_finds_the_same(tmp_path):
    found = peek(written(tmp_path).path)
    assert (found.life, facts_of(found.restored), found.ended) == (LIFE, RESTORED, False)


@pytest.mark.parametrize(
    ("until", "closed"), [(TIMING.start(20), 19), (None, 16)], ids=["in pieces", "to its end"]
)
async def test_a_run_over_a_file_continues_it(tmp_path, monkeypatch, until, closed):
    monkeypatch.setattr(output_files, "_name", lambda path: f"/results/{path.name}")
    store = written(tmp_path)
    source = tmp_path / "events.jsonl"
    source.write_text(f'{{"user": "u", "item": "x", "time": {TIMING.start(16)}}}\n')
    time = {"step_seconds": 60.0, "epoch": format_rfc3339(LIFE.epoch_ms)}
    job = LineJob(
        str(source),
        until=None if until is None else format_rfc3339(until),
        sink=store.hitters,
        steps=store.steps,
        journal=tmp_path,
    )
    summary = await run_lines(job, load({"stream": time}))
    assert (summary.steps, summary.accepted) == (closed - 14, 1)
    found = peek(store.path)
    assert (found.restored.state.closed, found.restored.published) == (closed, closed)
    assert found.ended == (until is None)
    results, steps = await store.published()
    last = [(each["item"], each["estimate"]) for each in results if each["step"] == 14]
    assert last == [tuple(hitter) for hitter in RESTORED["last"][3]]
    assert [each["step"] for each in steps][-3:] == [closed - 2, closed - 1, closed]


async def test_one_that_was_left_before_its_first_decision_is_new(tmp_path):
    """It noted what comes before the first decision on its own, not together with it."""
    store = FileStore(tmp_path)
    assert await store.restored() is None
    with closing(sqlite3.connect(store.path)) as database, database:
        Tables(database).put_published(6, {"/results/hitters.jsonl": 0})
    async with store.opened() as ledger:
        assert await ledger.restore() is None
        await ledger.claim()
        await ledger.append(entry(9, [5], ["a"]))
    assert (await store.restored()).published == 8


def test_its_key_is_found(tmp_path):
    written(tmp_path)
    directory = JournalDirectory(tmp_path)
    assert Pseudonyms(bytes.fromhex(directory.key())).fingerprint == RESTORED["key"]
    directory.close()


def test_the_records_of_the_topic_say_the_same():
    records = state_records()
    del records[b"transaction"]
    assert facts_of(interpret(records, "state", LifeRecord.of(LIFE, EVENTS)).restored) == RESTORED
