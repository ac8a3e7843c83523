"""The Kafka service: one process, one loop, one owner of all partitions.

Starting: reach a broker, check the topics, fence older instances, then resume. Running:
read, and close each step when no partition can deliver anything more for it. If the broker
goes away before the start is complete, starting is retried.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from streamer.backoff import Backoff
from streamer.errors import SettingError, UnreachableError
from streamer.kafka.connection import Connection
from streamer.kafka.ledger import KafkaLedger
from streamer.kafka.ledger_records import LifeRecord
from streamer.kafka.reasons import broker_errors, pass_over_orphans
from streamer.kafka.source import KafkaSource
from streamer.kafka.startup import (
    connection_of,
    ledger_topics,
    prepare_topics,
    rejects_of,
    source_of,
)
from streamer.kafka.state_topic import interpret, read_state
from streamer.kafka.topics import TopicAdmin, check_exists, check_one_cluster
from streamer.kafka.transactions import Transactions
from streamer.ledger.contract import Restored
from streamer.monitors.deciding import NoisyThreshold
from streamer.operations.health import Status
from streamer.operations.metrics import Situation
from streamer.service.clock import Clock, wall_clock
from streamer.service.event_format import decoder_of
from streamer.service.loop import Loop
from streamer.service.pipeline import Checkpoint
from streamer.service.progress import Progress
from streamer.service.resume import Course, Opened, resume
from streamer.service.startup import (
    intake_of,
    life_of,
    pseudonyms_of,
    schedule_of,
    start_of,
    terms_of,
    timing_of,
)
from streamer.service.summary import Summary
from streamer.settings import Settings
from streamer.stream.engine import AskedBy, Engine
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.publication import Audience, PublicSettings
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Watcher, Watchers

_log = logging.getLogger(__name__)
_AWAY = Backoff(first=0.2, longest=10.0)


@dataclass(slots=True)
class KafkaService:
    """Runs until it is stopped."""

    settings: Settings
    asked_by: AskedBy = NoisyThreshold
    checkpoint: Checkpoint = lambda _: None
    clock: Clock = wall_clock
    watchers: Sequence[Watcher] = ()
    audience: Audience = field(default_factory=Audience)
    status: Status = field(default_factory=Status)
    summary: Summary = field(default_factory=Summary)
    engine: Engine | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _source: KafkaSource | None = None
    _progress: Progress | None = None

    def stop(self) -> None:
        """Finish the step that is being closed, then stop."""
        self.status.ending = True
        self._stopping.set()

    def situation(self) -> Situation:
        """The current state of the service, for its metrics."""
        situation = Situation(ready=self.status.ready().good)
        if self._source is None or self._progress is None or self.engine is None:
            return situation
        closed = self.engine.closed
        return replace(
            situation,
            watermark_lag_seconds=0.0 if closed is None else self._progress.behind(closed) / 1000,
            clock_skew_seconds=self._progress.skew_ms / 1000,
            input_lag=self._source.lag(),
            records_lost=self._source.lost,
        )

    @property
    def watcher(self) -> Watcher:
        return Watchers((self.summary, self.status, *self.watchers))

    async def run(self) -> None:
        settings = self.settings
        timing, terms = timing_of(settings.stream), terms_of(settings.privacy, settings.stream)
        # Only to find mistakes before anything is changed.
        schedule_of(settings.stream, settings.kafka.skew_seconds)
        start_of(settings.stream, timing)
        decoder = decoder_of(settings, timing, from_kafka=True)
        connection = connection_of(settings.kafka)
        if settings.privacy.key is None and settings.privacy.key_file is None:
            raise SettingError(
                "privacy.key_file",
                "not set",
                "the Kafka service needs a key that stays the same across restarts; create one "
                "with 'openssl rand -hex 32' and name its file, or set privacy.key",
            )
        pseudonyms = pseudonyms_of(settings.privacy, None)
        course = Course(
            timing,
            PublicSettings(terms, settings.kafka.trust_producer_timestamps),
            lambda key: intake_of(settings.stream, timing, key, decoder),
            self.asked_by,
            self.watcher,
            self.audience,
            self.checkpoint,
        )
        asyncio.get_running_loop().set_exception_handler(pass_over_orphans)
        waits = _AWAY.waits()
        while await self._reach(connection):
            try:
                with broker_errors():
                    await self._serve(connection, course, pseudonyms)
            except UnreachableError as error:
                # The broker went away again before the start was complete.
                self.watcher.failed(error.__cause__ or error, writing=False)
                self.status.tell(str(error))
                await self._rest(next(waits))

    async def _serve(self, connection: Connection, course: Course, pseudonyms: Pseudonyms) -> None:
        """Resume, then run the loop until it is stopped."""
        kafka = self.settings.kafka
        admin = TopicAdmin(connection)
        transactions = self._transactions(connection)
        source = source_of(kafka, connection, admin)
        ledger = KafkaLedger(
            *(connection, transactions, ledger_topics(kafka), life_of(course.timing)),
            *(pseudonyms.fingerprint, kafka.start_anew),
        )

        async def reach_and_fence(at_end: AsyncExitStack) -> Opened:
            await check_one_cluster(connection)
            at_end.push_async_callback(admin.stop)
            await admin.start()
            await prepare_topics(admin, kafka, self.settings.stream.max_item_bytes)
            at_end.push_async_callback(transactions.stop)
            await transactions.start()
            return Opened(ledger, pseudonyms)

        async with AsyncExitStack() as at_end:
            at_end.push_async_callback(source.stop)
            pipeline = await resume(course, reach_and_fence, at_end, source.start)
            self.engine = pipeline.engine
            if self.engine.closed is None:
                pipeline.start_at(self._first_step(course.timing, ledger.follows_lost_state))
            progress = Progress(
                *(source, schedule_of(self.settings.stream, kafka.skew_seconds), self.clock),
                round(self.settings.stream.ahead_seconds * 1000),
            )
            self._source, self._progress = source, progress
            partitions = await source.partitions()
            _log.info("reading %s, %d partitions", kafka.events_topic, len(partitions))
            _log_unique_items(pipeline.engine)
            await Loop(
                *(source, progress, pipeline, self.status, self.watcher, self._stopping),
                most_buffered=kafka.max_buffered_events,
                rejects=rejects_of(kafka, transactions),
            ).run()

    def _first_step(self, timing: StepTiming, follows_lost_state: bool) -> int:
        """Where a new stream begins: by a setting or by the clock, never with its first event."""
        start = start_of(self.settings.stream, timing)
        if start is None or follows_lost_state:
            # Published steps are not decided again, although their events are still there.
            return timing.step_at(self.clock())
        return start

    def _transactions(self, connection: Connection) -> Transactions:
        kafka = self.settings.kafka
        return Transactions(
            connection,
            kafka.transactional_id,
            kafka.state_topic,
            kafka.transaction_timeout_seconds,
            self._writing_failed,
        )

    def _writing_failed(self, waiting_for: str, error: BaseException | None) -> None:
        if error is not None:
            self.watcher.failed(error, writing=True)
        self.status.tell(waiting_for)

    async def _reach(self, connection: Connection) -> bool:
        """Wait until a broker answers; False if the service is stopped first."""
        waits = _AWAY.waits()
        while not self._stopping.is_set() and not await connection.check():
            self.status.tell("waiting for a broker to answer")
            await self._rest(next(waits))
        return not self._stopping.is_set()

    async def _rest(self, seconds: float) -> None:
        """Wait this many seconds, or until the service is stopped."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)


def _log_unique_items(engine: Engine) -> None:
    """What δ means for items that a single user holds: the text of such an item may identify."""
    plan = engine.period.plan if engine.period else engine.terms.plan()
    expected = plan.unique_items_per_year
    if expected is None:
        _log.info("published items of single users are not limited: privacy.users was 0")
    else:
        _log.info(
            "published items of single users: at most %.3g a year expected among %s users",
            expected,
            f"{plan.workload.users:,}",
        )


async def peek_journal(connection: Connection, settings: Settings) -> tuple[Restored | None, int]:
    """What the state topic holds, and its size in bytes. Safe while the service is running."""
    topics = ledger_topics(settings.kafka)
    await check_exists(connection, "kafka.state_topic", topics.state)
    records = await read_state(connection, topics.state)
    life = LifeRecord.of(life_of(timing_of(settings.stream)), topics.events)
    past = interpret(records.state, topics.state, life)
    return past.restored if past else None, records.size
