"""All benchmarks: one table, kept in results.json and shown in docs/performance.md.

    python -m benchmarks.suite [--only NAME ...]

Each benchmark runs in a process of its own. With `--only` the rows of all others are
kept as they were measured before. Ends with 1 if a benchmark fails or a bar is missed.
"""

import argparse
import json
import multiprocessing
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, versions
from benchmarks.table import Bar, Row, Side, markdown, show

NAMES = (
    "end_to_end",
    "quix",
    "step",
    "pause",
    "latency",
    "memory",
    "whole_process",
    "kafka_restore",
    "growth",
    "noise",
    "start_up",
    "batches",
    "intake",
    "mapped_events",
    "event_times",
    "monitor",
    "journal",
)
RESULTS = Path(__file__).with_name("results.json")
DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- results: make bench -->", "<!-- end of results -->"


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of one benchmark, and when they were measured."""

    rows: list[Row]
    measured: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    results, failed = _known(), []
    for name in parser.parse_args().only:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            results[name] = Result(_apart(name), datetime.now(UTC).strftime("%Y-%m-%d %H:%M"))
        except Exception:  # the others can still be measured
            traceback.print_exc()
            failed.append(name)
    ordered = {name: results[name] for name in NAMES if name in results}
    rows = [row for result in ordered.values() for row in result.rows]
    show(rows)
    _keep(ordered)
    _tell(ordered)
    for name in failed:
        print(f"{name} failed: see above", file=sys.stderr)
    return int(bool(failed) or any(row.verdict == "MISSED" for row in rows))


def _apart(name: str) -> list[Row]:
    """In a new process: what one benchmark leaves behind must not weigh on the next."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(_measure, name).result()


def _measure(name: str) -> list[Row]:
    return list(import_module(f"benchmarks.{name}").measure())


def _known() -> dict[str, Result]:
    if not RESULTS.exists():
        return {}
    known = json.loads(RESULTS.read_text())["benchmarks"]
    return {
        name: Result([_row(row) for row in result["rows"]], result["measured"])
        for name, result in known.items()
    }


def _row(kept: dict[str, Any]) -> Row:
    bar = kept["bar"] and Bar(Side(kept["bar"]["side"]), kept["bar"]["value"])
    return Row(kept["what"], kept["value"], kept["unit"], bar, kept["detail"])


def _keep(results: dict[str, Result]) -> None:
    content = {
        "machine": machine(),
        "versions": versions(),
        "benchmarks": {
            name: {
                "measured": result.measured,
                "rows": [asdict(row) | {"verdict": row.verdict} for row in result.rows],
            }
            for name, result in results.items()
        },
    }
    RESULTS.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _tell(results: dict[str, Result]) -> None:
    """Put the table into the document, between its two marks."""
    here = machine()
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    dates = sorted(result.measured for result in results.values())
    when = f"Measured from {dates[0]} to {dates[-1]} UTC"
    told = (
        f"{when} on {here['cores']} cores ({here['processor']}, {here['memory_gb']} GB, "
        f"{here['system']}) with {used}."
    )
    table = markdown([row for result in results.values() for row in result.rows])
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{told}\n\n{table}\n\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
