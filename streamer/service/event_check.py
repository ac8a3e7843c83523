"""Tries the settings of events on a sample: what each record becomes, and what looks wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from streamer.service.event_format import decoder_of, mapping_of
from streamer.service.startup import rule_of, timing_of
from streamer.settings import Settings
from streamer.stream.decoding import Decoded, Limits, Rejection
from streamer.stream.fate import Fates
from streamer.stream.intake import Batch
from streamer.stream.json_reader import JsonReader
from streamer.stream.paths import Path, Place
from streamer.stream.reasons import Reason
from streamer.stream.suspicions import suspicion_of
from streamer.stream.timing import format_rfc3339

_ENOUGH = 20
"""With fewer events, items that occur once say nothing."""
_SHOWN_CHARACTERS = 2
"""Of a user's id: enough to recognise the field, too few to recognise the user."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a record, or of one event in it; `record`: its partition and offset."""

    record: str
    text: str


@dataclass(frozen=True, slots=True)
class EventReport:
    """What a sample says about the settings. `late` is None without arrival times."""

    records: int
    events: int
    ignored: int
    rejected: dict[str, int]
    users: int
    items: int
    steps: int
    late: int | None
    warnings: list[str]


class EventCheck:
    """Decodes batches as the service does. It stores and publishes nothing."""

    def __init__(self, settings: Settings, from_kafka: bool) -> None:
        timing = timing_of(settings.stream)
        mapping = mapping_of(settings.events)
        self._rule = rule_of(settings.stream, timing)
        self._decoder = decoder_of(settings, timing, from_kafka)
        self._mapping = mapping
        paths = [place for place in mapping.places if isinstance(place, Path)]
        self._reader = JsonReader(paths, Limits(settings.stream.max_record_bytes))
        self._from_kafka = from_kafka
        self._records = self._ignored = self._late = 0
        self._rejected: Counter[str] = Counter()
        self._users: Counter[str] = Counter()
        self._items: Counter[str] = Counter()
        self._steps: set[int] = set()
        self._missing: set[Place] = set(paths)
        """Paths without a value in any record."""

    def add(self, batch: Batch, now: int) -> list[Outcome]:
        """Take in a batch: what becomes of each record, in their order."""
        decoded = self._decoder.decode(batch.records, batch.arrivals, batch.envelopes)
        arrivals = None if batch.arrivals is None else batch.arrivals[decoded.places]
        fates = self._rule.judge(decoded.times, arrivals, now)
        self._records += len(batch.records)
        self._ignored += decoded.ignored
        texts: dict[int, list[str]] = defaultdict(list)
        for rejection in decoded.rejections:
            texts[rejection.place].append(self._rejection(rejection))
        for index, place in enumerate(decoded.places.tolist()):
            texts[place].append(self._event(index, decoded, fates))
        columns = self._reader.read(batch.records).columns
        self._missing -= {
            path
            for path, values in columns.items()
            if any(value is not None and value != [] for value in values)
        }
        return [
            Outcome(f"{batch.partition}:{offset}", text)
            for place, offset in enumerate(batch.offsets.tolist())
            for text in texts.get(place, ["ignored"])
        ]

    def report(self) -> EventReport:
        return EventReport(
            records=self._records,
            events=self._users.total(),
            ignored=self._ignored,
            rejected=dict(self._rejected.most_common()),
            users=len(self._users),
            items=len(self._items),
            steps=len(self._steps),
            late=self._late if self._from_kafka else None,
            warnings=list(self._warnings()),
        )

    def _rejection(self, rejection: Rejection) -> str:
        self._rejected[rejection.reason.value] += 1
        which = "" if rejection.part is None else f"event {rejection.part} "
        return f"{which}rejected: {rejection.reason.value}"

    def _event(self, index: int, decoded: Decoded, fates: Fates) -> str:
        """Count a decoded event, unless it is rejected because of its arrival."""
        for reason, mask in (
            (Reason.ARRIVAL_AHEAD, fates.arrival_ahead),
            (Reason.TIME_AHEAD, fates.time_ahead),
        ):
            if mask[index]:
                return self._rejection(decoded.rejection(index, reason))
        user, item, step = decoded.users[index], decoded.items[index], int(fates.steps[index])
        self._users[user] += 1
        self._items[item] += 1
        self._steps.add(step)
        self._late += bool(fates.late[index])
        late = " late" if fates.late[index] else ""
        time = format_rfc3339(int(decoded.times[index]))
        return f"step {step}{late} time {time} user {_masked(user)} item {item}"

    def _warnings(self) -> Iterator[str]:
        if self._records:
            yield from self._unmatched()
        events, once = self._users.total(), sum(number == 1 for number in self._items.values())
        if events >= _ENOUGH and 2 * once > events:
            yield (
                f"{once:,} of {events:,} events have an item that no other event has: only items "
                "of many users can be reported; choose a field with fewer values"
            )
        if events >= _ENOUGH and len(self._users) == 1:
            yield "all events are of the same user: choose the field that names the user"
        suspects: dict[str, list[str]] = defaultdict(list)
        for item in self._items:
            suspicion = suspicion_of(item)
            if suspicion is not None:
                suspects[suspicion.value].append(item)
        for what, items in suspects.items():
            yield (
                f"{len(items):,} of {len(self._items):,} items seem to contain {what}: choose a "
                f"field without personal data; for example {items[0]}"
            )

    def _unmatched(self) -> Iterator[str]:
        """Settings without effect: none of their alternatives is ever there."""
        groups = list(self._mapping.alternatives.items())
        groups += [("events.where", [(each.place,)]) for each in self._mapping.where]
        for setting, alternatives in groups:
            missing = [
                [place.text for place in places if place in self._missing]
                for places in alternatives
            ]
            if alternatives and all(missing):
                names = ", ".join(dict.fromkeys(text for texts in missing for text in texts))
                yield f"{setting}: none of the {self._records:,} records has {names}"


def _masked(user: str) -> str:
    return f"{user[:_SHOWN_CHARACTERS]}… ({len(user)} characters)"
