"""Lines of a file or a pipe become batches; line numbers are those of an editor, from 0."""

import gzip
import io
import os
import sys
import threading
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import InputError
from streamer.lines.source import (
    PARTITION,
    LineSplitter,
    check_packed,
    open_lines,
    read_batches,
)

LONGEST = 100


def read(stream, longest=LONGEST):
    """All records with their offsets."""
    found = []
    for batch in read_batches(stream, longest):
        assert batch.partition == PARTITION
        assert batch.arrivals is None
        found += zip(batch.offsets.tolist(), batch.records, strict=True)
    return found


def lines_of(content, longest=LONGEST):
    return read(io.BytesIO(content), longest)


class Pipe(io.BytesIO):
    """Hands over a few bytes at a time."""

    def read1(self, size=-1):
        return super().read1(7)


@pytest.mark.parametrize("content", [b'{"user":"u"}\n', b"\x1f"])
def test_a_file_that_is_not_gzipped_is_refused_before_anything_is_made(tmp_path, content):
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"source is .*events\.jsonl\.gz: it is not gzipped"):
        check_packed(str(path))


class TestLines:
    def test_they_are_numbered_from_zero(self):
        assert lines_of(b"a\nb\nc\n") == [(0, b"a"), (1, b"b"), (2, b"c")]

    def test_nothing_is_no_line(self):
        assert lines_of(b"") == []
        assert lines_of(b"\n\r\n \t\n") == []

    def test_blank_lines_are_left_out_and_counted(self):
        assert lines_of(b"\n\na\n  \n\r\nb\n") == [(2, b"a"), (5, b"b")]

    def test_the_last_one_may_lack_its_end(self):
        assert lines_of(b"a\nb") == [(0, b"a"), (1, b"b")]

    def test_carriage_returns_are_blanks_of_json(self):
        assert lines_of(b"{}\r\n{}\r\n") == [(0, b"{}\r"), (1, b"{}\r")]

    def test_other_ends_of_lines_are_content(self):
        content = "a\u2028b\x85c\x0bd".encode()
        assert lines_of(content + b"\n") == [(0, content)]

    def test_they_may_lie_across_blocks(self):
        lines = [bytes([97 + number]) * number for number in range(1, 20)]
        assert read(Pipe(b"\n".join(lines))) == list(enumerate(lines))

    @pytest.mark.parametrize("stream", [io.BytesIO, Pipe])
    def test_a_long_one_is_cut_and_still_too_long(self, stream):
        content = b"x" * 10 + b"\n" + b"y" * 11 + b"\n" + b"z" * 5000 + b"\nw"
        found = read(stream(content), longest=10)
        assert found == [(0, b"x" * 10), (1, b"y" * 11), (2, b"z" * 11), (3, b"w")]

    def test_an_endless_one_is_not_kept(self):
        splitter, block = LineSplitter(LONGEST), b"x" * 1000
        tracemalloc.start()
        try:
            for _ in range(1000):
                assert splitter.feed(block) == []
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert kept < 100 * LONGEST
        assert splitter.end() == [b"x" * (LONGEST + 1)]

    @given(content=st.binary(max_size=60), cuts=st.lists(st.integers(0, 60)))
    def test_where_blocks_are_cut_does_not_matter(self, content, cuts):
        splitter = LineSplitter(8)
        places = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
        blocks = [content[a:b] for a, b in pairwise(places)]
        found = [line for block in blocks for line in splitter.feed(block)] + splitter.end()
        whole = content.split(b"\n")
        wanted = whole if whole[-1] else whole[:-1]
        assert found == [line[:9] for line in wanted]


class TestOpening:
    def test_a_file(self, tmp_path):
        path = tmp_path / "events.jsonl"
        path.write_bytes(b"a\nb\n")
        source = open_lines(str(path))
        assert source.size == 4
        assert read(source.stream) == [(0, b"a"), (1, b"b")]
        assert source.position == 4
        source.close()
        assert source.stream.closed

    def test_a_packed_file_and_how_much_of_it_is_read(self, tmp_path):
        path = tmp_path / "events.jsonl.gz"
        path.write_bytes(gzip.compress(b"a\nb\n") + gzip.compress(b"c\n"))
        source = open_lines(str(path))
        assert source.size == path.stat().st_size
        assert read(source.stream) == [(0, b"a"), (1, b"b"), (2, b"c")]
        assert source.position == source.size
        source.close()
        assert source.raw.closed

    def test_a_packed_file_that_is_cut_off_is_one_sentence(self, tmp_path):
        path = tmp_path / "events.jsonl.gz"
        path.write_bytes(gzip.compress(os.urandom(5000))[:-20])
        source = open_lines(str(path))
        with pytest.raises(InputError, match="cannot read the source any further"):
            read(source.stream)
        source.close()

    @pytest.mark.parametrize(
        "content",
        [b"not packed\n", gzip.compress(b"a\n", mtime=0)[:-8] + b"12345678"],
        ids=["not packed", "a wrong checksum"],
    )
    def test_a_file_that_is_not_well_packed_is_one_sentence(self, tmp_path, content):
        path = tmp_path / "events.jsonl.gz"
        path.write_bytes(content)
        source = open_lines(str(path))
        with pytest.raises(InputError, match="cannot read the source any further"):
            read(source.stream)
        source.close()

    def test_a_missing_file_is_one_sentence(self, tmp_path):
        with pytest.raises(InputError, match=r"no\.jsonl: No such file or directory"):
            open_lines(str(tmp_path / "no.jsonl"))

    def test_a_directory_is_one_sentence(self, tmp_path):
        (tmp_path / "d.jsonl").mkdir()
        with pytest.raises(InputError, match="Is a directory"):
            open_lines(str(tmp_path / "d.jsonl"))

    @pytest.mark.parametrize("name", ["events.csv", "events", "events.gz", "jsonl"])
    def test_other_kinds_of_files_are_refused_by_their_names(self, tmp_path, name):
        (tmp_path / name).touch()
        with pytest.raises(InputError, match=r"name a \.jsonl or \.jsonl\.gz file"):
            open_lines(str(tmp_path / name))

    def test_a_named_pipe_has_no_size(self, tmp_path):
        path = tmp_path / "pipe.jsonl"
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(b"a\nb\n",))
        writer.start()
        source = open_lines(str(path))
        assert source.size is None
        assert read(source.stream) == [(0, b"a"), (1, b"b")]
        source.close()
        writer.join()
        assert source.raw.closed

    def test_standard_input_stays_open(self, monkeypatch):
        stdin = io.TextIOWrapper(io.BytesIO(b"a\n"))
        monkeypatch.setattr(sys, "stdin", stdin)
        source = open_lines("-")
        assert source.size is None
        assert read(source.stream) == [(0, b"a")]
        source.close()
        assert not stdin.buffer.closed

    def test_a_pipe_hands_over_what_is_there(self):
        reading, writing = os.pipe()
        os.write(writing, b"a\nb")
        with os.fdopen(reading, "rb") as stream:
            batches = read_batches(stream, LONGEST)
            assert next(batches).records == [b"a"]
            os.write(writing, b"c\n")
            assert next(batches).records == [b"bc"]
            os.close(writing)
            assert list(batches) == []
