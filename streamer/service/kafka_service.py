"""The Kafka service: one process, one loop, one owner of all partitions.

Starting: reach a broker, check the topics, fence older instances, and only then restore
the journal; publish what is decided and perhaps not published; read on where the journal
says. Running: read, and close each step when no partition can hold anything more for it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
)

from streamer.broker.connection import Connection
from streamer.broker.topics import TopicAdmin, check_one_cluster
from streamer.broker.transactions import Transactions, ends_of
from streamer.config import Settings
from streamer.errors import SettingError, UnusableJournalError
from streamer.journal.kafka import KafkaJournal
from streamer.privacy.threshold import Plan
from streamer.service.kafka_startup import connection_of, prepare_topics
from streamer.service.line_run import Clock, Summary, wall_clock
from streamer.service.pipeline import Checkpoint, Pipeline
from streamer.service.startup import (
    check_key,
    intake_of,
    life_of,
    pseudonyms_of,
    terms_of,
    timing_of,
)
from streamer.stream.closing import Frontier
from streamer.stream.engine import Engine, FreshNoise, StepDecider
from streamer.stream.intake import Batch, Received
from streamer.stream.periods import Terms
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.records import RejectedRecord
from streamer.stream.timing import StepTiming
from streamer.transport.kafka_sink import KafkaSink, OutputTopics
from streamer.transport.kafka_source import KafkaSource

_log = logging.getLogger(__name__)
_POLL_MS = 100
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0
_CATCHING_UP_MS = 10_000
_LONGEST_PAYLOAD = 1 << 19  # in base64 it still is below what brokers take by default
_WATCHDOG_SECONDS = 30.0
_COMMIT_SECONDS = 5.0
_PARTITIONS_SECONDS = 10.0


@dataclass(slots=True)
class Status:
    """What the service is doing, in words; empty while it runs as it should."""

    waiting_for: str = "starting"
    running: bool = False

    def tell(self, waiting_for: str) -> None:
        if waiting_for and waiting_for != self.waiting_for:
            _log.warning("%s", waiting_for)
        self.waiting_for = waiting_for


@dataclass(slots=True)
class KafkaService:
    """Runs until it is stopped."""

    settings: Settings
    decider: Callable[[Plan], StepDecider] = FreshNoise
    checkpoint: Checkpoint = lambda _: None
    clock: Clock = wall_clock
    status: Status = field(default_factory=Status)
    summary: Summary = field(default_factory=Summary)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    engine: Engine | None = None

    def stop(self) -> None:
        """Finish the step that is being closed, and end."""
        self.stopping.set()

    async def run(self) -> None:
        settings = self.settings
        timing, terms = timing_of(settings.stream), terms_of(settings.privacy)
        connection = connection_of(settings.kafka)
        if settings.privacy.key is None and settings.privacy.key_file is None:
            raise SettingError(
                "privacy.key_file",
                None,
                "the Kafka service needs a key that outlives it: make one "
                "with 'openssl rand -hex 32' and name its file, or give privacy.key",
            )
        pseudonyms = pseudonyms_of(settings.privacy, None)
        asyncio.get_running_loop().set_exception_handler(_pass_over_orphans)
        wait = _FIRST_WAIT
        while await self._reach(connection):
            try:
                await self._serve(connection, timing, terms, pseudonyms)
            except (KafkaError, OSError, TimeoutError) as error:
                # It went away again before we were done with starting.
                self.status.tell(f"waiting for the broker ({_reason(error)})")
                await self.rest(wait)
                wait = min(2 * wait, _LONGEST_WAIT)

    async def rest(self, seconds: float) -> None:
        """Wait so long, or until we are stopped."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    async def _serve(
        self, connection: Connection, timing: StepTiming, terms: Terms, pseudonyms: Pseudonyms
    ) -> None:
        settings = self.settings
        async with AsyncExitStack() as at_end:
            await check_one_cluster(connection)
            admin = TopicAdmin(connection)
            await admin.start()
            at_end.push_async_callback(admin.stop)
            await prepare_topics(admin, settings.kafka)
            transactions = Transactions(
                connection,
                settings.kafka.transactional_id,
                settings.kafka.state_topic,
                settings.kafka.transaction_timeout_seconds,
                self.status.tell,
            )
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
            restored = await journal.restore()
            if restored is not None:
                check_key(restored, pseudonyms)
            else:
                await self._check_not_lost(connection, admin)
            await transactions.announce()
            topics = OutputTopics(
                settings.kafka.hitters_topic,
                settings.kafka.steps_topic,
                settings.kafka.rejected_topic,
            )
            sink = KafkaSink(transactions, topics, journal.note_of)
            intake = intake_of(settings.stream, timing, pseudonyms)
            engine = Engine(intake, terms, restored.state if restored else None, self.decider)
            self.engine = engine
            pipeline = Pipeline(engine, journal, sink, timing, self.checkpoint)
            if restored is not None:
                await pipeline.recover(restored)
            source = KafkaSource(
                connection,
                admin,
                settings.kafka.events_topic,
                settings.kafka.group_id,
                settings.kafka.max_poll_records,
            )
            at_end.push_async_callback(source.stop)
            offsets = restored.last.offsets if restored else {}
            intake.resume(offsets)
            await source.start(offsets)
            frontier = Frontier(timing, round(settings.kafka.skew_seconds * 1000))
            frontier.watch(source.partitions)
            self.status.tell("")
            self.status.running = True
            _log.info(
                "reading %s, %d partitions", settings.kafka.events_topic, len(source.partitions)
            )
            await _Loop(self, engine, pipeline, source, sink, frontier).run()

    async def _reach(self, connection: Connection) -> bool:
        """Wait until a broker answers; False if we are stopped before."""
        wait = _FIRST_WAIT
        while not self.stopping.is_set() and not await connection.check():
            self.status.tell("waiting for a broker to answer")
            await self.rest(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        return not self.stopping.is_set()

    async def _check_not_lost(self, connection: Connection, admin: TopicAdmin) -> None:
        """No state, but steps were published: the budgets they were paid from are lost."""
        kafka = self.settings.kafka
        numbers = await admin.partitions(kafka.steps_topic)
        steps = [TopicPartition(kafka.steps_topic, number) for number in numbers]
        if any((await ends_of(connection, steps)).values()) and not kafka.start_anew:
            raise UnusableJournalError(
                f"the state topic {kafka.state_topic} is empty, but {kafka.steps_topic} holds "
                "steps: restore the state topic, or set kafka.start_anew to true once, which "
                "spends the users' budgets again"
            )


def _pass_over_orphans(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """When a producer fails, so do futures inside of it that nobody waits for."""
    if not isinstance(context.get("exception"), KafkaError):
        loop.default_exception_handler(context)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


class _Loop:
    """Read, and close what can be closed."""

    def __init__(
        self,
        service: KafkaService,
        engine: Engine,
        pipeline: Pipeline,
        source: KafkaSource,
        sink: KafkaSink,
        frontier: Frontier,
    ) -> None:
        self._service = service
        self._engine = engine
        self._pipeline = pipeline
        self._source = source
        self._sink = sink
        self._frontier = frontier
        self._ahead_ms = round(service.settings.stream.ahead_seconds * 1000)
        self._committed = self._looked = time.monotonic()
        self._stuck_since: float | None = None
        self._listed: int | None = None
        """The last step that was over by the clock when partitions were asked for."""

    async def run(self) -> None:
        broken, wait = False, _FIRST_WAIT
        while not self._service.stopping.is_set():
            try:
                if broken:
                    await self._source.restart()
                await self._turn()
                if broken:
                    self._service.status.tell("")
                    broken, wait = False, _FIRST_WAIT
            except (TopicAuthorizationFailedError, GroupAuthorizationFailedError) as error:
                raise self._not_allowed(error) from None
            except (KafkaError, OSError, TimeoutError) as error:
                self._service.status.tell(f"waiting for the broker ({_reason(error)})")
                broken = True
                await self._service.rest(wait)
                wait = min(2 * wait, _LONGEST_WAIT)

    def _not_allowed(self, error: KafkaError) -> SettingError:
        kafka = self._service.settings.kafka
        if isinstance(error, GroupAuthorizationFailedError):
            return SettingError("kafka.group_id", kafka.group_id, "this user may not use it")
        return SettingError("kafka.events_topic", kafka.events_topic, "this user may not read it")

    async def _turn(self) -> None:
        now = self._service.clock()
        batches = await self._source.poll(min(_POLL_MS, self._frontier.until_next(now)))
        for batch in batches:
            self._receive(batch)
        if self._sink.full:
            await self._sink.flush_rejected()
        await self._look_for_drained()
        await self._close()
        self._hold_back()
        await self._now_and_then()

    def _receive(self, batch: Batch) -> None:
        self._stuck_since = None
        service, engine = self._service, self._engine
        now = service.clock()
        received = engine.intake.receive(batch, engine.closed, now)
        service.summary.add_batch(batch, received)
        if batch.arrivals is not None:
            # Nothing has arrived in the future: a producer's clock that runs ahead must
            # not close steps for others, and one that is far ahead tells nothing at all.
            credible = batch.arrivals[batch.arrivals <= now + self._ahead_ms]
            if len(credible):
                self._frontier.read(batch.partition, min(int(credible.max()), now))
        self._reject(batch, received)

    def _reject(self, batch: Batch, received: Received) -> None:
        kafka = self._service.settings.kafka
        for rejection in received.rejections:
            raw = batch.records[rejection.place] or b""
            told = kafka.rejected_payload and len(raw) <= _LONGEST_PAYLOAD
            payload = base64.b64encode(raw).decode() if told else None
            self._sink.reject(
                RejectedRecord(
                    kafka.events_topic,
                    int(batch.partition),
                    int(batch.offsets[rejection.place]),
                    rejection.reason.value,
                    payload,
                )
            )

    async def _look_for_drained(self) -> None:
        """Ask for the ends of the partitions once a step is over by the clock."""
        now = self._service.clock()
        closable = self._frontier.closable()
        if closable is not None and closable >= self._frontier.due(now):
            return
        ends = await self._source.ends()
        positions = await self._source.positions()
        behind = False
        for partition, end in ends.items():
            if positions[partition] >= end:
                self._frontier.drained(partition, now)
            else:
                behind = True
        await self._watch_progress(behind)

    async def _watch_progress(self, behind: bool) -> None:
        """Consumers have been seen to stop silently: nothing comes although there is more."""
        now = time.monotonic()
        if not behind:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since > _WATCHDOG_SECONDS:
            _log.warning(
                "nothing was read for %g s although there is more: reconnecting", _WATCHDOG_SECONDS
            )
            self._stuck_since = None
            await self._source.restart()

    async def _closable(self) -> int | None:
        """The last step that may close: partitions were asked for when it was over.

        One that is added later holds nothing for it.
        """
        through = self._frontier.closable()
        if through is not None and (self._listed is None or self._listed < through):
            await self._find_partitions()
            through = self._frontier.closable()
        return through

    async def _close(self) -> None:
        through = await self._closable()
        if through is None:
            return
        engine = self._engine
        if engine.closed is None:
            await self._pipeline.start_at(min([through, *engine.intake.open_steps[:1]]))
        if engine.closed is not None and through > engine.closed:
            # The offsets in the journal are about to move past what was rejected.
            await self._sink.flush_rejected()
        await self._pipeline.close_through(through, self._service.summary.add_step)
        # After an outage, quiet steps are recorded when we are up to date again.
        if through >= self._frontier.due(self._service.clock() - _CATCHING_UP_MS):
            await self._pipeline.record_quiet_steps()

    def _hold_back(self) -> None:
        """With full buffers, partitions that are ahead wait for those that hold things up."""
        full = self._engine.intake.buffered >= self._service.settings.kafka.max_buffered_events
        self._source.pause(self._frontier.ahead() if full else [])

    async def _now_and_then(self) -> None:
        now = time.monotonic()
        if now - self._committed > _COMMIT_SECONDS:
            self._committed = now
            await self._source.commit()
        if now - self._looked > _PARTITIONS_SECONDS:
            await self._find_partitions()

    async def _find_partitions(self) -> None:
        self._looked = time.monotonic()
        listed = self._frontier.due(self._service.clock())
        new = await self._source.find_new_partitions()
        if new:
            _log.info("new partitions: %s", ", ".join(new))
        self._frontier.watch(self._source.partitions)
        self._listed = listed
