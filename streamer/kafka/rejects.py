"""Reports rejected records in a topic of their own, before the journal moves past them.

So each is reported at least once: after a restart, everything since the last step is read
and rejected again.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec

from streamer.kafka.transactions import Message, Transactions
from streamer.stream.decoding import Rejection
from streamer.stream.intake import Batch
from streamer.stream.records import RejectedRecord

_LONGEST_PAYLOAD = 1 << 19  # in base64 still below the default limit of brokers
_encode = msgspec.json.Encoder().encode


def largest_reject(with_payload: bool) -> int:
    """Of a record, in bytes; `with_payload`: also what the rejected record held, in base64."""
    return 1_024 + (4 * -(-_LONGEST_PAYLOAD // 3) if with_payload else 0)


class KafkaRejects:
    """Collects rejections, and writes them when `write` is called."""

    MOST_RECORDS, MOST_BYTES = 10_000, 8 << 20
    """Limits of what is held in memory."""

    def __init__(
        self, transactions: Transactions, topic: str, events_topic: str, with_payload: bool
    ) -> None:
        """`with_payload`: include the content of the record, which is personal data."""
        self._transactions = transactions
        self._topic = topic
        self._events_topic = events_topic
        self._with_payload = with_payload
        self._waiting: list[Message] = []
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether `write` must be called before more are added."""
        return len(self._waiting) >= self.MOST_RECORDS or self._bytes >= self.MOST_BYTES

    def add(self, batch: Batch, rejections: Sequence[Rejection]) -> None:
        for rejection in rejections:
            raw = batch.records[rejection.place] or b""
            include = self._with_payload and len(raw) <= _LONGEST_PAYLOAD
            value = _encode(
                RejectedRecord(
                    self._events_topic,
                    int(batch.partition),
                    int(batch.offsets[rejection.place]),
                    rejection.reason.value,
                    rejection.part,
                    base64.b64encode(raw).decode() if include else None,
                )
            )
            self._waiting.append(Message(self._topic, None, value))
            self._bytes += len(value)

    async def write(self) -> None:
        """Write what was collected, if anything."""
        if self._waiting:
            waiting, self._waiting, self._bytes = self._waiting, [], 0
            await self._transactions.commit(waiting)
