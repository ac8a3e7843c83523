"""One mutant in a fork of the process that has collected the tests, until a test fails.

A fork costs milliseconds where an import costs a second, and whatever a mutant does to its
process, the next one does not see it.
"""

import functools
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import CodeType, FrameType, FunctionType
from typing import BinaryIO, TypeVar

import pytest
from _pytest.runner import runtestprotocol

MEMORY = 4 << 30
T = TypeVar("T")
Key = tuple[str, str]  # file and outermost function, as the code itself has them
Cache = functools._lru_cache_wrapper
Change = tuple[FunctionType, CodeType]


class Verdict(Enum):
    NOTICED = auto()
    TIMEOUT = auto()
    NOT_NOTICED = auto()


@dataclass(frozen=True)
class TimedTest:
    item: pytest.Item
    seconds: float
    calls: frozenset[Key]


class DiedError(Exception):
    """A child process ended before its work did."""


def trial(
    changes: Sequence[Change], tests: Sequence[TimedTest], caches: Sequence[Cache]
) -> tuple[Verdict, TimedTest | None]:
    """What the tests, in this order, say of functions with other code, and which one said it."""

    def first_failure() -> int | None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, even within C
        for function, code in changes:
            function.__code__ = code
        _clear(caches)
        following = [*(test.item for test in tests[1:]), None]
        for number, test in enumerate(tests):
            signal.setitimer(signal.ITIMER_REAL, 5 + 3 * test.seconds)
            if _fails(test.item, following[number]):
                return number
        return None

    try:
        number = _in_fork(first_failure)
    except DiedError as death:
        timeout = death.args == (-signal.SIGALRM,)
        return (Verdict.TIMEOUT if timeout else Verdict.NOTICED), None
    return (Verdict.NOT_NOTICED, None) if number is None else (Verdict.NOTICED, tests[number])


def survey(
    items: Sequence[pytest.Item], files: set[str], caches: Sequence[Cache]
) -> list[TimedTest]:
    """Which functions of these files each test calls, and how long it takes."""
    seen: set[Key] = set()

    def note(frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if code.co_filename in files:
            seen.add((code.co_filename, code.co_qualname.split(".<locals>")[0]))

    def timed() -> list[tuple[float, frozenset[Key]]]:
        rows = []
        for item, following in zip(items, [*items[1:], None], strict=True):
            _clear(caches)  # a remembered result would hide a call
            seen.clear()
            begun = time.perf_counter()
            threading.settrace(note)
            sys.settrace(note)
            _fails(item, following)
            sys.settrace(None)
            threading.settrace(None)
            rows.append((time.perf_counter() - begun, frozenset(seen)))
        return rows

    return [TimedTest(item, *row) for item, row in zip(items, _in_fork(timed), strict=True)]


def _in_fork(work: Callable[[], T]) -> T:
    with tempfile.TemporaryFile() as answer:  # a pipe would have to be emptied meanwhile
        child = os.fork()
        if child == 0:
            _work_and_end(work, answer)
        os.setpgid(child, child)
        try:
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        finally:
            os.killpg(child, signal.SIGKILL)  # and whatever its tests have started
            _, status = os.waitpid(child, 0)
        if status != 0:
            raise DiedError(os.waitstatus_to_exitcode(status))
        answer.seek(0)
        return pickle.load(answer)


def _work_and_end(work: Callable[[], T], answer: BinaryIO) -> None:
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        pickle.dump(work(), answer)
        answer.flush()
        os._exit(0)
    finally:  # never back into the parent's code, whatever was raised
        os._exit(1)


def _fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    reports = runtestprotocol(item, log=False, nextitem=following)
    return any(report.failed for report in reports)


def _clear(caches: Sequence[Cache]) -> None:
    for cache in caches:
        cache.cache_clear()
