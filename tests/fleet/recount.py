"""The product's way of counting, in plain Python over the written lines: slow and obvious."""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

LONGEST = 4096
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event_of(line: bytes) -> tuple[str, str, int] | None:
    """User, item and milliseconds since 1970; None for a bad record."""
    try:
        record = json.loads(line.decode())
        user, item, time = record["user"], record["item"], record["time"]
        moment = datetime.fromisoformat(time)
    except (ValueError, KeyError, TypeError):
        return None
    for text in (user, item):
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
            return None
    return user, item, (moment - EPOCH) // timedelta(milliseconds=1)


def recount(lines: Iterable[bytes], step_ms: int) -> Counter[tuple[int, str]]:
    """Users per step and item."""
    held: set[tuple[int, str, str]] = set()
    for line in lines:
        if (event := event_of(line)) is not None:
            user, item, time = event
            held.add((time // step_ms, user, item))
    return Counter((step, item) for step, _, item in held)
