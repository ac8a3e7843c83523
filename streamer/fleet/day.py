"""A day that a real service would have: what lasts, what breaks out every hour, and the rest.

Three items last all day. Every hour an outbreak affects some users for ten minutes, whether
they have one of these items or not. The background has a long tail, as in every fleet.
"""

from __future__ import annotations

from streamer.errors import SettingError
from streamer.fleet.fleet import Fleet
from streamer.fleet.lasting import Lasting
from streamer.fleet.outbreaks import Outbreak

USERS = 20_000
STEPS = 1_440
"""Minutes of a day."""
LASTING = (
    Lasting("version:6.1-unsupported", 5_000),
    Lasting("error:certificate-expires-soon", 5_000),
    Lasting("crash:WidgetTimeout:Home.kt:77", 5_000),
)

_HOUR = 60
_AFFECTED, _BEGINS, _LENGTH = 1_000, 30, 10
"""Users of an outbreak, the minute of the hour in which it begins, and its minutes."""


def day_fleet(seed: int) -> Fleet:
    """The whole day; the seed chooses who has what."""
    return Fleet(USERS, STEPS, seed, lasting=LASTING, outbreaks=outbreaks_before(STEPS))


def outbreaks_before(steps: int) -> tuple[Outbreak, ...]:
    """The outbreaks that begin in the first `steps` minutes, each with an item of its own."""
    return tuple(
        Outbreak(f"error:HTTP-503:edge-{begins // _HOUR}", _AFFECTED, begins, _LENGTH)
        for begins in range(_BEGINS, steps, _HOUR)
    )


def check_steps(steps: int) -> None:
    if steps > STEPS:
        allowed = f"the day of --preset has {STEPS:,} steps; use fewer, or omit --preset"
        raise SettingError("steps", steps, allowed)
