"""Attention: which questions a step asks, as a function of what was published before.

Two rules. *Every step*, as in the paper: every item is asked for its value, except that a
reported one may rest for a while. *Changes*: a public item is asked in every step, held or
not, mostly only whether it is still there; the answer "yes" costs its holders nothing. Both
look at published answers alone, never at a tally, so neither costs any privacy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

from streamer.monitors.refresh import Refresh
from streamer.monitors.seam import Hitter, Item
from streamer.monitors.states import State
from streamer.privacy.terms import Attention
from streamer.privacy.threshold import Plan

MOST_PUBLIC = 1_000
REMEMBERED_STEPS = 10_000
"""An item that is reported again within this many steps after it was last public is back; later
it is new."""
MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Agenda(Generic[Item]):
    """The questions of a step, besides the value of every item that is not named here.

    `resting`: items that are not asked about. `values` and `checks`: public items, asked held or
    not, for their values and whether they are still there.
    """

    resting: Collection[Item] = ()
    values: Sequence[Item] = ()
    checks: Sequence[Item] = ()

    @property
    def named(self) -> list[Item]:
        return [*self.resting, *self.values, *self.checks]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often an item is asked for its value.

    `refresh_steps`: with every step, how long a reported item rests. `value_every_steps`: with
    changes, the longest time between two questions for the value of a public item.
    `most_public`: up to this many items stay public. Above that, those that are public longest lose
    their place: they are asked about like items that are not public. `remembers`: False for
    experiments with very many items, which look at answers alone: with every step, items then
    neither rest nor have states.
    """

    attention: Attention = Attention.EVERY_STEP
    refresh_steps: int = 1
    value_every_steps: int = 1
    most_public: int = MOST_PUBLIC
    remembers: bool = True


def pace_of(plan: Plan) -> Pace:
    """The pace that a plan is made for."""
    return Pace(plan.attention, value_every_steps=plan.value_every_steps)


class Rule(Protocol[Item]):
    """Decides what is asked, and says what the answers make public."""

    pace: Pace

    @property
    def asks_unheld(self) -> bool:
        """Whether there are items that are asked about even if nobody holds them."""
        ...

    def agenda(self, step: int) -> Agenda[Item]:
        """What a step asks about."""
        ...

    def note(
        self, step: int, reported: Mapping[Item, int], gone: Collection[Item]
    ) -> tuple[Hitter[Item], ...]:
        """What the answers of a step say about each public item, ordered by item."""
        ...

    def restore(self, step: int, hitters: Sequence[Hitter[Item]]) -> None:
        """This was said in a step before a restart; called for all known steps, in order."""
        ...


def rule_of(pace: Pace) -> Rule[Item]:
    return Changes(pace) if pace.attention is Attention.CHANGES else EveryStep(pace)


class EveryStep(Generic[Item]):
    """Every item is asked for its value in every step, except resting ones.

    An item that is reported whenever it is asked about is ongoing. There is no question whether
    it is still there, so it is never called gone.
    """

    asks_unheld = False

    def __init__(self, pace: Pace) -> None:
        self._refresh: Refresh[Item] = Refresh()
        self.pace = pace
        self._earlier: _Earlier[Item] = _Earlier()

    @property
    def pace(self) -> Pace:
        return self._pace

    @pace.setter
    def pace(self, pace: Pace) -> None:
        self._pace = pace
        self._refresh.steps = pace.refresh_steps

    def agenda(self, step: int) -> Agenda[Item]:
        return Agenda(resting=self._refresh.resting(step))

    def note(
        self, step: int, reported: Mapping[Item, int], gone: Collection[Item]
    ) -> tuple[Hitter[Item], ...]:
        del gone
        if not self._pace.remembers:
            return ()
        hitters = tuple(
            Hitter(item, reported[item], *self._state(item, step), valued_at=step)
            for item in sorted(reported)
        )
        self.restore(step, hitters)
        return hitters

    def restore(self, step: int, hitters: Sequence[Hitter[Item]]) -> None:
        self._refresh.note(step, [hitter.item for hitter in hitters])
        self._earlier.note(step, hitters)

    def _state(self, item: Item, step: int) -> tuple[State, int]:
        """The state of a reported item, and since when."""
        last = self._earlier.last(item, step)
        if last is None:
            return State.NEW, step
        if step - last.step > self._pace.refresh_steps:
            return State.BACK, step
        return State.ONGOING, last.since


class Changes(Generic[Item]):
    """New items are asked for their value; public ones whether they are still there, and now and
    then for their value."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._public: dict[Item, Hitter[Item]] = {}
        self._earlier: _Earlier[Item] = _Earlier()

    @property
    def asks_unheld(self) -> bool:
        return bool(self._public)

    def agenda(self, step: int) -> Agenda[Item]:
        most = self.pace.value_every_steps
        values: list[Item] = []
        checks: list[Item] = []
        for item, hitter in self._public.items():
            due = value_is_due(step - _since(hitter, step), most)
            (values if due else checks).append(item)
        return Agenda(values=values, checks=checks)

    def note(
        self, step: int, reported: Mapping[Item, int], gone: Collection[Item]
    ) -> tuple[Hitter[Item], ...]:
        hitters = [
            *(
                _continued(hitter, step, reported.get(item), item in gone)
                for item, hitter in self._public.items()
            ),
            *(
                Hitter(item, estimate, self._begins(item, step), step, step)
                for item, estimate in reported.items()
                if item not in self._public
            ),
        ]
        hitters.sort(key=lambda hitter: hitter.item)
        self.restore(step, hitters)
        return tuple(hitters)

    def restore(self, step: int, hitters: Sequence[Hitter[Item]]) -> None:
        self._public = {hitter.item: hitter for hitter in hitters if hitter.state is not State.GONE}
        surplus = max(0, len(self._public) - self.pace.most_public)
        if surplus:
            oldest = sorted(
                self._public.values(), key=lambda hitter: (_since(hitter, step), hitter.item)
            )
            for hitter in oldest[:surplus]:
                del self._public[hitter.item]
        self._earlier.note(step, hitters)

    def _begins(self, item: Item, step: int) -> State:
        return State.NEW if self._earlier.last(item, step) is None else State.BACK


def value_is_due(age: int, most: int) -> bool:
    """Whether a public item is asked for its value this many steps after it became public.

    The time between two such questions doubles, from 1, until it is `most`.
    """
    doublings = (most - 1).bit_length()
    doubled = (1 << doublings) - 1
    if age <= doubled:
        return age > 0 and (age + 1) & age == 0
    return (age - doubled) % most == 0


@dataclass(frozen=True, slots=True)
class _Last:
    """The last step that said something about an item, and the first of that stretch."""

    step: int
    since: int


class _Earlier(Generic[Item]):
    """Items that are or were public. A bounded number, and a bounded time."""

    def __init__(self) -> None:
        self._last: dict[Item, _Last] = {}
        """In the order of their last steps."""

    def last(self, item: Item, step: int) -> _Last | None:
        last = self._last.get(item)
        return last if last is not None and step - last.step <= REMEMBERED_STEPS else None

    def note(self, step: int, hitters: Iterable[Hitter[Item]]) -> None:
        for hitter in hitters:
            self._last.pop(hitter.item, None)
            self._last[hitter.item] = _Last(step, _since(hitter, step))
        while len(self._last) > MOST_REMEMBERED:
            del self._last[next(iter(self._last))]


def _since(hitter: Hitter[Item], step: int) -> int:
    """In a ledger of 0.1.0 a hitter does not say since when it is public."""
    return step if hitter.since is None else hitter.since


def _continued(
    hitter: Hitter[Item], step: int, estimate: int | None, is_gone: bool
) -> Hitter[Item]:
    """A public item after another step."""
    state = State.GONE if is_gone else State.ONGOING
    valued_at = hitter.valued_at if estimate is None else step
    return Hitter(hitter.item, estimate, state, hitter.since, valued_at)
