"""Streams and noise that are the same in every run, so that two runs can be compared."""

import json
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from streamer.config import load
from streamer.monitors.attention import Agenda
from streamer.monitors.deciding import Questions
from streamer.monitors.seam import Decision, Tally
from streamer.privacy.threshold import Plan
from streamer.settings import Settings
from tests.monitors.scripted import answered

THRESHOLD = 4
KEY = "5e" * 32
SETTINGS = {
    "stream": {"step_seconds": 1.0, "lateness_seconds": 0.5},
    "privacy": {
        "contributions": 3,
        "period_steps": 40,
        "attention": "every_step",
        "refresh_steps": 2,
        "items": 50,
        "key": KEY,
    },
}


class Repeatable:
    """Noise as a function of (seed, step, item): a step that was decided twice would show.

    A handful of holders is enough, so that small streams have hitters.
    """

    def __init__(self, seed: int = 1, threshold: int = THRESHOLD) -> None:
        self._seed, self._threshold = seed, threshold

    asks_unheld = False

    def __call__(self, plan: Plan, declared: Sequence[str]) -> Questions[str]:
        del plan, declared
        return self

    def ask(self, tally: Tally[str], agenda: Agenda[str]) -> Decision:
        noise = partial(self._noise, tally.step)
        return answered(tally, agenda, self._threshold, self._threshold // 2, noise)

    def _noise(self, step: int, item: str) -> int:
        return zlib.crc32(f"{self._seed} {step} {item}".encode()) % 5 - 2


def settings(**sections: Mapping[str, object]) -> Settings:
    """Small steps, short periods, few contributions; sections change single settings."""
    return load({name: {**SETTINGS[name], **sections.get(name, {})} for name in SETTINGS})


def event(user: object, item: str, moment_ms: int) -> dict[str, object]:
    return {"user": f"u-{user}", "item": item, "time": moment_ms}


def events(steps: Iterable[int], seed: int = 1, users: int = 16) -> list[dict[str, object]]:
    """Sorted by time: in each step sixteen users, most of them with one of three items."""
    chance = random.Random(seed)
    made = [
        event(
            chance.randrange(6 * users),
            chance.choice(["crash:A", "crash:B", "crash:C", f"url:/{chance.randrange(40)}"]),
            1000 * step + chance.randrange(1000),
        )
        for step in steps
        for _ in range(users)
    ]
    return sorted(made, key=lambda each: each["time"])


def write_events(path: Path, made: Iterable[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in made))
    return path
