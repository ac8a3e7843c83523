"""`streamer simulate`."""

import gzip
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from streamer.fleet.day import day_fleet, outbreaks_before
from streamer.fleet.fleet import Fleet
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak, plan_outbreaks
from tests.fleet.recount import event_of, recount

SMALL = ("--users", 300, "--steps", 6, "--seed", 1)
FIRST_STEP = 29_453_760  # 2026-01-01T00:00:00Z, in minutes since 1970
DIRTY = ("--duplicates", 0.2, "--delayed", 0.3, "--skewed", 0.3, "--bad", 0.2, "--earlier", 0.6)


@pytest.fixture
def simulated(run, tmp_path):
    """The event lines and the truth that come of these arguments."""

    def simulate(*arguments) -> tuple[list[bytes], list[dict]]:
        events, truth = tmp_path / "events.jsonl", tmp_path / "truth.jsonl"
        result = run("simulate", "--output", events, "--truth", truth, *arguments)
        assert (result.code, result.out) == (0, "")
        return (
            events.read_bytes().splitlines(),
            [json.loads(line) for line in truth.read_bytes().splitlines()],
        )

    return simulate


def test_the_truth_is_what_a_plain_recount_of_the_output_finds(simulated):
    for length in (60, 0.5):
        lines, truth = simulated(*SMALL, *DIRTY, "--floor", 1, "--step-seconds", length)
        assert all(list(line) == ["step", "item", "users"] for line in truth)
        counts = {(line["step"], line["item"]): line["users"] for line in truth}
        assert counts == recount(lines, int(length * 1000))
        assert any(event_of(line) is None for line in lines)


def test_the_floor_leaves_rare_items_out_of_the_truth(simulated):
    _, everything = simulated(*SMALL, "--items", 20, "--floor", 1)
    _, usual = simulated(*SMALL, "--items", 20)
    assert usual == [line for line in everything if line["users"] >= 10]
    assert 0 < len(usual) < len(everything)


def test_events_and_steps_begin_where_they_are_told_to(simulated):
    lines, truth = simulated(*SMALL, "--start", "2026-03-01T12:00:00+02:00", "--floor", 1)
    assert json.loads(lines[0])["time"].startswith("2026-03-01T10:00:0")
    assert {line["step"] for line in truth} == set(range(29_539_320, 29_539_326))
    assert 29_539_320 * 60 == 1_772_359_200  # 2026-03-01T10:00:00Z


def test_the_same_arguments_write_the_same_bytes_and_another_seed_others(run, tmp_path):
    def written(name: str, *arguments) -> bytes:
        assert run("simulate", *SMALL, *arguments, "--output", tmp_path / name).code == 0
        return (tmp_path / name).read_bytes()

    assert written("a.jsonl") == written("b.jsonl") != written("c.jsonl", "--seed", 2)
    assert written("a.jsonl.gz") == written("b.jsonl.gz")
    assert gzip.decompress(written("a.jsonl.gz")) == written("a.jsonl")
    assert run("simulate", *SMALL, "--bad", 0).out.encode() == written("d.jsonl", "--bad", 0)


def test_without_a_seed_one_is_drawn_and_said_so_that_it_can_be_repeated(run):
    arguments = ("simulate", "--users", 50, "--steps", 2, "--bad", 0)
    first, second = run(*arguments), run(*arguments)
    seeds = [re.search(r"--seed (\d+)\n", result.err)[1] for result in (first, second)]
    assert seeds[0] != seeds[1]
    assert run(*arguments, "--seed", seeds[0]).out == first.out


def test_it_ends_with_one_line_of_what_was_written(run):
    result = run("simulate", *SMALL, "--bad", 0)
    number = result.out.count("\n")
    assert re.fullmatch(
        rf"{number:,} events and 0 bad records in 6 steps; [\d.]+ s, [\d,]+ events/s\n", result.err
    )


def test_bad_records_are_counted_apart(run, tmp_path):
    target = tmp_path / "events.jsonl"
    said = run("simulate", *SMALL, *DIRTY, "--output", target).err
    number = bad_lines(target.read_bytes().splitlines())
    assert number > 50
    assert f" events and {number:,} bad records in 6 steps" in said


def test_outbreaks_are_as_large_as_they_were_asked_to_be(simulated):
    asked = ("crash:a,b,100,1,3", "crash:R,90,2,3,ramp", "crash:S,80,3,2,spike")
    _, truth = simulated(*SMALL, *DIRTY, *(f"--outbreak={text}" for text in asked))
    sizes = {
        item: [(line["step"] - FIRST_STEP, line["users"]) for line in truth if line["item"] == item]
        for item in ("crash:a,b", "crash:R", "crash:S")
    }
    assert sizes == {
        "crash:a,b": [(1, 100), (2, 100), (3, 100)],
        "crash:R": [(2, 30), (3, 60), (4, 90)],
        "crash:S": [(3, 80), (4, 20)],
    }


def items_of(lines: list[bytes]) -> set[str]:
    return {event[1] for event in map(event_of, lines) if event}


def test_outbreaks_are_planned_unless_some_are_named_or_none_are_wanted(simulated):
    # With two background items and nothing personal, all others are of outbreaks.
    bare = (*SMALL, "--items", 2, "--personal", 0)
    numbers = [
        len(items_of(simulated(*bare, *more)[0])) - 2
        for more in (
            (),
            ("--outbreaks", 0),
            ("--outbreaks", 5),
            ("--outbreak", "crash:X,5,0,1"),
            ("--outbreak", "crash:X,5,0,1", "--outbreaks", 2),
        )
    ]
    assert numbers == [3, 0, 5, 1, 3]


def test_lasting_items_have_as_many_users_as_they_were_asked_to(simulated):
    asked = ("--lasting=version:a,b,120", "--lasting=version:c,100", "--outbreaks=0")
    _, truth = simulated(*SMALL, *DIRTY, *asked)
    for item, size in (("version:a,b", 120), ("version:c", 100)):
        assert [line["users"] for line in truth if line["item"] == item] == [size] * 6


# The preset


@pytest.mark.slow
def test_the_day_has_lasting_items_and_the_outbreak_of_the_hour(simulated):
    _, truth = simulated("--preset", "day", "--steps", 32, "--seed", 1, "--floor", 500)
    sizes: dict[int, list[int]] = {}
    for line in truth:
        sizes.setdefault(line["step"] - FIRST_STEP, []).append(line["users"])
    assert [sizes[step] for step in range(30)] == [[5000] * 3] * 30
    assert sizes[30] == sizes[31] == [5000, 5000, 5000, 1000]


@pytest.fixture
def fleet_of(run, monkeypatch):
    """The fleet that these arguments describe."""

    def describe(*arguments) -> Fleet:
        described = []

        async def note(fleet: Fleet, *_) -> str:
            described.append(fleet)
            return ""

        monkeypatch.setattr("streamer.commands.simulate._write", note)
        assert run("simulate", *arguments).code == 0
        return described[0]

    return describe


def test_without_options_the_day_is_the_one_that_experiments_play(fleet_of):
    assert fleet_of("--preset", "day", "--seed", 7) == day_fleet(7)


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        (["--users", 30_000], {"users": 30_000}),
        (["--steps", 100], {"steps": 100, "outbreaks": outbreaks_before(100)}),
        (["--steps", 30], {"steps": 30, "outbreaks": ()}),
        (["--lasting", "crash:A,9"], {"lasting": (Lasting("crash:A", 9),)}),
        (["--outbreak", "crash:B,9,0,2"], {"outbreaks": (Outbreak("crash:B", 9, 0, 2),)}),
        (["--outbreaks", 0], {"outbreaks": ()}),
        (["--outbreaks", 2], {"outbreaks": plan_outbreaks(2, 20_000, 1440, seed=7)}),
        (["--step-seconds", 1], {"step_seconds": 1.0}),
        (["--active", 0.5, "--items", 50, "--bad", 0], {"active": 0.5, "items": 50, "bad": 0.0}),
    ],
)
def test_options_replace_what_the_preset_has_and_nothing_else(fleet_of, arguments, changes):
    described = fleet_of("--preset", "day", "--seed", 7, *arguments)
    assert described == replace(day_fleet(7), **changes)


def test_the_help_says_what_the_day_has(run):
    said = " ".join(run("simulate", "--help").out.replace("│", " ").split())
    day = day_fleet(1)
    lasting, outbreak = day.lasting[0].size, day.outbreaks[0].size
    assert f"{day.users} users and {day.steps} steps of a minute" in said
    assert f"three items that {lasting} users each have all day" in said
    assert f"every hour an outbreak of {outbreak} users for ten minutes" in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--steps", "1441"], "steps is 1441: the day of --preset has 1,440 steps"),
        (["--steps", "0"], "steps is 0"),
        (["--users", "14999"], "lasting is 15,000 users: there are only 14,999"),
        (["--lasting", "crash:A,20001"], "lasting is 20,001 users: there are only 20,000"),
        (["--outbreak", "crash:A,5,1440,1"], "outbreak is crash:A from step 1440"),
    ],
)
def test_what_no_day_can_have_gets_one_sentence(run, arguments, complaint):
    result = run("simulate", "--preset", "day", *arguments)
    assert (result.code, result.out) == (2, "")
    assert complaint in result.err
    assert result.err.count("\n") == 1


# What each remaining option changes, seen in the written lines: (value, value, measure),
# where the measure is larger for the second value.
def users_in(lines):
    return len({event[0] for event in map(event_of, lines) if event})


def distinct_items(lines):
    return len(items_of(lines))


def personal_items(lines):
    return sum("/home/" in item for item in items_of(lines))


def repeated_lines(lines):
    return len(lines) - len(set(lines))


def out_of_order(lines):
    times = [event[2] for event in map(event_of, lines) if event]
    return sum(max(0, before - after) for before, after in pairwise(times))


def bad_lines(lines):
    return sum(event_of(line) is None for line in lines)


def most_frequent(lines):
    return max(recount(lines, 60_000).values())


@pytest.mark.parametrize(
    ("option", "low", "high", "measure"),
    [
        ("--users", 100, 500, users_in),
        ("--steps", 2, 6, len),
        ("--active", 0.1, 0.6, len),
        ("--session", 100, 1, users_in),
        ("--items", 10, 500, distinct_items),
        ("--exponent", 0, 2, most_frequent),
        ("--personal", 0, 0.5, personal_items),
        ("--earlier", 0, 0.5, len),
        ("--duplicates", 0, 0.5, repeated_lines),
        ("--delayed", 0, 0.5, out_of_order),
        ("--delay-seconds", 1, 50, out_of_order),
        ("--skewed", 0, 0.5, out_of_order),
        ("--skew-seconds", 1, 50, out_of_order),
        ("--bad", 0, 0.5, bad_lines),
    ],
)
def test_every_option_does_something(simulated, option, low, high, measure):
    quiet = ("--outbreaks", 0, "--delayed", 0.1, "--skewed", 0.1)
    less, more = (simulated(*SMALL, *quiet, option, value)[0] for value in (low, high))
    assert measure(less) < measure(more)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--users", "0"], "users is 0"),
        (["--steps", "0"], "steps is 0"),
        (["--seed", "-1"], "seed is -1"),
        (["--floor", "0"], "floor is 0"),
        (["--active", "1.5"], "active is 1.5"),
        (["--bad", "-0.1"], "bad is -0.1"),
        (["--bad", "x"], "--bad"),
        (["--items", "1"], "items is 1"),
        (["--step-seconds", "0"], "step-seconds is 0.0"),
        (["--outbreaks", "1000"], "outbreaks is 1000"),
        (["--outbreak", "crash"], "outbreak is crash"),
        (["--outbreak", "crash,5,0,1,wave"], "outbreak is crash,5,0,1,wave"),
        (["--outbreak", "crash,10001,0,1"], "outbreak is 10,001 users"),
        (["--outbreak", "crash,5,60,1"], "outbreak is crash from step 60"),
        (["--lasting", "crash"], "lasting is crash: use ITEM,SIZE"),
        (["--lasting", "crash,10001"], "lasting is 10,001 users"),
        (["--preset", "night"], "'night' is not one of 'day'"),
        (["--start", "2026-01-01T00:00:00"], "start is 2026-01-01T00:00:00: it needs a time zone"),
        (["--start", "soon"], "start is soon"),
        (["--output", "events.csv"], "output is events.csv"),
        (["--output", "nowhere/events.jsonl"], "output is nowhere/events.jsonl"),
        (["--truth", "-"], "truth is -"),
        (["--truth", "nowhere/truth.jsonl"], "truth is nowhere/truth.jsonl"),
        (["--output", "a.jsonl", "--truth", "./a.jsonl"], "truth is ./a.jsonl"),
        (["--output", "a.jsonl", "--config", "c.yaml"], "--config is only for kafka"),
    ],
)
def test_a_mistake_gets_one_sentence_that_names_the_option(
    run, tmp_path, monkeypatch, arguments, complaint
):
    monkeypatch.chdir(tmp_path)
    result = run("simulate", *arguments)
    assert (result.code, result.out) == (2, "")
    assert complaint in result.err
    assert result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_mistake_in_the_truth_leaves_an_earlier_output_alone(run, tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_text("precious\n")
    assert run("simulate", "--output", events, "--truth", tmp_path / "no" / "t.jsonl").code == 2
    assert events.read_text() == "precious\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("users", "steps", "lines_read"), [("20000", "1000000", 1), ("5", "2", 0)], ids=["many", "few"]
)
def test_a_reader_that_has_seen_enough_is_no_failure(users, steps, lines_read):
    command = [sys.executable, "-m", "streamer.cli", "simulate", "--seed", "1"]
    reading, writing = os.pipe()
    with subprocess.Popen(
        [*command, "--users", users, "--steps", steps, "--active", "1"],
        stdout=writing,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writing)
        with open(reading, "rb") as reader:
            for _ in range(lines_read):
                assert json.loads(reader.readline())["user"].startswith("u-")
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""


@pytest.mark.slow
def test_ctrl_c_ends_it_at_once_although_it_never_waits(tmp_path):
    events = tmp_path / "events.jsonl"
    command = [sys.executable, "-m", "streamer.cli", "simulate", "--output", str(events)]
    with subprocess.Popen(
        [*command, "--users", "1000", "--steps", "1000000"], stderr=subprocess.PIPE
    ) as process:
        try:
            deadline = time.monotonic() + 60
            while not (events.exists() and events.stat().st_size):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 130
            assert b"Traceback" not in process.stderr.read()
        finally:
            process.kill()


def test_only_we_speak_of_a_broker_that_goes_away(run):
    assert run("--version").code == 0
    assert not logging.getLogger("aiokafka.client").isEnabledFor(logging.ERROR)
