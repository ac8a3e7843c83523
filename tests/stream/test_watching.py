"""Several watchers are told of everything, one after the other."""

import inspect

import pytest

from streamer.stream.watching import NOBODY, Phase, Watcher, Watchers

TOLD = {
    "restored": ([], 7),
    "started": ("engine",),
    "received": ("batch", "received"),
    "timed": (Phase.APPEND, 0.5),
    "closed": ("decided", "engine"),
    "published": ("publication",),
    "failed": (TimeoutError(), True),
}


class Noting(Watcher):
    """Notes what it is told, with its own name."""

    def __init__(self, name, story):
        self._name, self._story = name, story

    def __getattribute__(self, name):
        if name not in TOLD:
            return super().__getattribute__(name)
        return lambda *told: self._story.append((self._name, name, told))


def test_all_that_a_watcher_can_be_told_is_known_here():
    methods = {name for name, _ in inspect.getmembers(Watcher, inspect.isfunction)}
    assert methods == set(TOLD)


@pytest.mark.parametrize("event", TOLD)
def test_each_is_told_of_everything_in_their_order(event):
    story = []
    watchers = Watchers((Noting("first", story), Noting("second", story)))
    getattr(watchers, event)(*TOLD[event])
    assert story == [("first", event, TOLD[event]), ("second", event, TOLD[event])]


@pytest.mark.parametrize("event", TOLD)
def test_watchers_may_be_several_again(event):
    story = []
    getattr(Watchers((NOBODY, Watchers((Noting("inner", story),)))), event)(*TOLD[event])
    assert story == [("inner", event, TOLD[event])]


@pytest.mark.parametrize("event", TOLD)
def test_who_is_interested_in_nothing_does_nothing(event):
    assert getattr(Watchers(()), event)(*TOLD[event]) is None
    assert getattr(NOBODY, event)(*TOLD[event]) is None


def test_the_phases_are_those_of_closing_a_step():
    assert [phase.value for phase in Phase] == ["decide", "append", "publish", "snapshot"]
