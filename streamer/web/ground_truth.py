"""What is true of a simulated stream, for the demo only.

No real source has this: nothing of the service makes a `Truth`, and without one the page
and the API have no trace of it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from streamer.fleet.truth import TrueStep
from streamer.web.board import Board

LABEL = "Ground truth, known only because this is a simulation"
_KEPT_STEPS = 1_000
_MOST_SHOWN = 12


class TrueItem(msgspec.Struct, frozen=True):
    """An item with its true number of users, beside what was reported of it."""

    item: str
    step: Annotated[int, Meta(description="The step that both numbers are about.")]
    users: Annotated[int, Meta(description="How many users really hold it.")]
    estimate: Annotated[int | None, Meta(description="What was reported; null: it was not.")]
    rightly: Annotated[
        bool,
        Meta(
            description="Whether it is right that it was reported, or not. Near the threshold "
            "noise may decide otherwise, and users whose reports are used up do not count."
        ),
    ]


class TruthAnswer(msgspec.Struct, frozen=True):
    """The answer of /api/truth."""

    label: str
    step: Annotated[int | None, Meta(description="The last closed step that is known.")]
    threshold: int | None
    items: Annotated[tuple[TrueItem, ...], Meta(description="Those of the most users first.")]
    withheld: Annotated[
        int, Meta(description="How many items below the threshold were rightly not reported.")
    ]
    singles: Annotated[int, Meta(description="How many of those only one user holds.")]


class Truth:
    """The truth of the last steps, told by the simulation beside its events."""

    def __init__(self) -> None:
        self._steps: dict[int, TrueStep] = {}

    def tell(self, step: TrueStep) -> None:
        """Steps in rising order; each may be told long before it is closed."""
        self._steps[step.step] = step
        if len(self._steps) > _KEPT_STEPS:
            del self._steps[next(iter(self._steps))]

    def beside(self, board: Board) -> TruthAnswer:
        """The truth of the last closed step, beside what the board shows."""
        promise, through = board.promise, board.through
        known = self._steps.get(through) if through is not None else None
        if known is None or promise is None:
            return TruthAnswer(LABEL, None, None, (), 0, 0)
        reported = self._reported(board)
        named = {each.item for each in reported}
        others = [
            TrueItem(item, known.step, users, None, users < promise.threshold)
            for item, users in known.users.items()
            if item not in named
        ]
        shown = sorted([*reported, *others], key=lambda each: (-each.users, each.item))
        withheld = sum(each.rightly for each in others) + known.fewer
        return TruthAnswer(
            LABEL,
            known.step,
            promise.threshold,
            tuple(shown[:_MOST_SHOWN]),
            withheld,
            known.singles,
        )

    def _reported(self, board: Board) -> list[TrueItem]:
        """Each with the truth of the step in which it was reported: it may rest since."""
        rows = []
        for hitter in board.current.hitters:
            if known := self._steps.get(hitter.step):
                users = known.users.get(hitter.item, 0)
                rightly = users >= hitter.threshold - hitter.margin
                rows.append(TrueItem(hitter.item, hitter.step, users, hitter.estimate, rightly))
        return rows
