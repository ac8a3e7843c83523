"""What the topics hold when everything is over, and what must be true of it."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition

from streamer.kafka.ledger import KafkaLedger
from streamer.kafka.ledger_records import charges_of
from streamer.kafka.startup import connection_of, ledger_topics
from streamer.kafka.transactions import Transactions
from streamer.ledger.contract import Restored
from streamer.privacy.prices import FULL
from streamer.service.startup import life_of, pseudonyms_of, timing_of
from streamer.settings import Settings
from tests.kafka.harness import records_of
from tests.kafka.scripted import Reference
from tests.ledger.making import units_of

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


async def ends(settings: Settings) -> dict[str, int]:
    """Where the topics that the service writes end: aborted records count as well."""
    kafka = settings.kafka
    topics = (kafka.hitters_topic, kafka.steps_topic, kafka.rejected_topic, kafka.state_topic)
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers)
    await consumer.start()
    try:
        found = await consumer.end_offsets([TopicPartition(topic, 0) for topic in topics])
    finally:
        await consumer.stop()
    return {partition.topic: end for partition, end in found.items()}


async def closed(
    settings: Settings, step: int, seconds: float, meanwhile: Callable[[], object] = lambda: None
) -> None:
    """Wait until a reader of committed records sees that this step is closed."""
    consumer = AIOKafkaConsumer(
        settings.kafka.steps_topic,
        bootstrap_servers=settings.kafka.bootstrap_servers,
        isolation_level=COMMITTED,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        async with asyncio.timeout(seconds):
            seen = None
            while seen is None or seen < step:
                meanwhile()
                for batch in (await consumer.getmany(timeout_ms=200)).values():
                    seen = json.loads(batch[-1].value)["step"]
    finally:
        await consumer.stop()


async def restored(settings: Settings) -> Restored | None:
    """What an instance that starts now would go on from."""
    connection, stream = connection_of(settings.kafka), settings.stream
    kafka = settings.kafka
    transactions = Transactions(connection, kafka.transactional_id, kafka.state_topic)
    ledger = KafkaLedger(
        connection,
        transactions,
        ledger_topics(kafka),
        life_of(timing_of(stream)),
        pseudonyms_of(settings.privacy, None).fingerprint,
    )
    return await ledger.restore()


@dataclass(frozen=True)
class Evidence:
    """Everything in the topics that the service writes."""

    hitters: list[dict]
    steps: list[dict]
    uncommitted_hitters: list[dict]
    uncommitted_steps: list[dict]
    rejected: list[dict]
    decisions: Counter[int]
    """How often each step was made durable."""
    charged: Mapping[int, Mapping[int, int]]
    """By step, whom it charged and how much: from the records of the journal, as they were
    written."""
    restored: Restored
    snapshots: int
    split: frozenset[int]
    """Steps whose hitters took several records of the journal."""

    @classmethod
    async def gather(cls, settings: Settings) -> "Evidence":
        kafka = settings.kafka
        servers = kafka.bootstrap_servers

        async def values(topic: str, isolation: str = COMMITTED) -> list[dict]:
            return [json.loads(r.value) for r in await records_of(servers, topic, isolation)]

        journal = await records_of(servers, kafka.state_topic)
        written = [(r.key.decode().split("/"), r.value) for r in journal if r.value is not None]
        charged: dict[int, dict[int, int]] = defaultdict(dict)
        for (kind, *place), value in written:
            if kind == "charges":
                part = charges_of(value)
                units = zip(part.users.tolist(), part.units.tolist(), strict=True)
                charged[int(place[0])].update(units)
        return cls(
            hitters=await values(kafka.hitters_topic),
            steps=await values(kafka.steps_topic),
            uncommitted_hitters=await values(kafka.hitters_topic, UNCOMMITTED),
            uncommitted_steps=await values(kafka.steps_topic, UNCOMMITTED),
            rejected=await values(kafka.rejected_topic),
            decisions=Counter(int(place[0]) for (kind, *place), _ in written if kind == "step"),
            charged=charged,
            restored=await restored(settings),
            snapshots=sum(kind == "snapshot" for (kind, *_), _ in written),
            split=frozenset(
                int(place[0])
                for (kind, *place), _ in written
                if (kind, place[1:]) == ("hitters", ["1"])
            ),
        )

    def check(self, expected: Reference, settings: Settings) -> None:
        """Everything that must be true, whatever happened to the service and the broker."""
        self.check_each_once()
        self.check_never_two_values()
        self.check_charges(expected, settings)
        self.check_decisions(expected)

    def check_each_once(self) -> None:
        """A reader of committed records sees every step and every hitter exactly once."""
        steps = [step for record in self.steps for step in covered(record)]
        assert steps == list(range(steps[0], steps[-1] + 1))
        assert _repeated((hitter["step"], hitter["item"]) for hitter in self.hitters) == []
        announced = {step["step"]: step["hitters"] for step in self.steps if step["hitters"]}
        assert Counter(hitter["step"] for hitter in self.hitters) == announced

    def check_never_two_values(self) -> None:
        """Nor does a reader of everything ever see a step or a hitter change."""
        values = defaultdict(set)
        for record in self.uncommitted_hitters:
            values[record["step"], record["item"]].add(json.dumps(record))
        for record in self.uncommitted_steps:
            for step in covered(record):
                values[step].add(record["hitters"])
        assert {place: found for place, found in values.items() if len(found) > 1} == {}

    def check_charges(self, expected: Reference, settings: Settings) -> None:
        """Nobody is charged more than k times in full, and everybody is charged who must be."""
        assert [step for step, times in self.decisions.items() if times > 1] == []
        period_steps, most = settings.privacy.period_steps, settings.privacy.contributions
        charges = Counter()
        for step, units in self.charged.items():
            charges.update({(step // period_steps, user): each for user, each in units.items()})
        assert max(charges.values()) <= FULL * most
        assert self.charged == expected.charged
        state = self.restored.state
        now = state.period.number
        assert units_of(self.restored) == {
            user: units for (period, user), units in charges.items() if period == now
        }

    def check_decisions(self, expected: Reference) -> None:
        """No event that counts is lost, and none counts twice: noise aside, so do counts."""
        decided = [hitter for hitter in self.hitters if hitter["step"] <= expected.last]
        assert decided == expected.hitters
        # What was public at the end of the file is asked about until it is gone.
        after = self.hitters[len(decided) :]
        assert {hitter["state"] for hitter in after} <= {"ongoing", "gone"}
        assert self.steps[-1]["step"] >= expected.last


def covered(record: dict) -> range:
    """The steps that a step record is about."""
    return range(record.get("first", record["step"]), record["step"] + 1)


def _repeated(places: object) -> list:
    return [place for place, times in Counter(places).items() if times > 1]
