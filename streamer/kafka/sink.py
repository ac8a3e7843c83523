"""Decisions to Kafka: results, the step's record and the published-note, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from streamer.kafka.transactions import Message, Transactions
from streamer.stream.publication import Publication, Published

_encode = msgspec.json.Encoder().encode


class KafkaSink:
    """Implements `Sink`."""

    def __init__(
        self,
        transactions: Transactions,
        hitters_topic: str,
        steps_topic: str,
        note: Callable[[int], Message],
    ) -> None:
        """`note`: the journal's record that a step is published."""
        self._transactions = transactions
        self._hitters_topic = hitters_topic
        self._steps_topic = steps_topic
        self._note = note

    def sizes(self) -> Mapping[str, int]:
        """Transactions leave nothing to take back."""
        return {}

    def take_back(self, published: Published, torn: bool) -> None:
        """Transactions leave nothing to take back."""

    async def publish(self, publication: Publication) -> None:
        await self._transactions.commit(
            [
                *(
                    Message(self._hitters_topic, record.item.encode(), _encode(record))
                    for record in publication.results
                ),
                *(
                    Message(self._steps_topic, str(record.step).encode(), _encode(record))
                    for record in publication.steps
                ),
                self._note(publication.through),
            ]
        )
