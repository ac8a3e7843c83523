"""How long planning takes: at the defaults, and at the corners of what is allowed.

    python -m benchmarks.planning [--settings N] [--seed S]

Prints the processor time of the default plan and of the slowest settings in a sample. Ends with 1
if the defaults take a second or more, or another setting takes five.
"""

import argparse
import itertools
import random
import time
from typing import Any

from streamer.commands.options import PRIVACY, STREAM
from streamer.errors import SettingError
from streamer.privacy.calibration import calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.priced_search import priced_delta, priced_scale
from streamer.privacy.terms import Attention, Domain, Method, Neighbours
from streamer.privacy.threshold import Workload, plan

# Both ends of every range and some of its middle.
CORNERS: dict[str, tuple[Any, ...]] = {
    "epsilon": (1e-9, 1e-6, 1e-4, 0.01, 0.1, 1.0, 4.0, 20.0, 100.0),
    "delta": (1e-15, 1e-12, 1e-6, 1e-3, 0.3, 0.999),
    "contributions": (1, 2, 10, 300, 10_000),
    "period_steps": (1, 2, 24, 1440, 100_000, 10**7, 10**9),
    "items_per_step": (1, 3, 100),
    "users": (0, 10**6, 10**12),
    "declared": (0, 500, 10**12),
    "neighbours": tuple(Neighbours),
    "attention": tuple(Attention),
    "domain": tuple(Domain),
}
LONGEST_DEFAULT, LONGEST = 1.0, 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    default = _seconds(_default())[0]
    print(f"{default:.2f} s  the defaults")
    every = list(itertools.product(*CORNERS.values()))
    sampled = random.Random(given.seed).sample(every, given.settings)
    settings = [dict(zip(CORNERS, values, strict=True)) for values in sampled]
    timed = [(*_seconds(each), each) for each in settings]
    timed.sort(key=lambda row: row[0], reverse=True)
    for seconds, scale, each in timed[:10]:
        print(f"{seconds:.2f} s  σ = {scale}  {each}")
    return default >= LONGEST_DEFAULT or timed[0][0] >= LONGEST


def _default() -> dict[str, Any]:
    names = ("epsilon", "delta", "contributions", "period_steps", "users", "neighbours")
    return {name: getattr(PRIVACY, name) for name in names} | {
        "items_per_step": STREAM.items_per_step,
        "declared": 0,
        "attention": Attention.CHANGES,
        "domain": Domain.OPEN,
    }


def _seconds(each: dict[str, Any]) -> tuple[float, float | None]:
    """The processor time of a plan from scratch, and its σ; None where it is refused."""
    for cached in (calibrate, priced_scale, priced_delta):
        cached.cache_clear()
    began, scale = time.process_time(), None
    try:
        guarantee = Guarantee(
            *(each[name] for name in ("epsilon", "delta", "contributions", "neighbours"))
        )
        workload = Workload(
            period_steps=each["period_steps"],
            items=10_000,
            beta=0.05,
            domain=each["domain"],
            users=each["users"],
            items_per_step=each["items_per_step"],
            declared=each["declared"],
        )
        made = plan(guarantee, workload, Method.HORIZON, attention=each["attention"])
        scale = made.calibration.noise_scale
    except SettingError:
        pass
    return time.process_time() - began, scale


if __name__ == "__main__":
    raise SystemExit(main())
