"""One broker for all processes of a test run: whoever needs it first starts it.

It ends with the process that started it, which waits until nobody else uses it. One that
comes even later starts another.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kafka.broker import Broker, locked
from tests.kafka.conftest import begin


@contextmanager
def shared_broker(directory: Path) -> Iterator[str]:
    """Where it listens. The processes of a run name the same directory."""
    address = directory / "kafka"
    with (directory / "kafka.users").open("w") as users:
        with locked(directory / "kafka.lock"):
            fcntl.flock(users, fcntl.LOCK_SH)
            if address.exists():
                broker = None
            else:
                broker = begin(Broker(directory / "broker"))
                address.write_text(broker.bootstrap)
        try:
            yield address.read_text()
        finally:
            if broker is not None:
                fcntl.flock(users, fcntl.LOCK_EX)
                address.unlink()
                broker.stop()
