"""Lines into files and standard output."""

import gzip
import os
from pathlib import Path

import pytest

from streamer.errors import OutputError
from streamer.lines.output import LineOutput, check_file

LINES = [b'{"a":1}', "größe".encode()]
TEXT = b'{"a":1}\ngr\xc3\xb6\xc3\x9fe\n'


def written(path: Path) -> bytes:
    output = LineOutput("output", str(path))
    output.write(LINES)
    output.write([])
    output.write(LINES)
    output.close()
    return path.read_bytes()


def test_each_line_ends_with_a_newline(tmp_path):
    assert written(tmp_path / "a.jsonl") == TEXT + TEXT


def test_a_gzip_file_holds_the_same_and_neither_its_name_nor_the_time(tmp_path):
    packed = written(tmp_path / "a.jsonl.gz")
    assert gzip.decompress(packed) == TEXT + TEXT
    assert packed == written(tmp_path / "b.jsonl.gz")
    assert packed[3:8] == bytes(5)


def test_a_file_that_is_there_is_replaced(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"old" * 1000)
    assert written(tmp_path / "a.jsonl") == TEXT + TEXT


def test_a_dash_is_standard_output(capfdbinary):
    output = LineOutput("output", "-")
    output.write(LINES)
    output.close()
    assert capfdbinary.readouterr().out == TEXT


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_a_full_disk_is_one_sentence_about_the_option():
    output = LineOutput("truth", "/dev/full")
    output.write(LINES)
    with pytest.raises(OutputError, match="truth is /dev/full: No space left"):
        output.close()


def test_a_place_that_cannot_be_opened_is_one_sentence_about_the_option(tmp_path):
    with pytest.raises(OutputError, match=r"output is .*nowhere.*: No such file"):
        LineOutput("output", str(tmp_path / "nowhere" / "a.jsonl"))


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl.zip", "a", "jsonl", "a.gz"])
def test_a_file_of_another_kind_is_refused(tmp_path, name):
    with pytest.raises(
        OutputError, match=r"output is .*use a file ending in \.jsonl or \.jsonl\.gz"
    ):
        check_file("output", str(tmp_path / name))


def test_what_cannot_be_written_is_refused_before_it_is_touched(tmp_path):
    (tmp_path / "a.jsonl").mkdir()
    for place in (tmp_path / "a.jsonl", tmp_path / "nowhere" / "a.jsonl"):
        with pytest.raises(OutputError, match="cannot be written"):
            check_file("output", str(place))
    check_file("output", str(tmp_path / "b.jsonl"))
    assert not (tmp_path / "b.jsonl").exists()
