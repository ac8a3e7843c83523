"""Server-sent events are found however the bytes are cut, and their size is bounded."""

import pytest

from streamer.web.event_stream import Event, events_of


async def chunks_of(*parts):
    for part in parts:
        yield part


async def test_events_are_told_apart_however_they_are_cut():
    text = b'retry: 5\n\nid: 7\nevent: published\ndata: {"a":1}\n\nevent: reset\r\ndata: {}\r\n\r\n'
    expected = [Event("published", b'{"a":1}'), Event("reset", b"{}")]
    for size in range(1, len(text) + 1):
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        assert [event async for event in events_of(chunks_of(*parts))] == expected


async def test_an_event_without_an_end_is_given_up():
    with pytest.raises(ConnectionError, match="its response is too large"):
        [event async for event in events_of(chunks_of(b"data: ", b"x" * 100), most_bytes=100)]
