"""Results in files: whole lines, each decision once, and nothing cut that is not ours."""

import json
import os
from pathlib import Path

import pytest

from streamer.errors import OutputError, PublishError, UnusableJournalError
from streamer.ledger.output_files import FileSink, check_writable
from streamer.stream.publication import Publication
from streamer.stream.records import ResultRecord, StepRecord

START, END = "1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z"


def publication(step, *items):
    results = [ResultRecord(step, START, END, item, 9, 2, 5, 1.0, 1e-6, 10, 0) for item in items]
    record = StepRecord(step=step, start=START, end=END, hitters=len(items), period=0)
    return Publication(step, tuple(results), (record,))


@pytest.fixture
def hitters(tmp_path):
    return tmp_path / "hitters.jsonl"


@pytest.fixture
def steps(tmp_path):
    return tmp_path / "steps.jsonl"


@pytest.fixture
def sink(hitters, steps):
    sink = FileSink(hitters, steps)
    yield sink
    sink.close()


def items_in(path):
    return [json.loads(line)["item"] for line in path.read_bytes().splitlines()]


class TestPublishing:
    async def test_hitters_and_steps_go_to_their_files(self, sink, hitters, steps):
        await sink.publish(publication(1, "a", "b\n\u2028"))
        await sink.publish(publication(2))
        assert items_in(hitters) == ["a", "b\n\u2028"]
        found = {"step": 1, "start": START, "end": END, "item": "a", "estimate": 9, "margin": 2}
        promised = {"epsilon": 1.0, "delta": 1e-6, "contributions": 10, "period": 0}
        first = json.loads(hitters.read_bytes().splitlines()[0])
        assert first == {**found, "threshold": 5, **promised}
        assert [json.loads(line) for line in steps.read_text().splitlines()] == [
            {"step": 1, "start": START, "end": END, "hitters": 2, "period": 0},
            {"step": 2, "start": START, "end": END, "hitters": 0, "period": 0},
        ]

    async def test_hitters_go_to_standard_output_without_a_file(self, capfd):
        sink = FileSink(None, None)
        await sink.publish(publication(1, "a"))
        await sink.publish(publication(2))
        sink.close()
        out = capfd.readouterr().out
        assert json.loads(out)["item"] == "a"
        assert sink.sizes() == {}

    async def test_what_is_there_is_kept(self, hitters):
        hitters.write_text("mine\n")
        sink = FileSink(hitters, None)
        await sink.publish(publication(1, "a"))
        sink.close()
        assert hitters.read_text().startswith("mine\n{")

    async def test_a_last_line_that_lacks_its_end_gets_one(self, hitters):
        hitters.write_text("mi")
        sink = FileSink(hitters, None)
        await sink.publish(publication(1, "a"))
        await sink.publish(publication(2, "b"))
        sink.close()
        first, *rest = hitters.read_text().splitlines()
        assert first == "mi"
        assert [json.loads(line)["item"] for line in rest] == ["a", "b"]

    async def test_a_write_that_fails_says_that_it_will_be_made_up_for(self):
        sink = FileSink(Path("/dev/full"), None)
        with pytest.raises(PublishError, match=r"No space left.*will be published"):
            await sink.publish(publication(1, "a"))
        sink.close()


class TestTakingBack:
    async def test_sizes_are_by_the_path_from_the_root(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        sink = FileSink(Path("h.jsonl"), Path("s.jsonl"))
        await sink.publish(publication(1))
        size = (tmp_path / "s.jsonl").stat().st_size
        assert sink.sizes() == {f"{tmp_path}/h.jsonl": 0, f"{tmp_path}/s.jsonl": size}
        sink.close()

    async def test_a_torn_publication_is_cut_off(self, sink, hitters, steps):
        await sink.publish(publication(1, "a"))
        known = Published(1, sink.sizes())
        before = hitters.read_bytes(), steps.read_bytes()
        await sink.publish(publication(2, "b", "c"))
        sink.take_back(known, torn=True)
        assert (hitters.read_bytes(), steps.read_bytes()) == before
        await sink.publish(publication(2, "b", "c"))
        assert items_in(hitters) == ["a", "b", "c"]

    async def test_results_that_the_journal_knows_nothing_of_are_refused(self, sink, hitters):
        await sink.publish(publication(1, "a"))
        known = Published(1, sink.sizes())
        await sink.publish(publication(2, "b"))
        content = hitters.read_bytes()
        with pytest.raises(UnusableJournalError, match=r"hitters\.jsonl.*journal is older"):
            sink.take_back(known, torn=False)
        assert hitters.read_bytes() == content

    @pytest.mark.parametrize("torn", [True, False])
    async def test_nothing_is_cut_that_is_not_longer_or_not_known(self, sink, hitters, torn):
        await sink.publish(publication(1, "a"))
        content = hitters.read_bytes()
        sink.take_back(Published(1, {"/another/file": 0}), torn)
        sink.take_back(Published(1, sink.sizes()), torn)
        sink.take_back(Published(1, {str(hitters): 10**6}), torn)
        assert hitters.read_bytes() == content

    async def test_a_device_is_written_and_has_no_size(self):
        sink = FileSink(Path(os.devnull), None)
        await sink.publish(publication(1, "a"))
        assert sink.sizes() == {}
        sink.take_back(Published(0, {os.devnull: 0}), torn=True)
        sink.close()

    async def test_a_pipe_is_written_and_has_no_size(self):
        reading, writing = os.pipe()
        sink = FileSink(Path(f"/dev/fd/{writing}"), None)
        await sink.publish(publication(1, "a"))
        assert sink.sizes() == {}
        sink.close()
        os.close(writing)
        with os.fdopen(reading) as pipe:
            assert json.loads(pipe.read())["item"] == "a"


class TestChecking:
    def test_nothing_is_made(self, tmp_path):
        check_writable(tmp_path / "new")
        check_writable(Path(os.devnull))
        assert os.listdir(tmp_path) == []

    def test_a_directory_is_refused(self, tmp_path):
        with pytest.raises(OutputError, match="is a directory: name a file"):
            check_writable(tmp_path)

    def test_a_missing_directory_is_refused(self, tmp_path):
        with pytest.raises(OutputError, match="no is not a directory"):
            check_writable(tmp_path / "no" / "out")

    def test_a_name_that_is_too_long_is_refused(self, tmp_path):
        with pytest.raises(OutputError, match="cannot be written"):
            check_writable(tmp_path / ("x" * 300))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_file_that_may_not_be_written_is_refused(self, tmp_path):
        path = tmp_path / "out"
        path.touch(0o400)
        with pytest.raises(OutputError, match="permission denied"):
            check_writable(path)

    def test_opening_what_cannot_be_written_is_one_sentence(self, tmp_path):
        with pytest.raises(OutputError, match="cannot be written: No such file"):
            FileSink(tmp_path / "no" / "out", None)


def test_results_are_no_programs(sink, hitters, steps):
    assert not any(path.stat().st_mode & 0o111 for path in (hitters, steps))
