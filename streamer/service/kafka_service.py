"""The Kafka service: one process, one loop, one owner of all partitions.

Starting: reach a broker, check the topics, fence older instances, and only then restore
the journal; publish what is decided and perhaps not published; read on where the journal
says. Running: read, and close each step when no partition can hold anything more for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from streamer.config import Settings
from streamer.errors import SettingError, UnusableJournalError
from streamer.kafka.connection import Connection
from streamer.kafka.ledger import HISTORY, KafkaJournal
from streamer.kafka.reasons import reason_of
from streamer.kafka.sink import KafkaSink
from streamer.kafka.startup import (
    connection_of,
    prepare_topics,
    rejects_of,
    source_of,
)
from streamer.kafka.topics import TopicAdmin, check_exists, check_one_cluster
from streamer.kafka.transactions import Transactions, ends_of
from streamer.ledger.base import Restored
from streamer.operations.health import Status
from streamer.operations.metrics import Situation
from streamer.privacy.threshold import Plan
from streamer.service.clock import Clock, wall_clock
from streamer.service.loop import FIRST_WAIT, LONGEST_WAIT, KafkaLoop
from streamer.service.pipeline import Checkpoint, Pipeline
from streamer.service.progress import Progress
from streamer.service.startup import (
    check_key,
    intake_of,
    life_of,
    pseudonyms_of,
    tell_of_pending_terms,
    terms_of,
    timing_of,
)
from streamer.service.summary import Summary
from streamer.stream.engine import Engine, FreshNoise, StepDecider
from streamer.stream.periods import Terms
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Watcher, Watchers

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class KafkaService:
    """Runs until it is stopped."""

    settings: Settings
    decider: Callable[[Plan], StepDecider] = FreshNoise
    checkpoint: Checkpoint = lambda _: None
    clock: Clock = wall_clock
    watchers: Sequence[Watcher] = ()
    status: Status = field(default_factory=Status)
    summary: Summary = field(default_factory=Summary)
    engine: Engine | None = None
    restore_seconds: float = 0.0
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: KafkaLoop | None = None

    def stop(self) -> None:
        """Finish the step that is being closed, and end."""
        self.status.ending = True
        self._stopping.set()

    def situation(self) -> Situation:
        """Where the service stands now."""
        figures = Situation() if self._loop is None else self._loop.situation()
        return replace(
            figures, ready=self.status.ready().good, restore_seconds=self.restore_seconds
        )

    async def run(self) -> None:
        settings = self.settings
        timing, terms = timing_of(settings.stream), terms_of(settings.privacy)
        connection = connection_of(settings.kafka)
        if settings.privacy.key is None and settings.privacy.key_file is None:
            raise SettingError(
                "privacy.key_file",
                "not given",
                "the Kafka service needs a key that outlives it: make one "
                "with 'openssl rand -hex 32' and name its file, or give privacy.key",
            )
        pseudonyms = pseudonyms_of(settings.privacy, None)
        asyncio.get_running_loop().set_exception_handler(_pass_over_orphans)
        wait = FIRST_WAIT
        while await self._reach(connection):
            try:
                await self._serve(connection, timing, terms, pseudonyms)
            except (KafkaError, OSError, TimeoutError) as error:
                # It went away again before we were done with starting.
                self.watcher.failed(error, writing=False)
                self.status.tell(f"waiting for the broker ({reason_of(error)})")
                await self._rest(wait)
                wait = min(2 * wait, LONGEST_WAIT)

    @property
    def watcher(self) -> Watcher:
        return Watchers((self.summary, self.status, *self.watchers))

    async def _rest(self, seconds: float) -> None:
        """Wait so long, or until we are stopped."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    def _writing_failed(self, waiting_for: str, error: BaseException | None) -> None:
        if error is not None:
            self.watcher.failed(error, writing=True)
        self.status.tell(waiting_for)

    async def _serve(
        self, connection: Connection, timing: StepTiming, terms: Terms, pseudonyms: Pseudonyms
    ) -> None:
        """Fence, restore, publish what is due, read on: in this order."""
        settings, watcher = self.settings, self.watcher
        async with AsyncExitStack() as at_end:
            await check_one_cluster(connection)
            admin = TopicAdmin(connection)
            await admin.start()
            at_end.push_async_callback(admin.stop)
            await prepare_topics(admin, settings.kafka)
            transactions = self._transactions(connection)
            at_end.push_async_callback(transactions.stop)
            await transactions.start()
            journal = KafkaJournal(
                connection,
                transactions,
                settings.kafka.state_topic,
                life_of(timing),
                settings.kafka.events_topic,
                pseudonyms.fingerprint,
            )
            restored = await self._restore(journal, pseudonyms)
            anew = restored is None and await self._is_lost(connection, admin)
            await transactions.announce()
            kafka = settings.kafka
            sink = KafkaSink(transactions, kafka.hitters_topic, kafka.steps_topic, journal.note_of)
            intake = intake_of(settings.stream, timing, pseudonyms)
            engine = Engine(intake, terms, restored.state if restored else None, self.decider)
            self.engine = engine
            pipeline = Pipeline(engine, journal, sink, timing, watcher, self.checkpoint)
            if restored is not None:
                watcher.restored(await journal.history(HISTORY), restored.published.step)
                await pipeline.recover(restored)
            if anew:
                # What was published is not decided again, though its events are still there.
                await pipeline.start_at(timing.step_at(self.clock()))
            watcher.started(engine)
            tell_of_pending_terms(engine, timing)
            source = source_of(settings.kafka, connection, admin)
            at_end.push_async_callback(source.stop)
            offsets = restored.last.offsets if restored else {}
            intake.resume(offsets)
            await source.start(offsets)
            self._loop = KafkaLoop(
                kafka,
                source,
                Progress(settings, source, self.clock),
                pipeline,
                rejects_of(kafka, transactions),
                self.status,
                watcher,
            )
            await self._loop.run(self._stopping)

    def _transactions(self, connection: Connection) -> Transactions:
        kafka = self.settings.kafka
        return Transactions(
            connection,
            kafka.transactional_id,
            kafka.state_topic,
            kafka.transaction_timeout_seconds,
            self._writing_failed,
        )

    async def _restore(self, journal: KafkaJournal, pseudonyms: Pseudonyms) -> Restored | None:
        began = time.monotonic()
        restored = await journal.restore()
        self.restore_seconds = time.monotonic() - began
        if restored is not None:
            check_key(restored, pseudonyms)
        return restored

    async def _reach(self, connection: Connection) -> bool:
        """Wait until a broker answers; False if we are stopped before."""
        wait = FIRST_WAIT
        while not self._stopping.is_set() and not await connection.check():
            self.status.tell("waiting for a broker to answer")
            await self._rest(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        return not self._stopping.is_set()

    async def _is_lost(self, connection: Connection, admin: TopicAdmin) -> bool:
        """No state, but steps were published? The budgets they were paid from are lost."""
        kafka = self.settings.kafka
        numbers = await admin.partitions(kafka.steps_topic)
        steps = [TopicPartition(kafka.steps_topic, number) for number in numbers]
        lost = any((await ends_of(connection, steps)).values())
        if lost and not kafka.start_anew:
            raise UnusableJournalError(
                f"the state topic {kafka.state_topic} is empty, but {kafka.steps_topic} holds "
                "steps: restore the state topic, or set kafka.start_anew to true once, which "
                "spends the users' budgets again"
            )
        return lost


async def peek_journal(connection: Connection, settings: Settings) -> tuple[Restored | None, int]:
    """Look into the state topic, whoever writes it, and how many bytes it holds."""
    kafka = settings.kafka
    await check_exists(connection, "kafka.state_topic", kafka.state_topic)
    idle = Transactions(connection, kafka.transactional_id, kafka.state_topic)
    journal = KafkaJournal(
        connection,
        idle,
        kafka.state_topic,
        life_of(timing_of(settings.stream)),
        kafka.events_topic,
        key="",
    )
    return await journal.restore(), journal.size


def _pass_over_orphans(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """When a producer fails, so do futures inside of it that nobody waits for."""
    if not isinstance(context.get("exception"), KafkaError):
        loop.default_exception_handler(context)
