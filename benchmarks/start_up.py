"""How long the commands take that people type while they look around.

python -m benchmarks.start_up [--rounds 3]
"""

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.table import Row, below, command_line


def measure(rounds: int = 9) -> list[Row]:
    program = shutil.which("streamer", path=Path(sys.executable).parent)
    if program is None:
        raise RuntimeError("streamer is not installed beside this Python")
    commands = {"--help": 0.5, "plan": 1.0}
    seconds: dict[str, list[float]] = {argument: [] for argument in commands}
    for _ in range(rounds):
        for argument in commands:
            began = time.perf_counter()
            subprocess.run([program, argument], check=True, stdout=subprocess.DEVNULL)
            seconds[argument].append(time.perf_counter() - began)
    return [
        Row(
            f"streamer {argument}",
            statistics.median(seconds[argument]),
            "s",
            below(most),
            f"median of {rounds}, from {min(seconds[argument]):.2f} to "
            f"{max(seconds[argument]):.2f} s",
        )
        for argument, most in commands.items()
    ]


if __name__ == "__main__":
    command_line(measure)
