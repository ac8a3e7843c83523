"""Runs over files from end to end, with noise that is the same in every run."""

import asyncio
import gzip
import hashlib
import json
import os
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from streamer.errors import (
    ConfigurationError,
    InputError,
    OutputError,
    SettingError,
    UnusableJournalError,
)
from streamer.ledger.directory import DATABASE, KEY
from streamer.service.line_job import LineJob, run_lines
from tests.service.repeatable import KEY as GIVEN_KEY
from tests.service.repeatable import Repeatable, event, events, settings, write_events

pytestmark = pytest.mark.slow

STEPS = [*range(3, 20), *range(24, 50)]
OWN_KEY = {"privacy": {"key": None}}
"""The key is the journal's own, not one from the settings."""


def lines_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def items_of(records):
    return [(record["step"], record["item"], record["estimate"]) for record in records]


class Place:
    """A directory with a source, outputs and a journal."""

    def __init__(self, directory):
        self.directory = directory
        self.hitters, self.steps = directory / "hitters.jsonl", directory / "steps.jsonl"
        self.journal = directory / "journal"

    def run(self, source, sections=None, **job):
        places = {"sink": self.hitters, "steps": self.steps, "journal": self.journal}
        made = LineJob(str(source), **{**places, **job})
        return asyncio.run(run_lines(made, settings(**sections or {}), asked_by=Repeatable()))

    def write(self, made, name="events.jsonl"):
        return write_events(self.directory / name, made)

    def content(self):
        """A hash of everything that is there."""
        return {
            str(path.relative_to(self.directory)): (
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
            )
            for path in sorted(self.directory.rglob("*"))
        }


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


class TestFiles:
    def test_the_order_of_lines_does_not_matter(self, tmp_path):
        made = events(STEPS)
        shuffled = random.Random(5).sample(made, len(made))
        outcomes = []
        for name, lines, ordered in (
            ("sorted", made, True),
            ("unordered", made, False),
            ("shuffled", shuffled, False),
        ):
            (tmp_path / name).mkdir()
            place = Place(tmp_path / name)
            report = place.run(place.write(lines), ordered=ordered)
            assert report.accepted == len(made)
            assert report.late == 0
            outcomes.append((place.hitters.read_bytes(), place.steps.read_bytes()))
        assert outcomes[0] == outcomes[1] == outcomes[2]
        assert len(outcomes[0][0].splitlines()) > 20

    def test_a_packed_file_is_read_as_an_unpacked_one(self, tmp_path):
        contents = []
        for name in ("plain", "packed"):
            (tmp_path / name).mkdir()
            place = Place(tmp_path / name)
            source = place.write(events(STEPS))
            if name == "packed":
                packed = source.with_suffix(".jsonl.gz")
                packed.write_bytes(gzip.compress(source.read_bytes()))
                source = packed
            place.run(source)
            contents.append(place.hitters.read_bytes())
        assert contents[0] == contents[1]

    def test_an_event_out_of_order_is_named_by_its_line(self, place):
        made = events(range(3, 8))
        made.append(event("late", "crash:A", 3500))
        source = place.write(made)
        source.write_text("\n" + source.read_text())
        with pytest.raises(InputError, match=rf"line {len(made) + 1} is earlier than"):
            place.run(source, ordered=True)

    def test_bad_records_are_counted_and_do_not_stop_anything(self, place):
        source = place.write(events(STEPS))
        with source.open("ab") as file:
            file.write(b"no json\n{}\n" + b"x" * 100_000 + b"\n")
        summary = place.run(source)
        assert sum(summary.rejected.values()) == 3
        assert len(summary.rejected) == 3
        assert summary.records == summary.accepted + 3

    def test_a_file_without_events_decides_nothing(self, place):
        source = place.directory / "empty.jsonl"
        source.touch()
        assert place.run(source).steps == 0
        assert place.hitters.read_bytes() == place.steps.read_bytes() == b""
        assert place.run(place.write(events(STEPS))).steps == 47

    def test_every_step_has_one_record_and_a_long_quiet_run_shares_one(self, place):
        made = [*events([3, 4, 5, 9]), event(1, "alone", 200_000), *events([1000])]
        place.run(place.write(made))
        records = lines_in(place.steps)
        ranges = [(record.get("first", record["step"]), record["step"]) for record in records]
        assert [step for first, last in ranges for step in range(first, last + 1)] == list(
            range(3, 1001)
        )
        [long] = [record for record in records if "first" in record]
        hitting = [record["step"] for record in records if record["hitters"]]
        assert (long["hitters"], long["step"] + 1) == (0, hitting[-1])
        assert long["first"] == hitting[-2] + 1
        assert long["start"] == f"1970-01-01T00:00:{long['first']:02}Z"

    def test_a_million_quiet_steps_close_at_once(self, place):
        made = [*events([3]), *events([1_000_003], seed=2)]
        assert place.run(place.write(made)).steps == 1_000_001
        assert len(lines_in(place.steps)) <= 3

    def test_without_a_journal_nothing_is_kept(self, place):
        place.run(place.write(events(STEPS)), {"privacy": {"key": None}}, journal=None)
        assert sorted(path.name for path in place.directory.iterdir()) == [
            "events.jsonl",
            "hitters.jsonl",
            "steps.jsonl",
        ]


class TestGoingOn:
    def test_a_second_file_continues_the_journal(self, tmp_path):
        made = events(STEPS)
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        one, two = Place(tmp_path / "one"), Place(tmp_path / "two")
        one.run(one.write(made))
        split = next(place for place, each in enumerate(made) if each["time"] >= 30_000)
        two.run(two.write(made[:split], "first.jsonl"))
        report = two.run(two.write(made[split:], "second.jsonl"))
        assert report.already_closed == 0
        assert two.hitters.read_bytes() == one.hitters.read_bytes()
        assert lines_in(two.steps) == lines_in(one.steps)

    @pytest.mark.parametrize("ordered", [True, False])
    def test_a_second_run_over_the_same_file_decides_nothing(self, place, ordered):
        source = place.write(events(STEPS))
        place.run(source, ordered=ordered)
        before = place.hitters.read_bytes(), place.steps.read_bytes()
        summary = place.run(source, ordered=ordered)
        assert (summary.steps, summary.accepted) == (0, 0)
        assert summary.already_closed == summary.records == 16 * len(STEPS)
        assert (place.hitters.read_bytes(), place.steps.read_bytes()) == before

    def test_changed_terms_begin_with_the_next_period_and_one_warning_says_so(self, place, caplog):
        made = events(range(3, 60))
        place.run(place.write(made[: 16 * 20], "first.jsonl"))
        assert not caplog.records
        changed = {"privacy": {"epsilon": 2.0}}
        place.run(place.write(made, "second.jsonl"), changed)
        [warning] = caplog.messages
        assert "differ from those of the current period, 0" in warning
        assert "1970-01-01T00:00:40Z" in warning
        told = {(record["step"] >= 40, record["epsilon"]) for record in lines_in(place.hitters)}
        assert told == {(False, 1.0), (True, 2.0)}
        place.run(place.write(made, "third.jsonl"), changed)
        assert len(caplog.messages) == 1

    def test_the_journals_own_key_is_used_again(self, place):
        source = place.write(events(STEPS))
        place.run(source, OWN_KEY)
        key = (place.journal / KEY).read_bytes()
        place.run(place.write(events(range(50, 60))), OWN_KEY)
        assert (place.journal / KEY).read_bytes() == key


class TestFailingClosed:
    @pytest.mark.parametrize("journal", [True, False])
    def test_results_without_their_journal_are_refused(self, place, journal):
        source = place.write(events(STEPS))
        place.run(source)
        shutil.rmtree(place.journal)
        before = place.content()
        job = {} if journal else {"journal": None}
        with pytest.raises(UnusableJournalError, match=r"their journal is missing.*--start-anew"):
            place.run(source, **job)
        assert place.content() == before
        hitters = place.hitters.read_text()
        place.run(source, start_anew=True, **job)
        assert place.hitters.read_text() == hitters + hitters

    def test_an_empty_journal_beside_results_is_refused(self, place):
        source = place.write(events(STEPS))
        place.run(source)
        shutil.rmtree(place.journal)
        empty = place.directory / "empty.jsonl"
        empty.touch()
        place.run(empty, sink=place.directory / "other", steps=None)
        with pytest.raises(UnusableJournalError, match="their journal is missing"):
            place.run(source)

    @pytest.mark.parametrize("output", ["hitters", "steps"])
    def test_a_journal_that_is_older_than_the_results_is_refused(self, place, output):
        made = events(STEPS)
        place.run(place.write(made[:300], "first.jsonl"))
        shutil.copytree(place.journal, place.directory / "backup")
        source = place.write(made, "second.jsonl")
        place.run(source)
        shutil.rmtree(place.journal)
        (place.directory / "backup").rename(place.journal)
        (place.steps if output == "hitters" else place.hitters).unlink()
        content = getattr(place, output).read_bytes()
        with pytest.raises(UnusableJournalError, match=rf"{output}\.jsonl.*journal is older"):
            place.run(source)
        assert getattr(place, output).read_bytes() == content

    def test_a_lost_key_is_refused(self, place):
        source = place.write(events(STEPS))
        place.run(source, OWN_KEY)
        (place.journal / KEY).unlink()
        before = place.content()
        with pytest.raises(UnusableJournalError, match=r"the key of the journal .* is missing"):
            place.run(source, OWN_KEY)
        assert place.content() == before

    def test_another_key_is_refused_while_users_are_charged(self, place):
        source = place.write(events(STEPS))
        place.run(source)
        before = place.content()
        with pytest.raises(UnusableJournalError, match="with another key"):
            place.run(source, {"privacy": {"key": "ab" * 32}})
        assert place.content() == before

    @pytest.mark.parametrize(
        ("section", "named"),
        [({"step_seconds": 2.0}, "step_seconds"), ({"epoch": "1970-01-01T00:00:01Z"}, "epoch")],
    )
    def test_time_is_cut_into_steps_once_and_for_all(self, place, section, named):
        source = place.write(events(STEPS))
        place.run(source)
        before = place.content()
        with pytest.raises(UnusableJournalError, match=named):
            place.run(source, {"stream": section})
        assert place.content() == before


class TestBadInputChangesNothing:
    @pytest.fixture
    def source(self, place):
        return place.write(events([3, 4]))

    @pytest.fixture(autouse=True)
    def unchanged(self, place, source):
        yield
        assert list(place.content()) in (["events.jsonl"], ["events.jsonl", "journal", self.OURS])

    OURS = f"journal/{DATABASE}"

    def test_a_missing_file(self, place):
        with pytest.raises(InputError, match="No such file"):
            place.run(place.directory / "no.jsonl")

    def test_a_file_of_another_kind(self, place):
        with pytest.raises(InputError, match=r"name a \.jsonl"):
            place.run("/dev/null")

    @pytest.mark.parametrize(
        ("sections", "named"),
        [
            ({"stream": {"step_seconds": 0}}, "stream.step_seconds is 0"),
            ({"stream": {"step_seconds": 0.0015}}, "whole number of milliseconds"),
            ({"stream": {"epoch": "2026-01-01T00:00:00"}}, "stream.epoch is 2026-01-01T00:00:00"),
            ({"stream": {"ahead_seconds": 0.0001}}, "stream.ahead_seconds"),
            ({"privacy": {"key": "abc"}}, "privacy.key is invalid: it must be 64 hex digits"),
            ({"privacy": {"key_file": "/no/key", "key": None}}, "privacy.key_file is /no/key"),
            ({"privacy": {"key_file": "/no/key"}}, "privacy.key is set too"),
            ({"privacy": {"epsilon": -1}}, "epsilon is -1"),
            ({"privacy": {"refresh_steps": 0}}, "refresh_steps is 0"),
        ],
    )
    def test_wrong_settings(self, place, source, sections, named):
        with pytest.raises((SettingError, ConfigurationError), match=named):
            place.run(source, sections)

    def test_a_foreign_database(self, place, source):
        place.journal.mkdir()
        database = sqlite3.connect(place.journal / DATABASE)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE mine (mine)")
        database.close()
        before = place.content()
        with pytest.raises(UnusableJournalError, match="not created by streamer"):
            place.run(source)
        assert place.content() == before

    def test_a_sink_that_cannot_be_written(self, place, source):
        for path in (place.directory / "no" / "sink", place.directory):
            with pytest.raises(OutputError):
                place.run(source, sink=path)
            with pytest.raises(OutputError):
                place.run(source, steps=path)

    def test_one_file_for_two_purposes(self, place, source):
        detour = place.directory / "journal" / ".." / "events.jsonl"
        place.journal.mkdir()
        for job in (
            {"sink": source},
            {"steps": source},
            {"sink": detour},
            {"sink": place.hitters, "steps": place.hitters},
        ):
            with pytest.raises(OutputError, match="must be different files"):
                place.run(source, **job)
        place.journal.rmdir()

    def test_a_live_file(self, place, source):
        with pytest.raises(InputError, match="--live reads standard input"):
            place.run(source, live=True)

    def test_a_live_and_sorted_pipe(self, place):
        with pytest.raises(InputError, match="cannot be combined"):
            place.run("-", live=True, ordered=True)


def test_the_key_of_the_settings_is_not_written_down(place):
    place.run(place.write(events(STEPS)))
    assert not (place.journal / KEY).exists()
    written = b"".join(path.read_bytes() for path in place.journal.iterdir())
    assert GIVEN_KEY.encode() not in written
    assert bytes.fromhex(GIVEN_KEY) not in written


def test_a_journal_that_may_only_be_read_is_left_as_it_is(place, monkeypatch):
    source = place.write(events(STEPS))
    place.run(source)
    before = place.content()
    # Whoever runs the tests may be allowed everything.
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != DATABASE)
    with pytest.raises(UnusableJournalError, match="is not writable: change its permissions"):
        place.run(source)
    assert place.content() == before
