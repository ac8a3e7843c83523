"""The settings of a simulated fleet of users, validated when created."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NoReturn, Self

import numpy as np

from streamer.errors import SettingError
from streamer.fleet.catalogue import Catalogue, catalogue_of, is_taken
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak, holders_at_once, plan_outbreaks

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC)
_WHOLE = {
    "users": (1, 100_000_000),
    "steps": (1, 1_000_000_000),
    "seed": (0, 2**64 - 1),
    "items": (2, 10_000_000),
}
_SHARES = ("active", "personal", "earlier", "duplicates", "delayed", "skewed", "bad")
_NUMBERS = {
    "step_seconds": (0.01, 604_800),
    "session": (1, 1_000_000),
    "exponent": (0, 10),
    "delay_seconds": (0, 86_400),
    "skew_seconds": (0, 86_400),
}


@dataclass(frozen=True, slots=True)
class Fleet:
    """The users, their items, and how unreliable the transmission is."""

    users: int
    steps: int
    seed: int
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    """The first step is the one that contains this time."""
    step_seconds: float = 60.0
    active: float = 0.3
    """Share of users who send events in a step."""
    session: float = 10.0
    """Mean number of steps a user stays active; longer if `active` requires it."""
    items: int = 10_000
    exponent: float = 0.8
    """Background items follow Zipf's law: the n-th is drawn in proportion to n^-exponent."""
    personal: float = 0.3
    """Share of events whose item belongs to one user only."""
    earlier: float = 0.2
    """Share of active users who sent another item earlier in the step."""
    outbreaks: tuple[Outbreak, ...] = ()
    lasting: tuple[Lasting, ...] = ()
    duplicates: float = 0.01
    """Share of events that are sent twice."""
    delayed: float = 0.02
    """Share of events that arrive late, by up to `delay_seconds`."""
    delay_seconds: float = 30.0
    skewed: float = 0.01
    """Share of users whose clock is wrong, by a constant up to ± `skew_seconds`."""
    skew_seconds: float = 5.0
    bad: float = 0.001
    """Number of bad records, as a share of the events."""

    def __post_init__(self) -> None:
        for name, (least, most) in _WHOLE.items():
            value = getattr(self, name)
            if not (type(value) is int and least <= value <= most):
                _refuse(name, value, f"it must be a whole number from {least} to {most:,}")
        for name in _SHARES:
            if not 0 <= getattr(self, name) <= 1:
                _refuse(name, getattr(self, name), "it must be a share from 0 to 1")
        for name, (low, high) in _NUMBERS.items():
            if not low <= getattr(self, name) <= high:
                _refuse(name, getattr(self, name), f"it must be a number from {low:g} to {high:,}")
        if abs(self.step_ms - self.step_seconds * 1000) > 1e-6:
            _refuse("step_seconds", self.step_seconds, "it must be a whole number of milliseconds")
        self._check_time()
        self._check_outbreaks()
        self._check_lasting()

    def _check_time(self) -> None:
        if self.start.tzinfo is None:
            _refuse("start", self.start.isoformat(), "it needs a time zone: end it in Z or +01:00")
        if not _EPOCH <= self.start < _LAST:
            _refuse("start", self.start.isoformat(), "it must be between the years 1970 and 9999")
        if self.step_start(self.first_step + self.steps) > _milliseconds(_LAST):
            _refuse("steps", self.steps, "the last step would end after the year 9999")

    def _check_outbreaks(self) -> None:
        for one in self.outbreaks:
            if one.start >= self.steps:
                allowed = f"it must start before step {self.steps}, counted from 0"
                _refuse("outbreak", f"{one.item} from step {one.start}", allowed)
            if is_taken(one.item, self.items):
                _refuse("outbreak", one.item, "the item is already in use: choose another")
        if (needed := holders_at_once(self.outbreaks, 0, self.steps)) > self.users:
            allowed = f"there are only {self.users:,} users for them"
            _refuse("outbreak", f"{needed:,} users in one step", allowed)

    def _check_lasting(self) -> None:
        outbreaks = {one.item for one in self.outbreaks}
        for one in self.lasting:
            if one.item in outbreaks or is_taken(one.item, self.items):
                _refuse("lasting", one.item, "the item is already in use: choose another")
        if (needed := sum(one.size for one in self.lasting)) > self.users:
            allowed = f"there are only {self.users:,} users for them"
            _refuse("lasting", f"{needed:,} users", allowed)

    @property
    def step_ms(self) -> int:
        return round(self.step_seconds * 1000)

    @property
    def delay_ms(self) -> int:
        return round(self.delay_seconds * 1000)

    @property
    def skew_ms(self) -> int:
        return round(self.skew_seconds * 1000)

    @property
    def first_step(self) -> int:
        """Steps are counted from 1970, as in the product."""
        return _milliseconds(self.start) // self.step_ms

    def step_start(self, step: int) -> int:
        """Milliseconds since 1970."""
        return step * self.step_ms

    def with_planned_outbreaks(self, number: int) -> Self:
        """The same fleet with up to `number` more outbreaks, generated from its seed."""
        planned = plan_outbreaks(number, self.users, self.steps, self.seed, self.outbreaks)
        return replace(self, outbreaks=(*self.outbreaks, *planned))

    def generators(self) -> tuple[np.random.Generator, np.random.Generator]:
        """The randomness of what users do, and that of the transmission."""
        doing, transmission = np.random.default_rng(self.seed).spawn(2)
        return doing, transmission

    def catalogue(self) -> Catalogue:
        outbreaks = (one.item for one in self.outbreaks)
        return catalogue_of(self.items, (*outbreaks, *(one.item for one in self.lasting)))


def _refuse(field: str, value: object, allowed: str) -> NoReturn:
    raise SettingError(field.replace("_", "-"), value, allowed)


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
