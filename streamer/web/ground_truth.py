"""The actual numbers of a simulated stream, for the demo only.

Real sources have no such numbers: the service never creates a `Truth`, and without one the
page and the API contain no trace of it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from streamer.fleet.truth import TrueStep
from streamer.web.answers import Promise
from streamer.web.board import Board

LABEL = "Ground truth, known only because this is a simulation"
_KEPT_STEPS = 1_000
_MOST_SHOWN = 12


class TrueItem(msgspec.Struct, frozen=True):
    """An item with its actual number of users, and what was reported."""

    item: str
    now: Annotated[int, Meta(description="Actual number of users in the last closed step.")]
    step: Annotated[int, Meta(description="The step of its last estimate, and of `users`.")]
    users: Annotated[int, Meta(description="Actual number of users in that step.")]
    estimate: Annotated[int | None, Meta(description="The last estimate; null if not shown.")]
    rightly: Annotated[
        bool,
        Meta(
            description="Whether showing it, or not showing it, is correct. Near the threshold the "
            "noise can decide otherwise, and users without reports left do not count."
        ),
    ]


class TruthAnswer(msgspec.Struct, frozen=True):
    """The response of /api/truth."""

    label: str
    step: Annotated[int | None, Meta(description="The last closed step.")]
    threshold: int | None
    items: Annotated[
        tuple[TrueItem, ...], Meta(description="Sorted by actual users, largest first.")
    ]
    withheld: Annotated[
        int, Meta(description="Items below the threshold that were correctly not reported.")
    ]
    singles: Annotated[int, Meta(description="How many of them belong to a single user.")]


class Truth:
    """The ground truth of recent steps, provided by the simulation."""

    def __init__(self) -> None:
        self._steps: dict[int, TrueStep] = {}

    def tell(self, step: TrueStep) -> None:
        """Add a step, in ascending order; it may close much later."""
        self._steps[step.step] = step
        if len(self._steps) > _KEPT_STEPS:
            del self._steps[next(iter(self._steps))]

    def beside(self, board: Board) -> TruthAnswer:
        """The ground truth of the last closed step, next to what the board shows."""
        promise, through = board.promise, board.through
        known = self._steps.get(through) if through is not None else None
        if known is None or promise is None:
            return TruthAnswer(LABEL, None, None, (), 0, 0)
        reported = self._reported(board, known, promise)
        named = {each.item for each in reported}
        others = [
            TrueItem(item, users, known.step, users, None, users < promise.threshold)
            for item, users in known.users.items()
            if item not in named
        ]
        shown = sorted([*reported, *others], key=lambda each: (-each.now, each.item))
        withheld = sum(each.rightly for each in others) + known.fewer
        return TruthAnswer(
            LABEL,
            known.step,
            promise.threshold,
            tuple(shown[:_MOST_SHOWN]),
            withheld,
            known.singles,
        )

    def _reported(self, board: Board, last: TrueStep, promise: Promise) -> list[TrueItem]:
        """Each item with the ground truth of the step of its last value, which may be earlier."""
        rows = []
        for hitter in board.current.hitters:
            value, asked = hitter.value, self._steps.get(hitter.step)
            if value is None or asked is None or (known := self._steps.get(value.step)) is None:
                continue
            # An item that was public before stays so down to the exit threshold.
            least = hitter.threshold
            if hitter.since < hitter.step and promise.exit_threshold is not None:
                least = promise.exit_threshold
            item = hitter.item
            rows.append(
                TrueItem(
                    item,
                    now=last.users.get(item, 0),
                    step=value.step,
                    users=known.users.get(item, 0),
                    estimate=value.estimate,
                    rightly=asked.users.get(item, 0) >= least - hitter.margin,
                )
            )
        return rows
