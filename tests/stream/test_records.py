"""Results, field by field as the contract has them. For step records see test_publication."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.ledger.contract import Entry
from streamer.monitors.seam import Hitter
from streamer.stream.decided import Decided
from streamer.stream.periods import Period
from streamer.stream.publication import Recorder
from streamer.stream.records import ResultRecord
from tests.stream.making import MINUTES, terms, written

DATA = Path(__file__).parents[1] / "ledger" / "data" / "0.1.0"
TERMS = terms(epsilon=1.0, delta=1e-6, contributions=3, period_steps=20, beta=0.05)


@pytest.fixture(scope="module")
def period():
    return Period.containing(29, TERMS)


def results_of(decided):
    return list(Recorder(MINUTES, decided.step - 1).with_results(decided).results)


class TestResults:
    def test_a_result_is_that_of_the_contract(self, period):
        decided = Decided(29, 29, period, (Hitter("crash:NPE", 812),))
        [result] = results_of(decided)
        low, high = period.interval("crash:NPE", 812)
        assert low < 812 < high
        assert written(result) == [
            ("step", 29),
            ("start", "2026-01-01T00:29:00Z"),
            ("end", "2026-01-01T00:30:00Z"),
            ("item", "crash:NPE"),
            ("estimate", 812),
            ("low", low),
            ("high", high),
            ("margin", period.plan.law.margin()),
            ("threshold", TERMS.plan().threshold),
            ("epsilon", 1.0),
            ("delta", 1e-6),
            ("contributions", 3),
            ("period", 1),
        ]

    def test_one_of_0_1_0_is_read_and_has_no_interval(self):
        line = (DATA / "hitters.jsonl").read_bytes().splitlines()[0]
        result = msgspec.json.decode(line, type=ResultRecord)
        assert (result.estimate, result.margin) == (500, 98)
        assert (result.low, result.high) == (msgspec.UNSET, msgspec.UNSET)
        assert msgspec.json.encode(result) == line

    def test_there_is_one_for_each_hitter_in_their_order(self, period):
        hitters = tuple(Hitter(item, 800 + place) for place, item in enumerate("abc"))
        results = results_of(Decided(29, 29, period, hitters))
        assert [(result.item, result.estimate) for result in results] == [
            ("a", 800),
            ("b", 801),
            ("c", 802),
        ]

    def test_a_step_without_hitters_has_none(self, period):
        assert results_of(Decided(29, 29, period)) == []

    @given(st.text())
    def test_an_item_of_any_text_is_read_back(self, item):
        decided = Decided(29, 29, Period.containing(29, TERMS), (Hitter(item, 812),))
        [result] = results_of(decided)
        assert json.loads(msgspec.json.encode(result))["item"] == item


class TestDefaults:
    def test_a_decision_charges_nobody_unless_it_says_whom(self, period):
        charges = Decided(29, 29, period).charges
        assert (charges.users.tolist(), charges.users.dtype) == ([], np.uint64)
        assert (charges.units.tolist(), charges.units.dtype) == ([], np.uint16)

    def test_an_entry_has_no_offsets_unless_it_says_which(self, period):
        assert dict(Entry(Decided(29, 29, period)).offsets) == {}
