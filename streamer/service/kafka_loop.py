"""The loop of the Kafka service: read, and close what no partition can add to."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import time

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
)

from streamer.config import Settings
from streamer.errors import SettingError
from streamer.operations.health import Status
from streamer.operations.metrics import Situation
from streamer.service.line_run import Clock
from streamer.service.pipeline import Pipeline
from streamer.stream.closing import Frontier
from streamer.stream.engine import Engine
from streamer.stream.intake import Batch, Received
from streamer.stream.records import RejectedRecord
from streamer.stream.watching import Watcher
from streamer.transport.kafka_sink import KafkaSink
from streamer.transport.kafka_source import KafkaSource

FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0
"""Seconds between attempts to reach a broker."""
_log = logging.getLogger(__name__)
_POLL_MS = 100
_CATCHING_UP_MS = 10_000
_LONGEST_PAYLOAD = 1 << 19  # in base64 it still is below what brokers take by default
_WATCHDOG_SECONDS = 30.0
_COMMIT_SECONDS = 5.0
_PARTITIONS_SECONDS = 10.0
_ASK_SECONDS = 0.1


class KafkaLoop:
    """Read, and close what can be closed."""

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        pipeline: Pipeline,
        source: KafkaSource,
        sink: KafkaSink,
        frontier: Frontier,
        clock: Clock,
        status: Status,
        watcher: Watcher,
        stopping: asyncio.Event,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._status = status
        self._watcher = watcher
        self._stopping = stopping
        self._engine = engine
        self._pipeline = pipeline
        self._source = source
        self._sink = sink
        self._frontier = frontier
        self._ahead_ms = round(settings.stream.ahead_seconds * 1000)
        self._skew_ms = 0
        self._committed = self._looked = self._asked = time.monotonic()
        self._stuck_since: float | None = None
        self._listed: int | None = None
        """The last step that was over by the clock when partitions were asked for."""

    async def run(self) -> None:
        """Until we are stopped; however often the broker goes away."""
        self._frontier.watch(self._source.partitions)
        self._status.tell("")
        self._status.running = True
        topic, number = self._settings.kafka.events_topic, len(self._source.partitions)
        _log.info("reading %s, %d partitions", topic, number)
        broken, wait = False, FIRST_WAIT
        while not self._stopping.is_set():
            try:
                if broken:
                    await self._source.restart()
                await self._turn()
                self._status.beat()
                if broken:
                    self._status.tell("")
                    broken, wait = False, FIRST_WAIT
            except (TopicAuthorizationFailedError, GroupAuthorizationFailedError) as error:
                raise self._not_allowed(error) from None
            except (KafkaError, OSError, TimeoutError) as error:
                self._watcher.failed(error, writing=False)
                self._status.tell(f"waiting for the broker ({reason_of(error)})")
                broken = True
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), wait)
                wait = min(2 * wait, LONGEST_WAIT)

    def situation(self) -> Situation:
        """Where the loop stands now."""
        closed = self._engine.closed
        return Situation(
            watermark_lag_seconds=(
                0.0 if closed is None else self._frontier.behind(closed, self._clock()) / 1000
            ),
            clock_skew_seconds=self._skew_ms / 1000,
            input_lag=self._source.lag(),
            records_lost=self._source.lost,
        )

    def _not_allowed(self, error: KafkaError) -> SettingError:
        kafka = self._settings.kafka
        if isinstance(error, GroupAuthorizationFailedError):
            return SettingError("kafka.group_id", kafka.group_id, "this user may not use it")
        return SettingError("kafka.events_topic", kafka.events_topic, "this user may not read it")

    async def _turn(self) -> None:
        now = self._clock()
        batches = await self._source.poll(min(_POLL_MS, self._frontier.until_next(now)))
        for batch in batches:
            self._receive(batch)
            await asyncio.sleep(0)  # others want to use the loop, and the consumer to read ahead
        if self._sink.full:
            await self._sink.flush_rejected()
        await self._look_for_drained(reading=bool(batches))
        await self._close()
        self._hold_back()
        await self._now_and_then()

    def _receive(self, batch: Batch) -> None:
        self._stuck_since = None
        engine, now = self._engine, self._clock()
        received = engine.intake.receive(batch, engine.closed, now)
        self._watcher.received(batch, received)
        if batch.arrivals is not None:
            self._skew_ms = max(0, int(batch.arrivals.max(initial=0)) - now)
            # Nothing has arrived in the future: a producer's clock that runs ahead must
            # not close steps for others, and one that is far ahead tells nothing at all.
            credible = batch.arrivals[batch.arrivals <= now + self._ahead_ms]
            if len(credible):
                self._frontier.read(batch.partition, min(int(credible.max()), now))
        self._reject(batch, received)

    def _reject(self, batch: Batch, received: Received) -> None:
        kafka = self._settings.kafka
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

    async def _look_for_drained(self, reading: bool) -> None:
        """Ask for the ends of the partitions once a step is over by the clock.

        While there is a backlog to be read, that is always so: then only now and then.
        """
        now = self._clock()
        closable = self._frontier.closable()
        if closable is not None and closable >= self._frontier.due(now):
            return
        if reading and time.monotonic() - self._asked < _ASK_SECONDS:
            return
        self._asked = time.monotonic()
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
        await self._pipeline.close_through(through)
        # After an outage, quiet steps are recorded when we are up to date again.
        if through >= self._frontier.due(self._clock() - _CATCHING_UP_MS):
            await self._pipeline.record_quiet_steps()

    def _hold_back(self) -> None:
        """With full buffers, partitions that are ahead wait for those that hold things up."""
        full = self._engine.intake.buffered >= self._settings.kafka.max_buffered_events
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
        listed = self._frontier.due(self._clock())
        new = await self._source.find_new_partitions()
        if new:
            _log.info("new partitions: %s", ", ".join(new))
        self._frontier.watch(self._source.partitions)
        self._listed = listed


def reason_of(error: Exception) -> str:
    return str(error) or type(error).__name__
