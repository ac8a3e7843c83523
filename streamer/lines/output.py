"""Writes lines to a file, a gzip file or standard output. Errors name the option."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from streamer.errors import OutputError

STANDARD_OUTPUT = "-"
SUFFIXES = (".jsonl", ".jsonl.gz")


class LineOutput:
    """An output for lines. Closing writes what is buffered, so it can fail like writing.

    If the reader of standard output closes the pipe, BrokenPipeError is raised: that is not
    an error of the user. Every other failure is an OutputError.
    """

    def __init__(self, option: str, target: str) -> None:
        self._option, self._target = option, target
        self._opened = ExitStack()
        with self._named_errors():
            self._file = self._open()

    def write(self, lines: Sequence[bytes]) -> None:
        """Write each line with a newline."""
        if lines:
            with self._named_errors():
                self._file.write(b"\n".join(lines) + b"\n")

    def close(self) -> None:
        with self._named_errors():
            self._opened.close()

    def _open(self) -> BinaryIO | gzip.GzipFile:
        if self._target == STANDARD_OUTPUT:
            self._opened.callback(sys.stdout.buffer.flush)
            return sys.stdout.buffer
        file = self._opened.enter_context(Path(self._target).open("wb"))  # noqa: SIM115
        if not self._target.endswith(".gz"):
            return file
        # No name and no time in the header, so that equal lines make equal files.
        return self._opened.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if isinstance(error, BrokenPipeError) and self._target == STANDARD_OUTPUT:
                raise
            reason = error.strerror or str(error)
            raise OutputError(f"{self._option} is {self._target}: {reason}") from None


def check_file(option: str, target: str) -> None:
    """Refuse an unwritable target before anything is overwritten."""
    path = Path(target)
    if not path.name.endswith(SUFFIXES):
        raise OutputError(f"{option} is {target}: use a file ending in {' or '.join(SUFFIXES)}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputError(f"{option} is {target}: it cannot be written; use another file")
