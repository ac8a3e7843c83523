"""The JSON of the public API, as types: docs/openapi.yaml describes the same, and a test
holds the two together. All of it is made of publications and of public settings."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, structs

from streamer.stream.current import CurrentHitters, Trend, results_by_step
from streamer.stream.publication import Publication
from streamer.stream.records import ResultRecord, StepRecord


class CurrentHitter(ResultRecord, frozen=True):
    """The latest report of an item that many users hold now."""

    trend: Annotated[
        Trend,
        Meta(
            description="Growing or shrinking if its last reports differ from those before them "
            "by more than noise does; new if there were none before."
        ),
    ]
    since: Annotated[int, Meta(description="The step in which its reports began.")]


class Current(msgspec.Struct, frozen=True):
    """What many users hold now: the answer of /api/hitters."""

    step: Annotated[int | None, Meta(description="The last closed step; null before the first.")]
    start: Annotated[str | None, Meta(description="Its first moment, RFC 3339.")]
    end: Annotated[str | None, Meta(description="The first moment after it.")]
    hitters: Annotated[
        tuple[CurrentHitter, ...],
        Meta(
            description="Those of the last step and, if a reported item rests for a while, those "
            "that were reported within that while. The largest estimate first."
        ),
    ]


class Result(msgspec.Struct, frozen=True):
    """One heavy hitter of a step that is named around it."""

    item: Annotated[str, Meta(description="What many users hold.")]
    estimate: Annotated[int, Meta(description="How many, with noise.")]
    margin: Annotated[int, Meta(description="Half-width of the noise's 95% interval.")]
    threshold: Annotated[int, Meta(description="Estimates from here on are reported.")]


class ClosedStep(StepRecord, frozen=True, omit_defaults=True):
    """A step record with its results; with `first`, a run of steps without any."""

    results: Annotated[
        tuple[Result, ...], Meta(description="In the order of their items; left out if none.")
    ] = ()


class Steps(msgspec.Struct, frozen=True):
    """The answer of /api/steps."""

    steps: Annotated[tuple[ClosedStep, ...], Meta(description="The oldest first.")]
    oldest: Annotated[int | None, Meta(description="The first step that can be had.")]
    through: Annotated[int | None, Meta(description="The last closed step.")]


class Published(msgspec.Struct, frozen=True):
    """The data of a `published` event in /api/events."""

    steps: Annotated[
        tuple[ClosedStep, ...], Meta(description="Those that the reader does not have yet.")
    ]
    hitters: Annotated[
        Current | None, Meta(description="What many users hold now; null if more steps follow.")
    ]


class Promise(msgspec.Struct, frozen=True):
    """The guarantee in force: the answer of /api/guarantee."""

    sentence: Annotated[str, Meta(description="The guarantee in plain words.")]
    epsilon: Annotated[float, Meta(description="ε, per user and period.")]
    delta: Annotated[float, Meta(description="δ, per user and period.")]
    contributions: Annotated[int, Meta(description="k: reports a user counts for in a period.")]
    neighbours: Annotated[str, Meta(description="Which two worlds must look alike.")]
    step_seconds: Annotated[float, Meta(description="Length of a step.")]
    period_steps: Annotated[int, Meta(description="Steps in a budget period.")]
    refresh_steps: Annotated[
        int, Meta(description="A reported item is asked about again after so many steps.")
    ]
    threshold: Annotated[int, Meta(description="Estimates from here on are reported.")]
    margin: Annotated[int, Meta(description="Half-width of the noise's 95% interval.")]
    noise_scale: Annotated[float, Meta(description="Scale of the noise, in users.")]
    period: Annotated[int | None, Meta(description="The period's number; null before the first.")]
    first: Annotated[int | None, Meta(description="The period's first step.")]


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is not answered."""

    error: Annotated[str, Meta(description="One sentence.")]


def closed_steps(publication: Publication) -> list[ClosedStep]:
    """The step records of a publication, each with its results."""
    by_step = results_by_step(publication)
    return [
        ClosedStep(
            **structs.asdict(record),
            results=tuple(
                Result(each.item, each.estimate, each.margin, each.threshold)
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
            CurrentHitter(**structs.asdict(each.latest), trend=each.trend, since=each.since)
            for each in hitters.now()
        ),
    )
