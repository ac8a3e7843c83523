"""Decisions to Kafka: results, the step's record and the published-note, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from streamer.broker.transactions import Message, Transactions
from streamer.stream.records import Decided, RejectedRecord, result_records, step_record
from streamer.stream.timing import StepTiming

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class OutputTopics:
    hitters: str
    steps: str
    rejected: str


class KafkaSink:
    """Implements `Sink`. Rejected records go with the next step's transaction.

    They are written at least once: after a restart what was read since the last step is
    read, and rejected, again.
    """

    MOST_REJECTED = 10_000

    def __init__(
        self,
        transactions: Transactions,
        topics: OutputTopics,
        timing: StepTiming,
        note: Callable[[int], Message],
    ) -> None:
        self._transactions = transactions
        self._topics = topics
        self._timing = timing
        self._note = note
        self._rejected: list[Message] = []

    def sizes(self) -> Mapping[str, int]:
        """Transactions leave nothing to take back."""
        return {}

    def take_back(self, sizes: Mapping[str, int]) -> None:
        """Transactions leave nothing to take back."""

    def reject(self, record: RejectedRecord) -> None:
        self._rejected.append(Message(self._topics.rejected, None, _encode(record)))

    async def flush_rejected(self) -> None:
        """Do not keep more rejected records than this in memory."""
        if len(self._rejected) >= self.MOST_REJECTED:
            rejected, self._rejected = self._rejected, []
            await self._transactions.commit(rejected)

    async def publish(self, decided: Decided) -> None:
        rejected, self._rejected = self._rejected, []
        step = step_record(decided, self._timing)
        await self._transactions.commit(
            [
                *(
                    Message(self._topics.hitters, record.item.encode(), _encode(record))
                    for record in result_records(decided, self._timing)
                ),
                Message(self._topics.steps, str(decided.step).encode(), _encode(step)),
                *rejected,
                self._note(decided.step),
            ]
        )
