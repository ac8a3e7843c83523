"""`streamer run` over files and pipes, as a user runs it."""

import io
import json
import os
import subprocess
import sys
import time

import pytest

from streamer.stream.timing import format_rfc3339

USERS = 2000
RUN = ("--epsilon", 5, "--contributions", 2, "--calibration", "exact")
"""Every report costs one of two contributions."""


def lines(steps=range(3), item="many", milliseconds=60_000):
    return "".join(
        json.dumps({"user": f"user-{number}", "item": item, "time": milliseconds * step}) + "\n"
        for step in steps
        for number in range(USERS)
    )


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(lines())
    return path


def refused(result, *words):
    assert result.code == 2
    assert result.out == ""
    [sentence] = result.err.splitlines()
    assert sentence.startswith("streamer: ")
    assert all(word in sentence for word in words), sentence


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def test_hitters_go_to_standard_output_and_the_summary_does_not(run, source):
    result = run("run", "--source", source, *RUN)
    assert result.code == 0
    # After two reports everybody is exhausted.
    assert [(each["step"], each["item"]) for each in records(result.out)] == [
        (0, "many"),
        (1, "many"),
    ]
    assert list(records(result.out)[0]) == [
        *("step", "start", "end", "item", "state", "since", "estimate", "low", "high"),
        *("valued_at", "margin", "threshold", "epsilon", "delta", "contributions", "period"),
    ]
    assert "accepted  6,000" in result.err
    assert "users charged  2,000 (2,000 exhausted)" in result.err
    assert "user-" not in result.out + result.err


def test_a_loud_report_costs_a_fifth(run, source):
    """By default: three of them leave everybody with more than one of two contributions."""
    result = run("run", "--source", source, "--epsilon", 5, "--contributions", 2)
    assert [each["step"] for each in records(result.out)] == [0, 1, 2]
    assert "users charged  2,000 (0 exhausted)" in result.err


def test_outputs_and_journal_go_to_the_given_places(run, source, tmp_path):
    out, steps, journal = (tmp_path / name for name in ("out", "steps", "journal"))
    places = ("--sink", out, "--steps", steps, "--journal", journal)
    result = run("run", "--source", source, "--sorted", *places, *RUN)
    assert (result.code, result.out) == (0, "")
    assert [each["hitters"] for each in records(steps.read_text())] == [1, 1, 0]
    assert len(records(out.read_text())) == 2
    again = run("run", "--source", source, "--sorted", *places, *RUN)
    refused(again, "is ended", "--until")
    assert len(records(out.read_text())) == 2


def test_a_file_in_pieces(run, source, tmp_path):
    places = ("--sink", tmp_path / "out", "--steps", tmp_path / "steps")
    pieces = ("--source", source, "--journal", tmp_path / "journal", *places, *RUN)
    first = run(
        "run", *pieces, "--start", "1970-01-01T00:01:00Z", "--until", "1970-01-01T00:02:00Z"
    )
    assert first.code == 0, first.err
    assert "accepted  2,000" in first.err
    assert "of closed steps  2,000" in first.err
    assert "of later steps  2,000 left for the next run" in first.err
    refused(run("run", *pieces, "--until", "1970-01-01T00:02:00Z"), "closed up to", "00:02:00Z")
    second = run("run", *pieces, "--until", "1970-01-01T00:05:00Z")
    assert second.code == 0, second.err
    assert "of closed steps  4,000" in second.err
    assert "of later steps  0 left" in second.err
    hitters = [each["hitters"] for each in records((tmp_path / "steps").read_text())]
    assert hitters == [1, 1, 0, 0]


def test_a_run_without_until_has_nothing_left(run, source):
    assert "next run" not in run("run", "--source", source, *RUN).err


def test_standard_input(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines().encode())))
    result = run("run", "--source", "-", *RUN)
    assert result.code == 0
    assert len(records(result.out)) == 2


def test_a_live_pipe(run, monkeypatch):
    now = time.time_ns() // 1_000_000
    before = now - 4_200_000
    made = lines(steps=[1], milliseconds=now) + lines(steps=[1], milliseconds=before)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(made.encode())))
    # An hour's step is half over.
    timing = ("--step-seconds", 3600, "--epoch", format_rfc3339(now - 5_400_000))
    result = run("run", "--source", "-", "--live", *timing, *RUN)
    assert result.code == 0
    assert len(records(result.out)) == 1
    assert "late  2,000" in result.err


def test_settings_come_from_flags_environment_and_file(run, source, tmp_path, monkeypatch):
    path = tmp_path / "settings.yaml"
    path.write_text("privacy: {epsilon: 9, contributions: 4, delta: 1e-5}\n")
    monkeypatch.setenv("STREAMER_PRIVACY__CONTRIBUTIONS", "3")
    result = run("run", "--source", source, "--config", path, "--epsilon", 5)
    [first, *_] = records(result.out)
    assert (first["epsilon"], first["contributions"], first["delta"]) == (5.0, 3, 1e-5)


def test_every_privacy_and_stream_flag_is_a_setting(run, source, tmp_path):
    key = tmp_path / "key"
    key.write_text("0f" * 32)
    stream = "--step-seconds 30 --lateness-seconds 1 --epoch 1970-01-01T00:00:00Z --ahead-seconds 9"
    stream += " --start 1970-01-01T00:00:00Z"
    privacy = (
        "--epsilon 5 --delta 1e-5 --contributions 2 --period-steps 100 --refresh-steps 2 "
        "--neighbours replace --calibration exact --threshold 900 --beta 0.1 --items 50"
    )
    flags = [*stream.split(), *privacy.split(), "--key-file", key]
    result = run("run", "--source", source, *flags)
    assert result.code == 0, result.err
    assert {each["threshold"] for each in records(result.out)} == {900}
    assert [each["step"] for each in records(result.out)] == [0, 2]


def test_a_line_out_of_order_is_late(run, source):
    source.write_text(lines([1, 2]) + lines([0]))
    result = run("run", "--source", source, "--sorted", *RUN)
    assert result.code == 0
    assert "late  2,000" in result.err
    assert [each["step"] for each in records(result.out)] == [1, 2]


class TestRefusals:
    def test_a_missing_source(self, run, tmp_path):
        refused(run("run", "--source", tmp_path / "no.jsonl"), "No such file")

    def test_a_source_of_another_kind(self, run):
        refused(run("run", "--source", "events.csv"), "events.csv", ".jsonl")

    def test_wrong_settings(self, run, source):
        refused(run("run", "--source", source, "--epsilon", 0), "epsilon is 0")
        refused(run("run", "--source", source, "--step-seconds", 0), "stream.step_seconds is 0")
        refused(run("run", "--source", source, "--epoch", "2026-01-01"), "stream.epoch")
        refused(run("run", "--source", source, "--epsilon", "much"), "epsilon")

    def test_an_end_that_is_no_start_of_a_step(self, run, source):
        result = run("run", "--source", source, "--until", "1970-01-01T00:01:30Z")
        refused(result, "--until is", "1970-01-01T00:01:00Z and 1970-01-01T00:02:00Z")
        refused(run("run", "--source", source, "--until", "noon"), "--until is noon", "such as")

    def test_a_start_that_is_no_moment(self, run, source):
        refused(
            run("run", "--source", source, "--start", "noon"), "stream.start is noon", "such as"
        )

    def test_a_new_journal_without_a_start(self, run, source, tmp_path):
        pieces = ("--journal", tmp_path / "journal", "--until", "1970-01-01T00:02:00Z")
        refused(run("run", "--source", source, *pieces), "stream.start", "--start")
        assert not (tmp_path / "journal").exists()

    @pytest.mark.parametrize(
        "flag",
        [
            *("--sorted", "--live", "--start-anew", "--sink=x", "--steps=x", "--journal=x"),
            "--until=1970-01-01T00:00:00Z",
        ],
    )
    def test_options_for_files_with_kafka(self, run, flag):
        refused(run("run", flag), flag.split("=")[0], "--source")

    def test_a_live_file(self, run, source):
        refused(run("run", "--source", source, "--live"), "--live")

    def test_one_file_twice(self, run, source):
        refused(run("run", "--source", source, "--sink", source), "different files")

    def test_results_without_their_journal_unless_start_anew_is_given(self, run, source, tmp_path):
        out, journal = tmp_path / "out", tmp_path / "journal"
        out.write_text("{}\n")
        places = ("--source", source, "--sink", out, "--journal", journal, *RUN)
        refused(run("run", *places), str(out), "--start-anew")
        assert not journal.exists()
        assert run("run", *places, "--start-anew").code == 0


@pytest.mark.slow
def test_nobody_reads_the_results_any_more(source):
    """As in `streamer run … | head`: one sentence, no traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "streamer.cli", "run", "--source", source, *map(str, RUN)]
    ended = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writing)
    assert ended.returncode == 1
    assert ended.stderr == "streamer: stdout could not be written: Broken pipe\n"


@pytest.mark.parametrize("flag", [("--create-topics",), ("--bootstrap-servers", "a:1")])
def test_options_of_kafka_are_refused_for_a_file(run, source, flag):
    refused(run("run", "--source", source, *flag), f"{flag[0]} is only for kafka")


def test_choices_of_a_setting_are_named_by_value(run, source, monkeypatch):
    result = run("run", "--source", source, "--calibration", "fractional")
    refused(result, "'--calibration': 'fractional' is not one of 'horizon', 'exact', 'theorem'")
    monkeypatch.setenv("STREAMER_PRIVACY__CALIBRATION", "fractional")
    result = run("run", "--source", source)
    refused(
        result, "privacy.calibration is fractional: input should be 'horizon', 'exact' or 'theorem'"
    )


@pytest.mark.slow
def test_the_summary_is_not_broken_into_lines(run, tmp_path):
    source = tmp_path / "bad.jsonl"
    kinds = (
        "x",
        "[]",
        '{"item":"i"}',
        '{"user":"u"}',
        '{"user":1,"item":"i"}',
        '{"user":"","item":1}',
    )
    source.write_text("".join(f"{kind}\n" * 100_000 for kind in kinds))
    summary = run("run", "--source", source).err.splitlines()
    assert all(line[:15].strip() and line[15:17] == "  " for line in summary), summary
