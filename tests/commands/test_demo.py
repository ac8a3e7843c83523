"""`streamer demo`, as a user runs it: no Kafka, no arguments."""

import json
import signal
import socket
import urllib.request

import pytest

from streamer.fleet.endless import LASTING, OUTBREAKS
from tests.commands.processes import ALTERNATE, NORMAL, SHOW_CURSOR, Process

SMALL = ("--users", 50_000, "--port", 0)
INTERVAL = r"\([\d,]+–[\d,]+\)"
REPORT = rf"\d\d:\d\d:\d\d UTC +[\d,]+ users {INTERVAL} "


def asked(url, path):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}{path}", timeout=30) as answer:
        return answer.read().decode()


@pytest.mark.slow
class TestWithoutATerminal:
    def test_it_shows_hitters_here_and_on_the_page(self):
        with Process("demo", *SMALL, "--seed", 7) as demo:
            url = demo.until(r"Live page: (http://127.0.0.1:\d+) ")[1]
            demo.until(r"guarantee: ε = 1, δ = 1e-6 for everything one user does in 24 minutes")
            demo.until(r"ground truth of this simulation: outbreak of .* starts")
            told = {demo.until(rf"{REPORT} +new +(.*)\n")[1] for _ in range(2)}
            assert LASTING in told
            assert told - {LASTING} <= set(OUTBREAKS)
            assert "<title>" in asked(url, "/")
            assert json.loads(asked(url, "/api/truth"))["items"]
            hitters = json.loads(asked(url, "/api/hitters"))["hitters"]
            assert told <= {each["item"] for each in hitters}
            assert demo.text == demo.written

    def test_it_ends_by_itself_if_it_is_told_to(self):
        with Process("demo", *SMALL, "--seconds", 2) as demo:
            assert demo.ended() == (0, "")
            assert "records from 50,000 simulated users" in demo.text
            assert "streamer watch kafka" in demo.text

    @pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_ends_it_cleanly(self, which, tmp_path):
        with Process("demo", *SMALL, environment={"TMPDIR": str(tmp_path)}) as demo:
            demo.until("guarantee: ")
            assert list(tmp_path.iterdir())
            demo.signal(which)
            code, complaints = demo.ended()
            assert (code, complaints) == (0, "")
            assert "Next, with Kafka" in demo.text
            assert list(tmp_path.iterdir()) == []

    def test_it_ends_when_nobody_reads_any_more(self):
        with Process("demo", *SMALL) as demo:
            demo.until("guarantee: ")
            demo.stop_reading()
            assert demo.ended() == (0, "")

    def test_a_journal_that_is_kept_is_gone_on_with(self, tmp_path):
        journal = tmp_path / "journal"
        with Process("demo", *SMALL, "--journal", journal) as demo:
            first = demo.until(REPORT)[0]
            demo.signal(signal.SIGINT)
            assert demo.ended()[0] == 0
            assert f"    streamer demo --journal {journal}\n" in demo.text
        with Process("demo", *SMALL, "--journal", journal, "--seconds", 3) as demo:
            assert demo.ended()[0] == 0
            assert first in demo.text


@pytest.mark.slow
class TestAtATerminal:
    def test_the_view_is_live_and_the_terminal_is_left_as_it_was(self):
        with Process("demo", *SMALL, terminal=(80, 24)) as demo:
            demo.until(r"Live page: http://127\.0\.0\.1:\d+")
            demo.until(rf"[\d,]+ {INTERVAL} +● █+.? +new 1s ")
            demo.until("Ground truth, known only because this is a simulation")
            demo.until(r"outbreak +[\d,]+ users, shown as +[\d,]+")
            demo.press_ctrl_c()
            code, complaints = demo.ended()
            assert (code, complaints) == (0, "")
            view, _, after = demo.written.partition(NORMAL)
            assert ALTERNATE in view
            assert SHOW_CURSOR in demo.written
            assert "records from 50,000 simulated users" in after
            assert "streamer run --create-topics" in after
            assert "\x1b" not in after.replace(SHOW_CURSOR, "")

    def test_it_is_drawn_anew_when_the_window_changes(self):
        with Process("demo", *SMALL, terminal=(80, 24)) as demo:
            demo.until("Ground truth")
            demo.resize(50, 12)
            demo.until(r"streamer demo  50,000 simulated user… \d\d:")
            demo.resize(120, 40)
            demo.until("streamer demo  50,000 simulated users, steps of 1 second ")

    def test_a_terminal_that_can_do_nothing_gets_plain_lines(self):
        with Process(
            "demo", *SMALL, "--seconds", 1, terminal=(80, 24), environment={"TERM": "dumb"}
        ) as demo:
            assert demo.ended()[0] == 0
            assert "guarantee: " in demo.text
            assert "\x1b" not in demo.written


def refused(result, *words):
    assert (result.code, result.out) == (2, "")
    [sentence] = result.err.splitlines()
    assert sentence.startswith("streamer: ")
    assert all(word in sentence for word in words), sentence


class TestRefusals:
    def test_a_port_that_is_taken_is_named(self, run):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            refused(run("demo", "--port", port), f"port is {port}", "already in use", "--port")

    def test_an_address_of_another_machine(self, run):
        refused(run("demo", "--port", 0, "--host", "192.0.2.1"), "host is 192.0.2.1")

    @pytest.mark.parametrize(
        ("option", "value"),
        [("--users", 10), ("--users", "many"), ("--port", 70_000), ("--seconds", -1)],
    )
    def test_wrong_options(self, run, option, value):
        refused(run("demo", option, value), option.strip("-"))

    @pytest.mark.slow
    def test_a_journal_that_another_demo_uses(self, run, tmp_path):
        with Process("demo", *SMALL, "--journal", tmp_path) as demo:
            demo.until("guarantee: ")
            refused(run("demo", "--port", 0, "--journal", tmp_path), "in use by another process")
