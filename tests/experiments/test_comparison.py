"""The paper's statement, measured; and the shortcut that makes measuring it cheap."""

from dataclasses import fields, replace

import numpy as np
import pytest

from streamer.experiments.comparison import CONTRIBUTIONS, Row, _Monitor, compare, enter
from streamer.experiments.paper_example import paper_example
from streamer.monitors.baselines import StepHistogram
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.privacy.baseline_plans import plan_histograms
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.randomness import SeededBytes
from streamer.privacy.threshold import Plan, Workload, plan
from tests.monitors.chance import differ

pytestmark = pytest.mark.slow

CONTRACT = ["method", "family", "size", "sets", "found", "false_reports", "threshold"]
GUARANTEE = Guarantee(1.0, 1e-6, CONTRIBUTIONS)


@pytest.fixture(scope="module")
def example():
    return paper_example(50_000, GUARANTEE, beta=0.05)


@pytest.fixture(scope="module")
def rows(example):
    return {(row.method, row.family): row for row in compare(example, GUARANTEE, 1, SeededBytes(0))}


@pytest.mark.parametrize("family", "ABC")
def test_the_monitor_finds_every_set_and_nothing_else(rows, family):
    row = rows["monitor (horizon)", family]
    assert row.found == row.sets
    assert row.false_reports == 0


@pytest.mark.parametrize("family", "ABC")
def test_the_less_is_paid_for_the_smaller_are_the_sets_that_are_found(rows, family):
    names = ("monitor (every step)", "monitor (horizon)", "monitor (exact)", "histogram each step")
    reaches = [rows[method, family].reach for method in names]
    assert reaches == sorted(reaches)


def test_the_classic_technique_finds_all_of_c(rows):
    row = rows["classic sparse vector", "C"]
    assert row.found == row.sets


@pytest.mark.parametrize("family", "AB")
def test_the_classic_technique_finds_nothing_of_a_and_b(rows, family):
    assert rows["classic sparse vector", family].found == 0


@pytest.mark.parametrize("family", "ABC")
def test_with_the_constants_of_the_theorem_nothing_is_found(rows, family):
    assert rows["monitor (theorem)", family].found == 0


def test_every_method_has_a_row_for_every_family(rows):
    methods = {method for method, _ in rows}
    assert len(methods) == 6
    assert set(rows) == {(method, family) for method in methods for family in "ABC"}


def test_rows_begin_with_the_fields_that_tools_rely_on():
    assert [field.name for field in fields(Row)][: len(CONTRACT)] == CONTRACT


def test_rows_tell_the_sizes_of_the_example(rows, example):
    for family in example.families:
        row = rows["histogram each step", family.name]
        assert (row.size, row.sets) == (family.size, family.sets)
        assert row.users_needed == row.reach * family.sets


def test_a_method_that_reaches_a_family_needs_no_more_users_than_there_are(rows, example):
    assert rows["monitor (horizon)", "A"].users_needed <= example.users
    assert rows["classic sparse vector", "B"].users_needed > example.users


def test_a_seed_repeats_the_rows(example, rows):
    assert compare(example, GUARANTEE, 1, SeededBytes(0)) == list(rows.values())


def test_several_trials_are_averaged_and_progress_is_told_for_every_step(example):
    ticks = []
    averaged = compare(example, GUARANTEE, 2, SeededBytes(0), lambda: ticks.append(1))
    row = next(row for row in averaged if row.method == "monitor (horizon)")
    assert row.found == row.sets
    assert len(ticks) == 2 * example.steps * 8


def test_at_a_million_users_a_histogram_in_every_step_misses_the_small_sets():
    workload = Workload(2000, 1_000_000, 0.05)
    histogram = StepHistogram(plan_histograms(GUARANTEE, workload))
    assert histogram.detection(plan(GUARANTEE, workload).guaranteed_weight) < 0.05


def test_several_items_cost_every_method_more(example):
    several = replace(example, workload=replace(example.workload, items_per_step=3))
    one, three = (
        {each.method: each.threshold for each in enter(shown, GUARANTEE)}
        for shown in (example, several)
    )
    assert all(three[m] > one[m] for m in one if m not in ("monitor (exact)", "monitor (theorem)"))


USERS = 12
SETS = [np.arange(first, last, dtype=np.uint64) for first, last in ((0, 2), (2, 4), (0, 10))]
RUNS = 1500


def small_plan():
    """So low a threshold that lone items are reported often, each at the cost of its user."""
    return Plan(Workload(10, USERS, 0.05), calibrate(Guarantee(2.0, 0.05, 1)), threshold=4)


def with_the_shortcut(contender):
    """What happens: whether each set was found, how many lone items were, who is left."""
    rng = np.random.default_rng(1)
    plan = small_plan()
    for _ in range(RUNS):
        monitor = HeavyHitterMonitor(plan)
        run = contender(monitor, USERS, rng)
        reported = [run.observe(members) for members in SETS]
        yield (
            *(step.found for step in reported),
            *(step.false_reports > least for step in reported for least in (0, 1, 2)),
            *(monitor.counters.exhausted > least for least in range(USERS)),
        )


def with_every_lone_item():
    """The same, with an item of its own for every user who is not in the set."""
    plan = small_plan()
    everyone = np.arange(USERS, dtype=np.uint64)
    for _ in range(RUNS):
        monitor = HeavyHitterMonitor(plan)
        reported = []
        for step, members in enumerate(SETS):
            items = np.where(np.isin(everyone, members), 0, 1 + everyone.astype(np.int64))
            reported.append(monitor.observe(step, everyone, items).items)
        yield (
            *(0 in items for items in reported),
            *(np.count_nonzero(items) > least for items in reported for least in (0, 1, 2)),
            *(monitor.counters.exhausted > least for least in range(USERS)),
        )


class ChargesNoLoneUsers(_Monitor):
    def _lone_reports(self, lone, members):
        return int(self._rng.binomial(lone, self._monitor.plan.detection(1)))


class AsksAboutHalfOfTheLoneItems(_Monitor):
    def _lone_reports(self, lone, members):
        return super()._lone_reports(lone // 2, members)


@pytest.fixture(scope="module")
def explicit():
    return np.sum(list(with_every_lone_item()), axis=0)


def other_law(contender, explicit):
    """Whether some event is more or less frequent; false alarms: below one in a billion."""
    counts = np.sum(list(with_the_shortcut(contender)), axis=0)
    pairs = list(zip(counts.tolist(), explicit.tolist(), strict=True))
    return any(differ(one, other, RUNS, len(pairs)) for one, other in pairs)


def test_drawing_the_number_of_lone_reports_has_the_law_of_asking_about_each(explicit):
    assert not other_law(_Monitor, explicit)


@pytest.mark.parametrize("twin", [ChargesNoLoneUsers, AsksAboutHalfOfTheLoneItems])
def test_a_wrong_shortcut_is_noticed(twin, explicit):
    assert other_law(twin, explicit)
