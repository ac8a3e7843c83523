"""The loss of all priced answers that touch a user: at most k charges and M questions.

With H and g from `priced`, the Rényi divergence of order α is at most (k·H + M·g)/(α-1) in
each direction, and both are added if a user is replaced (docs/privacy.md, theorem 4). Every α
and every H is valid. So they are searched for with estimates; what was found is then bounded
with care, at the very σ that is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from streamer.privacy.gaussian_sums import LARGEST_SIGMA, SMALLEST_SIGMA, GaussianSums
from streamer.privacy.priced import Direction, Distances, Growth, Horizon, Way
from streamer.privacy.search import falling_root, least_point, round_up

# The share of a cost that may be lost because a bound on g is not the least one.
_PRECISION = 1e-4
# The precision of log σ.
_CLOSE = 1e-4
# Below this difference of log δ, the best orders of two σ are close to each other.
_NEAR = 1.0
# About how fast log δ falls as log σ grows.
_STEEP = 15.0
# H is searched for down to this share of the largest one.
_LEAST_RATE = 1e-10
# Orders are searched for up to this many σ; there a single answer has (α-1)·D_α = 288.
_MOST_SIGMAS = 24.0

Objective = Callable[[float, float], float]
"""What is to be small, as a function of an order α and of the sum of all k·H + M·g."""


@lru_cache(maxsize=256)
def priced_scale(epsilon: float, delta: float, horizon: Horizon) -> float | None:
    """The least σ found with a δ of at most this one at ε; None if it exceeds LARGEST_SIGMA."""
    search = _ScaleSearch(epsilon, delta, horizon)
    log_sigma, step = search.estimated(), _CLOSE / 4
    # For H = 0 the sums are known, so there is nothing to be bounded.
    enough = round_up(math.exp(search.uncharged()))
    while log_sigma < min(math.log(enough), math.log(LARGEST_SIGMA)):
        # Bounded at the rounded σ: nothing is assumed about how δ depends on σ.
        sigma = round_up(math.exp(log_sigma))
        excess = search.proven_excess(sigma)
        if excess <= 0:
            return min(sigma, enough)
        log_sigma = math.log(sigma) + max(excess / _STEEP, step)
        step *= 2
    return enough if enough <= LARGEST_SIGMA else None


@lru_cache(maxsize=256)
def priced_delta(epsilon: float, sigma: float, horizon: Horizon) -> float:
    """An upper bound on δ at this ε."""
    everywhere = _Orders(math.log(1e-4), math.log(_MOST_SIGMAS * sigma), 24)
    return math.exp(min(0.0, _proven(sigma, horizon, _log_delta_at(epsilon), everywhere)))


def priced_epsilon(delta: float, sigma: float, horizon: Horizon) -> float:
    """An upper bound on ε at this δ."""
    if delta >= 1:
        return 0.0
    orders = _guessed_orders(delta, sigma, horizon)
    return max(0.0, _proven(sigma, horizon, _epsilon_at(delta), orders))


def _log_delta_at(epsilon: float) -> Objective:
    """log δ at this ε, by (13)."""

    def log_delta(order: float, cost: float) -> float:
        return cost + (order - 1) * (math.log1p(-1 / order) - epsilon) - math.log(order)

    return log_delta


def _epsilon_at(delta: float) -> Objective:
    """(13) solved for ε."""

    def epsilon(order: float, cost: float) -> float:
        excess = cost - math.log(delta) - math.log(order)
        return excess / (order - 1) + math.log1p(-1 / order)

    return epsilon


def _guess(horizon: Horizon) -> float:
    """About σ·(√(ε + log 1/δ) - √(log 1/δ)), where a search begins.

    It is √k for k answers with D_α = α/2σ² each; a long horizon needs more.
    """
    charged = min(horizon.charges, horizon.questions)
    return math.sqrt(charged) * (0.7 + 0.4 * math.log(horizon.questions / charged))


def _guessed_orders(delta: float, sigma: float, horizon: Horizon) -> _Orders:
    log_inverse = -math.log(delta)
    epsilon = (_guess(horizon) / sigma + math.sqrt(log_inverse)) ** 2 - log_inverse
    middle = math.log(2 * log_inverse / epsilon)
    return _Orders(middle - 2, middle + 1, 9)


class _ScaleSearch:
    """Looks for a σ; each trial starts with the orders that the one before it found best."""

    def __init__(self, epsilon: float, delta: float, horizon: Horizon) -> None:
        self._horizon = horizon
        self._objective = _log_delta_at(epsilon)
        self._log_delta = math.log(delta)
        root = math.sqrt(epsilon - self._log_delta) - math.sqrt(-self._log_delta)
        self._start = min(max(_guess(horizon) / root, SMALLEST_SIGMA), LARGEST_SIGMA)
        middle = math.log(-2 * self._log_delta / epsilon)
        self._first_orders = _Orders(min(middle - 4.0, -3.0), middle + 1.0, 15)
        self._orders: dict[Way, _Orders] = {}
        self._choices: dict[Way, _Choice] = {}

    def estimated(self) -> float:
        """The log σ at which the estimated δ is the wanted one, or an end of the range."""
        ends = math.log(SMALLEST_SIGMA), math.log(LARGEST_SIGMA)
        return falling_root(self._estimated_excess, math.log(self._start), ends, _CLOSE)

    def _estimated_excess(self, log_sigma: float) -> float:
        """log δ at this σ, less the wanted one."""
        worst = -math.inf
        for way in self._horizon.ways:
            orders = self._orders.get(way, self._first_orders)
            choice = _search(math.exp(log_sigma), way, self._horizon, self._objective, orders)
            self._choices[way] = choice
            excess = choice.estimate - self._log_delta
            # Far from the σ that is looked for, the best order says little about the next one.
            if abs(excess) < _NEAR:
                self._orders[way] = _Orders.around(choice.order)
            worst = max(worst, excess)
        return worst

    def uncharged(self) -> float:
        """A log σ that is enough if nothing is charged: each answer has D_α = α/2σ² at most."""
        answers = self._horizon.answers

        def log_delta(log_sigma: float) -> float:
            def at(log_order: float) -> float:
                order = 1 + math.exp(log_order)
                cost = answers * order * (order - 1) / (2 * math.exp(2 * log_sigma))
                return self._objective(order, cost)

            orders = self._first_orders
            return at(least_point(at, orders.low, orders.high + 2, 30)) - self._log_delta

        ends = math.log(SMALLEST_SIGMA), 2 * math.log(LARGEST_SIGMA)
        return falling_root(log_delta, math.log(self._start), ends, _CLOSE)

    def proven_excess(self, sigma: float) -> float:
        """The same with a proof, for the orders and rates of the last trial."""
        worst = max(
            _bound(sigma, way, self._horizon, self._objective, choice)
            for way, choice in self._choices.items()
        )
        return worst - self._log_delta


@dataclass(frozen=True, slots=True)
class _Orders:
    """A range of log(α-1), and for how many rounds it is searched."""

    low: float
    high: float
    rounds: int

    @classmethod
    def around(cls, order: float) -> _Orders:
        middle = math.log(order - 1)
        return cls(middle - 0.3, middle + 0.3, 5)

    def within(self, sigma: float) -> _Orders:
        """Without orders whose sums would overflow."""
        most = math.log(_MOST_SIGMAS * sigma)
        return self if self.high <= most else _Orders(min(self.low, most - 1), most, self.rounds)


@dataclass(frozen=True, slots=True)
class _Choice:
    """An order, and a rate H for each direction: all that a bound has to be told."""

    order: float
    rates: tuple[float, ...]
    estimate: float


def _proven(sigma: float, horizon: Horizon, objective: Objective, orders: _Orders) -> float:
    worst = -math.inf
    for way in horizon.ways:
        found = _search(sigma, way, horizon, objective, orders)
        choice = _search(sigma, way, horizon, objective, _Orders.around(found.order))
        worst = max(worst, _bound(sigma, way, horizon, objective, choice))
    return worst


def _search(
    sigma: float, way: Way, horizon: Horizon, objective: Objective, orders: _Orders
) -> _Choice:
    """The best order and rates, by estimates."""
    orders = orders.within(sigma)
    grid = Distances.grid(GaussianSums(sigma), 1 + math.exp(orders.high))
    choices: list[_Choice] = []
    near: dict[Direction, float] = {}

    def tried(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        costs, rates = [], []
        for direction in way:
            growth = Growth(grid, order, direction, horizon.kinds)
            cost = _cost(growth, horizon)
            near[direction] = _least_rate(cost, growth.largest_rate, near.get(direction))
            # 0 is best where charges do not matter, and no search ends at an end.
            rates.append(min(0.0, near[direction], key=cost))
            costs.append(cost(rates[-1]))
        choices.append(_Choice(order, tuple(rates), objective(order, sum(costs))))
        return choices[-1].estimate

    least_point(tried, orders.low, orders.high, orders.rounds)
    return min(choices, key=lambda choice: choice.estimate)


def _least_rate(cost: Callable[[float], float], largest: float, near: float | None) -> float:
    """The best H that is not 0, looked for close to that of another order first.

    The cost is convex in H, so it has one minimum on a logarithmic scale as well, which many
    charges and a long horizon need: there H is tiny.
    """

    def at(log_rate: float) -> float:
        return cost(math.exp(log_rate))

    if near is not None:
        middle = math.log(near)
        log_rate = least_point(at, middle - 0.5, middle + 0.5, 13)
        if abs(log_rate - middle) < 0.4:
            return math.exp(log_rate)
    return math.exp(least_point(at, math.log(_LEAST_RATE * largest), math.log(largest), 24))


def _cost(growth: Growth, horizon: Horizon) -> Callable[[float], float]:
    """k·H + M·g as a function of H, by estimates."""
    return lambda rate: horizon.charges * rate + horizon.questions * growth.estimate(rate)


def _bound(
    sigma: float, way: Way, horizon: Horizon, objective: Objective, choice: _Choice
) -> float:
    """The objective for this choice, with g bounded over all integers d."""
    grid = Distances.grid(GaussianSums(sigma), choice.order)
    total = 0.0
    for direction, rate in zip(way, choice.rates, strict=True):
        growth = Growth(grid, choice.order, direction, horizon.kinds)
        precision = _PRECISION * _cost(growth, horizon)(rate) / horizon.questions
        total += horizon.charges * rate + horizon.questions * growth.bound(rate, precision)
    return objective(choice.order, total)
