"""Runs over files from end to end, with noise that is the same in every run."""

import asyncio
import gzip
import hashlib
import json
import os
import random
import shutil
import sqlite3
from itertools import pairwise
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
from streamer.stream.timing import format_rfc3339
from tests.service.repeatable import KEY as GIVEN_KEY
from tests.service.repeatable import Repeatable, event, events, settings, write_events

pytestmark = pytest.mark.slow

STEPS = [*range(3, 20), *range(24, 50)]
OWN_KEY = {"privacy": {"key": None}}
"""The key is the journal's own, not one from the settings."""


def lines_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def at(step):
    """The time at which a step begins, as a user writes it."""
    return format_rfc3339(1000 * step)


class Place:
    """A directory with a source, outputs and a journal."""

    def __init__(self, directory):
        self.directory = directory
        self.hitters, self.steps = directory / "hitters.jsonl", directory / "steps.jsonl"
        self.journal = directory / "journal"

    def run(self, source, sections=None, checkpoint=lambda _: None, **job):
        places = {"sink": self.hitters, "steps": self.steps, "journal": self.journal}
        made = LineJob(str(source), **{**places, **job})
        given = settings(**sections or {})
        return asyncio.run(run_lines(made, given, asked_by=Repeatable(), checkpoint=checkpoint))

    def run_piece(self, source, until, sections=None, start=3, **job):
        """Up to the start of this step; a new journal begins with step `start`."""
        sections = sections or {}
        stream = {"start": at(start), **sections.get("stream", {})}
        return self.run(source, {**sections, "stream": stream}, until=at(until), **job)

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
    @pytest.mark.parametrize("ordered", [True, False])
    @pytest.mark.parametrize("read_again", [True, False])
    def test_runs_in_pieces_end_as_one_run_does(self, tmp_path, ordered, read_again):
        """Over one file that is read again, or over files that hold a piece each."""
        made = events(STEPS)
        one, several = Place(tmp_path / "one"), Place(tmp_path / "several")
        one.directory.mkdir()
        several.directory.mkdir()
        one.run_piece(one.write(made), 50, ordered=ordered)
        for start, end in pairwise((3, 9, 30, 50)):
            piece = [each for each in made if 1000 * start <= each["time"] < 1000 * end]
            source = several.write(made if read_again else piece)
            summary = several.run_piece(source, end, ordered=ordered)
            assert summary.accepted == len(piece)
            before, after = summary.already_closed, summary.left
            assert (before > 0, after > 0) == (read_again and start > 3, read_again and end < 50)
            assert before + len(piece) + after == summary.records
        assert several.hitters.read_bytes() == one.hitters.read_bytes()
        assert several.steps.read_bytes() == one.steps.read_bytes()
        assert len(lines_in(one.hitters)) > 20

    def test_the_last_piece_can_be_the_rest_of_the_file(self, place):
        source = place.write(events(STEPS))
        place.run_piece(source, 30)
        summary = place.run(source)
        assert (summary.steps, summary.left) == (20, 0)
        assert [record["step"] for record in lines_in(place.steps)] == [*range(3, 50)]

    def test_a_piece_without_an_event_closes_its_steps(self, place):
        empty = place.write([])
        assert place.run_piece(empty, 6).steps == 3
        assert place.run_piece(empty, 8).steps == 2
        assert [record["step"] for record in lines_in(place.steps)] == [3, 4, 5, 6, 7]
        assert place.hitters.read_bytes() == b""

    def test_events_before_the_start_are_of_closed_steps(self, place):
        source = place.write(events(range(3, 9)))
        summary = place.run(source, {"stream": {"start": at(5)}})
        assert (summary.already_closed, summary.accepted) == (32, 64)
        assert [record["step"] for record in lines_in(place.steps)] == [5, 6, 7, 8]

    def test_a_start_after_the_whole_file_decides_nothing(self, place):
        source = place.write(events(range(3, 9)))
        assert place.run(source, {"stream": {"start": at(20)}}).already_closed == 96
        assert place.steps.read_bytes() == b""

    def test_a_journal_begins_once(self, place):
        source = place.write(events(range(3, 9)))
        place.run_piece(source, 6)
        place.run_piece(source, 9, start=8)
        assert [record["step"] for record in lines_in(place.steps)] == [*range(3, 9)]

    def test_without_an_end_the_journal_is_ended(self, place):
        source = place.write(events(STEPS))
        place.run(source)
        before = place.content()
        for run in (place.run, lambda source: place.run_piece(source, 99)):
            with pytest.raises(UnusableJournalError, match=r"is ended.*--until for runs in pieces"):
                run(source)
        assert place.content() == before

    @pytest.mark.parametrize("made", [[], [event("one", "x", 5000)]], ids=["empty", "one event"])
    def test_it_is_ended_whether_or_not_the_file_has_an_event(self, place, made):
        place.run(place.write(made))
        with pytest.raises(UnusableJournalError, match="is ended"):
            place.run(place.write(events(STEPS)))

    def test_a_piece_can_be_of_a_run_that_keeps_nothing(self, place):
        source = place.write(events(STEPS))
        assert place.run_piece(source, 10, journal=None).steps == 7

    def test_changed_terms_begin_with_the_next_period_and_one_warning_says_so(self, place, caplog):
        made = events(range(3, 60))
        place.run_piece(place.write(made[: 16 * 20], "first.jsonl"), 23)
        assert not caplog.records
        changed = {"privacy": {"epsilon": 2.0}}
        place.run_piece(place.write(made, "second.jsonl"), 60, changed)
        [warning] = caplog.messages
        assert "differ from those of the current period, 0" in warning
        assert "1970-01-01T00:00:40Z" in warning
        told = {(record["step"] >= 40, record["epsilon"]) for record in lines_in(place.hitters)}
        assert told == {(False, 1.0), (True, 2.0)}
        place.run_piece(place.write(made, "third.jsonl"), 61, changed)
        assert len(caplog.messages) == 1

    def test_the_journals_own_key_is_used_again(self, place):
        source = place.write(events(STEPS))
        place.run_piece(source, 50, OWN_KEY)
        key = (place.journal / KEY).read_bytes()
        place.run(place.write(events(range(50, 60))), OWN_KEY)
        assert (place.journal / KEY).read_bytes() == key


class CrashError(Exception):
    pass


def crash(point):
    raise CrashError(point)


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
        with pytest.raises(CrashError):
            place.run(source, checkpoint=crash, sink=place.directory / "other", steps=None)
        with pytest.raises(UnusableJournalError, match="their journal is missing"):
            place.run(source)

    @pytest.mark.parametrize("output", ["hitters", "steps"])
    def test_a_journal_that_is_older_than_the_results_is_refused(self, place, output):
        made = events(STEPS)
        place.run_piece(place.write(made, "first.jsonl"), 20)
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
        place.run_piece(source, 50)
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
            ({"stream": {"start": "yesterday"}}, "stream.start is yesterday: it must be a time"),
            (
                {"stream": {"epoch": "1970-01-01T00:00:08Z", "start": "1970-01-01T00:00:07Z"}},
                "stream.start is .* before stream.epoch, which is 1970-01-01T00:00:08Z",
            ),
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

    @pytest.mark.parametrize(
        ("until", "named"),
        [
            ("tomorrow", "--until is tomorrow: it must be a time such as"),
            (
                "1970-01-01T00:00:07.001Z",
                "start of a step; the nearest: 1970-01-01T00:00:07Z and 1970-01-01T00:00:08Z",
            ),
            ("9999-12-31T23:59:59.5Z", "the nearest: 9999-12-31T23:59:59Z$"),
        ],
    )
    def test_an_end_that_is_no_start_of_a_step(self, place, source, until, named):
        with pytest.raises(SettingError, match=named):
            place.run(source, until=until)

    def test_an_end_of_a_new_journal_without_its_start(self, place, source):
        with pytest.raises(InputError, match=r"--until with a new journal needs stream.start"):
            place.run(source, until=at(5))

    @pytest.mark.parametrize("until", [3, 2])
    def test_an_end_that_is_not_after_the_start(self, place, source, until):
        with pytest.raises(InputError, match=f"is {at(until)}: .* stream.start, which is {at(3)}"):
            place.run_piece(source, until)

    def test_a_live_pipe_with_an_end(self, place):
        with pytest.raises(InputError, match="--live and --until exclude each other"):
            place.run("-", live=True, until=at(5))

    def test_a_live_and_sorted_pipe(self, place):
        with pytest.raises(InputError, match="cannot be combined"):
            place.run("-", live=True, ordered=True)


@pytest.mark.parametrize("until", [20, 19, 4])
def test_an_end_that_is_closed_already_changes_nothing(place, until):
    source = place.write(events(STEPS))
    place.run_piece(source, 20)
    before = place.content()
    with pytest.raises(
        InputError, match=rf"is {at(until)}: .* closed up to {at(20)}; name a later"
    ):
        place.run_piece(source, until, sink=place.directory / "other")
    assert place.content() == before


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
