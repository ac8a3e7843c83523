"""Log records as JSON: one object a line, whatever is logged."""

import io
import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streamer.operations.json_lines import JsonLines


@pytest.fixture
def stream():
    return io.StringIO()


@pytest.fixture
def logger(stream):
    """A logger that writes JSON lines."""
    logger = logging.Logger("tests")  # one that no other test knows
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger.addHandler(handler)
    return logger


@pytest.fixture
def line(stream):
    """The only line that was written, read."""

    def read():
        [line, rest] = stream.getvalue().split("\n")
        assert rest == ""
        return json.loads(line)

    return read


def test_a_line_has_time_level_logger_and_message(logger, line):
    before = datetime.now(UTC)
    logger.info("%d of %s", 3, "them")
    told = line()
    assert list(told) == ["time", "level", "logger", "message"]
    assert before.timestamp() - 0.001 <= datetime.fromisoformat(told.pop("time")).timestamp()
    assert told == {"level": "info", "logger": "tests", "message": "3 of them"}


def test_the_time_is_in_utc_and_milliseconds():
    record = logging.makeLogRecord({"created": 1_767_225_612.5})
    told = json.loads(JsonLines().format(record))
    assert told["time"] == "2026-01-01T00:00:12.500+00:00"


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_levels_have_the_names_of_the_setting(logger, line, level):
    getattr(logger, level)("x")
    assert line()["level"] == level


def test_what_is_given_beside_the_message_becomes_fields(logger, line):
    logger.info("x", extra={"step": 7, "first": None, "share": 0.5, "names": ["a"]})
    told = line()
    assert list(told)[4:] == ["step", "first", "share", "names"]
    assert (told["step"], told["first"], told["share"], told["names"]) == (7, None, 0.5, ["a"])


def test_a_field_cannot_take_the_place_of_our_own(logger, line):
    logger.info("x", extra={"time": "never", "level": "none", "logger": "nobody", "step": 1})
    told = line()
    assert (told["level"], told["logger"], told["step"]) == ("info", "tests", 1)
    assert told["time"] != "never"


def test_what_json_does_not_know_is_written_as_text(logger, line):
    logger.info("x", extra={"path": Path("a/b"), "error": ValueError("bad")})
    told = line()
    assert (told["path"], told["error"]) == ("a/b", "bad")


@pytest.mark.parametrize("text", ["two\nlines", "\r", "\u2028", '"quoted"', "é", "\x1b[31m", "\0"])
def test_no_text_breaks_the_line_and_all_of_it_is_read_back(logger, line, text):
    logger.info("%s", text, extra={"more": text})
    told = line()
    assert (told["message"], told["more"]) == (text, text)


def test_an_exception_is_in_the_line_with_its_way(logger, line):
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logger.exception("it failed")
    told = line()
    assert told["message"] == "it failed"
    assert told["exception"].startswith("Traceback (most recent call last):\n")
    assert told["exception"].endswith("ValueError: first\nsecond")
