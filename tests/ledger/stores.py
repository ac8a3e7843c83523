"""The two places where a ledger can be kept, behind one interface for the tests.

A store outlives its ledgers: each is opened as by a new process.
"""

import json
import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import replace

from streamer.kafka.connection import Connection
from streamer.kafka.ledger import KafkaLedger, LedgerTopics
from streamer.kafka.transactions import Transactions
from streamer.ledger.directory import DATABASE
from streamer.ledger.file_ledger import FileLedger
from streamer.ledger.output_files import OutputFiles
from tests.kafka.harness import Record, make_topic, produce, records_of, values_of
from tests.ledger.making import KEY, LIFE

_ROWS = {
    "step": "DELETE FROM steps WHERE step = {}",
    "all decisions": "DELETE FROM steps",
    "charges": "DELETE FROM charges WHERE step = {}",
    "part of the snapshot": "DELETE FROM counters WHERE chunk = {}",
    "snapshot": "DELETE FROM snapshot",
    "published": "DELETE FROM published",
    "periods": "DELETE FROM periods",
}
"""How each part of a ledger is lost from a database."""


class Store:
    """What both have: a ledger of it is restored and claimed, as a run does.

    A ledger that wrote something is not restored itself: a broker shows what is committed a
    moment later, and only the start of the next ledger waits for that.
    """

    @asynccontextmanager
    async def resumed(self, **changes):
        async with self.opened(**changes) as ledger:
            await ledger.restore()
            await ledger.claim()
            yield ledger

    async def restored(self, **changes):
        async with self.opened(**changes) as ledger:
            return await ledger.restore()


class FileStore(Store):
    """A database in a directory, and two files for the results beside it."""

    PLAYS = 40
    """How often a random course of events is played: as often as takes a few seconds."""

    def __init__(self, directory):
        self.directory = directory
        self.path = directory / DATABASE
        self.hitters, self.steps = directory / "hitters.jsonl", directory / "steps.jsonl"

    async def make(self):
        self.directory.mkdir(parents=True, exist_ok=True)

    @asynccontextmanager
    async def opened(self, life=LIFE, key=KEY, start_anew=False, checkpoint=lambda _: None):
        outputs = OutputFiles(self.hitters, self.steps)
        ledger = FileLedger(self.path, life, key.fingerprint, outputs, start_anew, checkpoint)
        try:
            yield ledger
        finally:
            await ledger.close()

    @property
    def format(self):
        return int.from_bytes(self.path.read_bytes()[60:64])

    async def contents(self):
        return {each.name: each.read_bytes() for each in self.directory.iterdir()}

    async def lose(self, what, which=None):
        self.alter(_ROWS[what].format(which))

    async def lose_ledger(self):
        self.path.unlink()

    async def copy(self):
        return self.path.read_bytes()

    async def bring_back(self, copy):
        self.path.write_bytes(copy)

    def alter(self, statement):
        with closing(sqlite3.connect(self.path)) as database, database:
            assert database.execute(statement).rowcount != 0, "there was nothing to alter"

    async def published(self):
        """The results and the step records that are out, in their order."""
        return tuple(
            [json.loads(line) for line in path.read_bytes().splitlines()]
            for path in (self.hitters, self.steps)
        )


class KafkaStore(Store):
    """A state topic, and two topics for the results."""

    PLAYS = 8

    def __init__(self, world):
        self.world = world
        self.topics = LedgerTopics(*map(world.topic, ("state", "hitters", "steps", "events")))

    async def make(self, steps_partitions=1, hitters=None, **config):
        """Also settings of the hitters topic, and of the state topic."""
        bootstrap, topics = self.world.bootstrap, self.topics
        await make_topic(bootstrap, topics.state, **{"cleanup_policy": "compact", **config})
        await make_topic(bootstrap, topics.hitters, **(hitters or {}))
        await make_topic(bootstrap, topics.steps, steps_partitions)

    @asynccontextmanager
    async def opened(self, life=LIFE, key=KEY, start_anew=False, topics=None, identity=None):
        connection = Connection((self.world.bootstrap,))
        transactions = Transactions(connection, identity or self.world.name, self.topics.state)
        await transactions.start()
        try:
            yield KafkaLedger(
                *(connection, transactions, topics or self.topics),
                *(life, key.fingerprint, start_anew),
            )
        finally:
            await transactions.stop()

    async def contents(self):
        """All committed records, also the markers of transactions."""
        return [
            (record.topic, record.offset, record.key, record.value)
            for topic in (self.topics.state, self.topics.hitters, self.topics.steps)
            for record in await records_of(self.world.bootstrap, topic)
        ]

    async def lose(self, what, which=None):
        lost = {
            "step": lambda key: key == f"step/{which}",
            "all decisions": lambda key: key.startswith("step/"),
            "charges": lambda key: key.startswith(f"charges/{which}/"),
            "part of the snapshot": lambda key: (
                key.startswith("counters/") and key.endswith(f"/{which}")
            ),
            "snapshot": lambda key: key == "snapshot",
            "published": lambda key: key == "published",
            "periods": lambda key: key.startswith("period/"),
        }[what]
        keys = [key for key in await self.state() if lost(key)]
        assert keys, f"{what} was there"
        await self.put(dict.fromkeys(map(str.encode, keys)))

    async def lose_ledger(self):
        state = f"{self.topics.state}.new"
        self.topics = replace(self.topics, state=state)
        await make_topic(self.world.bootstrap, state, cleanup_policy="compact")

    async def copy(self):
        return await self.state()

    async def bring_back(self, copy):
        await self.lose_ledger()
        await self.put({key.encode(): value for key, value in copy.items()})

    async def put(self, values):
        """Write to the state topic behind the ledger's back; a value of None deletes the key."""
        records = [Record(value, key=key) for key, value in values.items()]
        await produce(self.world.bootstrap, self.topics.state, records)

    async def state(self):
        """What compaction leaves, by key, without the markers of transactions."""
        records = await records_of(self.world.bootstrap, self.topics.state)
        last = {record.key.decode(): record.value for record in records}
        return {
            key: value for key, value in last.items() if value is not None and key != "transaction"
        }

    async def published(self):
        """The results and the step records that are committed, in their order."""
        return tuple(
            [
                await values_of(self.world.bootstrap, topic)
                for topic in (self.topics.hitters, self.topics.steps)
            ]
        )
