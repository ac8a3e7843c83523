"""Every metric: that it is there as promised, and that it tells the truth."""

import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamer.config import load
from streamer.ledger.contract import SnapshotRule
from streamer.monitors.seam import Hitter
from streamer.operations.metrics import Metrics, Situation
from streamer.privacy.terms import Attention, Method
from streamer.service.line_job import LineJob, run_lines
from streamer.stream.decided import Decided
from streamer.stream.engine import EngineState
from streamer.stream.events import EventDecoder
from streamer.stream.muting import Muting
from streamer.stream.periods import Period
from streamer.stream.publication import published_before
from streamer.stream.timing import StepTiming
from streamer.stream.watching import Phase
from tests.operations.watched import Watched, families, new_metrics, shown
from tests.stream.making import (
    AHEAD,
    KEY,
    LATENESS,
    LENGTH,
    TIMING,
    batch,
    new_engine,
    new_intake,
    record,
    started,
    terms,
)

DECLARED = {
    "build_info": ("gauge", {"version", "python"}),
    "buffered_events": ("gauge", set()),
    "changes": ("counter", {"state"}),
    "clock_skew_seconds": ("gauge", set()),
    "closed_step_events": ("counter", {"reason"}),
    "contributions": ("gauge", set()),
    "delta": ("gauge", set()),
    "epsilon": ("gauge", set()),
    "events": ("counter", {"outcome"}),
    "exhausted_ratio": ("gauge", set()),
    "hitter_estimate": ("gauge", {"item"}),
    "hitter_growth": ("gauge", {"item"}),
    "hitter_high": ("gauge", {"item"}),
    "hitter_info": ("gauge", {"item", "link"}),
    "hitter_low": ("gauge", {"item"}),
    "hitter_margin": ("gauge", set()),
    "hitter_since_seconds": ("gauge", {"item"}),
    "hitters": ("counter", set()),
    "hitters_current": ("gauge", set()),
    "hitters_shown": ("gauge", set()),
    "input_lag": ("gauge", {"partition"}),
    "journal_errors": ("counter", set()),
    "journal_write_seconds": ("histogram", set()),
    "kafka_errors": ("counter", {"kind"}),
    "last_step_closed_timestamp_seconds": ("gauge", set()),
    "lateness_seconds": ("gauge", set()),
    "noise_scale": ("gauge", set()),
    "open_steps": ("gauge", set()),
    "period": ("gauge", set()),
    "period_remaining_steps": ("gauge", set()),
    "publish_seconds": ("histogram", set()),
    "ready": ("gauge", set()),
    "records_lost": ("counter", set()),
    "records_read": ("counter", set()),
    "rejected": ("counter", {"reason"}),
    "restore_seconds": ("gauge", set()),
    "step_close_seconds": ("histogram", {"phase"}),
    "step_seconds": ("gauge", set()),
    "steps_closed": ("counter", set()),
    "terms_pending": ("gauge", set()),
    "threshold": ("gauge", set()),
    "users_charged": ("gauge", set()),
    "users_exhausted": ("gauge", set()),
    "watermark_lag_seconds": ("gauge", set()),
}
OUTCOMES = {"accepted", "duplicate", "late", "ignored", "rejected"}
REASONS = {
    *("empty", "too_large", "not_json", "not_an_object", "missing_user", "missing_item"),
    *("wrong_type", "user_too_long", "item_too_long", "missing_time", "bad_time"),
    *("time_and_step", "time_out_of_range", "time_ahead", "arrival_ahead"),
}
PHASES = {"decide", "append", "publish", "snapshot"}
HOSTILE = [
    *('a"b', "back\\slash", "back\\nslash", "two\nlines", 'x"} 1\nstreamer_ready{a="'),
    *("\r\t\x00", "# HELP", "  ", "ünïcödé 🦀 \u2028", "{}=,"),
]


@pytest.fixture
def watched():
    return Watched()


class TestDeclarations:
    @pytest.fixture
    def all_families(self, watched):
        """With a value of every label that appears only when there is something to tell."""
        watched.hold(0, {"a": 1})
        watched.close(0)
        watched.metrics.failed(TimeoutError(), writing=True)
        return families(watched.metrics, Situation(input_lag={"0": 7}))

    def test_there_are_those_of_the_contract_and_no_others(self, all_families):
        def labels(family):
            return {name for sample in family.samples for name in sample.labels} - {"le"}

        assert {name: (f.type, labels(f)) for name, f in all_families.items()} == DECLARED

    def test_each_says_in_one_line_what_it_means(self, all_families):
        for name, family in all_families.items():
            assert family.documentation.endswith("."), name
            assert "\n" not in family.documentation, name
            assert len(family.documentation.split()) >= 2, name

    def test_those_of_the_process_and_of_python_are_beside_them(self, watched):
        text = watched.metrics.text(Situation()).decode()
        others = {f.name for f in text_string_to_metric_families(text)}
        assert {"process_start_time_seconds", "process_resident_memory_bytes"} <= others
        assert {"python_info", "python_gc_collections"} <= others

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("events_total", OUTCOMES),
            ("rejected_total", REASONS),
            ("changes_total", {"new", "back", "gone"}),
            ("step_close_seconds_count", PHASES),
        ],
    )
    def test_labels_are_there_before_there_is_anything_to_count(self, watched, name, values):
        """Otherwise rate() does not see the first of each."""
        assert watched.shown(name) == dict.fromkeys(values, 0)

    def test_two_services_in_one_process_do_not_share_anything(self, watched):
        other = Watched()
        other.hold(0, {"a": 3})
        other.close(0)
        assert other.shown("hitter_estimate") == {"a": 3}
        assert watched.shown("hitter_estimate") == {}
        assert (other.shown("steps_closed_total"), watched.shown("steps_closed_total")) == (1, 0)

    def test_the_version_and_the_length_of_a_step_are_told(self):
        metrics = Metrics("1.2.3", StepTiming(60_000, lateness_ms=10_000), 1)
        [info] = families(metrics)["build_info"].samples
        assert (info.labels["version"], info.value) == ("1.2.3", 1)
        assert shown(metrics, "step_seconds") == 60
        assert shown(metrics, "lateness_seconds") == 10

    def test_before_anything_is_restored_all_of_it_can_be_read(self):
        metrics = new_metrics()
        assert shown(metrics, "ready") == 0
        assert shown(metrics, "steps_closed_total") == 0
        assert shown(metrics, "input_lag") == {}


class TestEvents:
    def test_accepted_ones_and_duplicates_are_counted_when_their_step_closes(self, watched):
        events = [("ann", "a", 0), ("ann", "b", 0), ("ann", "b", 0), ("bob", "a", 0)]
        later = [("ann", "a", 1), ("bob", "a", 1)]
        watched.read([record(user, item, step=step) for user, item, step in [*events, *later]])
        assert watched.shown("records_read_total") == 6
        assert watched.shown("events_total") == dict.fromkeys(OUTCOMES, 0)
        watched.close(0)
        counts = dict.fromkeys(OUTCOMES, 0) | {"accepted": 2, "duplicate": 2}
        assert watched.shown("events_total") == counts
        watched.close(1)
        assert watched.shown("events_total") == counts | {"accepted": 4}

    def test_late_ones_are_counted_when_they_are_read(self, watched):
        on_time, late = LENGTH + LATENESS - 1, LENGTH + LATENESS
        records = [record("ann", "a", time=0), record("bob", "a", time=0)]
        watched.read(records, arrivals=[on_time, late], now=late)
        assert watched.shown("events_total")["late"] == 1
        watched.close(0)
        assert watched.shown("events_total")["accepted"] == 1

    def test_rejected_ones_are_counted_with_their_reason(self, watched):
        records = [None, b"[]", b"no", b"no", record("ann", "a", time=AHEAD + 2)]
        watched.read(records, arrivals=[1] * 5, now=1)
        assert watched.shown("events_total")["rejected"] == 5
        assert {r: n for r, n in watched.shown("rejected_total").items() if n} == {
            "empty": 1,
            "not_an_object": 1,
            "not_json": 2,
            "time_ahead": 1,
        }
        assert watched.shown("records_read_total") == 5

    def test_ignored_ones_are_counted_when_they_are_read(self, watched):
        muted = new_intake(decoder=Muting(EventDecoder(TIMING), ["a"]))
        read = batch([record("ann", "a", time=0), record("ann", "b", time=0)])
        watched.metrics.received(read, muted.receive(read, None, None))
        assert watched.shown("events_total")["ignored"] == 1

    def test_those_that_are_read_again_after_a_restart_are_not_counted_again(self, watched):
        watched.hold(0, {"a": 3})
        watched.close(0)
        charges = watched.engine.counters.snapshot()
        state = EngineState(0, watched.engine.period, charges)
        again = Watched(engine=new_engine(state=state))
        again.hold(0, {"a": 3})
        again.hold(1, {"a": 3})
        again.close(1)
        assert again.shown("records_read_total") == 6
        assert again.shown("closed_step_events_total") == {"read_again": 3, "missed": 0}
        assert again.shown("events_total") == dict.fromkeys(OUTCOMES, 0) | {"accepted": 3}

    def test_those_whose_step_was_closed_without_them_are_missed(self, watched):
        watched.hold(0, {"a": 3})
        watched.close(0)
        watched.hold(0, {"a": 2})
        assert watched.shown("closed_step_events_total") == {"read_again": 0, "missed": 2}

    def test_what_is_in_memory_is_shown(self, watched):
        watched.hold(0, {"a": 3})
        watched.hold(5, {"a": 2})
        assert (watched.shown("open_steps"), watched.shown("buffered_events")) == (2, 5)
        watched.close(0)
        assert (watched.shown("open_steps"), watched.shown("buffered_events")) == (1, 2)
        watched.close(5)
        assert (watched.shown("open_steps"), watched.shown("buffered_events")) == (0, 0)


class TestSteps:
    def test_a_run_of_empty_steps_counts_with_all_of_them(self, watched):
        watched.hold(0, {"a": 2, "b": 1})
        watched.hold(50, {"a": 2})
        watched.close(60)
        assert watched.shown("steps_closed_total") == 61
        assert watched.shown("hitters_total") == 3

    def test_it_is_told_when_one_was_closed_last(self, watched):
        assert watched.shown("last_step_closed_timestamp_seconds") == 0
        before = time.time()
        watched.close(0)
        assert before <= watched.shown("last_step_closed_timestamp_seconds") <= time.time()

    def test_budgets_are_shown_as_they_are_used_up(self):
        watched = Watched(engine=started(contributions=2, period_steps=10))
        figures = []
        for step in range(4):
            watched.hold(step, {"a": 4 if step < 2 else 5})  # the fifth user comes late
            watched.close(step)
            names = ("users_charged", "users_exhausted", "exhausted_ratio")
            figures.append(tuple(watched.shown(name) for name in names))
        assert figures == [(4, 0, 0), (4, 4, 0), (5, 4, 0.8), (5, 5, 0.8)]
        watched.hold(4, {"a": 2})
        watched.close(4)
        assert watched.shown("exhausted_ratio") == 1, "of those who were there"
        watched.close(5)
        assert watched.shown("exhausted_ratio") == 0, "nobody was there"
        watched.close(10)
        assert (watched.shown("users_charged"), watched.shown("users_exhausted")) == (0, 0)

    def test_the_steps_until_budgets_start_anew_are_counted(self):
        watched = Watched(engine=started(period_steps=10))
        left = []
        for step in (0, 8, 9, 10):
            watched.close(step)
            left.append((watched.shown("period"), watched.shown("period_remaining_steps")))
        assert left == [(0, 9), (0, 1), (0, 0), (1, 9)]

    def test_the_terms_of_the_period_are_shown(self, watched):
        watched.close(0)
        period = watched.engine.period
        assert {name: watched.shown(name) for name in ("epsilon", "delta", "contributions")} == {
            "epsilon": 10.0,
            "delta": 0.01,
            "contributions": 2,
        }
        assert watched.shown("noise_scale") == period.plan.calibration.noise_scale
        assert watched.shown("threshold") == period.plan.threshold
        assert watched.shown("hitter_margin") == period.margin > 0

    def test_changed_terms_are_pending_until_the_next_period(self, watched):
        watched.close(0)
        assert watched.shown("terms_pending") == 0
        nobody = watched.engine.counters.snapshot()
        state = EngineState(0, watched.engine.period, nobody)
        changed = Watched(engine=new_engine(state=state, epsilon=5.0))
        assert (changed.shown("terms_pending"), changed.shown("epsilon")) == (1, 10)
        changed.close(100)
        assert (changed.shown("terms_pending"), changed.shown("epsilon")) == (0, 5)


class TestHitters:
    def test_only_the_current_ones_are_shown(self, watched):
        watched.hold(0, {"a": 5, "b": 3})
        watched.close(0)
        assert watched.shown("hitter_estimate") == {"a": 5, "b": 3}
        watched.hold(1, {"b": 4, "c": 1})
        watched.close(1)
        assert watched.shown("hitter_estimate") == {"b": 4, "c": 1}
        watched.close(2)
        assert watched.shown("hitter_estimate") == {}

    def test_each_has_its_interval(self, watched):
        watched.hold(0, {"a": 500, "b": 20})
        watched.close(0)
        ends = {
            item: watched.engine.period.interval(item, n) for item, n in (("a", 500), ("b", 20))
        }
        assert ends["a"] > ends["b"]
        assert watched.shown("hitter_low") == {item: low for item, (low, _) in ends.items()}
        assert watched.shown("hitter_high") == {item: high for item, (_, high) in ends.items()}

    def test_one_that_rests_is_shown_as_it_was_reported(self):
        watched = Watched(engine=started(refresh_steps=3, contributions=10))
        told = []
        for step, users in enumerate([5, 6, 7, 8, 0, 0, 0]):
            watched.hold(step, {"a": users})
            watched.close(step)
            told.append(watched.shown("hitter_estimate").get("a"))
        assert told == [5, 5, 5, 8, 8, 8, None]

    def test_one_that_lasts_is_shown_until_it_is_gone_and_only_its_values_are_reports(self):
        changes = {"attention": Attention.CHANGES, "value_every_steps": 4}
        watched = Watched(engine=started(calibration=Method.HORIZON, contributions=10, **changes))
        told = []
        for step, users in enumerate([5, 6, 7, 8, 0, 0]):
            watched.hold(step, {"a": users})
            watched.close(step)
            told.append(watched.shown("hitter_estimate").get("a"))
        assert told == [5, 6, 6, 8, None, None], "valued at once, after a step, and after two more"
        assert watched.shown("hitters_total") == 3
        assert watched.shown("changes_total") == {"new": 1, "back": 0, "gone": 1}

    def test_there_are_never_more_than_is_allowed(self):
        watched = Watched(new_metrics(most_items=3))
        for step in range(2):
            watched.hold(step, {f"{step}-{n}": n for n in range(1, 20)})
            watched.close(step)
            assert watched.shown("hitter_estimate") == {f"{step}-{n}": n for n in (17, 18, 19)}
        assert watched.shown("hitters_total") == 38

    def test_they_can_be_left_out(self):
        watched = Watched(new_metrics(most_items=0))
        watched.hold(0, {"a": 5})
        watched.close(0)
        assert watched.shown("hitter_estimate") == {}

    def test_hostile_items_are_read_as_they_are(self, watched):
        watched.hold(0, {item: 1 + n for n, item in enumerate(HOSTILE)})
        watched.close(0)
        assert watched.shown("hitter_estimate") == {item: 1 + n for n, item in enumerate(HOSTILE)}
        assert watched.shown("ready") == 0

    def test_those_of_the_past_are_shown_after_a_restart(self):
        period = Period.containing(0, terms(refresh_steps=2))
        reports = {0: {"old": 9}, 3: {"a": 5, "b": 1}, 4: {"b": 2, "c": 7}}
        history = [
            Decided(step, step, period, tuple(Hitter(*each) for each in items.items()))
            for step, items in reports.items()
        ]
        metrics = new_metrics()
        metrics.hitters.restored(published_before(history, 4, TIMING))
        assert shown(metrics, "hitter_estimate") == {"a": 5, "b": 2, "c": 7}
        # The broker went away during the start.
        metrics.hitters.restored(published_before(history, 4, TIMING))
        assert shown(metrics, "hitter_estimate") == {"a": 5, "b": 2, "c": 7}
        assert shown(metrics, "hitters_total") == 0, "they were counted when they were reported"
        metrics.hitters.restored(published_before([*history, Decided(9, 5, period)], 9, TIMING))
        assert shown(metrics, "hitter_estimate") == {}

    def test_a_past_that_is_empty_shows_nothing(self):
        metrics = new_metrics()
        metrics.hitters.restored([])
        assert shown(metrics, "hitter_estimate") == {}


class TestTimes:
    @pytest.mark.parametrize(
        ("phase", "writes", "publishes"),
        [
            (Phase.DECIDE, 0, 0),
            (Phase.APPEND, 1, 0),
            (Phase.PUBLISH, 0, 1),
            (Phase.SNAPSHOT, 1, 0),
        ],
    )
    def test_a_phase_is_timed_for_itself_and_for_what_it_is(self, phase, writes, publishes):
        metrics = new_metrics()
        metrics.timed(phase, 0.3)
        count, total = (shown(metrics, f"step_close_seconds_{n}") for n in ("count", "sum"))
        assert count == dict.fromkeys(PHASES, 0) | {phase.value: 1}
        assert total == dict.fromkeys(PHASES, 0) | {phase.value: 0.3}
        assert shown(metrics, "journal_write_seconds_count") == writes
        assert shown(metrics, "publish_seconds_count") == publishes

    def test_the_buckets_tell_a_millisecond_from_half_a_minute(self):
        metrics = new_metrics()
        metrics.timed(Phase.PUBLISH, 0.0005)
        metrics.timed(Phase.PUBLISH, 29)
        metrics.timed(Phase.PUBLISH, 31)
        buckets = shown(metrics, "publish_seconds_bucket")
        assert (buckets["0.001"], buckets["10.0"]) == (1, 1)
        assert (buckets["30.0"], buckets["+Inf"]) == (2, 3)

    async def test_a_run_times_every_phase_of_its_steps(self, tmp_path, monkeypatch):
        monkeypatch.setattr(SnapshotRule, "LEAST_BYTES", 0)
        source = tmp_path / "events.jsonl"
        events = [record(f"u{n}", "a", step=step) for step in (0, 1) for n in range(2_000)]
        source.write_bytes(b"\n".join([*events, record("u", "b", step=2)]))
        settings = load({"privacy": {"key": KEY.hex()}})
        metrics = new_metrics()
        job = LineJob(str(source), journal=tmp_path / "journal", sink=tmp_path / "hitters")
        await run_lines(job, settings, watcher=metrics)
        phases = shown(metrics, "step_close_seconds_count")
        assert (phases["decide"], phases["append"]) == (3, 3)
        assert phases["publish"] == 3, "two steps with a hitter, and the quiet one at the end"
        assert phases["snapshot"] >= 1
        assert all(shown(metrics, "step_close_seconds_sum").values())
        writes = shown(metrics, "journal_write_seconds_count")
        assert writes == phases["append"] + phases["snapshot"]
        assert shown(metrics, "publish_seconds_count") == phases["publish"]


class TestErrors:
    def test_they_are_counted_by_kind(self):
        metrics = new_metrics()
        for error in (TimeoutError(), OSError("a"), OSError("b")):
            metrics.failed(error, writing=False)
        assert shown(metrics, "kafka_errors_total") == {"TimeoutError": 1, "OSError": 2}
        assert shown(metrics, "journal_errors_total") == 0

    def test_those_of_writing_are_told_apart(self):
        metrics = new_metrics()
        metrics.failed(OSError(), writing=True)
        assert shown(metrics, "kafka_errors_total") == {"OSError": 1}
        assert shown(metrics, "journal_errors_total") == 1


class TestRestoring:
    def test_how_long_the_ledger_took_to_read_is_shown(self):
        metrics = new_metrics()
        metrics.restored(3.5)
        assert shown(metrics, "restore_seconds") == 3.5


class TestSituation:
    def test_it_is_shown_as_of_the_moment_of_a_scrape(self):
        metrics = new_metrics()
        now = Situation(
            ready=True,
            watermark_lag_seconds=71.5,
            clock_skew_seconds=0.25,
            records_lost=4,
            input_lag={"0": 5, "1": 0},
        )
        assert shown(metrics, "ready", now) == 1
        assert shown(metrics, "watermark_lag_seconds", now) == 71.5
        assert shown(metrics, "clock_skew_seconds", now) == 0.25
        assert shown(metrics, "records_lost_total", now) == 4
        assert shown(metrics, "input_lag", now) == {"0": 5, "1": 0}
        assert shown(metrics, "ready", Situation()) == 0

    def test_lost_records_add_up_also_when_a_new_source_counts_from_0(self):
        metrics = new_metrics()
        told = [
            shown(metrics, "records_lost_total", Situation(records_lost=lost))
            for lost in (0, 4, 4, 6, 0, 3)
        ]
        assert told == [0, 4, 4, 6, 6, 9]
