"""Writes results to files or to standard output, one JSON object per line.

A file holds every decision exactly once, even after a crash: the ledger records the length
of each file after a publication, and what a crash left after that is cut off. Standard
output, pipes and devices cannot be cut: there a decision may appear a second time after a
crash, with the same values.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from streamer.errors import OutputError, PublishError, UnusableJournalError
from streamer.stream.publication import Publication

_encode = msgspec.json.Encoder().encode


class OutputFiles:
    """Hitters to one file (or standard output), step records to another, if wanted.

    Nothing is created or changed before `open` is called: a refused start leaves no trace.
    """

    def __init__(self, hitters: Path | None, steps: Path | None) -> None:
        self._paths = [path for path in (hitters, steps) if path]
        self._wanted = hitters, steps
        self._hitters: _LineFile | None = None
        self._steps: _LineFile | None = None

    def check_empty(self) -> None:
        """Refuse results without a journal: the budgets that they were charged to are lost."""
        for path in self._paths:
            if path.is_file() and path.stat().st_size:
                raise UnusableJournalError(
                    f"{path} holds results, but their journal is missing: name that journal or "
                    "new files, or use --start-anew, which spends the users' budgets again"
                )

    def check_not_longer(self, known: Mapping[str, int]) -> None:
        """Refuse a file that holds more than the ledger recorded."""
        for path in self._paths:
            size = path.stat().st_size if path.is_file() else 0
            if size > known.get(_name(path), size):
                raise UnusableJournalError(
                    f"{_name(path)} holds results that are not in the journal: the journal is "
                    "older than they are; restore the right one, or name another file"
                )

    def open(self, torn: Mapping[str, int]) -> None:
        """Create missing files, and cut off what was written after these sizes."""
        hitters, steps = self._wanted
        self._hitters = _LineFile(hitters) if hitters else None
        self._steps = _LineFile(steps) if steps else None
        for file in self._files():
            if file.size > torn.get(file.name, file.size):
                file.cut(torn[file.name])

    def write(self, publication: Publication) -> None:
        """Durable when it returns."""
        results = [_encode(record) for record in publication.results]
        if self._hitters:
            self._hitters.append(results)
        elif results:
            _print(results)
        if self._steps:
            self._steps.append([_encode(record) for record in publication.steps])

    def sizes(self) -> dict[str, int]:
        """The current length of each file, by path."""
        return {file.name: file.size for file in self._files()}

    def close(self) -> None:
        for file in (self._hitters, self._steps):
            if file:
                file.close()

    def _files(self) -> list[_LineFile]:
        """The regular files: only they have a length."""
        return [file for file in (self._hitters, self._steps) if file and file.regular]


class _LineFile:
    """A file to which whole lines are appended. Nothing is buffered between two appends."""

    def __init__(self, path: Path) -> None:
        self.name = _name(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._handle = os.open(
                path, flags if path.is_file() or not path.exists() else os.O_WRONLY, 0o666
            )
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror}") from None
        self.regular = stat.S_ISREG(os.fstat(self._handle).st_mode)

    @property
    def size(self) -> int:
        return os.fstat(self._handle).st_size

    def cut(self, size: int) -> None:
        os.ftruncate(self._handle, size)

    def append(self, lines: list[bytes]) -> None:
        rest = memoryview(b"".join(line + b"\n" for line in lines))
        if not rest:
            return
        try:
            if self.regular and self._is_torn():
                os.write(self._handle, b"\n")
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            if self.regular:
                os.fsync(self._handle)
        except OSError as error:
            raise PublishError(
                f"{self.name} could not be written ({error.strerror}): the step is decided and "
                "will be published at the next start"
            ) from None

    def close(self) -> None:
        os.close(self._handle)

    def _is_torn(self) -> bool:
        """Whether the last line, which is not ours, lacks its newline."""
        return self.size > 0 and os.pread(self._handle, 1, self.size - 1) != b"\n"


def _name(path: Path) -> str:
    return str(path.absolute())


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written, without creating it."""
    try:
        if path.is_dir():
            raise OutputError(f"{path} is a directory: name a file")
        if not path.parent.is_dir():
            raise OutputError(f"{path} cannot be written: {path.parent} is not a directory")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise OutputError(f"{path} cannot be written: permission denied")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None


def _print(lines: list[bytes]) -> None:
    try:
        sys.stdout.buffer.write(b"".join(line + b"\n" for line in lines))
        sys.stdout.buffer.flush()
    except OSError as error:
        # The reader is gone; the interpreter must not report that a second time at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise PublishError(f"stdout could not be written: {error.strerror}") from None
