"""The directory of a file journal: its lock, and the key that is stored in it."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from streamer.errors import UnusableJournalError

DATABASE, KEY, LOCK = "journal.sqlite", "key", "lock"
_KEY_BYTES = 32


class JournalDirectory:
    """Locked by one process at a time, until that process ends for any reason."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UnusableJournalError(
                f"the journal {path} cannot be opened: {error.strerror}"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise UnusableJournalError(
                f"the journal {path} is in use by another process: stop that process first"
            ) from None

    @property
    def database(self) -> Path:
        return self.path / DATABASE

    def key(self) -> str:
        """The stored key, as hex digits; created once, for a new journal."""
        path = self.path / KEY
        try:
            if not path.exists():
                if self.database.exists():
                    raise UnusableJournalError(
                        f"the key of the journal {self.path} is missing ({path}): restore it, or "
                        "set privacy.key_file"
                    )
                _keep(path, secrets.token_hex(_KEY_BYTES))
            return path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UnusableJournalError(
                f"the key {path} cannot be read or created: {error}"
            ) from None

    def close(self) -> None:
        os.close(self._lock)


def _keep(path: Path, content: str) -> None:
    """Durable before it is used: without its key, a journal is lost."""
    scratch = path.with_suffix(".new")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, content.encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    scratch.rename(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the new name of a file durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
