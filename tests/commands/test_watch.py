"""`streamer watch` of a live page, as a user runs it; of Kafka, see tests/kafka."""

import asyncio
import signal

import pytest

from tests.commands.processes import ALTERNATE, NORMAL, Process
from tests.web.making import new_stream, new_stream_with_states, serving

HOSTILE = "crash\x1b[2J\n[red]\u202e"
SHOWN = "crash\\x1b[2J\\n[red]\\u202e"


async def reading(process, pattern):
    """In a thread: the server runs in the loop of the test."""
    return await asyncio.to_thread(process.until, pattern)


async def ended(process):
    return await asyncio.to_thread(process.ended)


@pytest.mark.slow
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
async def test_plain_lines_in_a_pipe_from_the_past_on_and_a_clean_end(which):
    stream = new_stream()
    stream.step(crash=50)
    async with serving(stream.board) as server:
        with Process("watch", server.url) as watch:
            await reading(watch, r"00:00:02 UTC +50 users \(46–54\) +crash\n")
            await reading(watch, "guarantee: ε = 10, δ = 0.01 ")
            stream.report({HOSTILE: 4_321})
            found = await reading(watch, r"00:00:03 UTC +4,321 users \(4,317–4,325\) +(.*)\n")
            assert found[1] == SHOWN
            watch.signal(which)
            assert await ended(watch) == (0, "")
            assert watch.written.startswith(f"streamer watch: {server.url}\n")
            assert watch.written.replace("\n", "").isprintable()


@pytest.mark.slow
async def test_a_live_view_at_a_terminal():
    stream = new_stream()
    async with serving(stream.board) as server:
        with Process("watch", server.url, terminal=(80, 24)) as watch:
            await reading(watch, "waiting for the first step to close")
            stream.report({HOSTILE: 4_321})
            await reading(
                watch, r"4,321 \(4,317–4,325\) +● █+ +new 1s +" + r"crash\\x1b\[2J\\n\[red\]"
            )
            watch.press_ctrl_c()
            assert await ended(watch) == (0, "")
            view, _, after = watch.written.partition(NORMAL)
            assert ALTERNATE in view
            assert ALTERNATE not in after
            assert "truth" not in watch.text.lower()


@pytest.mark.slow
async def test_it_shows_what_is_new_what_lasts_and_what_is_gone():
    stream = new_stream_with_states()
    async with serving(stream.board) as server:
        with (
            Process("watch", server.url) as lines,
            Process("watch", server.url, terminal=(80, 24)) as view,
        ):
            await reading(view, "waiting for the first step to close")
            await reading(lines, "that an item is still there is free")
            stream.step(crash=500)
            await reading(lines, r"00:00:02 UTC +500 users \(436–564\) +new +crash\n")
            await reading(view, r"500 \(436–564\) +● █+ +new 1s +crash")
            for _ in range(5):
                stream.step()
            await reading(view, r"500 \(436–564\) +5s ago +→ █+ +for 6s +crash")
            stream.report({}, gone=["crash"])
            await reading(lines, r"00:00:08 UTC +gone after 6s +crash\n")
            await reading(view, r"500 \(436–564\) +6s ago +✕ █+ +gone 0s +crash")
            assert lines.text.count("crash\n") == 2


@pytest.mark.slow
def test_at_a_terminal_too_a_mistake_is_one_sentence_below_what_was_there():
    with Process("watch", "http://127.0.0.1:1", terminal=(80, 24)) as watch:
        code, complaint = watch.ended()
    assert code == 2
    assert complaint.splitlines() == [
        "streamer: http://127.0.0.1:1 cannot be watched: nothing answers at this address; is it "
        "running?"
    ]
    assert watch.written.count(ALTERNATE) == watch.written.count(NORMAL)


@pytest.mark.slow
async def test_it_waits_for_a_server_that_goes_away_and_goes_on():
    stream = new_stream()
    stream.step(crash=50)
    async with serving(stream.board) as server:
        with Process("watch", f"127.0.0.1:{server.port}") as watch:
            await reading(watch, "50 users ")
            stream.board.end()
            await server.stop()
            await reading(watch, "waiting: ")
            stream.board.ended = False
            stream.step(crash=51)
            async with serving(stream.board, port=server.port):
                await reading(watch, "51 users ")


@pytest.mark.slow
async def test_it_ends_when_nobody_reads_any_more():
    stream = new_stream()
    stream.step(crash=50)
    async with serving(stream.board) as server:
        with Process("watch", server.url) as watch:
            await reading(watch, "50 users ")
            watch.stop_reading()
            stream.step(crash=51)
            assert await ended(watch) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://127.0.0.1:1"], ["http://127.0.0.1:1 cannot be watched", "is it running?"]),
        (["http://nowhere.invalid"], ["nowhere.invalid", "no such host"]),
        (["ftp://host"], ["'ftp://host' is not an address"]),
        ([], ["URL|kafka"]),
        (["http://127.0.0.1:1", "--config", "x.yaml"], ["--config is only for kafka"]),
        (["kafka", "--config", "no.yaml"], ["config is no.yaml"]),
    ],
)
def test_mistakes_are_one_sentence(run, arguments, words):
    result = run("watch", *arguments)
    assert (result.code, result.out) == (2, "")
    [sentence] = result.err.splitlines()
    assert all(word in sentence for word in words), sentence


def test_no_broker_is_one_sentence(run, monkeypatch):
    monkeypatch.setenv("STREAMER_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1")
    result = run("watch", "kafka")
    assert (result.code, result.out) == (2, "")
    assert result.err == "streamer: no broker answers at 127.0.0.1:1\n"
