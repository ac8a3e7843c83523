"""Attention: what is asked in a step, and what the answers make of the items."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.monitors import attention
from streamer.monitors.attention import Agenda, Changes, EveryStep, Pace, value_is_due
from streamer.monitors.seam import Hitter
from streamer.monitors.states import State
from streamer.privacy.terms import Attention


def changes(value_every_steps=60, **more):
    return Changes(Pace(Attention.CHANGES, value_every_steps=value_every_steps, **more))


def every_step(refresh_steps=1):
    return EveryStep(Pace(refresh_steps=refresh_steps))


def states(hitters):
    return {hitter.item: hitter.state.value for hitter in hitters}


class TestValueSchedule:
    def test_the_time_between_two_values_doubles_up_to_the_limit(self):
        due = [age for age in range(400) if value_is_due(age, 60)]
        assert due == [1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]

    def test_with_a_limit_of_one_step_every_step_asks_for_the_value(self):
        assert [age for age in range(5) if value_is_due(age, 1)] == [1, 2, 3, 4]

    @given(most=st.integers(1, 300))
    def test_gaps_double_until_they_are_the_limit_and_stay_there(self, most):
        due = [0, *(age for age in range(3_000) if value_is_due(age, most))]
        gaps = [after - before for before, after in pairwise(due)]
        assert gaps[0] == 1
        assert all(after == min(2 * before, most) for before, after in pairwise(gaps))


class TestChanges:
    def test_an_item_is_new_then_ongoing_then_gone_then_back(self):
        rule = changes()
        assert rule.note(5, {"a": 700}, ()) == (Hitter("a", 700, State.NEW, 5, 5),)
        assert rule.note(6, {"a": 720}, ()) == (Hitter("a", 720, State.ONGOING, 5, 6),)
        assert rule.note(7, {}, ()) == (Hitter("a", None, State.ONGOING, 5, 6),)
        assert rule.note(8, {}, {"a"}) == (Hitter("a", None, State.GONE, 5, 6),)
        assert rule.note(9, {}, ()) == ()
        assert rule.note(12, {"a": 800}, ()) == (Hitter("a", 800, State.BACK, 12, 12),)

    def test_hitters_are_ordered_by_item(self):
        rule = changes()
        rule.note(0, {"b": 1, "c": 2}, ())
        assert states(rule.note(1, {"d": 1, "a": 2}, {"c"})) == {
            "a": "new",
            "b": "ongoing",
            "c": "gone",
            "d": "new",
        }

    def test_a_public_item_gets_one_question_in_every_step(self):
        rule = changes(value_every_steps=4)
        rule.note(10, {"a": 700}, ())
        asked = []
        for step in range(11, 24):
            agenda = rule.agenda(step)
            assert not agenda.resting
            assert [*agenda.values, *agenda.checks] == ["a"]
            asked += [step] * len(agenda.values)
            rule.note(step, {}, ())
        assert asked == [11, 13, 17, 21]

    def test_a_value_question_without_an_answer_is_no_news(self):
        rule = changes()
        rule.note(10, {"a": 700}, ())
        assert rule.agenda(11) == Agenda(values=["a"], checks=[])
        assert states(rule.note(11, {}, ())) == {"a": "ongoing"}
        assert rule.agenda(12) == Agenda(values=[], checks=["a"])

    def test_what_is_gone_is_quiet_again(self):
        rule = changes()
        rule.note(0, {"a": 700}, ())
        assert rule.asks_unheld
        rule.note(1, {}, {"a"})
        assert not rule.asks_unheld
        assert rule.agenda(2) == Agenda(values=[], checks=[])

    def test_the_items_that_are_public_longest_lose_their_place(self):
        rule = changes(most_public=3)
        rule.note(0, {"d": 1}, ())
        rule.note(1, {"b": 1, "c": 1}, ())
        # All of them have an answer in this step; d and b are dropped after it.
        assert states(rule.note(2, {"x": 9, "a": 9}, ())) == {
            "a": "new",
            "b": "ongoing",
            "c": "ongoing",
            "d": "ongoing",
            "x": "new",
        }
        assert rule.agenda(3).named == ["a", "x", "c"]
        assert states(rule.note(3, {"d": 7}, ()))["d"] == "back"

    def test_an_item_that_was_long_gone_is_new(self, monkeypatch):
        monkeypatch.setattr(attention, "REMEMBERED_STEPS", 50)
        rule = changes()
        rule.note(0, {"a": 700, "b": 700}, ())
        rule.note(1, {}, {"a", "b"})
        assert states(rule.note(51, {"a": 1}, ())) == {"a": "back"}
        assert states(rule.note(52, {"b": 1}, ()))["b"] == "new"

    def test_a_bounded_number_of_items_is_remembered(self, monkeypatch):
        monkeypatch.setattr(attention, "MOST_REMEMBERED", 2)
        rule = changes()
        for step, item in enumerate("abc"):
            rule.note(2 * step, {item: 1}, ())
            rule.note(2 * step + 1, {}, {item})
        assert states(rule.note(9, {"a": 1, "b": 1, "c": 1}, ())) == {
            "a": "new",
            "b": "back",
            "c": "back",
        }


class TestEveryStep:
    def test_an_item_that_is_reported_whenever_it_is_asked_about_is_ongoing(self):
        rule = every_step(refresh_steps=3)
        assert rule.note(5, {"a": 700}, ()) == (Hitter("a", 700, State.NEW, 5, 5),)
        assert rule.note(8, {"a": 720}, ()) == (Hitter("a", 720, State.ONGOING, 5, 8),)
        assert rule.note(12, {"a": 720}, ()) == (Hitter("a", 720, State.BACK, 12, 12),)

    def test_it_rests_after_a_report(self):
        rule = every_step(refresh_steps=3)
        rule.note(5, {"a": 700}, ())
        assert [set(rule.agenda(step).resting) for step in (6, 7, 8)] == [{"a"}, {"a"}, set()]

    def test_nothing_is_asked_about_that_nobody_holds(self):
        rule = every_step()
        rule.note(5, {"a": 700}, ())
        assert not rule.asks_unheld
        assert rule.agenda(6).named == []


ANSWERS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcde"), st.integers(1, 9)),
        st.sets(st.sampled_from("abcde")),
        st.integers(1, 3),
    ),
    max_size=40,
)


@pytest.mark.parametrize("rule", [lambda: changes(4), lambda: every_step(3)])
@given(answers=ANSWERS, cut=st.integers(0, 40))
def test_a_restored_rule_goes_on_as_the_one_that_was_never_stopped(rule, answers, cut):
    """Whatever the answers were, and wherever it stops: only what was published is needed."""
    always, again, said, step = rule(), None, [], 0
    for number, (reported, gone, passed) in enumerate(answers):
        step += passed
        if number == cut:
            again = rule()
            for each in said:
                again.restore(*each)
        agenda = always.agenda(step)
        possible = {item: value for item, value in reported.items() if item not in agenda.checks}
        answer = (step, possible, gone & set(agenda.checks))
        if again is not None:
            assert again.agenda(step) == agenda
            assert again.note(*answer) == always.note(*answer)
        else:
            said.append((step, always.note(*answer)))
