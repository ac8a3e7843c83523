"""Steps and their results are put together again, however partitions hand them over."""

import itertools

from streamer.kafka.results import PATIENCE_SECONDS, Assembly
from streamer.stream.records import ResultRecord, StepRecord


def step(number, hitters=0, first=None):
    return StepRecord(number, "start", "end", hitters, 0, first)


def result(number, item):
    times = {"start": "start", "end": "end"}
    found = {"estimate": 900, "low": 804, "high": 996, "margin": 96, "threshold": 700}
    terms = {"epsilon": 1.0, "delta": 1e-6, "contributions": 10, "period": 0}
    return ResultRecord(step=number, item=item, **times, **found, **terms)


def fed(assembly, *records, now=0.0):
    for record in records:
        if isinstance(record, StepRecord):
            assembly.add_step(record, now)
        else:
            assembly.add_result(record)
    return assembly


def told(publication):
    """Steps with their items, in the order in which they go out."""
    if publication is None:
        return []
    items = {each.step: [] for each in publication.steps}
    for each in publication.results:
        items[each.step].append(each.item)
    assert publication.through == publication.steps[-1].step
    return list(items.items())


RECORDS = (step(1, 2), result(1, "b"), result(1, "a"), step(2), step(3, 1), result(3, "a"))


def test_the_order_of_reading_changes_nothing():
    for order in itertools.permutations(RECORDS):
        assembly = fed(Assembly(), step(0))
        out = told(assembly.ready(0.0))
        for record in order:
            out += told(fed(assembly, record).ready(0.0))
        assert out == [(0, []), (1, ["a", "b"]), (2, []), (3, ["a"])], order


def test_a_step_waits_for_its_results():
    assembly = fed(Assembly(), step(1, 1))
    assert assembly.ready(PATIENCE_SECONDS - 0.1) is None
    assert told(fed(assembly, result(1, "a")).ready(0.2)) == [(1, ["a"])]


def test_one_that_still_lacks_results_after_a_while_is_left_out():
    assembly = fed(Assembly(), step(1, 2), result(1, "a"), step(2))
    assert told(assembly.ready(PATIENCE_SECONDS)) == [(2, [])]
    assert fed(assembly, result(1, "b")).ready(2 * PATIENCE_SECONDS) is None


def test_a_step_waits_for_the_one_before_it_but_not_for_ever():
    assembly = fed(Assembly(), step(1))
    assert told(assembly.ready(0.0)) == [(1, [])]
    assert fed(assembly, step(3), now=1.0).ready(1.0) is None
    assert told(assembly.ready(1.0 + PATIENCE_SECONDS)) == [(3, [])]


def test_a_run_of_empty_steps_follows_the_step_before_its_first():
    assembly = fed(Assembly(), step(1))
    assembly.ready(0.0)
    assert told(fed(assembly, step(500, first=2), step(501)).ready(0.0)) == [(500, []), (501, [])]


def test_what_went_out_is_not_told_again_and_nothing_is_hoarded():
    assembly = fed(Assembly(), step(1, 1), result(1, "a"))
    assert told(assembly.ready(0.0)) == [(1, ["a"])]
    assert fed(assembly, step(1, 1), result(1, "a")).ready(9.0) is None
    for number in range(2, 200):
        fed(assembly, step(number, 1), result(number, "a"))
        assembly.ready(0.0)
    assert assembly == Assembly(through=199)
