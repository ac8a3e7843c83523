"""The loop of the Kafka service: read, and close what no partition can add to."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
)

from streamer.config import KafkaSettings
from streamer.errors import SettingError
from streamer.kafka.reasons import reason_of
from streamer.kafka.rejects import KafkaRejects
from streamer.kafka.source import KafkaSource
from streamer.operations.health import Status
from streamer.operations.metrics import Situation
from streamer.service.pipeline import Pipeline
from streamer.service.progress import Progress
from streamer.stream.intake import Batch
from streamer.stream.watching import Watcher

FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0
"""Seconds between attempts to reach a broker."""
_log = logging.getLogger(__name__)
_POLL_MS = 100
_COMMIT_SECONDS = 5.0


class KafkaLoop:
    """Runs until it is stopped, however often the broker goes away."""

    def __init__(
        self,
        settings: KafkaSettings,
        source: KafkaSource,
        progress: Progress,
        pipeline: Pipeline,
        rejects: KafkaRejects,
        status: Status,
        watcher: Watcher,
    ) -> None:
        self._settings = settings
        self._source = source
        self._progress = progress
        self._pipeline = pipeline
        self._engine = pipeline.engine
        self._rejects = rejects
        self._status = status
        self._watcher = watcher
        self._committed = time.monotonic()

    async def run(self, stopping: asyncio.Event) -> None:
        self._status.tell("")
        self._status.running = True
        _log.info(
            "reading %s, %d partitions", self._settings.events_topic, len(self._source.partitions)
        )
        broken, wait = False, FIRST_WAIT
        while not stopping.is_set():
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
                    await asyncio.wait_for(stopping.wait(), wait)
                wait = min(2 * wait, LONGEST_WAIT)

    def situation(self) -> Situation:
        """Where the loop stands now."""
        closed = self._engine.closed
        return Situation(
            watermark_lag_seconds=0.0 if closed is None else self._progress.behind(closed) / 1000,
            clock_skew_seconds=self._progress.skew_ms / 1000,
            input_lag=self._source.lag(),
            records_lost=self._source.lost,
        )

    async def _turn(self) -> None:
        batches = await self._source.poll(min(_POLL_MS, self._progress.until_next()))
        for batch in batches:
            self._receive(batch)
            await asyncio.sleep(0)  # others want to use the loop, and the consumer to read ahead
        if self._rejects.full:
            await self._rejects.write()
        await self._progress.look_for_drained(reading=bool(batches))
        await self._close()
        self._hold_back()
        await self._commit()
        await self._progress.look_for_partitions()

    def _receive(self, batch: Batch) -> None:
        now = self._progress.clock()  # one moment: what counts and how far we are must agree
        received = self._pipeline.receive(batch, now)
        self._progress.read(batch, now)
        self._rejects.add(batch, received.rejections)

    async def _close(self) -> None:
        through = await self._progress.closable()
        if through is None:
            return
        engine = self._engine
        if engine.closed is None:
            await self._pipeline.start_at(min([through, *engine.intake.open_steps[:1]]))
        if engine.closed is not None and through > engine.closed:
            # The offsets in the journal are about to move past what was rejected.
            await self._rejects.write()
        await self._pipeline.close_through(through)
        # After an outage, quiet steps are recorded when we are up to date again.
        if self._progress.is_up_to_date(through):
            await self._pipeline.record_quiet_steps()

    def _hold_back(self) -> None:
        """With full buffers, partitions that are ahead wait for those that hold things up."""
        full = self._engine.intake.buffered >= self._settings.max_buffered_events
        self._source.pause(self._progress.ahead() if full else [])

    async def _commit(self) -> None:
        """Now and then."""
        now = time.monotonic()
        if now - self._committed > _COMMIT_SECONDS:
            self._committed = now
            await self._source.commit()

    def _not_allowed(self, error: KafkaError) -> SettingError:
        topic, group = self._settings.events_topic, self._settings.group_id
        if isinstance(error, GroupAuthorizationFailedError):
            return SettingError("kafka.group_id", group, "this user may not use it")
        return SettingError("kafka.events_topic", topic, "this user may not read it")
