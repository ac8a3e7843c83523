"""Where logs go, in what form, from which level on; and the line of a closed step."""

import io
import json
import logging

import pytest

from streamer.monitors.seam import Hitter
from streamer.operations.logs import StepLog, configure
from streamer.settings import LogSettings
from streamer.stream.decided import Decided
from streamer.stream.periods import Period
from streamer.stream.publication import Recorder
from tests.stream.making import MINUTES, terms

OTHERS = ["aiokafka", "aiokafka.conn", "asyncio", "uvicorn.error", "uvicorn.access"]


class Stderr(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


@pytest.fixture
def configured(monkeypatch):
    """Logs as they are configured, and what they have written. Undone after the test."""
    root = logging.getLogger()
    # pytest's own handlers would be closed.
    handlers, level, root.handlers = root.handlers, root.level, []
    levels = {name: logging.getLogger(name).level for name in ("aiokafka", "asyncio", "uvicorn")}

    def configured(terminal=False, auto=None, **settings):
        stderr = Stderr(terminal)
        monkeypatch.setattr("sys.stderr", stderr)
        configure(LogSettings(**settings), auto)
        return stderr.getvalue

    yield configured
    root.handlers = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def is_json(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


class TestForm:
    @pytest.mark.parametrize(
        ("wanted", "terminal", "auto", "expected"),
        [
            ("auto", False, None, "json"),
            ("auto", True, None, "text"),
            ("auto", False, "text", "text"),
            ("json", True, None, "json"),
            ("json", False, "text", "json"),
            ("text", False, None, "text"),
        ],
    )
    def test_it_is_what_is_set_or_what_suits(self, configured, wanted, terminal, auto, expected):
        written = configured(terminal, auto, format=wanted)
        logging.getLogger("streamer.x").info("hello %s", "there")
        assert is_json(written()) == (expected == "json")
        if expected == "text":
            assert written() == "streamer: hello there\n"
        else:
            assert json.loads(written())["message"] == "hello there"

    def test_it_can_be_changed_and_nothing_is_said_twice(self, configured):
        first, second = configured(format="json"), configured(format="text")
        logging.getLogger("streamer.x").info("once")
        assert (first(), second()) == ("", "streamer: once\n")


class TestLevel:
    @pytest.mark.parametrize(
        ("level", "said"),
        [
            ("info", ["info", "warning", "error"]),
            ("warning", ["warning", "error"]),
            ("error", ["error"]),
        ],
    )
    def test_what_is_below_it_is_not_said(self, configured, level, said):
        written = configured(level=level)
        for each in ("debug", "info", "warning", "error"):
            getattr(logging.getLogger("streamer.x"), each)(each)
        assert [json.loads(line)["message"] for line in written().splitlines()] == said

    @pytest.mark.parametrize("name", OTHERS)
    def test_others_never_say_more_than_errors(self, configured, name):
        """aiokafka writes out its requests: what users have sent."""
        written = configured(level="info")
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            logging.getLogger(name).log(level, "a whole request")
        assert written() == ""

    def test_of_aiokafka_we_say_ourselves_what_went_wrong(self, configured):
        """While a broker is away it would complain sixty times a second."""
        written = configured()
        logging.getLogger("aiokafka").error("Unable connect to node with id 1")
        assert written() == ""

    @pytest.mark.parametrize("name", ["asyncio", "uvicorn.error"])
    def test_what_goes_wrong_without_our_knowing_is_said(self, configured, name):
        written = configured(level="error")
        logging.getLogger(name).error("an exception that nobody has seen")
        assert json.loads(written())["logger"] == name


class TestSteps:
    PERIOD = Period.containing(0, terms())

    @pytest.fixture
    def lines(self, configured):
        """What is logged of a publication."""
        written = configured(format="json")

        def lines(publication):
            StepLog().published(publication)
            return [json.loads(line) for line in written().splitlines()]

        return lines

    def decided(self, step, *items):
        return Decided(step, step, self.PERIOD, tuple(Hitter(item, 812) for item in items))

    def test_a_closed_step_is_one_line(self, lines):
        recorder = Recorder(MINUTES, recorded=28)
        [told] = lines(recorder.with_results(self.decided(29, "crash:A", "crash:B")))
        assert told["level"] == "info"
        assert told["message"] == "step 29 closed, hitters: 2"
        assert {name: told[name] for name in list(told)[4:]} == {
            "step": 29,
            "first": 29,
            "end": "2026-01-01T00:30:00Z",
            "hitters": 2,
            "period": 0,
        }

    def test_quiet_ones_before_it_have_their_own(self, lines):
        recorder = Recorder(MINUTES, recorded=27)
        told = lines(recorder.with_results(self.decided(29, "crash:A")))
        assert [(each["step"], each["hitters"]) for each in told] == [(28, 0), (29, 1)]

    def test_a_long_run_of_quiet_ones_is_one_line(self, lines):
        recorder = Recorder(MINUTES, recorded=9)
        [told] = lines(recorder.without_results(500, self.PERIOD))
        assert told["message"] == "steps 10 to 500 closed, hitters: 0"
        assert (told["first"], told["step"]) == (10, 500)

    def test_there_is_nothing_in_it_that_is_not_in_the_steps_topic(self, lines):
        publication = Recorder(MINUTES, recorded=28).with_results(self.decided(29, "crash:A"))
        [told] = lines(publication)
        [record] = publication.steps
        assert all(told[name] == getattr(record, name) for name in ("step", "end", "hitters"))
        assert "crash:A" not in json.dumps(told)
        assert "812" not in json.dumps({**told, "time": ""})
