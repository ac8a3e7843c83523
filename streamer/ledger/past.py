"""What every ledger does with its entries on restore, wherever they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from streamer.ledger.contract import Entry, Restored
from streamer.monitors.counters import Charges
from streamer.stream.decided import Decided
from streamer.stream.engine import EngineState

HISTORY = 20_000
"""How many decisions are kept for inspection."""


def past_of(
    entries: Sequence[Entry],
    published: int,
    key: str,
    charges: Charges,
) -> Restored:
    """The past, from all stored entries in ascending order, and the counters after them."""
    last = entries[-1]
    step, period = last.decided.step, last.decided.period
    state = EngineState(step, period, charges, [entry.decided for entry in entries])
    history = [entry.decided for entry in entries[-HISTORY:]]
    return Restored(state, last, published, key, history)


def added_up(counters: Charges, since: Sequence[Charges]) -> Charges:
    """Counters, with the charges since added."""
    if not since:
        return counters
    users = np.concatenate([charges.users for charges in since])
    units = np.concatenate([charges.units for charges in since])
    order = users.argsort()
    users = np.concatenate([counters.users, users.take(order)])
    units = np.concatenate([counters.units, units.take(order)])
    # A stable sort merges two ascending runs: faster than looking up each user.
    order = users.argsort(kind="stable")
    users = users.take(order)
    begins = np.flatnonzero(np.append(True, users[1:] != users[:-1]))
    units = np.add.reduceat(units.take(order), begins, dtype=np.uint16)
    return Charges(users.take(begins), units)


def check_continuity(entries: Sequence[Entry], published: int) -> None:
    """Each decision must begin where the one before it ended, up to the last published one.

    A store does not report what it lost, so gaps must. ValueError names the first step that
    is missing.
    """
    for before, entry in pairwise(entries):
        if entry.decided.first != before.decided.step + 1:
            raise ValueError(f"step {entry.decided.first - 1} is missing")
    if published > entries[-1].decided.step:
        raise ValueError(f"step {published} is missing")


def asked_again(decided: Decided) -> int:
    """The step in which the items of a decision are asked about again: until then they rest,
    and the decision must be kept."""
    return decided.step + decided.period.terms.refresh_steps
