"""Results in files: whole lines, each decision once, and nothing cut that is not ours."""

import json
import os
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from streamer.errors import OutputError, PublishError, UnusableJournalError
from streamer.ledger.output_files import OutputFiles, check_writable
from streamer.stream.publication import Publication
from streamer.stream.records import ResultRecord, StepRecord

START, END = "1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z"
NUMBERS = {"estimate": 9, "low": 7, "high": 11, "margin": 2, "threshold": 5}
NUMBERS |= {"epsilon": 1.0, "delta": 1e-6, "contributions": 10, "period": 0}


def publication(step, *items):
    results = [
        ResultRecord(**NUMBERS, step=step, start=START, end=END, item=item) for item in items
    ]
    record = StepRecord(step=step, start=START, end=END, hitters=len(items), period=0)
    return Publication(step, tuple(results), (record,))


@pytest.fixture
def hitters(tmp_path):
    return tmp_path / "hitters.jsonl"


@pytest.fixture
def steps(tmp_path):
    return tmp_path / "steps.jsonl"


@contextmanager
def opened(hitters, steps=None, torn=MappingProxyType({})):
    outputs = OutputFiles(hitters, steps)
    outputs.open(torn)
    try:
        yield outputs
    finally:
        outputs.close()


def items_in(path):
    return [json.loads(line)["item"] for line in path.read_bytes().splitlines()]


class TestWriting:
    def test_hitters_and_steps_go_to_their_files(self, hitters, steps):
        with opened(hitters, steps) as outputs:
            outputs.write(publication(1, "a", "b\n\u2028"))
            outputs.write(publication(2))
        assert items_in(hitters) == ["a", "b\n\u2028"]
        first = json.loads(hitters.read_bytes().splitlines()[0])
        assert first == {"step": 1, "start": START, "end": END, "item": "a", **NUMBERS}
        assert [json.loads(line) for line in steps.read_text().splitlines()] == [
            {"step": 1, "start": START, "end": END, "hitters": 2, "period": 0},
            {"step": 2, "start": START, "end": END, "hitters": 0, "period": 0},
        ]

    def test_hitters_go_to_standard_output_without_a_file(self, capfd):
        with opened(None) as outputs:
            outputs.write(publication(1, "a"))
            outputs.write(publication(2))
            assert outputs.sizes() == {}
        assert json.loads(capfd.readouterr().out)["item"] == "a"

    def test_what_is_there_is_kept(self, hitters):
        hitters.write_text("mine\n")
        with opened(hitters) as outputs:
            outputs.write(publication(1, "a"))
        assert hitters.read_text().startswith("mine\n{")

    def test_a_last_line_that_lacks_its_end_gets_one(self, hitters):
        hitters.write_text("mi")
        with opened(hitters) as outputs:
            outputs.write(publication(1, "a"))
            outputs.write(publication(2, "b"))
        first, *rest = hitters.read_text().splitlines()
        assert first == "mi"
        assert [json.loads(line)["item"] for line in rest] == ["a", "b"]

    def test_a_write_that_fails_says_that_it_will_be_made_up_for(self):
        with (
            opened(Path("/dev/full")) as outputs,
            pytest.raises(PublishError, match=r"No space left.*will be published"),
        ):
            outputs.write(publication(1, "a"))

    def test_results_are_no_programs(self, hitters, steps):
        with opened(hitters, steps):
            assert not any(path.stat().st_mode & 0o111 for path in (hitters, steps))


class TestSizes:
    def test_they_are_by_the_path_from_the_root(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with opened(Path("h.jsonl"), Path("s.jsonl")) as outputs:
            outputs.write(publication(1))
            size = (tmp_path / "s.jsonl").stat().st_size
            assert outputs.sizes() == {f"{tmp_path}/h.jsonl": 0, f"{tmp_path}/s.jsonl": size}

    def test_a_device_is_written_and_has_none(self):
        with opened(Path(os.devnull), torn={os.devnull: 0}) as outputs:
            outputs.write(publication(1, "a"))
            assert outputs.sizes() == {}

    def test_a_pipe_is_written_and_has_none(self):
        reading, writing = os.pipe()
        with opened(Path(f"/dev/fd/{writing}")) as outputs:
            outputs.write(publication(1, "a"))
            assert outputs.sizes() == {}
        os.close(writing)
        with os.fdopen(reading) as pipe:
            assert json.loads(pipe.read())["item"] == "a"


class TestCutting:
    def test_a_torn_publication_is_cut_off(self, hitters, steps):
        with opened(hitters, steps) as outputs:
            outputs.write(publication(1, "a"))
            known, before = outputs.sizes(), (hitters.read_bytes(), steps.read_bytes())
            outputs.write(publication(2, "b", "c"))
        with opened(hitters, steps, known) as outputs:
            assert (hitters.read_bytes(), steps.read_bytes()) == before
            outputs.write(publication(2, "b", "c"))
        assert items_in(hitters) == ["a", "b", "c"]

    @pytest.mark.parametrize("missing", [None, 0, 10**6])
    def test_nothing_is_cut_that_is_not_longer_or_not_known(self, hitters, missing):
        """`missing`: how much shorter than noted the file is; None: it was not noted."""
        with opened(hitters) as outputs:
            outputs.write(publication(1, "a"))
        content = hitters.read_bytes()
        known = {} if missing is None else {str(hitters): len(content) + missing}
        with opened(hitters, torn={"/another/file": 0, **known}):
            assert hitters.read_bytes() == content


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
            OutputFiles(tmp_path / "no" / "out", None).open({})

    @pytest.fixture
    def written(self, hitters):
        """An output with one result in it, and its size."""
        with opened(hitters) as outputs:
            outputs.write(publication(1, "a"))
            return OutputFiles(hitters, None), outputs.sizes()

    def test_results_that_the_ledger_knows_nothing_of_are_refused(self, written, hitters):
        outputs, known = written
        outputs.check_not_longer(known)
        content = hitters.read_bytes() + b"{}\n"
        hitters.write_bytes(content)
        with pytest.raises(UnusableJournalError, match=r"hitters\.jsonl.*journal is older"):
            outputs.check_not_longer(known)
        assert hitters.read_bytes() == content

    def test_a_file_that_is_shorter_or_not_known_is_not(self, written, hitters):
        outputs, _ = written
        outputs.check_not_longer({"/another/file": 0})
        outputs.check_not_longer({str(hitters): 10**6})

    def test_results_without_any_ledger_are_refused(self, written, hitters):
        outputs, _ = written
        with pytest.raises(UnusableJournalError, match=r"hitters\.jsonl.* --start-anew"):
            outputs.check_empty()

    def test_no_file_and_an_empty_one_are_no_results(self, hitters, steps):
        hitters.touch()
        OutputFiles(hitters, steps).check_empty()
        OutputFiles(Path(os.devnull), None).check_empty()
        assert not steps.exists()
