"""Chunks of a state topic of version 0.1.0, which store how often users were charged.

Each of these charges is a full one. The topic is converted when an instance takes it over.
"""

from __future__ import annotations

import numpy as np

from streamer.kafka.ledger_records import columns_of, opened
from streamer.monitors.counters import Charges
from streamer.privacy.prices import FULL

FORMAT = 1


def charges_of(chunk: bytes) -> Charges:
    """Of a step: the users alone."""
    users = np.frombuffer(opened(memoryview(chunk)), dtype="<u8")
    return Charges.full(users.astype(np.uint64, copy=False))


def counters_of(chunk: bytes) -> Charges:
    """Of a snapshot: the users, then how often each was charged."""
    users, times = columns_of(opened(memoryview(chunk)))
    return Charges(users, times * FULL)
