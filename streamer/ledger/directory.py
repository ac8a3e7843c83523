"""The directory of a file journal: who holds it, and the key that is kept in it."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from streamer.errors import UnusableJournalError

DATABASE, KEY, LOCK = "journal.sqlite", "key", "lock"
_KEY_BYTES = 32


class JournalDirectory:
    """Held by one process at a time, until it ends, however it ends."""

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
                f"the journal {path} is in use by another process: end that one first"
            ) from None

    @property
    def database(self) -> Path:
        return self.path / DATABASE

    def key(self) -> str:
        """The key that is kept here, as hex digits; made once, for a new journal."""
        path = self.path / KEY
        try:
            if not path.exists():
                if self.database.exists():
                    raise UnusableJournalError(
                        f"the journal {self.path} has lost its key ({path}): put it back, or give "
                        "privacy.key_file"
                    )
                _keep(path, secrets.token_hex(_KEY_BYTES))
            return path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UnusableJournalError(f"the key {path} cannot be read or made: {error}") from None

    def close(self) -> None:
        os.close(self._lock)


def _keep(path: Path, content: str) -> None:
    """Durable before anything is kept under it: a lost key is a lost journal."""
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
    """Make a file's new name durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
