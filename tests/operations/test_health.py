"""Alive and ready: what is answered when, and why."""

from dataclasses import dataclass, field

import pytest

from streamer.operations.health import LONGEST_SILENCE, Status, Verdict
from streamer.stream.watching import Phase


@dataclass
class Patient:
    """A status with a clock of the test's, in seconds."""

    now: float = 1000.0
    status: Status = field(init=False)

    def __post_init__(self):
        self.status = Status(clock=lambda: self.now)


@pytest.fixture
def patient():
    return Patient()


@pytest.fixture
def status(patient):
    return patient.status


class TestAlive:
    def test_a_new_service_is_alive_and_says_that_it_starts(self, status):
        assert status.alive() == Verdict(True, "starting")

    def test_it_is_so_until_it_was_silent_for_too_long(self, patient):
        patient.now += LONGEST_SILENCE
        assert patient.status.alive().good
        patient.now += 1
        assert patient.status.alive() == Verdict(False, "no progress for 301 s")

    @pytest.mark.parametrize(
        "sign",
        [
            lambda status: status.beat(),
            lambda status: status.tell("waiting for a broker to answer"),
            lambda status: status.tell(""),
            lambda status: status.timed(Phase.APPEND, 0.1),
        ],
        ids=["a turn", "a wait", "the end of a wait", "a part of closing a step"],
    )
    def test_whatever_it_does_is_a_sign_of_life(self, patient, sign):
        patient.now += LONGEST_SILENCE + 1
        sign(patient.status)
        assert patient.status.alive().good
        patient.now += LONGEST_SILENCE
        assert patient.status.alive().good

    def test_one_that_waits_for_days_is_alive_and_says_for_what(self, patient):
        for _ in range(100_000):
            patient.now += 10
            patient.status.tell("waiting for a broker to answer")
        assert patient.status.alive() == Verdict(True, "waiting for a broker to answer")

    def test_one_that_is_stuck_while_it_waits_is_not(self, patient):
        patient.status.tell("waiting for a broker to answer")
        patient.now += LONGEST_SILENCE + 1
        assert not patient.status.alive().good

    def test_one_that_ends_is_alive(self, status):
        status.ending = True
        assert status.alive().good


class TestReady:
    def test_a_new_service_is_not_and_says_that_it_starts(self, status):
        assert status.ready() == Verdict(False, "starting")

    def test_it_is_when_it_runs_and_waits_for_nothing(self, status):
        status.tell("")
        status.running = True
        assert status.ready() == Verdict(True)

    def test_before_it_runs_it_always_has_a_reason(self, status):
        status.tell("waiting for a broker to answer")
        assert status.ready() == Verdict(False, "waiting for a broker to answer")
        status.tell("")  # the producer has started, the journal is yet to be read
        assert status.ready() == Verdict(False, "restoring the journal")

    def test_it_is_not_while_it_waits_and_says_for_what(self, status):
        status.running = True
        status.tell("waiting for the broker (it is gone)")
        assert status.ready() == Verdict(False, "waiting for the broker (it is gone)")
        status.tell("")
        assert status.ready() == Verdict(True)

    @pytest.mark.parametrize("waiting_for", ["", "waiting for a broker to answer"])
    @pytest.mark.parametrize("running", [True, False])
    def test_one_that_ends_is_not_whatever_else_it_does(self, status, running, waiting_for):
        status.running = running
        status.tell(waiting_for)
        status.ending = True
        assert status.ready() == Verdict(False, "shutting down")


class TestLog:
    def test_what_is_waited_for_is_logged_once(self, status, caplog):
        for _ in range(3):
            status.tell("waiting for a broker to answer")
        assert caplog.messages == ["waiting for a broker to answer"]
        status.tell("")
        status.tell("waiting for the broker (it is gone)")
        assert caplog.messages[1:] == ["waiting for the broker (it is gone)"]

    def test_text_of_a_broker_cannot_change_the_message(self, status, caplog):
        status.tell("waiting for the broker (100%s %d)")
        assert caplog.messages == ["waiting for the broker (100%s %d)"]
