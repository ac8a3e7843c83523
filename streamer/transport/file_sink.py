"""Results to files or to standard output, one JSON object a line.

A file holds every decision exactly once, also after a crash: before a decision is
published, the journal notes how long each file is, and what a crash left behind that
length is taken back. Standard output cannot be taken back: there a decision may be seen
a second time after a crash, with the same values.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from streamer.errors import OutputError, PublishError
from streamer.stream.records import Decided, result_records, step_record
from streamer.stream.timing import StepTiming

_encode = msgspec.json.Encoder().encode


class FileSink:
    """Hitters to one file (or standard output), step records to another, if wanted."""

    def __init__(self, timing: StepTiming, hitters: Path | None, steps: Path | None) -> None:
        self._timing = timing
        self._hitters = _LineFile("hitters", hitters) if hitters else None
        self._steps = _LineFile("steps", steps) if steps else None

    @property
    def holds_results(self) -> bool:
        """Whether something was written to the files before."""
        return any(self.sizes().values())

    def sizes(self) -> dict[str, int]:
        """How long each file is now."""
        return {file.name: file.size for file in (self._hitters, self._steps) if file}

    def take_back(self, sizes: Mapping[str, int]) -> None:
        """Cut the files to these lengths, where they are longer."""
        for file in (self._hitters, self._steps):
            if file and file.name in sizes:
                file.cut(sizes[file.name])

    async def publish(self, decided: Decided) -> None:
        """Durable when it returns."""
        results = [_encode(record) for record in result_records(decided, self._timing)]
        if self._hitters:
            self._hitters.append(results)
        elif results:
            _print(results)
        if self._steps:
            self._steps.append([_encode(step_record(decided, self._timing))])

    def close(self) -> None:
        for file in (self._hitters, self._steps):
            if file:
                file.close()


def _print(lines: list[bytes]) -> None:
    try:
        sys.stdout.buffer.write(b"".join(line + b"\n" for line in lines))
        sys.stdout.buffer.flush()
    except OSError as error:
        # Nobody reads any more; the interpreter must not complain of it once again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise PublishError(f"stdout could not be written: {error.strerror}") from None


def check_writable(path: Path) -> None:
    """Refuse a path that could not be written, without making it."""
    if path.is_dir():
        raise OutputError(f"{path} is a directory: name a file")
    if not path.parent.is_dir():
        raise OutputError(f"{path} cannot be written: {path.parent} is not a directory")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputError(f"{path} cannot be written: permission denied")


class _LineFile:
    """A file that whole lines are appended to. Nothing is buffered between two appends."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path
        try:
            self._handle = os.open(
                path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644
            )
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror}") from None

    @property
    def size(self) -> int:
        return os.fstat(self._handle).st_size

    def cut(self, size: int) -> None:
        if self.size > size:
            os.ftruncate(self._handle, size)

    def append(self, lines: list[bytes]) -> None:
        rest = memoryview(b"".join(line + b"\n" for line in lines))
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            os.fsync(self._handle)
        except OSError as error:
            raise PublishError(
                f"{self._path} could not be written ({error.strerror}): the step is decided and "
                "will be published when it is started again"
            ) from None

    def close(self) -> None:
        os.close(self._handle)
