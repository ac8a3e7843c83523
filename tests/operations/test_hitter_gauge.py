"""Which hitters the metrics show: the largest, and none for longer than it is true."""

from hypothesis import given
from hypothesis import strategies as st

from streamer.monitors.seam import Hitter
from streamer.monitors.states import State
from streamer.operations.hitter_gauge import HitterGauge
from streamer.operations.instruments import Instruments
from streamer.stream.decided import Decided
from streamer.stream.periods import Period
from streamer.stream.publication import Recorder, published_before
from tests.stream.making import MINUTES, terms

PERIOD = Period.containing(0, terms())
START = MINUTES.start(0) / 1000
BY_ITEM = ("estimate", "low", "high", "since_seconds", "growth", "info")
NEW, ONGOING, BACK, GONE = State.NEW, State.ONGOING, State.BACK, State.GONE


class Process:
    """Publishes decisions, and shows them in its metrics."""

    def __init__(self, most=100, link_template=None):
        self.instruments = Instruments()
        self._gauge = HitterGauge(self.instruments, MINUTES, most, link_template)
        self._recorder = Recorder(MINUTES, -1)

    def restore(self, history):
        """What was published before this start."""
        published = history[-1].step
        self._gauge.restored(published_before(history, published, MINUTES))
        self._recorder.recorded = published

    def after(self, *decisions):
        """The estimates after these decisions."""
        for decided in decisions:
            if decided.hitters:
                publication = self._recorder.with_results(decided)
            else:
                publication = self._recorder.without_results(decided.step, decided.period)
            self._recorder.recorded = decided.step
            self._gauge.published(publication)
        return self.by_item("estimate")

    def by_item(self, name):
        return {labels["item"]: value for labels, value in self._samples(f"hitter_{name}")}

    @property
    def changes(self):
        return {
            labels["state"]: value for labels, value in self._samples("changes") if labels and value
        }

    @property
    def items(self):
        """How many are public, and how many of them are shown."""
        [(_, current)] = self._samples("hitters_current")
        [(_, shown)] = self._samples("hitters_shown")
        return current, shown

    @property
    def links(self):
        return {labels["item"]: labels["link"] for labels, _ in self._samples("hitter_info")}

    def _samples(self, name):
        [family] = getattr(self.instruments, name).collect()
        return [(sample.labels, sample.value) for sample in family.samples]


def decided(step, reports, refresh_steps=1, first=None):
    """Reports of attention every_step, as 0.1.0 has them."""
    period = Period.containing(0, terms(refresh_steps=refresh_steps))
    hitters = tuple(Hitter(item, estimate) for item, estimate in sorted(reports.items()))
    return Decided(step, step if first is None else first, period, hitters)


def said(step, **items):
    """What a step of attention changes says: by item its state, since when, and its value."""
    hitters = [
        Hitter(item, estimate, state, since, step)
        for item, (state, since, estimate) in sorted(items.items())
    ]
    return Decided(step, step, PERIOD, tuple(hitters))


class TestEveryStep:
    def test_without_a_rest_they_are_those_of_the_last_step(self):
        process = Process()
        assert process.after(decided(1, {"a": 3, "b": 4})) == {"a": 3, "b": 4}
        assert process.after(decided(2, {"b": 2})) == {"b": 2}
        assert process.after(decided(3, {})) == {}
        assert process.items == (0, 0)

    def test_a_run_of_empty_steps_ends_them(self):
        process = Process()
        process.after(decided(1, {"a": 3}, refresh_steps=5))
        assert process.after(decided(5, {}, refresh_steps=5, first=2)) == {"a": 3}
        assert process.after(decided(9, {}, refresh_steps=5, first=6)) == {}

    def test_the_rest_is_that_of_the_period_in_which_it_was_reported(self):
        process = Process()
        process.after(decided(99, {"a": 3}, refresh_steps=3))
        process.after(decided(100, {"b": 4}, refresh_steps=1))
        assert process.after(decided(101, {}, refresh_steps=1)) == {"a": 3}
        assert process.after(decided(102, {}, refresh_steps=1)) == {}


class TestChanges:
    def test_the_last_value_is_shown_with_its_interval_until_the_item_is_gone(self):
        process = Process()
        shown = [
            process.after(step)
            for step in (
                said(1, a=(NEW, 1, 500)),
                said(2, a=(ONGOING, 1, None)),
                said(3, a=(ONGOING, 1, 700)),
                said(4, a=(ONGOING, 1, None)),
                said(5, a=(GONE, 1, None)),
            )
        ]
        assert shown == [{"a": 500}, {"a": 500}, {"a": 700}, {"a": 700}, {}]
        for name in BY_ITEM:
            assert process.by_item(name) == {}

    def test_the_interval_is_that_of_the_value(self):
        process = Process()
        process.after(said(1, a=(NEW, 1, 500)), said(2, a=(ONGOING, 1, None)))
        low, high = PERIOD.interval("a", 500)
        assert (process.by_item("low"), process.by_item("high")) == ({"a": low}, {"a": high})

    def test_since_is_the_start_of_the_stretch(self):
        process = Process()
        process.after(said(1, a=(NEW, 1, 500)), said(2, a=(ONGOING, 1, None), b=(NEW, 2, 400)))
        assert process.by_item("since_seconds") == {"a": START + 60, "b": START + 120}
        process.after(said(3, a=(GONE, 1, None)), said(4, a=(BACK, 4, 600)))
        assert process.by_item("since_seconds") == {"a": START + 240}

    def test_beginnings_and_ends_are_counted(self):
        process = Process()
        process.after(said(1, a=(NEW, 1, 500), b=(NEW, 1, 400)))
        process.after(said(2, a=(ONGOING, 1, None), b=(GONE, 1, None)))
        assert process.changes == {"new": 2, "gone": 1}
        process.after(said(3, a=(ONGOING, 1, None), b=(BACK, 3, 450)))
        process.after(said(4, a=(GONE, 1, None), b=(GONE, 3, None)))
        assert process.changes == {"new": 2, "back": 1, "gone": 3}

    def test_growth_is_shown_while_the_item_is_public(self):
        process = Process()
        low, high = PERIOD.interval("a", 900)[0], PERIOD.interval("a", 500)[1]
        process.after(said(1, a=(NEW, 1, 500)))
        assert process.by_item("growth") == {"a": 0}
        process.after(said(2, a=(ONGOING, 1, 900)), said(3, a=(ONGOING, 1, None)))
        assert process.by_item("growth") == {"a": low - high}
        process.after(said(4, a=(GONE, 1, None)), said(5, a=(BACK, 5, 1_500)))
        assert process.by_item("growth") == {"a": 0}, "it is compared within a stretch"


class TestRestart:
    HISTORY = (
        said(1, a=(NEW, 1, 500), b=(NEW, 1, 400)),
        said(2, a=(ONGOING, 1, 900), b=(GONE, 1, None)),
        said(3, a=(ONGOING, 1, None)),
    )

    def test_it_shows_the_same_as_before(self):
        before, after = Process(), Process()
        before.after(*self.HISTORY)
        after.restore(self.HISTORY)
        for name in BY_ITEM:
            assert after.by_item(name) == before.by_item(name)
        assert after.items == before.items == (1, 1)
        assert after.by_item("growth")["a"] > 0

    def test_what_was_published_before_is_not_counted_again(self):
        process = Process()
        process.restore(self.HISTORY)
        assert process.changes == {}
        process.after(said(4, a=(GONE, 1, None)))
        assert process.changes == {"gone": 1}

    def test_in_the_same_process_nothing_counts_twice_and_nothing_is_missed(self):
        """The broker goes away, and what became of a transaction is known only afterwards."""
        process = Process()
        process.after(*self.HISTORY[:2])
        process.restore(self.HISTORY[:2])
        assert process.changes == {"new": 2, "gone": 1}
        process.restore((*self.HISTORY, said(4, a=(GONE, 1, None))))
        assert process.changes == {"new": 2, "gone": 2}
        assert process.by_item("estimate") == {}


class TestTheLimit:
    def test_the_largest_are_shown_and_among_equals_the_first_by_name(self):
        process = Process(most=2)
        assert process.after(decided(1, {"d": 5, "c": 5, "b": 5, "a": 1})) == {"b": 5, "c": 5}

    def test_all_are_counted(self):
        process = Process(most=2)
        process.after(said(1, a=(NEW, 1, 3), b=(NEW, 1, 4), c=(NEW, 1, 5)))
        assert (process.items, process.changes) == ((3, 2), {"new": 3})
        for name in ("estimate", "low", "high", "since_seconds", "growth"):
            assert process.by_item(name).keys() == {"b", "c"}

    def test_one_that_had_no_room_is_shown_when_there_is_some(self):
        process = Process(most=1)
        assert process.after(decided(1, {"small": 2}, refresh_steps=3)) == {"small": 2}
        assert process.after(decided(2, {"large": 9}, refresh_steps=1)) == {"large": 9}
        assert process.after(decided(3, {}, refresh_steps=1)) == {"small": 2}

    def test_one_that_is_not_shown_is_still_followed(self):
        process = Process(most=1)
        process.after(said(1, a=(NEW, 1, 500), b=(NEW, 1, 9_000)))
        process.after(said(2, a=(ONGOING, 1, 900), b=(GONE, 1, None)))
        assert process.by_item("growth")["a"] > 0


class TestLinks:
    def test_the_item_is_encoded_into_the_template(self):
        process = Process(link_template="https://crashes.example.com/{item}?q={item}&all=1")
        process.after(decided(1, {'a/b?c=d&e f%"\n💥': 5}))
        encoded = "a%2Fb%3Fc%3Dd%26e%20f%25%22%0A%F0%9F%92%A5"
        link = f"https://crashes.example.com/{encoded}?q={encoded}&all=1"
        assert list(process.links.values()) == [link]

    def test_they_are_limited_like_the_items(self):
        process = Process(most=1, link_template="https://crashes.example.com/{item}")
        process.after(decided(1, {"a": 5, "b": 6}))
        assert process.links == {"b": "https://crashes.example.com/b"}

    def test_without_a_template_they_are_empty(self):
        process = Process()
        process.after(decided(1, {"a": 5}))
        assert process.links == {"a": ""}


REPORTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9), max_size=4)


@given(
    st.lists(st.tuples(st.integers(1, 4), REPORTS), max_size=12),
    st.integers(1, 4),
    st.integers(0, 4),
)
def test_they_are_exactly_the_last_reports_that_are_not_over(steps, refresh_steps, most):
    process = Process(most)
    last, step = {}, 0
    for length, reports in steps:
        step += length
        shown = process.after(decided(step, reports, refresh_steps))
        last |= {item: (step, estimate) for item, estimate in reports.items()}
        valid = {item: n for item, (at, n) in last.items() if step < at + refresh_steps}
        largest = sorted(valid, key=lambda item: (-valid[item], item))[:most]
        assert shown == {item: valid[item] for item in largest}
        intervals = {item: PERIOD.interval(item, valid[item]) for item in largest}
        assert process.by_item("low") == {item: low for item, (low, _) in intervals.items()}
        assert process.by_item("high") == {item: high for item, (_, high) in intervals.items()}
        assert process.items == (len(valid), len(largest))
