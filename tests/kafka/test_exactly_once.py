"""Whatever dies, each step is decided, charged and published exactly once.

The service is killed at every point of its protocol, its broker is killed under it, and
instances that were replaced wake up again. What the topics hold then is compared with an
undisturbed run over a file of the same events; the noise depends on the step and the
item alone, so a step that was decided over other users would show.
"""

import asyncio
import json
import secrets
import signal
import time
from collections import Counter

import pytest

from streamer.privacy.prices import FULL
from tests.kafka.conftest import World
from tests.kafka.crash_child import POINTS, Fate
from tests.kafka.evidence import Evidence, ends
from tests.kafka.instances import instances, mortal_broker, until
from tests.kafka.scripted import CONTRIBUTIONS
from tests.kafka.trials import Backlog, LiveStream, wait_until_now_is_closed

# Single empty steps, a long gap, and a new period in the middle.
STEPS = [*range(5, 70), *range(72, 80, 3), *range(95, 165)]
PERIOD = 100
DEATHS = [
    Fate("fenced"),
    Fate("announce sent"),
    Fate("announce committed"),
    Fate("decided"),
    Fate("appended"),
    Fate("publish sent"),  # while it recovers, twice
    Fate("publish committed"),
    Fate("noted", 2),
    Fate("append sent", 3),
    Fate("append committed", 2),
    Fate("append sent", 2, delay=0.001),
    Fate("publish committed", 2),
    Fate("publish sent", 3, delay=0.001),
    Fate("snapshot sent"),
    Fate("snapshot committed", 2),
    Fate("snapshot taken"),
    Fate("reject sent"),
    Fate("reject committed", 2),
    Fate("appended", 4),
]


def test_the_service_is_killed_at_every_point():
    assert {death.point for death in DEATHS} == set(POINTS)


@pytest.fixture(scope="module")
def killed(bootstrap, tmp_path_factory):
    """What is left of a stream over which the service was killed at every point."""
    backlog = Backlog(
        World(bootstrap, f"test-{secrets.token_hex(6)}"),
        tmp_path_factory.mktemp("killed"),
        STEPS,
        PERIOD,
    )
    with instances(backlog.directory) as start:
        for death in DEATHS:
            victim = start(backlog.settings, death)
            assert victim.ended() == -signal.SIGKILL, (death, victim.log)
        survivor = start(backlog.settings)
        backlog.wait_for_the_end()
        survivor.finish()
    return backlog, asyncio.run(Evidence.gather(backlog.settings))


def test_the_stream_has_something_to_lose(killed):
    backlog, evidence = killed
    assert len(backlog.expected.hitters) > 50
    assert evidence.snapshots > 3
    hitters = Counter(hitter["step"] for hitter in evidence.hitters)
    assert evidence.split == {step for step, number in hitters.items() if number > 1}
    assert len(evidence.split) > 5
    assert evidence.restored.state.period.number == 1
    assert evidence.restored.state.charges.units.max() == CONTRIBUTIONS * FULL


def test_a_reader_of_committed_records_sees_each_step_and_hitter_once(killed):
    _, evidence = killed
    evidence.check_each_once()


def test_a_reader_of_everything_never_sees_two_values(killed):
    _, evidence = killed
    evidence.check_never_two_values()
    assert len(evidence.uncommitted_steps) > len(evidence.steps), "nothing was ever aborted"


def test_everybody_is_charged_as_they_must_be_and_nobody_more_than_k_times(killed):
    backlog, evidence = killed
    evidence.check_charges(backlog.expected, backlog.settings)


def test_no_event_is_lost_and_none_counts_twice(killed):
    backlog, evidence = killed
    evidence.check_decisions(backlog.expected)


def test_every_bad_record_is_told_of_at_least_once(killed):
    _, evidence = killed
    told = {(record["partition"], record["offset"]) for record in evidence.rejected}
    assert len(told) == len(STEPS)


@pytest.mark.parametrize("point", ["decided", "append sent", "publish sent", "snapshot sent"])
def test_an_instance_that_was_replaced_while_it_was_stopped_writes_nothing(world, tmp_path, point):
    backlog = Backlog(world, tmp_path, range(5, 20), PERIOD)
    with instances(tmp_path) as start:
        stale = start(backlog.settings, Fate(point, 2, by=signal.SIGSTOP))
        stale.stopped()
        fresh = start(backlog.settings)
        backlog.wait_for_the_end()
        fresh.finish()
        before, said = asyncio.run(ends(backlog.settings)), stale.log
        stale.signal(signal.SIGCONT)
        assert stale.ended() == 3, stale.log
        assert asyncio.run(ends(backlog.settings)) == before
    [last] = map(json.loads, stale.log.removeprefix(said).splitlines())
    assert last["message"] == (
        f"a newer instance has taken over transactional_id {world.name}: this one ends"
    )
    asyncio.run(Evidence.gather(backlog.settings)).check(backlog.expected, backlog.settings)


@pytest.mark.parametrize("point", ["append sent", "publish sent"])
def test_an_instance_that_was_replaced_does_not_end_the_one_that_replaced_it(
    world, tmp_path, point
):
    # It is stopped for longer than a transaction may take: it cannot know how its own ended.
    longest = {"transaction_timeout_seconds": 1}
    backlog = Backlog(world, tmp_path, range(5, 20), PERIOD, step_ms=2000, kafka=longest)
    with instances(tmp_path) as start:
        stale = start(backlog.settings, Fate(point, 2, by=signal.SIGSTOP))
        stale.stopped()
        over = time.monotonic() + 1
        fresh = start(backlog.settings)
        backlog.wait_for_the_end()
        until(lambda: time.monotonic() > over, "the transaction's time is over")
        stale.signal(signal.SIGCONT)
        assert stale.ended() == 3, stale.log
        wait_until_now_is_closed(backlog.settings)
        fresh.finish()
    asyncio.run(Evidence.gather(backlog.settings)).check(backlog.expected, backlog.settings)


def test_nor_one_that_has_not_written_anything_yet(world, tmp_path):
    longest = {"transaction_timeout_seconds": 1}
    backlog = Backlog(world, tmp_path, range(5, 20), PERIOD, kafka=longest)
    with instances(tmp_path) as start:
        stale = start(backlog.settings, Fate("append sent", 2, by=signal.SIGSTOP))
        stale.stopped()
        over = time.monotonic() + 1
        fresh = start(backlog.settings, Fate("reject sent", by=signal.SIGSTOP))
        fresh.stopped()
        until(lambda: time.monotonic() > over, "the transaction's time is over")
        stale.signal(signal.SIGCONT)
        assert stale.ended() == 3, stale.log
        fresh.signal(signal.SIGCONT)
        backlog.wait_for_the_end()
        fresh.finish()
    asyncio.run(Evidence.gather(backlog.settings)).check(backlog.expected, backlog.settings)


def test_a_broker_that_dies_under_the_service_loses_nothing(tmp_path):
    with mortal_broker(tmp_path / "broker") as broker, instances(tmp_path) as start:
        live = LiveStream(World(broker.bootstrap, "mortal"), tmp_path)
        service = start(live.settings, Fate("publish sent", 3, by=signal.SIGSTOP))
        service.reads()
        with live.events():
            service.stopped()
            broker.kill()
            broker.start()
            service.signal(signal.SIGCONT)
            wait_until_now_is_closed(live.settings)
            broker.kill()
            until(lambda: "waiting for the broker" in service.log, "it says what it waits for")
            broker.start()
            wait_until_now_is_closed(live.settings)
        wait_until_now_is_closed(live.settings)
        service.finish()
        evidence, expected = asyncio.run(live.outcome())
    evidence.check(expected, live.settings)
    assert len(expected.hitters) > 5
