"""The service in a process of its own, which dies or stops where it is told to.

What runs is the command line as it is deployed. Only the noise repeats itself, and some
calls are watched: the points of the protocol, and those within a transaction.
"""

import functools
import os
import signal
import sys
import threading
from collections import Counter
from dataclasses import dataclass

from streamer import cli
from streamer.kafka import ledger_records, transactions
from streamer.kafka.clients import TransactionProducer
from streamer.ledger.contract import SnapshotRule
from streamer.service import hosting, line_job, startup  # noqa: F401  (loaded once)
from tests.service.repeatable import Repeatable

PROTOCOL = ("decided", "appended", "noted", "snapshot taken")
KINDS = ("announce", "append", "publish", "snapshot", "reject")
POINTS = (
    *PROTOCOL,
    "fenced",
    *(f"{kind} {point}" for kind in KINDS for point in ("sent", "committed")),
)
"""`fenced`: older instances are fenced, the journal is not read yet. `sent`: all records of
a transaction are at the broker, which was not told to commit it. `committed`: it was."""
ANY = "any"


@dataclass(frozen=True)
class Fate:
    """What happens to the process when it passes a point for the `number`-th time.

    After `delay` seconds more, during which it goes on.
    """

    point: str
    number: int = 1
    delay: float = 0.0
    by: signal.Signals = signal.SIGKILL


@dataclass(frozen=True)
class Order:
    config: str
    log: str
    fates: tuple[Fate, ...] = ()


def serve(order: Order) -> None:
    """Runs in the child; ends as the command line does."""
    log = os.open(order.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    watch = _Watch(order.fates)
    transactions.TransactionProducer = watch.producer
    hosting.KafkaService = functools.partial(
        hosting.KafkaService, asked_by=Repeatable(), checkpoint=watch.passed
    )
    SnapshotRule.LEAST_BYTES = 0
    ledger_records.CHUNK_BYTES = 50  # each hitter takes a record of its own
    sys.argv = ["streamer", "run", "--config", order.config]
    cli.main()


class _Watch:
    """Counts the points that are passed."""

    def __init__(self, fates: tuple[Fate, ...]) -> None:
        self._fates = fates
        self._seen: Counter[str] = Counter()

    def passed(self, point: str) -> None:
        self._seen.update((point, ANY))
        for fate in self._fates:
            if fate.point in {point, ANY} and self._seen[fate.point] == fate.number:
                if fate.delay:
                    threading.Timer(fate.delay, os.kill, (os.getpid(), fate.by)).start()
                else:
                    os.kill(os.getpid(), fate.by)

    def producer(self, *arguments: object, **options: object) -> TransactionProducer:
        return _WatchedProducer(self, *arguments, **options)


class _WatchedProducer(TransactionProducer):
    """Tells of the points within a transaction, and which kind of transaction it is."""

    def __init__(self, watch: _Watch, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self._watch = watch
        self._kind = ""

    async def start(self) -> None:
        await super().start()
        self._watch.passed("fenced")

    async def begin_transaction(self) -> None:
        self._kind = "announce"
        await super().begin_transaction()

    async def send(self, topic, value=None, key=None, **more):
        if key is not None and key.startswith(b"step/"):
            self._kind = "append"
        elif key == b"published" and self._kind != "append":  # the first entry has a note too
            self._kind = "publish"
        elif key == b"snapshot":
            self._kind = "snapshot"
        elif topic.endswith(".rejected"):
            self._kind = "reject"
        return await super().send(topic, value, key, **more)

    async def commit_transaction(self) -> None:
        self._watch.passed(f"{self._kind} sent")
        await super().commit_transaction()
        self._watch.passed(f"{self._kind} committed")
