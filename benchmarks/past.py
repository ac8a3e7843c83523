"""A deployment with a past: users who were charged, in its state topic."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.bare_engine import TERMS
from benchmarks.kafka import KEY, Deployment, make_topic
from benchmarks.workload import START, STEP_MS
from streamer.kafka.connection import Connection
from streamer.kafka.ledger import KafkaLedger, LedgerTopics
from streamer.kafka.transactions import Transactions
from streamer.ledger.contract import Entry, Life
from streamer.monitors.counters import Charges, Counters
from streamer.monitors.seam import Users
from streamer.stream.decided import Decided
from streamer.stream.periods import Period
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import Publication


async def write_past(
    deployment: Deployment,
    users: Users,
    shares: Sequence[float],
    contributions: int = TERMS.contributions,
) -> None:
    """Steps from 0 on, in each of which this share of the users that still count is charged,
    and a snapshot at the end. Users are pseudonyms in rising order."""
    topics = LedgerTopics(
        *map(deployment.topic, ("state", "hitters", "steps")), deployment.events_topic
    )
    connection = Connection((deployment.bootstrap,))
    await make_topic(deployment.bootstrap, topics.state, 1, cleanup_policy="compact")
    transactions = Transactions(connection, deployment.name, topics.state)
    await transactions.start()
    fingerprint = Pseudonyms(bytes.fromhex(KEY)).fingerprint
    ledger = KafkaLedger(connection, transactions, topics, Life(STEP_MS, START), fingerprint)
    await ledger.restore()
    generator, counters = np.random.default_rng(1), Counters(contributions)
    period = Period.containing(0, replace(TERMS, contributions=contributions))
    for step, share in enumerate(shares):
        chosen = counters.active(users) & (generator.random(len(users)) < share)
        charges = Charges.full(users[chosen])
        counters.charge(charges)
        await ledger.append(Entry(Decided(step, step, period, (), charges)))
    await ledger.publish(Publication(len(shares) - 1, (), ()))
    await ledger.snapshot(counters.snapshot())
    await transactions.stop()
