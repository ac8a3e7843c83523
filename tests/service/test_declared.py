"""Declared items from the settings to the results: their threshold, and when a list changes."""

import asyncio
import json
from functools import partial

import pytest

from streamer.config import load
from streamer.errors import SettingError
from streamer.monitors.deciding import NoisyThreshold
from streamer.service.line_job import LineJob, run_lines
from streamer.service.startup import terms_of
from streamer.stream.timing import format_rfc3339
from tests.monitors.scripted import NoNoise
from tests.service.repeatable import event, write_events

PERIOD = 4
KEY = "0f" * 32


def settings(path=None, **privacy):
    stream = {"step_seconds": 1.0, "items_per_step": 1}
    if path is not None:
        stream["items_file"] = str(path)
    small = {"epsilon": 4.0, "period_steps": PERIOD, "contributions": 5, "key": KEY, "items": 50}
    return load({"stream": stream, "privacy": {**small, **privacy}})


def declared_by(given):
    return terms_of(given.privacy, given.stream).declared_items


def complaint(given):
    with pytest.raises(SettingError) as raised:
        declared_by(given)
    return str(raised.value)


class TestSettings:
    def test_a_file_has_one_item_a_line(self, tmp_path):
        path = tmp_path / "items"
        path.write_bytes("b\r\na \u2028b\nc".encode())
        assert declared_by(settings(path)) == ("a \u2028b", "b", "c")
        path.write_text("")
        assert declared_by(settings(path)) == ()

    def test_the_settings_have_a_list_of_their_own(self):
        assert declared_by(settings(declared_items=["b", "a"])) == ("a", "b")

    def test_a_file_and_a_list_are_one_too_many(self, tmp_path):
        path = tmp_path / "items"
        path.write_text("a\n")
        assert complaint(settings(path, declared_items=["b"])) == (
            f"stream.items_file is {path}: privacy.declared_items is set too: use only one"
        )

    def test_what_is_wrong_with_a_list_says_where(self, tmp_path):
        path = tmp_path / "items"
        path.write_text("a\n\nb\n")
        assert complaint(settings(path)) == "line 2 of stream.items_file is empty: delete it"
        assert complaint(settings(declared_items=["a", "a"])) == (
            "entry 2 of privacy.declared_items is the same as entry 1: delete one of them"
        )

    def test_a_file_that_cannot_be_read(self, tmp_path):
        assert complaint(settings(tmp_path / "none")) == (
            f"stream.items_file is {tmp_path / 'none'}: No such file or directory"
        )
        (tmp_path / "latin").write_bytes("é".encode("latin-1"))
        assert complaint(settings(tmp_path / "latin")) == (
            f"stream.items_file is {tmp_path / 'latin'}: it must be a text file in UTF-8"
        )

    def test_a_domain_of_nothing(self):
        assert complaint(settings(open_domain=False)) == (
            "privacy.open_domain is false: nothing could be reported; declare items with "
            "stream.items_file or privacy.declared_items, or set it to true"
        )


class Place:
    """A directory with a journal and results; the noise is 0, unless nobody holds an item."""

    def __init__(self, directory):
        self.directory = directory
        self.questions = []

    def run(self, events, given, until=None):
        source = write_events(self.directory / "events.jsonl", events)
        job = LineJob(
            *(str(source),),
            until=until and format_rfc3339(1000 * until),
            sink=self.directory / "hitters",
            journal=self.directory / "journal" if until else None,
        )
        asyncio.run(run_lines(job, given, asked_by=self._ask))

    def _ask(self, plan, declared):
        self.questions.append((plan, tuple(declared)))
        return partial(NoisyThreshold, noise=NoNoise())(plan, declared)

    def hitters(self):
        lines = (self.directory / "hitters").read_text().splitlines()
        return [(each["item"], each["threshold"], each["low"]) for each in map(json.loads, lines)]


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def holders(item, number, step=0):
    return [event(f"{item} {user}", item, 1000 * step + 1) for user in range(number)]


def test_a_declared_item_is_reported_at_its_own_threshold(place):
    given = settings(declared_items=["known", "also known"])
    plan = terms_of(given.privacy, given.stream).plan()
    place.run(
        [
            *holders("known", plan.declared_threshold),
            *holders("also known", plan.declared_threshold - 1),
            *holders("unknown", plan.declared_threshold),
            *holders("large", plan.threshold),
        ],
        given,
    )
    reported = {item: threshold for item, threshold, _ in place.hitters()}
    # Of items that nobody holds none is reported, with a probability below β.
    assert reported == {"known": plan.declared_threshold, "large": plan.threshold}
    assert all(low < threshold for _, threshold, low in place.hitters())


def test_without_an_open_domain_nothing_else_counts(place):
    given = settings(declared_items=["known"], open_domain=False)
    plan = terms_of(given.privacy, given.stream).plan()
    known = holders("known", plan.threshold)
    # Later, so it would count instead of the declared one: a user counts for one item here.
    also = [{**each, "item": "unknown", "time": each["time"] + 1} for each in known]
    place.run([*known, *also], given)
    assert [item for item, *_ in place.hitters()] == ["known"]


@pytest.mark.slow
def test_a_changed_list_begins_with_the_next_period(place):
    """Also if the process ends and another one starts with the new list meanwhile."""
    old = settings(declared_items=["a"])
    new = settings(declared_items=["b", "c"])
    start = {"stream": {**old.stream.model_dump(exclude_none=True), "start": format_rfc3339(0)}}
    began = load({**start, "privacy": {**old.privacy.model_dump(exclude_none=True), "key": KEY}})
    everything = [event(step, "x", 1000 * step) for step in range(2 * PERIOD)]
    place.run(everything, began, until=2)
    place.run(everything, new, until=2 * PERIOD)
    assert [declared for _, declared in place.questions] == [("a",), ("a",), ("b", "c")]
    assert [plan.workload.declared for plan, _ in place.questions] == [1, 1, 2]
