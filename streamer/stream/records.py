"""The records that are published: results, steps, rejected events. Contracts of the product."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Step = Annotated[int, Meta(description="floor((time - epoch) / step length).")]
Start = Annotated[str, Meta(description="Its first moment, RFC 3339.")]
End = Annotated[str, Meta(description="The first moment after it.")]
Number = Annotated[int, Meta(description="The budget period that the step lies in.")]


class ResultRecord(msgspec.Struct, frozen=True):
    """One heavy hitter of a step. Key of the record: the item."""

    step: Step
    start: Start
    end: End
    item: Annotated[str, Meta(description="What many users hold.")]
    estimate: Annotated[int, Meta(description="How many, with noise.")]
    margin: Annotated[int, Meta(description="Half-width of the noise's 95% interval.")]
    threshold: Annotated[int, Meta(description="Estimates from here on are reported.")]
    epsilon: Annotated[float, Meta(description="ε of the guarantee, per user and period.")]
    delta: Annotated[float, Meta(description="δ of the guarantee.")]
    contributions: Annotated[int, Meta(description="Reports a user counts for in a period.")]
    period: Number


class StepRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One closed step, empty or not; with `first`, a run of empty ones."""

    step: Step
    start: Start
    end: End
    hitters: Annotated[int, Meta(description="How many results the step has.")]
    period: Number
    first: Annotated[
        int | None,
        Meta(description="The first step of a run of empty ones that ends with `step`."),
    ] = None


class RejectedRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record that is no event, or one that cannot count: where it is and why."""

    topic: Annotated[str, Meta(description="The topic that it was read from.")]
    partition: int
    offset: int
    reason: Annotated[str, Meta(description="Why it does not count.", examples=["not_json"])]
    payload: Annotated[
        str | None, Meta(description="Base64 of the raw record; only if configured.")
    ] = None
