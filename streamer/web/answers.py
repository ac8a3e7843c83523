"""The JSON of the public API, as types. docs/openapi.yaml describes the same; a test keeps
them in sync. Everything here comes from publications and public settings."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from streamer.stream.current import CurrentHitters, Trend, results_by_step
from streamer.stream.publication import Publication
from streamer.stream.records import (
    Estimate,
    High,
    ItemState,
    Low,
    Margin,
    ResultRecord,
    Since,
    StepRecord,
    ValuedAt,
)


class LastValue(msgspec.Struct, frozen=True, kw_only=True):
    """The last estimate of an item."""

    step: Annotated[int, Meta(description="The step of the estimate.")]
    end: Annotated[str, Meta(description="End of that step, exclusive.")]
    estimate: Annotated[int, Meta(description="Estimated number of users, with noise.")]
    low: Low | UnsetType = UNSET
    high: High | UnsetType = UNSET


class CurrentHitter(ResultRecord, frozen=True, kw_only=True):
    """The latest record of an item that is trending now."""

    trend: Annotated[
        Trend,
        Meta(
            description="Growing or shrinking if the latest estimates differ from earlier ones by "
            "more than their intervals explain; new if there are no earlier ones."
        ),
    ]
    since: Annotated[
        int, Meta(description="First step of this stretch in which the item is public.")
    ]
    value: Annotated[
        LastValue | None,
        Meta(
            description="Its last estimate, of this step or an earlier one; null if that is older "
            "than what is available."
        ),
    ] = None


class Current(msgspec.Struct, frozen=True):
    """What is trending now: the response of /api/hitters."""

    step: Annotated[int | None, Meta(description="The last closed step; null before the first.")]
    start: Annotated[str | None, Meta(description="Start of the step, RFC 3339.")]
    end: Annotated[str | None, Meta(description="End of the step, exclusive.")]
    hitters: Annotated[
        tuple[CurrentHitter, ...],
        Meta(
            description="Items that are public after the last step. With attention every_step: "
            "items reported in the last `refresh_steps` steps. Largest last estimate first."
        ),
    ]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What the enclosing step says about an item."""

    item: Annotated[str, Meta(description="The reported item.")]
    state: ItemState | UnsetType = UNSET
    since: Since | UnsetType = UNSET
    estimate: Estimate
    low: Low | UnsetType = UNSET
    high: High | UnsetType = UNSET
    valued_at: ValuedAt | UnsetType = UNSET
    margin: Margin
    threshold: Annotated[int, Meta(description="Estimates at or above this are reported.")]


class ClosedStep(StepRecord, frozen=True, omit_defaults=True):
    """A step record with its results; with `first`, a run of empty steps."""

    results: Annotated[
        tuple[Result, ...], Meta(description="Sorted by item; omitted if empty.")
    ] = ()


class Steps(msgspec.Struct, frozen=True):
    """The response of /api/steps."""

    steps: Annotated[tuple[ClosedStep, ...], Meta(description="Oldest first.")]
    oldest: Annotated[int | None, Meta(description="The oldest step available.")]
    through: Annotated[int | None, Meta(description="The last closed step.")]


class Published(msgspec.Struct, frozen=True):
    """The data of a `published` event in /api/events."""

    steps: Annotated[
        tuple[ClosedStep, ...], Meta(description="Steps that the reader does not have yet.")
    ]
    hitters: Annotated[
        Current | None, Meta(description="What is trending now; null if more steps follow.")
    ]


class Promise(msgspec.Struct, frozen=True):
    """The guarantee in force: the response of /api/guarantee."""

    sentence: Annotated[str, Meta(description="The guarantee in plain words.")]
    epsilon: Annotated[float, Meta(description="ε, per user and period.")]
    delta: Annotated[float, Meta(description="δ, per user and period.")]
    contributions: Annotated[
        int, Meta(description="k: a user's budget per period. A report costs 1, or `loud_price`.")
    ]
    neighbours: Annotated[str, Meta(description="What changes between two neighbouring streams.")]
    step_seconds: Annotated[float, Meta(description="Length of a step, in seconds.")]
    period_steps: Annotated[int, Meta(description="Steps in a budget period.")]
    refresh_steps: Annotated[
        int,
        Meta(
            description="With attention every_step, a reported item is checked again after this "
            "many steps."
        ),
    ]
    threshold: Annotated[int, Meta(description="Estimates at or above this are reported.")]
    margin: Margin
    noise_scale: Annotated[float, Meta(description="Scale of the noise, in users.")]
    period: Annotated[int | None, Meta(description="Number of the period; null before the first.")]
    first: Annotated[int | None, Meta(description="First step of the period.")]
    # With defaults, so that `watch` can read a service of 0.1.0.
    noise: Annotated[str, Meta(description="Law of the noise: gaussian or laplace.")] = "laplace"
    attention: Annotated[
        str,
        Meta(
            description="changes: a public item is mostly asked whether it is still there, which "
            "costs its holders nothing. every_step: every item is asked for its value."
        ),
    ] = "every_step"
    value_every_steps: Annotated[
        int | None,
        Meta(
            description="With attention changes, the longest time between two estimates of an item "
            "that stays public, in steps."
        ),
    ] = None
    exit_threshold: Annotated[
        int | None,
        Meta(
            description="With attention changes, an item whose noisy count is below this is gone."
        ),
    ] = None
    items_per_step: Annotated[
        int, Meta(description="How many items of a user count in a step, the latest ones.")
    ] = 1
    loud_price: Annotated[
        float,
        Meta(
            description="What a report costs whose estimate is `loud_excess` above its threshold."
        ),
    ] = 1.0
    loud_excess: Annotated[
        int | None, Meta(description="From how far above its threshold on a report is loud.")
    ] = None
    declared_items: Annotated[
        int, Meta(description="How many items are declared: asked about in every step.")
    ] = 0
    declared_threshold: Annotated[
        int | None, Meta(description="The threshold of declared items; null if there are none.")
    ] = None
    open_domain: Annotated[
        bool, Meta(description="Whether items that are not declared are reported, too.")
    ] = True
    users: Annotated[
        int | None, Meta(description="The number of users that was planned for; null if none was.")
    ] = None
    unique_items_per_year: Annotated[
        float | None,
        Meta(
            description="Expected number of published items that a single user holds, in a year in "
            "which each of `users` users holds one in every step; null if `users` is."
        ),
    ] = None
    trusts_producers: Annotated[
        bool,
        Meta(
            description="Whether producers set the arrival times of events: then the guarantee "
            "holds only if no user controls a producer's clock."
        ),
    ] = False


class Refusal(msgspec.Struct, frozen=True):
    """Why a request was refused."""

    error: Annotated[str, Meta(description="One sentence.")]


def closed_steps(publication: Publication) -> list[ClosedStep]:
    """The step records of a publication, each with its results."""
    by_step = results_by_step(publication)
    return [
        ClosedStep(
            **structs.asdict(record),
            results=tuple(
                Result(**{name: getattr(each, name) for name in Result.__struct_fields__})
                for each in by_step[record.step]
            ),
        )
        for record in publication.steps
    ]


def current_at(last: StepRecord, hitters: CurrentHitters) -> Current:
    """What many users hold now, after the last closed step."""
    return Current(
        last.step,
        last.start,
        last.end,
        tuple(
            CurrentHitter(
                **{**structs.asdict(each.latest), "since": each.since},
                trend=each.trend,
                value=_last_value(each.valued),
            )
            for each in hitters.now()
        ),
    )


def _last_value(valued: ResultRecord | None) -> LastValue | None:
    if valued is None or valued.estimate is None:
        return None
    return LastValue(
        step=valued.step,
        end=valued.end,
        estimate=valued.estimate,
        low=valued.low,
        high=valued.high,
    )
