"""What the tests of ledgers share: entries, publications, and what a past says."""

from dataclasses import replace

import msgspec
import numpy as np

from streamer.ledger.contract import Entry, Life
from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter
from streamer.privacy.prices import FULL
from streamer.privacy.terms import Method, Neighbours
from streamer.stream.decided import Decided
from streamer.stream.periods import Period, Terms
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import Recorder
from streamer.stream.timing import StepTiming

LIFE = Life(60_000, 0)
TIMING = StepTiming(LIFE.length_ms, LIFE.epoch_ms)
KEY, OTHER_KEY = Pseudonyms(b"o" * 32), Pseudonyms(b"n" * 32)
TERMS = Terms(
    *(10.0, 0.01, 3, Neighbours.REPLACE, Method.EXACT),
    *(100, 4, 0.5, 10),
)
PERIOD = Period.containing(0, TERMS)


def period_at(step, **terms):
    """The period of a step, with other terms perhaps; planning it again would be slow."""
    number = step // 100
    return replace(PERIOD, number=number, first=100 * number, terms=replace(TERMS, **terms))


def users(*numbers):
    return np.array(sorted(numbers), dtype=np.uint64)


def charges(units):
    """From users to their units."""
    return Charges(users(*units), np.array([units[user] for user in sorted(units)], np.uint16))


def times(often):
    """From users to how often they were charged in full."""
    return charges({user: FULL * number for user, number in often.items()})


def entry(step, charged=(), items=(), *, period=None, first=None, offsets=None):
    """`charged`: users who are charged in full, or from users to their units."""
    hitters = tuple(Hitter(item, 10) for item in items)
    first = step if first is None else first
    charged = charges(charged) if isinstance(charged, dict) else Charges.full(users(*charged))
    decided = Decided(step, first, period or period_at(step), hitters, charged)
    return Entry(decided, offsets or {})


def publication_of(decided, recorded=None, timing=TIMING):
    """What is published of a decision if everything up to `recorded`, or before it, is."""
    recorder = Recorder(timing, decided.first - 1 if recorded is None else recorded)
    if decided.hitters:
        return recorder.with_results(decided)
    return recorder.without_results(decided.step, decided.period)


async def keep(ledger, *entries):
    """Decide these, and publish each."""
    for each in entries:
        await ledger.append(each)
        await ledger.publish(publication_of(each.decided))


def units_of(restored):
    """From users to their units."""
    charges = restored.state.charges
    return dict(zip(charges.users.tolist(), charges.units.tolist(), strict=True))


def counters_of(restored):
    """From users to how often they were charged in full."""
    return {user: units / FULL for user, units in units_of(restored).items()}


def facts_of(restored):
    """Everything that a past says, as plain values; None if there is none."""
    if restored is None:
        return None
    state, last = restored.state, restored.last
    return {
        "closed": state.closed,
        "period": msgspec.to_builtins(state.period),
        "counters": [[user, often] for user, often in counters_of(restored).items()],
        "resting": resting(state),
        "last": _facts_of_decision(last.decided),
        "offsets": dict(last.offsets),
        "published": restored.published,
        "key": restored.key,
        "history": [_facts_of_decision(each) for each in restored.history],
    }


def resting(state):
    """Items that are not asked about in the next step, and the step in which each is again."""
    asked = {
        hitter.item: decided.step + decided.period.terms.refresh_steps
        for decided in state.recent
        for hitter in decided.hitters
    }
    return {item: step for item, step in asked.items() if step > state.closed + 1}


def _facts_of_decision(decided):
    hitters = [[hitter.item, hitter.estimate] for hitter in decided.hitters]
    period = msgspec.to_builtins(decided.period)
    return [decided.step, decided.first, period, hitters, decided.charges.users.tolist()]
