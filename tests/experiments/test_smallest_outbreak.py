"""The smallest outbreak that is found: what a plan says, measured."""

from functools import cache

import numpy as np
import pytest

from streamer.experiments.smallest_outbreak import FOUND, share_found, smallest_outbreak
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.search import first_integer
from streamer.privacy.terms import Method
from streamer.privacy.threshold import Workload, plan

pytestmark = pytest.mark.slow


@cache
def planned(method):
    """A large ε, so that outbreaks of few users have to be played."""
    return plan(Guarantee(4.0, 1e-6, 10), Workload(24, 10_000, 0.05), method)


@pytest.mark.parametrize("method", [Method.EXACT, Method.HORIZON])
def test_it_is_what_the_plan_says(method):
    """Within 7%: the share of 1,000 trials has a deviation of 0.7%."""
    expected = first_integer(lambda users: planned(method).detection(users) >= FOUND, least=1)
    measured = smallest_outbreak(planned(method), np.random.default_rng(1))
    assert measured == pytest.approx(expected, rel=0.07)


def test_with_a_horizon_it_has_less_than_half_the_users():
    exact, horizon = planned(Method.EXACT), planned(Method.HORIZON)
    rng = np.random.default_rng(1)
    users = first_integer(lambda users: exact.detection(users) >= FOUND, least=1) // 2
    assert share_found(exact, users, rng, trials=100) < 0.5
    assert share_found(horizon, users, rng, trials=100) > FOUND
