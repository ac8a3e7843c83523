"""The run behind the demo: a made-up fleet, and everything after it real."""

import asyncio
import itertools
import json
import tempfile
from contextlib import asynccontextmanager

import numpy as np
import pytest

from streamer.errors import SettingError
from streamer.fleet import endless
from streamer.fleet.endless import FLOOR, LASTING, OUTBREAKS, sent_by
from streamer.ledger.directory import DATABASE
from streamer.ledger.file_ledger import peek
from streamer.monitors.attention import value_is_due
from streamer.monitors.states import State
from streamer.privacy.prices import FULL, LOUD
from streamer.service.demo import PRIVACY, STREAM, Demo
from streamer.service.startup import schedule_of, terms_of
from streamer.settings import PrivacySettings
from tests.fleet.recount import recount

pytestmark = pytest.mark.slow
USERS = 50_000
SCHEDULE = schedule_of(STREAM)
TIMING = SCHEDULE.timing
TERMS = terms_of(PRIVACY.model_copy(update={"users": USERS}), STREAM)
PLAN = TERMS.plan()
START = 1_767_225_600_000  # 2026-01-01T00:00:00Z
FIRST = TIMING.step_at(START) + 1
DEADLINE = 30


class TestTheFleet:
    def test_it_sends_the_same_again_for_the_same_seed_and_other_things_for_another(self):
        def sent(seed):
            steps = itertools.islice(sent_by(USERS, seed, FIRST, TIMING), 2)
            return [(each.step, each.records, each.truth) for each in steps]

        assert sent(7) == sent(7) != sent(8)

    def test_its_truth_is_what_a_plain_recount_of_its_records_finds(self):
        sent = next(sent_by(USERS, 7, FIRST, TIMING))
        counts = {
            item: users
            for (step, item), users in recount(sent.records, TIMING.length_ms).items()
            if step == FIRST
        }
        named = {item: users for item, users in counts.items() if users >= FLOOR}
        assert sent.truth.users == named
        assert sent.truth.fewer == len(counts) - len(named)
        assert sent.truth.singles == sum(users == 1 for users in counts.values())
        assert sent.outbreaks <= set(named)

    def test_records_come_in_the_order_of_their_arrival(self):
        sent = next(sent_by(USERS, 7, FIRST, TIMING))
        assert len(sent.records) == len(sent.arrivals)
        assert (np.diff(sent.arrivals) >= 0).all()
        # Some clocks are fast, some records are late.
        assert sent.arrivals[0] < TIMING.start(FIRST)
        assert sent.arrivals[-1] > TIMING.end(FIRST) + TIMING.lateness_ms

    def test_one_fleet_follows_the_other_without_a_gap(self, monkeypatch):
        monkeypatch.setattr(endless, "STEPS", 45)
        steps = list(itertools.islice(sent_by(USERS, 7, FIRST, TIMING), 50))
        assert [each.step for each in steps] == list(range(FIRST, FIRST + 50))
        assert steps[0].outbreaks
        assert steps[46].outbreaks
        assert steps[0].truth.users != steps[45].truth.users

    @pytest.mark.parametrize("users", [USERS, 100_000])
    def test_every_outbreak_is_large_enough_to_be_found_for_sure(self, users):
        for outbreaks in ten_minutes(users):
            assert all(one.size > PLAN.guaranteed_weight for one in outbreaks)
            assert outbreaks[0].start == 0
            assert {one.item for one in outbreaks} <= set(OUTBREAKS)

    def test_in_the_first_minute_one_outbreak_ends_and_another_begins(self):
        for outbreaks in ten_minutes(USERS):
            assert outbreaks[0].length >= 20, "long enough to be seen lasting"
            assert outbreaks[0].end <= 45
            assert outbreaks[1].start <= 40

    @pytest.mark.parametrize("users", [USERS, 100_000])
    def test_outbreaks_and_what_lasts_use_up_little_more_than_half_of_a_budget(self, users):
        """Or else the demo would fall silent before the next period."""
        periods = PRIVACY.period_steps / endless.STEPS
        lasting = sum(value_is_due(age, PLAN.value_every_steps) for age in range(1_440)) + 1
        budget = PRIVACY.contributions * FULL
        assert lasting * LOUD < 0.7 * budget
        for outbreaks in ten_minutes(users):
            charged = sum(charges(one) for one in outbreaks) / users
            assert periods * charged < 0.6 * budget

    @pytest.mark.parametrize("users", [0, 49_999, 1_000_001])
    def test_fleets_that_make_no_demo_are_refused(self, users):
        with pytest.raises(SettingError, match=f"users is {users}: .*50,000 to 1,000,000"):
            Demo(users, 1)


def ten_minutes(users):
    """The outbreaks of several fleets."""
    for seed in range(20):
        yield list(endless._outbreaks(users, np.random.default_rng((seed, 0))))


def charges(outbreak):
    """What an outbreak costs all its users together, in units, without noise."""
    public_since, charged = None, 0
    for step in range(outbreak.start, outbreak.end + 1):
        users = outbreak.holders(step)
        is_loud = users >= PLAN.threshold + PLAN.calibration.loud_excess
        if public_since is None:
            is_asked = True
        else:
            is_asked = value_is_due(step - public_since, PLAN.value_every_steps)
        if is_asked and users >= PLAN.threshold:
            public_since = step if public_since is None else public_since
            charged += users * (LOUD if is_loud else FULL)
        elif public_since is not None and users < PLAN.exit_threshold:
            charged += users * FULL
            public_since = None
    return charged


class Clock:
    """Shows what the test says."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now

    def pass_step(self, step):
        """Nothing that arrives from now on counts for this step, and its results leave."""
        self.now = SCHEDULE.release_at(step)


async def until(condition):
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def playing(demo):
    running = asyncio.create_task(demo.run())
    try:
        await until(lambda: demo.board.promise is not None or running.done())
        yield
    finally:
        demo.stop()
        await running


async def close(demo, steps):
    """Let time pass, each step as soon as the one before is closed."""
    first = FIRST if demo.board.through is None else demo.board.through + 1
    for step in range(first, first + steps):
        demo.clock.pass_step(step)
        await until(lambda step=step: demo.board.through == step)


def new_demo(**changes):
    return Demo(USERS, 7, **{"clock": Clock()} | changes)


async def test_the_first_outbreak_is_on_the_board_with_the_first_steps():
    demo = new_demo()
    async with playing(demo):
        assert demo.board.current.step is None
        await close(demo, 3)
        outbreak, lasting = demo.board.current.hitters
        assert demo.outbreaks == {outbreak.item}
        assert outbreak.item in OUTBREAKS
        assert lasting.item == LASTING
        assert (outbreak.state, outbreak.since) == (State.ONGOING, FIRST)
    # It is the fleet's, through decoder and engine: with duplicates, late and bad records.
    assert demo.summary.accepted > 0.15 * USERS
    assert demo.summary.late
    assert demo.summary.rejected.keys() >= {"not_json"}
    assert demo.summary.duplicates
    assert demo.left_out == 0


async def test_an_outbreak_begins_lasts_and_ends_while_another_item_stays():
    demo = new_demo()
    async with playing(demo):
        await close(demo, 2)
        [outbreak] = demo.outbreaks
        told = {outbreak: [], LASTING: []}
        async with asyncio.timeout(DEADLINE):
            while State.GONE not in told[outbreak]:
                await close(demo, 1)
                steps = [json.loads(kept.json) for kept in demo.board.after(0, 100)]
                for item in told:
                    told[item] = [
                        result["state"]
                        for step in steps
                        for result in step["results"]
                        if result["item"] == item
                    ]
    for item, last in ((outbreak, "gone"), (LASTING, "ongoing")):
        first, *between, end = told[item]
        assert (first, set(between), end) == ("new", {"ongoing"}, last)
    assert len(told[outbreak]) <= 46
    assert len(told[LASTING]) == len(steps)


async def test_the_guarantee_on_the_board_is_that_of_the_products_defaults():
    demo = new_demo()
    defaults = PrivacySettings()
    async with playing(demo):
        await close(demo, 2)
        promise = demo.board.promise
        assert (promise.epsilon, promise.delta) == (defaults.epsilon, defaults.delta)
        assert promise.contributions == defaults.contributions == 10
        assert promise.period_steps == defaults.period_steps == 1440
        assert (promise.attention, promise.step_seconds) == ("changes", 1.0)
        assert (promise.threshold, promise.users) == (PLAN.threshold, USERS)


async def test_the_truth_beside_the_board_is_near_what_was_reported():
    demo = new_demo()
    async with playing(demo):
        await close(demo, 3)
        answer = demo.truth.beside(demo.board)
    for hitter in demo.board.current.hitters:
        reported = next(each for each in answer.items if each.item == hitter.item)
        assert reported.estimate == hitter.value.estimate
        # Noise beyond twenty of its scales has a probability below 1e-8; a few records are late.
        assert abs(reported.estimate - 0.98 * reported.users) < 20 * PLAN.calibration.noise_scale
    assert answer.withheld > 1_000
    assert answer.singles > 1_000


async def test_a_journal_that_is_not_named_is_gone_afterwards(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    demo = new_demo()
    async with playing(demo):
        await close(demo, 2)
        [directory] = tmp_path.iterdir()
        assert (directory / DATABASE).is_file()
    assert list(tmp_path.iterdir()) == []


async def test_the_next_demo_goes_on_with_a_journal_that_is_kept(tmp_path):
    first = new_demo(journal=tmp_path / "journal")
    async with playing(first):
        await close(first, 3)
    restored = peek(tmp_path / "journal" / DATABASE).restored
    assert restored.state.closed == first.board.through
    assert restored.state.period.terms == TERMS
    second = new_demo(journal=tmp_path / "journal", clock=first.clock)
    second.clock.now += 60_000
    async with playing(second):
        # The past is there before anything new is, and nobody's charges are forgotten.
        assert second.board.oldest == first.board.oldest
        assert second.summary.charged == first.summary.charged > 2_000
        # Public items are asked about in every step, also in those of the pause.
        await until(lambda: second.board.through == first.board.through + 60)
        await close(second, 5)
        steps = [json.loads(kept.json) for kept in second.board.after(0, 100)]
    reported = [step["step"] for step in steps if step["hitters"]]
    assert reported[0] <= first.board.through
    assert reported[-1] > first.board.through + 59


async def test_a_machine_that_slept_goes_on_with_the_present():
    demo = new_demo()
    async with playing(demo):
        await close(demo, 2)
        before = demo.board.through
        demo.clock.now += 3_600_000
        await until(lambda: demo.board.through > before + 3_500)
        assert 3_500 < demo.left_out < 3_601
        await close(demo, 5)
        assert demo.board.current.hitters[0].step > before + 3_500


async def test_what_fails_in_the_fleet_ends_the_demo(monkeypatch):
    def broken(*_):
        raise ArithmeticError("broken")
        yield

    monkeypatch.setattr("streamer.fleet.live.sent_by", broken)
    demo = new_demo()
    running = asyncio.create_task(demo.run())
    await until(running.done)
    with pytest.raises(ArithmeticError):
        await running
