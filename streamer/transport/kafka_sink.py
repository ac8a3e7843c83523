"""Decisions to Kafka: results, the step's record and the published-note, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from streamer.broker.transactions import Message, Transactions
from streamer.stream.publication import Publication, Published
from streamer.stream.records import RejectedRecord

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class OutputTopics:
    hitters: str
    steps: str
    rejected: str


class KafkaSink:
    """Implements `Sink`. Rejected records are written before the journal moves past them.

    So they are written at least once: after a restart what was read since the last step
    is read, and rejected, again.
    """

    MOST_REJECTED, MOST_BYTES = 10_000, 8 << 20
    """In memory."""

    def __init__(
        self, transactions: Transactions, topics: OutputTopics, note: Callable[[int], Message]
    ) -> None:
        self._transactions = transactions
        self._topics = topics
        self._note = note
        self._rejected: list[Message] = []
        self._rejected_bytes = 0

    @property
    def full(self) -> bool:
        """Whether rejected records must be written before there are more of them."""
        return len(self._rejected) >= self.MOST_REJECTED or self._rejected_bytes >= self.MOST_BYTES

    def sizes(self) -> Mapping[str, int]:
        """Transactions leave nothing to take back."""
        return {}

    def take_back(self, published: Published, torn: bool) -> None:
        """Transactions leave nothing to take back."""

    def reject(self, record: RejectedRecord) -> None:
        value = _encode(record)
        self._rejected.append(Message(self._topics.rejected, None, value))
        self._rejected_bytes += len(value)

    async def flush_rejected(self) -> None:
        """Write the rejected records, if there are any."""
        if self._rejected:
            rejected, self._rejected, self._rejected_bytes = self._rejected, [], 0
            await self._transactions.commit(rejected)

    async def publish(self, publication: Publication) -> None:
        topics = self._topics
        await self._transactions.commit(
            [
                *(
                    Message(topics.hitters, record.item.encode(), _encode(record))
                    for record in publication.results
                ),
                *(
                    Message(topics.steps, str(record.step).encode(), _encode(record))
                    for record in publication.steps
                ),
                self._note(publication.through),
            ]
        )
