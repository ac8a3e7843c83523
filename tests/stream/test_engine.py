"""The engine: the protocol of closing, periods, charges, and that it can go on from its state.

The last class holds the whole room to a model in plain Python: whatever the order of the
records, their partitions, batches and restarts, the same steps are decided the same way.
"""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.errors import MonitorError
from streamer.monitors.seam import Hitter
from streamer.monitors.states import State
from streamer.privacy.prices import FULL
from streamer.privacy.terms import Attention, Method
from streamer.stream.engine import Engine, EngineState, Turnout
from streamer.stream.intake import Batch
from tests.stream.making import (
    LATENESS,
    LENGTH,
    RepeatingDecider,
    batch,
    close_all,
    feed,
    new_engine,
    new_intake,
    pseudonym,
    record,
    seeded_noise,
    started,
    terms,
)

NEVER = 10**9


def hold(engine, step, *holders):
    """Close the next step, in which these users hold the items, each written "user item"."""
    feed(engine, *((*holder.split(), step) for holder in holders))
    [*_, decided] = close_all(engine, step)
    return decided


def reported(decided):
    return {hitter.item: hitter.estimate for hitter in decided.hitters}


def kept(engine, decisions):
    """The state of an engine as a journal would have it back."""
    return EngineState(engine.closed, engine.period, engine.counters.snapshot(), decisions)


def remembered(state):
    charges = state.charges
    return charges.users.tolist(), charges.units.tolist(), state.recent


class TestProtocol:
    def test_a_stream_without_a_first_step_cannot_be_closed(self):
        with pytest.raises(MonitorError, match="no first step"):
            new_engine().close_next(5)

    def test_a_stream_starts_once(self):
        engine = started()
        with pytest.raises(MonitorError, match="is closed"):
            engine.start_at(7)

    def test_a_restored_stream_goes_on_and_does_not_start(self):
        engine = started()
        decisions = close_all(engine, 3)
        again = new_engine(state=kept(engine, decisions))
        with pytest.raises(MonitorError, match="step 3 is closed"):
            again.start_at(3)

    def test_it_starts_at_the_step_that_it_is_told(self):
        engine = new_engine()
        engine.start_at(7)
        assert engine.close_next(7).first == 7

    def test_it_does_not_start_after_a_step_that_has_events(self):
        engine = new_engine()
        feed(engine, ("u", "x", 9), ("u", "x", 5))
        with pytest.raises(MonitorError, match="cannot start at step 7: step 5 has events"):
            engine.start_at(7)
        assert engine.closed is None

    @pytest.mark.parametrize("first", [0, 4, 5])
    def test_it_starts_with_the_first_step_that_has_events_or_before_it(self, first):
        engine = new_engine()
        feed(engine, ("u", "x", 5))
        engine.start_at(first)
        decisions = close_all(engine, 5)
        assert (decisions[0].first, reported(decisions[-1])) == (first, {"x": 1})

    def test_steps_beyond_the_last_one_wanted_stay_open(self):
        engine = started()
        feed(engine, ("u", "x", 0), ("u", "x", 1))
        assert [decided.step for decided in close_all(engine, 0)] == [0]
        assert (engine.closed, engine.intake.open_steps) == (0, [1])

    @pytest.mark.parametrize("through", [-1, 2, 3])
    def test_a_closed_step_is_never_closed_again(self, through):
        engine = started()
        close_all(engine, 3)
        assert engine.has_closed(through)
        with pytest.raises(MonitorError, match="no step is decided twice"):
            engine.close_next(through)
        assert engine.closed == 3

    def test_steps_are_closed_in_order_and_each_once(self):
        engine = started()
        feed(engine, ("u", "x", 5), ("v", "x", 2), ("u", "x", 2), ("w", "x", 9))
        decisions = close_all(engine, 12)
        steps = [step for one in decisions for step in range(one.first, one.step + 1)]
        assert steps == list(range(13))

    def test_a_decision_is_of_the_events_of_its_step(self):
        engine = started()
        feed(engine, ("u", "x", 0), ("v", "x", 0), ("w", "y", 0), ("u", "z", 1))
        assert list(map(reported, close_all(engine, 1))) == [{"x": 2, "y": 1}, {"z": 1}]

    def test_nothing_is_charged_before_the_first_step(self):
        engine = new_engine()
        assert (engine.charged, engine.exhausted, engine.terms_pending) == (0, 0, False)


class TestResults:
    @pytest.mark.parametrize("order", ["abc", "cba", "bca"])
    def test_results_are_in_the_order_of_their_texts(self, order):
        decided = hold(started(), 0, *(f"{item} {item}" for item in order))
        assert [hitter.item for hitter in decided.hitters] == ["a", "b", "c"]

    def test_items_below_the_threshold_are_not_reported(self):
        decided = hold(started(threshold=2), 0, "u x", "v x", "w y")
        assert reported(decided) == {"x": 2}

    def test_a_user_counts_once_a_step(self):
        engine = started()
        early, late = record("u", "x", time=1), record("u", "y", time=2)
        engine.intake.receive(batch([late, early, late]), None, None)
        assert reported(engine.close_next(0)) == {"y": 1}
        assert engine.turnout == Turnout(events=3, users=1, held=1)

    def test_with_fresh_noise_what_everybody_holds_is_reported_and_what_one_holds_is_not(self):
        # Both are more than twenty noise scales away from the threshold.
        settled = terms(epsilon=1.0, delta=1e-9, items=1_000)
        crowd = 2 * settled.plan().threshold
        engine = Engine(new_intake(), settled)
        engine.start_at(0)
        feed(engine, *((f"u-{n}", "common", 0) for n in range(crowd)), ("loner", "rare", 0))
        [hitter] = engine.close_next(0).hitters
        assert hitter.item == "common"
        assert abs(hitter.estimate - crowd) < settled.plan().threshold


class TestEmptySteps:
    def test_a_million_of_them_are_one_decision(self):
        engine = started(period_steps=1_440)
        [decided] = close_all(engine, 999_999)
        assert (decided.first, decided.step, decided.hitters) == (0, 999_999, ())
        assert decided.period.number == engine.period.number == 999_999 // 1_440

    def test_one_alone_is_a_decision_of_its_own(self):
        decided = started().close_next(0)
        assert (decided.first, decided.step, len(decided.charges)) == (0, 0, 0)

    def test_a_run_ends_before_a_step_with_results(self):
        engine = started()
        feed(engine, ("u", "x", 5))
        decisions = close_all(engine, 9)
        assert [(one.first, one.step) for one in decisions] == [(0, 4), (5, 5), (6, 9)]

    def test_a_run_goes_on_after_the_last_one(self):
        engine = started()
        assert [engine.close_next(through).first for through in (3, 10)] == [0, 4]

    def test_a_run_over_the_end_of_a_period_lets_everybody_count_again(self):
        engine = started(period_steps=10, contributions=1)
        hold(engine, 0, "u x")
        close_all(engine, 15)
        assert engine.charged == 0
        assert reported(hold(engine, 16, "u x")) == {"x": 1}


class TestTurnout:
    def test_it_is_of_the_last_closed_step_and_nothing_for_an_empty_one(self):
        engine = started(contributions=1)
        assert engine.turnout == Turnout(0, 0, 0)
        hold(engine, 0, "u x", "u y", "v z")
        assert engine.turnout == Turnout(events=3, users=2, exhausted=0, held=2)
        hold(engine, 1, "u x", "v x", "w x")
        assert engine.turnout == Turnout(events=3, users=3, exhausted=2, held=3)
        close_all(engine, 2)
        assert engine.turnout == Turnout(0, 0, 0)


class TestPeriods:
    def test_everybody_counts_again_in_a_new_period(self):
        engine = started(period_steps=3, contributions=1)
        seen = [reported(hold(engine, step, "u x")) for step in range(6)]
        assert seen == [{"x": 1}, {}, {}, {"x": 1}, {}, {}]

    def test_a_decision_carries_the_period_of_its_step(self):
        engine = started(period_steps=3)
        periods = [hold(engine, step, "u x").period.number for step in range(7)]
        assert periods == [0, 0, 0, 1, 1, 1, 2]

    def test_new_terms_wait_for_the_next_period(self):
        engine = started(period_steps=3, contributions=1)
        hold(engine, 0, "u x")
        engine.terms = terms(period_steps=3, contributions=2)
        assert engine.terms_pending
        assert reported(hold(engine, 1, "u x")) == {}
        close_all(engine, 2)
        seen = [reported(hold(engine, step, "u x")) for step in (3, 4, 5)]
        assert seen == [{"x": 1}, {"x": 1}, {}]
        assert not engine.terms_pending

    def test_each_period_is_decided_with_its_own_plan(self):
        plans = []

        def note(plan, declared):
            plans.append(plan)
            return RepeatingDecider(NEVER)

        engine = Engine(new_intake(), terms(period_steps=2), None, note)
        engine.start_at(0)
        hold(engine, 0, "u x")
        engine.terms = terms(period_steps=2, contributions=5)
        hold(engine, 2, "u x")
        assert [plan.guarantee.contributions for plan in plans] == [2, 5]

    def test_an_empty_run_stops_at_the_end_of_the_period_when_terms_are_pending(self):
        engine = started(period_steps=10)
        close_all(engine, 4)
        engine.terms = terms(period_steps=7)
        decisions = close_all(engine, 29)
        assert [(one.first, one.step) for one in decisions] == [(5, 9), (10, 29)]
        assert [one.period.terms for one in decisions] == [terms(period_steps=10), engine.terms]
        assert (decisions[1].period.number, decisions[1].period.first) == (3, 24)

    def test_an_empty_run_spans_periods_when_no_terms_are_pending(self):
        engine = started(period_steps=10)
        decisions = close_all(engine, 34)
        assert [(one.first, one.step, one.period.number) for one in decisions] == [(0, 34, 3)]
        decisions = close_all(engine, 64)
        assert [(one.first, one.step, one.period.number) for one in decisions] == [(35, 64, 6)]

    def test_the_terms_are_those_of_the_engine_when_its_state_had_others(self):
        engine = started(period_steps=10)
        decisions = close_all(engine, 4)
        again = new_engine(state=kept(engine, decisions), period_steps=10, contributions=7)
        assert again.terms_pending
        assert hold(again, 9, "u x").period.terms.contributions == 2
        assert hold(again, 10, "u x").period.terms.contributions == 7


class TestCharging:
    def test_the_holders_of_what_is_reported_are_charged_and_nobody_else(self):
        engine = started(threshold=2)
        decided = hold(engine, 0, "u x", "v x", "w y")
        assert decided.charges.users.tolist() == sorted([pseudonym("u"), pseudonym("v")])
        assert engine.charged == 2

    def test_a_user_at_the_limit_does_not_count(self):
        engine = started(threshold=2, contributions=1)
        hold(engine, 0, "u x", "v x")
        assert engine.exhausted == 2
        assert reported(hold(engine, 1, "u x", "v x", "w x")) == {}
        assert reported(hold(engine, 2, "u x", "v x", "w x", "z x")) == {"x": 2}

    def test_a_user_at_the_limit_is_not_charged(self):
        engine = started(contributions=1)
        hold(engine, 0, "u x")
        decided = hold(engine, 1, "u x", "v x")
        assert decided.charges.users.tolist() == [pseudonym("v")]

    @pytest.mark.slow
    @given(
        contributions=st.integers(1, 3),
        period=st.integers(1, 6),
        steps=st.lists(
            st.lists(st.tuples(st.sampled_from("uvwz"), st.sampled_from("wxyz"))), max_size=15
        ),
        threshold=st.integers(1, 2),
        most=st.integers(1, 4),
    )
    def test_nobody_is_charged_more_than_k_times_in_a_period(
        self, contributions, period, steps, threshold, most
    ):
        agreed = {"contributions": contributions, "period_steps": period, "items_per_step": most}
        engine = started(threshold=threshold, **agreed)
        for step, held in enumerate(steps):
            feed(engine, *((user, item, step) for user, item in held))
        charges = Counter()
        for one in close_all(engine, len(steps)):
            users, units = one.charges.users.tolist(), one.charges.units.tolist()
            for user, each in zip(users, units, strict=True):
                charges[one.period.number, user] += each
        assert max(charges.values(), default=0) <= contributions * FULL


class TestSeveralItems:
    def test_up_to_so_many_items_of_a_user_count(self):
        engine = started(items_per_step=2, contributions=9)
        assert reported(hold(engine, 0, "u x", "u y", "u z", "v x")) == {"x": 1, "y": 1, "z": 1}
        assert engine.turnout == Turnout(events=4, users=2, exhausted=0, held=3)

    def test_a_user_is_charged_for_each_of_its_reported_items(self):
        engine = started(items_per_step=3, contributions=9)
        charges = hold(engine, 0, "u x", "u y", "v x").charges
        expected = {pseudonym("u"): 2 * FULL, pseudonym("v"): FULL}
        assert dict(zip(charges.users.tolist(), charges.units.tolist(), strict=True)) == expected

    def test_no_more_items_count_than_the_budget_pays_for(self):
        engine = started(items_per_step=3, contributions=2)
        assert reported(hold(engine, 0, "u x", "u y", "u z")) == {"y": 1, "z": 1}
        assert reported(hold(engine, 1, "u x", "u y", "u z")) == {}
        assert (engine.turnout.users, engine.turnout.exhausted) == (1, 1)

    def test_a_changed_number_begins_with_the_next_period(self):
        engine = started(items_per_step=1, contributions=9, period_steps=2)
        assert reported(hold(engine, 0, "u x", "u y")) == {"y": 1}
        engine.terms = terms(items_per_step=2, contributions=9, period_steps=2)
        assert engine.terms_pending
        assert reported(hold(engine, 1, "u x", "u y")) == {"y": 1}
        assert reported(hold(engine, 2, "u x", "u y")) == {"x": 1, "y": 1}
        assert not engine.terms_pending


class TestRefresh:
    def test_a_reported_item_rests(self):
        engine = started(refresh_steps=3, contributions=9)
        seen = [reported(hold(engine, step, "u x")) for step in range(7)]
        assert seen == [{"x": 1}, {}, {}, {"x": 1}, {}, {}, {"x": 1}]

    def test_the_holders_of_a_resting_item_are_not_charged(self):
        engine = started(refresh_steps=3)
        hold(engine, 0, "u x")
        assert hold(engine, 1, "u x", "v y").charges.users.tolist() == [pseudonym("v")]

    def test_it_rests_by_its_name_whatever_its_number_in_a_step(self):
        engine = started(refresh_steps=3)
        hold(engine, 0, "u x", "v y")
        assert reported(hold(engine, 1, "a z", "b y", "c x")) == {"z": 1}

    def test_it_rests_through_empty_steps(self):
        engine = started(refresh_steps=3)
        hold(engine, 0, "u x")
        close_all(engine, 1)
        assert reported(hold(engine, 2, "u x")) == {}
        assert reported(hold(engine, 3, "u x")) == {"x": 1}

    def test_it_rests_after_a_restart(self):
        engine = started(refresh_steps=3)
        state = kept(engine, [hold(engine, 0, "u x")])
        again = new_engine(state=state, refresh_steps=3)
        assert reported(hold(again, 2, "u x")) == {}
        assert reported(hold(again, 3, "u x")) == {"x": 1}

    @pytest.mark.parametrize("restart", [False, True])
    def test_it_rests_as_long_as_the_terms_of_its_report_say(self, restart):
        engine = started(refresh_steps=5, period_steps=10)
        decided = hold(engine, 8, "u x")
        if restart:
            engine = new_engine(state=kept(engine, [decided]))
        engine.terms = terms(refresh_steps=1, period_steps=10, contributions=9)
        seen = {step: reported(hold(engine, step, "u x")) for step in range(9, 16)}
        assert [step for step, items in seen.items() if items] == [13, 14, 15]

    def test_each_item_rests_for_itself(self):
        engine = started(refresh_steps=3, contributions=9)
        hold(engine, 0, "u x")
        hold(engine, 1, "u y")
        assert reported(hold(engine, 3, "u x", "v y")) == {"x": 1}
        assert reported(hold(engine, 4, "u x", "v y")) == {"y": 1}


class TestRestored:
    def test_it_goes_on_after_the_last_closed_step(self):
        engine = started()
        again = new_engine(state=kept(engine, close_all(engine, 4)))
        assert again.close_next(9).first == 5

    def test_who_was_charged_stays_charged(self):
        engine = started(contributions=1)
        again = new_engine(state=kept(engine, [hold(engine, 0, "u x")]), contributions=1)
        assert (again.charged, again.exhausted) == (1, 1)
        assert reported(hold(again, 1, "u x", "v x")) == {"x": 1}

    def test_the_period_is_the_one_that_was_kept(self):
        engine = started()
        close_all(engine, 0)
        again = new_engine(state=kept(engine, []))
        assert again.close_next(1).period is engine.period

    def test_what_was_kept_stays_as_it_was_when_engines_go_on(self):
        engine = started(contributions=9)
        state = kept(engine, [hold(engine, 0, "u x", "v x")])
        by_step = remembered(state)
        for one in (engine, new_engine(state=state, contributions=9, refresh_steps=3)):
            hold(one, 1, "u x", "w x")
            assert one.charged == 3
            assert remembered(state) == by_step


# A stream is records with their arrivals; one in a few is late or no event at all.
USERS, ITEMS, STEPS, PARTITIONS = "abcdef", ["x", "y", "é"], 9, 3
EVENTS = st.tuples(
    st.sampled_from(USERS),
    st.sampled_from(ITEMS),
    st.integers(0, STEPS * LENGTH - 1),
    st.sampled_from([0, 0, 0, LATENESS - 1, LENGTH, 3 * LENGTH]),
).map(lambda e: (record(e[0], e[1], time=e[2]), e[2] + e[3], e))
STREAMS = st.lists(EVENTS | st.just((b"?", 0, None)), max_size=60)
ACTIONS = st.lists(
    st.tuples(st.just("read"), st.integers(0, PARTITIONS - 1), st.integers(1, 8))
    | st.tuples(st.just("close"), st.integers(1, 3))
    | st.tuples(st.just("restart")),
    max_size=25,
)
THRESHOLD, EXIT = 2, 1
COMMON = {
    "contributions": st.integers(1, 2),
    "period_steps": st.sampled_from([4, 100]),
    "items_per_step": st.integers(1, 3),
}
EVERY_STEP = {"attention": Attention.EVERY_STEP, "refresh_steps": 1}
SETTINGS = st.fixed_dictionaries(
    {
        **COMMON,
        "attention": st.just(Attention.EVERY_STEP),
        "refresh_steps": st.integers(1, 3),
    }
) | st.fixed_dictionaries(
    {
        **COMMON,
        "attention": st.just(Attention.CHANGES),
        "calibration": st.just(Method.HORIZON),
        "value_every_steps": st.integers(1, 4),
    }
)


def step_of(entry):
    """The step that a record counts for; None: it does not count."""
    _, arrival, event = entry
    if event is None:
        return None
    step = event[2] // LENGTH
    return step if arrival < (step + 1) * LENGTH + LATENESS else None


class Run:
    """Reads a stream in partitions, closes what may be closed, and is ended at any time."""

    def __init__(self, stream, parts, seed, settings):
        self.partitions = [
            [entry for entry, part in zip(stream, parts, strict=True) if part == number]
            for number in range(PARTITIONS)
        ]
        self.decider = RepeatingDecider(THRESHOLD, seed)
        self.terms = terms(**settings)
        self.decisions = []
        self.state, self.journal_offsets = None, {}
        self.start()

    def start(self):
        """From the journal alone: what was in memory is gone."""
        self.engine = Engine(new_intake(), self.terms, self.state, self.decider)
        self.engine.intake.resume(self.journal_offsets)
        if self.state is None:
            self.engine.start_at(0)
        self.positions = [self.journal_offsets.get(str(n), 0) for n in range(PARTITIONS)]

    def read(self, number, size):
        first = self.positions[number]
        part = self.partitions[number][first : first + size]
        self.positions[number] += len(part)
        records = [one for one, _, _ in part]
        arrivals = np.array([arrival for _, arrival, _ in part], dtype=np.int64)
        offsets = np.arange(first, first + len(part))
        self.engine.intake.receive(
            Batch(str(number), offsets, records, arrivals), self.engine.closed, None
        )

    def close(self, size):
        """Close a few steps, as far as nothing that is not read yet counts for them."""
        unread = [
            step_of(entry)
            for position, entries in zip(self.positions, self.partitions, strict=True)
            for entry in entries[position:]
        ]
        safe = min((step for step in unread if step is not None), default=STEPS) - 1
        for _ in range(size):
            if self.engine.has_closed(min(safe, STEPS - 1)):
                return
            self.decisions.append(self.engine.close_next(min(safe, STEPS - 1)))
            self.state = kept(self.engine, self.decisions)
            self.journal_offsets = self.engine.intake.offsets()

    def finish(self):
        for number in range(PARTITIONS):
            self.read(number, len(self.partitions[number]))
        self.close(STEPS)

    @property
    def outcome(self):
        """By step: results and whom they charge; the counts that were asked about."""
        by_step = {}
        for one in self.decisions:
            for step in range(one.first, one.step + 1):
                assert step not in by_step, "a step is decided once"
                users, units = one.charges.users.tolist(), one.charges.units.tolist()
                by_step[step] = (one.hitters, list(zip(users, units, strict=True)))
        return by_step, self.decider.counts


def changes(step, noisy, public, earlier, value_every):
    """New items are asked for their value, public ones whether they are there, and sometimes for
    their value: 1, 2, 4, ... steps after one another."""
    hitters = []
    for item, count in sorted(noisy.items()):
        before = public.get(item)
        asked_value = before is None or step in value_steps(before.since, value_every)
        if asked_value and count >= THRESHOLD:
            state = State.BACK if item in earlier else State.NEW
            if before is not None:
                state = State.ONGOING
            since = step if before is None else before.since
            hitters.append(Hitter(item, count, state, since, step))
        elif before is not None:
            state = State.GONE if not asked_value and count < EXIT else State.ONGOING
            hitters.append(Hitter(item, None, state, before.since, before.valued_at))
    return hitters


def value_steps(since, value_every):
    steps, gap = [since + 1], 1
    while steps[-1] < STEPS:
        gap = min(2 * gap, value_every)
        steps.append(steps[-1] + gap)
    return steps


def every_step(step, noisy, earlier, refresh):
    hitters = []
    for item, count in sorted(noisy.items()):
        last, since = earlier.get(item, (-NEVER, None))
        if count >= THRESHOLD and step >= last + refresh:
            state = State.NEW if since is None else State.BACK
            if step == last + refresh:
                state = State.ONGOING
            since = since if state is State.ONGOING else step
            hitters.append(Hitter(item, count, state, since, step))
    return hitters


def model(stream, seed, settings):
    """What is to come out, in plain Python and without looking at any order."""
    latest = defaultdict(lambda: defaultdict(dict))
    for entry in stream:
        if (step := step_of(entry)) is not None:
            user, item, time, _ = entry[2]
            mine = latest[step][user]
            mine[item] = max(time, mine.get(item, time))
    by_step, counts, charges, public, earlier = {}, {}, Counter(), {}, {}
    for step in range(STEPS):
        if step % settings["period_steps"] == 0:
            charges.clear()
        held = [
            (user, item)
            for user, mine in latest[step].items()
            for item in sorted(mine, key=lambda item: (mine[item], item), reverse=True)[
                : min(settings["items_per_step"], settings["contributions"] - charges[user])
            ]
        ]
        holders = Counter(item for _, item in held)
        if latest[step] or public:
            counts[step] = dict(holders)
        noisy = {
            item: holders[item] + seeded_noise(seed, step, item) for item in {*holders, *public}
        }
        if settings["attention"] is Attention.CHANGES:
            hitters = changes(step, noisy, public, earlier, settings["value_every_steps"])
        else:
            hitters = every_step(step, noisy, earlier, settings["refresh_steps"])
        public = {one.item: one for one in hitters if one.state is not State.GONE}
        earlier |= {one.item: (step, one.since) for one in hitters}
        if settings["attention"] is not Attention.CHANGES:
            public = {}
        paid = {one.item for one in hitters if one.state is State.GONE or one.estimate is not None}
        charged = Counter(user for user, item in held if item in paid)
        charges.update(charged)
        units = sorted((pseudonym(user), FULL * times) for user, times in charged.items())
        by_step[step] = (tuple(hitters), units)
    return by_step, counts


@pytest.mark.slow
class TestAnyOrder:
    @settings(max_examples=300, deadline=None)
    @given(
        stream=STREAMS,
        data=st.data(),
        actions=ACTIONS,
        seed=st.integers(0, 2**32),
        choice=SETTINGS,
    )
    def test_order_partitions_batches_and_restarts_change_nothing(
        self, stream, data, actions, seed, choice
    ):
        shuffled = data.draw(st.permutations(stream))
        part = st.integers(0, PARTITIONS - 1)
        parts = data.draw(st.lists(part, min_size=len(stream), max_size=len(stream)))
        run = Run(shuffled, parts, seed, choice)
        for name, *arguments in actions:
            {"read": run.read, "close": run.close, "restart": run.start}[name](*arguments)
        run.finish()
        assert run.outcome == model(stream, seed, choice)

    def test_an_event_that_is_only_in_memory_is_read_again_after_a_restart(self):
        events = [("a", "x", 3), ("b", "x", 0), ("c", "x", 15), ("d", "y", 4)]
        stream = [(record(u, i, time=t), t, (u, i, t, 0)) for u, i, t in events]
        choice = {
            "contributions": 1,
            "period_steps": 100,
            "items_per_step": 1,
            **EVERY_STEP,
        }
        run = Run(stream, [0, 0, 0, 1], 1, choice)
        run.read(0, 3)
        run.read(1, 1)
        run.close(1)
        run.start()
        assert run.positions == [2, 1, 0]
        run.finish()
        assert run.outcome == model(stream, 1, choice)
