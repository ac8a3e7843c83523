"""The numbers of a run: what became of its records and of its steps."""

from streamer.service.summary import Summary
from streamer.stream.engine import EngineState
from tests.stream.making import (
    AHEAD,
    LATENESS,
    LENGTH,
    batch,
    new_engine,
    record,
    started,
)


class Run:
    """An engine without noise that reports every item that is held, and its summary."""

    def __init__(self, engine):
        self.engine, self.summary = engine, Summary()
        self.summary.started(engine)

    def read(self, records, arrivals=None, now=None):
        read = batch(records, arrivals)
        self.summary.received(read, self.engine.intake.receive(read, self.engine.closed, now))

    def hold(self, step, users, item="a"):
        self.read([record(f"u{n}", item, step=step) for n in range(users)])

    def close(self, through):
        while not self.engine.has_closed(through):
            self.summary.closed(self.engine.close_next(through), self.engine)


def test_a_new_run_has_counted_nothing():
    assert Run(started()).summary == Summary()


def test_records_are_counted_by_what_became_of_them():
    run = Run(started())
    late = LENGTH + LATENESS
    records = [
        *(record("ann", "a", time=0), record("bob", "a", time=0), record("cat", "a", time=0)),
        *(None, b"no", b"no", record("dan", "a", time=AHEAD + late + 1)),
    ]
    run.read(records, arrivals=[0, 0, late, late, late, late, late], now=late)
    summary = run.summary
    assert (summary.records, summary.accepted, summary.late) == (7, 2, 1)
    assert summary.rejected == {"empty": 1, "not_json": 2, "time_ahead": 1}
    assert summary.already_closed == 0


def test_events_beside_another_of_their_user_are_told_apart_when_their_step_closes():
    run = Run(started())
    events = [("ann", "a"), ("ann", "b"), ("ann", "b"), ("bob", "a")]
    run.read([record(user, item, step=0) for user, item in events])
    assert (run.summary.accepted, run.summary.duplicates) == (4, 0)
    run.close(0)
    assert (run.summary.accepted, run.summary.duplicates) == (4, 2)


def test_steps_and_hitters_are_counted_empty_runs_with_all_their_steps():
    run = Run(started())
    run.hold(0, 3)
    run.hold(50, 3)
    run.close(60)
    assert (run.summary.steps, run.summary.hitters) == (61, 2)


def test_users_are_those_of_the_current_period():
    run = Run(started(contributions=2, period_steps=10))
    figures = []
    for step in (0, 1, 10):
        run.hold(step, 3)
        run.close(step)
        figures.append((run.summary.charged, run.summary.exhausted))
    assert figures == [(3, 0), (3, 3), (3, 0)]


def test_after_a_restart_users_of_before_count_and_events_of_before_do_not():
    before = Run(started(contributions=1))
    before.hold(0, 3)
    before.close(0)
    state = EngineState(0, before.engine.period, before.engine.counters.snapshot())
    run = Run(new_engine(state=state, contributions=1))
    assert (run.summary.charged, run.summary.exhausted) == (3, 3)
    run.hold(0, 3)
    run.hold(1, 4)
    run.close(1)
    summary = run.summary
    assert (summary.records, summary.already_closed, summary.accepted) == (7, 3, 4)
    assert (summary.steps, summary.charged) == (1, 4)
