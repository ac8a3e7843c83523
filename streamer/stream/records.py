"""What the engine decides, as value objects, and the records that are published of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from streamer.monitors.counters import Users
from streamer.stream.periods import Period
from streamer.stream.timing import StepTiming, format_rfc3339


@dataclass(frozen=True, slots=True)
class Hitter:
    """A reported item with its noisy number of holders."""

    item: str
    estimate: int


@dataclass(frozen=True, slots=True)
class Decided:
    """A closed step, or a run of steps from `first` to `step` that nobody sent anything in.

    How such runs are cut is internal: see `publication` for what is published of them.

    `charged`: the pseudonyms of the users whom the decision charges, in rising order.
    The hitters' order, by item, is a function of the hitters alone.
    """

    step: int
    first: int
    period: Period
    hitters: tuple[Hitter, ...] = ()
    charged: Users = field(default_factory=lambda: np.empty(0, dtype=np.uint64))


@dataclass(frozen=True, slots=True)
class Entry:
    """What a journal keeps of a closed step: the decision, and where to read on."""

    decided: Decided
    offsets: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


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


def result_records(decided: Decided, timing: StepTiming) -> Iterator[ResultRecord]:
    """The results of a step, in the order of their items."""
    terms = decided.period.terms
    start, end = (format_rfc3339(each(decided.step)) for each in (timing.start, timing.end))
    for hitter in decided.hitters:
        yield ResultRecord(
            step=decided.step,
            start=start,
            end=end,
            item=hitter.item,
            estimate=hitter.estimate,
            margin=decided.period.margin,
            threshold=decided.period.plan.threshold,
            epsilon=terms.epsilon,
            delta=terms.delta,
            contributions=terms.contributions,
            period=decided.period.number,
        )
