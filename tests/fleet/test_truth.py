"""The truth about a step, against a plain recount of the lines that were written."""

import json

import numpy as np
import pytest

from streamer.fleet.bad_records import Kind
from streamer.fleet.catalogue import Catalogue
from streamer.fleet.event_lines import EventLines
from streamer.fleet.fleet import Fleet
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak
from streamer.fleet.simulation import Events, FleetStep, in_arrival_order, simulate
from streamer.fleet.truth import TrueCount, true_counts, truth_lines
from tests.fleet.recount import recount

DIRTY = {"earlier": 0.6, "duplicates": 0.2, "delayed": 0.3, "skewed": 0.3, "bad": 0.2}
CATALOGUE = Catalogue(0, ("apple", "äpfel", "zebra", "Zebra"))


def step_of(*rows: tuple[int, str, int], kind: Kind = Kind.EVENT) -> FleetStep:
    users = np.array([user for user, _, _ in rows], dtype=np.int64)
    items = np.array([CATALOGUE.named.index(item) for _, item, _ in rows], dtype=np.int64)
    times = np.array([time for _, _, time in rows], dtype=np.int64)
    return FleetStep(0, Events(users, items, times, times, np.full(len(rows), kind, np.uint8)))


def counts(step: FleetStep) -> dict[str, int]:
    return {count.item: count.users for count in true_counts(step, CATALOGUE, 1)}


def test_a_user_counts_for_every_item_that_it_holds():
    step = step_of((1, "zebra", 5), (1, "apple", 9), (2, "apple", 5), (1, "zebra", 7))
    assert counts(step) == {"apple": 2, "zebra": 1}


def test_an_event_written_twice_counts_once():
    assert counts(step_of((1, "apple", 5), (1, "apple", 5), (2, "apple", 7))) == {"apple": 2}


def test_bad_records_do_not_count():
    assert counts(step_of((1, "apple", 5), kind=Kind.NO_USER)) == {}


def test_the_truth_of_nothing_is_nothing():
    assert counts(step_of()) == {}


def test_items_with_fewer_users_than_the_floor_are_left_out_and_the_largest_come_first():
    step = step_of((1, "apple", 1), (2, "zebra", 1), (3, "zebra", 1), (4, "Zebra", 1))
    assert [(c.item, c.users) for c in true_counts(step, CATALOGUE, 1)] == [
        *(("zebra", 2), ("Zebra", 1), ("apple", 1))
    ]
    assert [(c.item, c.users) for c in true_counts(step, CATALOGUE, 2)] == [("zebra", 2)]


def test_a_line_of_the_truth_has_the_fields_of_the_contract():
    (line,) = truth_lines([TrueCount(29, 'größe "4"', 812)])
    assert json.loads(line) == {"step": 29, "item": 'größe "4"', "users": 812}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("step_seconds", [60.0, 1.0, 0.01])
def test_the_truth_is_what_a_plain_recount_of_the_lines_finds(seed, step_seconds):
    named = {"outbreaks": (Outbreak("crash:X", 50, 2, 3),), "lasting": (Lasting("crash:Y", 60),)}
    fleet = Fleet(300, 8, seed, step_seconds=step_seconds, items=20, **named, **DIRTY)
    render = EventLines(fleet.catalogue()).render
    steps = list(simulate(fleet))
    lines = [line for events in in_arrival_order(fleet, steps) for line in render(events)]
    truth = {
        (count.step, count.item): count.users
        for step in steps
        for count in true_counts(step, fleet.catalogue(), 1)
    }
    assert truth == recount(lines, fleet.step_ms)
