"""Several watchers, and several audiences, hear everything, one after the other."""

import inspect

import pytest

from streamer.stream.publication import Audience, Audiences
from streamer.stream.watching import Phase, Watcher, Watchers

RAW = {
    "restored": (0.5,),
    "started": ("engine",),
    "received": ("batch", "received"),
    "timed": (Phase.APPEND, 0.5),
    "closed": ("decided", "engine"),
    "failed": (TimeoutError(), True),
}
PUBLIC = {
    "restored": (["publication"],),
    "started": ("terms",),
    "published": ("publication",),
}
KINDS = [(Watcher, Watchers, RAW), (Audience, Audiences, PUBLIC)]
CASES = [
    pytest.param(one, several, event, heard, id=f"{one.__name__}-{event}")
    for one, several, events in KINDS
    for event, heard in events.items()
]


def noting(kind, events, name, story):
    """One of this kind that notes what it hears, with its own name."""

    class Noting(kind):
        def __getattribute__(self, event):
            if event not in events:
                return super().__getattribute__(event)
            return lambda *heard: story.append((name, event, heard))

    return Noting()


@pytest.mark.parametrize(("one", "several", "events"), KINDS)
def test_all_that_can_be_heard_is_known_here(one, several, events):
    del several
    methods = {name for name, _ in inspect.getmembers(one, inspect.isfunction)}
    assert methods == set(events)


@pytest.mark.parametrize(("one", "several", "event", "heard"), CASES)
def test_each_hears_everything_in_their_order(one, several, event, heard):
    story = []
    both = several([noting(one, {event}, name, story) for name in ("first", "second")])
    getattr(both, event)(*heard)
    assert story == [("first", event, heard), ("second", event, heard)]


@pytest.mark.parametrize(("one", "several", "event", "heard"), CASES)
def test_they_may_be_several_again(one, several, event, heard):
    story = []
    inner = several((noting(one, {event}, "inner", story),))
    getattr(several((one(), inner)), event)(*heard)
    assert story == [("inner", event, heard)]


@pytest.mark.parametrize(("one", "several", "event", "heard"), CASES)
def test_who_is_interested_in_nothing_does_nothing(one, several, event, heard):
    assert getattr(several(()), event)(*heard) is None
    assert getattr(one(), event)(*heard) is None


def test_the_phases_are_those_of_closing_a_step():
    assert [phase.value for phase in Phase] == ["decide", "append", "publish", "snapshot"]
