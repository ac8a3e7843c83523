"""The published records: results, steps, rejected events. They are contracts of the product."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from streamer.monitors.states import State

Step = Annotated[int, Meta(description="Number of the step: floor((time - epoch) / step length).")]
Start = Annotated[str, Meta(description="Start of the step, RFC 3339.")]
End = Annotated[str, Meta(description="End of the step, exclusive.")]
Number = Annotated[int, Meta(description="Budget period of the step.")]
ItemState = Annotated[
    State,
    Meta(
        description="new: reported, and not public before. ongoing: public before, and still "
        "there. back: reported again, after it was gone. gone: no longer there. Missing in records "
        "of 0.1.0, which are reports."
    ),
]
Since = Annotated[
    int,
    Meta(
        description="First step of this stretch in which the item is public. Missing in records of "
        "0.1.0."
    ),
]
Estimate = Annotated[
    int | None,
    Meta(
        description="Estimated number of users, with noise. Null if the step has no value of the "
        "item: it is still there, or gone."
    ),
]
Low = Annotated[
    int | None,
    Meta(
        description="Lower end of the 95% interval of the number of users, given that the item was "
        "reported. Null without an estimate, and missing in records of 0.1.0."
    ),
]
High = Annotated[int | None, Meta(description="Upper end of the same interval.")]
ValuedAt = Annotated[
    int,
    Meta(
        description="Step of the item's last estimate: this step, if there is one. Missing in "
        "records of 0.1.0."
    ),
]
Margin = Annotated[
    int,
    Meta(
        description="Deprecated, use low and high of a result. Half-width of the 95% interval of "
        "the noise before selection: too narrow near the threshold.",
        extra_json_schema={"deprecated": True},
    ),
]


class ResultRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a step says about an item that is public or just gone. The record key is the item."""

    step: Step
    start: Start
    end: End
    item: Annotated[str, Meta(description="The reported item.")]
    state: ItemState | UnsetType = UNSET
    since: Since | UnsetType = UNSET
    estimate: Estimate
    low: Low | UnsetType = UNSET
    high: High | UnsetType = UNSET
    valued_at: ValuedAt | UnsetType = UNSET
    margin: Margin
    threshold: Annotated[int, Meta(description="Estimates at or above this are reported.")]
    epsilon: Annotated[float, Meta(description="ε of the guarantee, per user and period.")]
    delta: Annotated[float, Meta(description="δ of the guarantee, per user and period.")]
    contributions: Annotated[int, Meta(description="k: a user's budget per period, in reports.")]
    period: Number


class StepRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One closed step, empty or not; with `first`, a run of empty steps."""

    step: Step
    start: Start
    end: End
    hitters: Annotated[int, Meta(description="Number of results in the step.")]
    period: Number
    first: Annotated[
        int | None,
        Meta(description="First step of a run of empty steps that ends with `step`."),
    ] = None


class RejectedRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record, or an event in it, that is not valid or cannot count: where it is, and why."""

    topic: Annotated[str, Meta(description="Topic of the record.")]
    partition: int
    offset: int
    reason: Annotated[str, Meta(description="Why it was rejected.", examples=["not_json"])]
    event: Annotated[
        int | None,
        Meta(description="Which event of the record, from 0 on; only if it holds several."),
    ] = None
    payload: Annotated[
        str | None, Meta(description="Raw record in base64; only if configured.")
    ] = None
