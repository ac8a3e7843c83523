"""A process in which everything is imported, and which forks one run for each order it reads.

A run can be told how to die: killed at a point of the protocol, in the middle of writing
a line or the journal, after a number of points that this process counts, or by a full
disk. Orders come and answers go as JSON lines on standard input and output.
"""

import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from sqlite3 import OperationalError

from streamer.errors import StreamerError
from streamer.ledger import file_database
from streamer.ledger.contract import SnapshotRule
from streamer.lines import source as line_source
from streamer.service.line_job import LineJob, run_lines
from streamer.service.startup import terms_of
from tests.service.repeatable import Repeatable, settings

# Small enough that a short stream has several batches and several snapshots.
line_source._READ_BYTES = 3000
SnapshotRule.LEAST_BYTES = 0


RULES = {
    "changes": {"attention": "changes", "value_every_steps": 3, "refresh_steps": 1},
    "every_step": {"attention": "every_step", "refresh_steps": 2},
}


class Run:
    """One run of a job in a process of its own, and the way it dies."""

    def __init__(self, order: dict, points: int) -> None:
        self._order = order
        self._points = points
        self._seen: Counter[str] = Counter()

    def __call__(self) -> dict:
        self._prepare()
        places = {name: Path(self._order[name]) for name in ("sink", "steps", "journal")}
        job = LineJob(
            self._order["source"],
            ordered=self._order.get("ordered", True),
            until=self._order.get("until"),
            start_anew=self._order.get("start_anew", False),
            **places,
        )
        try:
            made = settings(
                stream={"start": self._order.get("start")},
                privacy=RULES[self._order.get("attention", "changes")],
            )
            report = asyncio.run(
                run_lines(job, made, asked_by=Repeatable(), checkpoint=self._checkpoint)
            )
        except StreamerError as error:
            return {"error": type(error).__name__, "message": str(error)}
        return {"steps": report.steps, "seen": self._seen}

    def _prepare(self) -> None:
        if "tear_write" in self._order:
            self._tear(self._order["tear_write"])
        if "fail_at" in self._order:
            self._interrupt(*self._order["fail_at"], _fail)
        if "kill_in" in self._order:
            self._interrupt(*self._order["kill_in"], _die)
        if "file_limit" in self._order:
            # A write beyond the limit fails as on a full disk does.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            limit = self._order["file_limit"]
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    def _checkpoint(self, point: str) -> None:
        self._seen[point] += 1
        os.write(self._points, b".")
        if [point, self._seen[point]] == self._order.get("kill_at"):
            _die()

    def _tear(self, number: int) -> None:
        """Of this write to an output only a part is made."""
        write = os.write

        def torn(handle: int, data: bytes) -> int:
            if handle == self._points:
                return write(handle, data)
            self._seen["write"] += 1
            if self._seen["write"] == number:
                write(handle, bytes(data)[: max(1, len(data) // 2)])
                _die()
            return write(handle, data)

        os.write = torn

    def _interrupt(self, statement: str, number: int, interruption: Callable[[], None]) -> None:
        """Something happens at a statement of the journal. SQLite keeps next to nothing in
        memory until then, so that a transaction is already half in its file."""
        connect = file_database._connect

        class Interrupted:
            def __init__(self, path: Path | None) -> None:
                self._database = connect(path)
                self._database.execute("PRAGMA cache_size = 1")
                self.executescript = self._database.executescript
                self.close = self._database.close

            def execute(run, text: str, *values: object) -> object:  # noqa: N805
                if text.startswith(statement):
                    self._seen[statement] += 1
                    if self._seen[statement] == number:
                        interruption()
                return run._database.execute(text, *values)

        file_database._connect = Interrupted


def _fail() -> None:
    raise OperationalError("disk I/O error")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def serve() -> None:
    for rule in RULES.values():  # planned once, for all runs
        made = settings(privacy=rule)
        terms_of(made.privacy, made.stream)
    for line in sys.stdin:
        json.dump(_carry_out(json.loads(line)), sys.stdout)
        sys.stdout.write("\n")
        sys.stdout.flush()


def _carry_out(order: dict) -> dict:
    points, points_end = os.pipe()
    answer, answer_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = Run(order, points_end)()
        except BaseException as error:
            result = {"error": type(error).__name__, "message": repr(error)}
        os.write(answer_end, json.dumps(result).encode())
        os._exit(0)
    os.close(points_end)
    os.close(answer_end)
    passed = _watch(child, points, order.get("kill_after"))
    _, status = os.waitpid(child, 0)
    with os.fdopen(answer, "rb") as stream:
        text = stream.read()
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"killed": killed, "points": passed, **(json.loads(text) if text else {})}


def _watch(child: int, points: int, kill_after: list | None) -> int:
    """Count the points that a run passes; kill it a moment after so many of them."""
    passed = 0
    with os.fdopen(points, "rb", buffering=0) as stream:
        while True:
            if kill_after and passed >= kill_after[0]:
                _, moment = kill_after
                time.sleep(moment)
                os.kill(child, signal.SIGKILL)
                kill_after = None
            dots = stream.read(1)
            if not dots:
                return passed
            passed += 1


if __name__ == "__main__":
    serve()
