"""Records without their wrapping, for the consumer that reads millions of them.

aiokafka makes an object with eleven fields of each record, which takes longer than all
else that it does with a record (benchmarks/end_to_end.py prints what it takes). Reading
events needs three of them, and the parsed record has them already. A consumer with
`lean` as its value_deserializer yields the parsed records themselves. With a version of
aiokafka that is made differently `lean` is an ordinary deserializer, and all is as usual.
"""

from __future__ import annotations

from typing import Any

from aiokafka.consumer import fetcher


def lean(value: bytes | None) -> bytes | None:
    """Leaves a value as it is, and marks its consumer."""
    return value


class _PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    def _consumer_record(self, tp: Any, record: Any) -> Any:
        if self._value_deserializer is lean:
            return record
        return super()._consumer_record(tp, record)


fetcher.PartitionRecords = _PartitionRecords
