"""The parts of a journal in a topic: what is put in is had back, and damage is refused."""

import numpy as np
import pytest

from streamer.kafka import ledger_records
from streamer.kafka.ledger_records import (
    CHUNK_BYTES,
    CHUNK_USERS,
    LARGEST_STATE,
    LARGEST_STEP,
    StepEntry,
    chunks_of,
    counter_chunks,
    counters_of,
    decode_hitters,
    encode,
    largest_result,
    step_records,
    users_of,
)
from streamer.monitors.seam import Hitter
from streamer.stream.records import ResultRecord, StepRecord

LARGEST_RECORD = 1_000_000
"""Brokers take a little more than this by default."""
ENDS = [0, 1, 2**53 + 1, 2**63, 2**64 - 2, 2**64 - 1]


def users(*numbers):
    return np.array(numbers, dtype=np.uint64)


def charges(*numbers):
    return np.array(numbers, dtype=np.uint16)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(ledger_records, "CHUNK_USERS", 3)


@pytest.mark.parametrize(
    ("number", "sizes"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3])]
)
def test_users_come_back_as_they_were_in_parts(short, number, sizes):
    parts = [users_of(chunk) for chunk in chunks_of(users(*ENDS[:number]))]
    assert [len(part) for part in parts] == sizes
    assert [user for part in parts for user in part.tolist()] == ENDS[:number]
    assert all(part.dtype == np.uint64 for part in parts)


@pytest.mark.parametrize(
    ("number", "sizes"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3])]
)
def test_counters_come_back_as_they_were_in_parts(short, number, sizes):
    often = [1, 2**16 - 1, 3, 256, 10_000, 7][:number]
    parts = [counters_of(each) for each in counter_chunks(users(*ENDS[:number]), charges(*often))]
    assert [(len(who), len(times)) for who, times in parts] == [(size, size) for size in sizes]
    assert [user for who, _ in parts for user in who.tolist()] == ENDS[:number]
    assert [each for _, times in parts for each in times.tolist()] == often
    assert all((who.dtype, times.dtype) == (np.uint64, np.uint16) for who, times in parts)


def test_many_in_one_part_come_back_as_they_were():
    who, often = users(*range(5, 105)), charges(*range(1, 101))
    [chunk] = chunks_of(who)
    assert users_of(chunk).tolist() == who.tolist()
    [chunk] = counter_chunks(who, often)
    assert [part.tolist() for part in counters_of(chunk)] == [who.tolist(), often.tolist()]


def test_the_bytes_are_those_of_the_format_whatever_the_machine():
    # A checksum (CRC-32) of the rest, then 8 bytes a user, then 2 bytes a counter.
    assert chunks_of(users(258)) == [bytes.fromhex("a0d37081 0201000000000000")]
    both = bytes.fromhex("ac03606c 0201000000000000 0400000000000000 0100 0302")
    assert counter_chunks(users(258, 4), charges(1, 515)) == [both]


def test_a_full_part_is_a_record_that_a_broker_takes():
    [chunk] = counter_chunks(
        np.arange(CHUNK_USERS, dtype=np.uint64), np.ones(CHUNK_USERS, dtype=np.uint16)
    )
    assert LARGEST_RECORD / 4 < len(chunk) < LARGEST_RECORD


@pytest.mark.parametrize("read", [users_of, counters_of])
def test_a_part_with_any_bit_flipped_is_refused(read):
    [chunk] = chunks_of(users(5, 6)) if read is users_of else counter_chunks(users(5), charges(2))
    for place in range(8 * len(chunk)):
        damaged = bytearray(chunk)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(ValueError, match="checksum"):
            read(bytes(damaged))


@pytest.mark.parametrize("read", [users_of, counters_of])
def test_a_part_that_is_cut_off_anywhere_is_refused(read):
    [chunk] = chunks_of(users(5, 6)) if read is users_of else counter_chunks(users(5), charges(2))
    for length in range(len(chunk)):
        with pytest.raises(ValueError, match="checksum"):
            read(chunk[:length])


def test_a_part_of_nobody_is_refused():
    # Nobody is never written, and four zeros are the checksum of nothing.
    with pytest.raises(ValueError, match="checksum"):
        users_of(bytes(4))


def step_entry(*items, partitions=3):
    hitters = tuple(Hitter(item, -(2**63)) for item in items)
    offsets = {str(number): 2**63 - 1 for number in range(partitions)}
    return StepEntry(2**40, 2**40, 2**40, hitters, offsets, 2**40, 2**40)


def test_a_decision_that_fits_is_one_record():
    entry = step_entry("a", "b")
    assert step_records(entry) == (entry, {f"step/{2**40}": encode(entry)})


@pytest.mark.parametrize(
    ("item", "number", "chunk"),
    [
        ("a", 1, 100),
        ("a", 2, 100),
        ("a", 300, 100),
        ("🦜" * 700, 2_000, CHUNK_BYTES),
        ("\x01" * (1 << 16), 30, CHUNK_BYTES),
    ],
)
def test_hitters_come_back_in_their_order_from_parts_that_brokers_take(
    monkeypatch, item, number, chunk
):
    monkeypatch.setattr(ledger_records, "CHUNK_BYTES", chunk)
    entry = step_entry(*(item if place % 3 else "b" for place in range(number)))
    kept, records = step_records(entry)
    assert kept.hitters is None
    value, *parts = records.values()
    assert [*records] == [f"step/{2**40}", *kept.part_keys]
    assert value == encode(kept)
    assert tuple(hitter for part in parts for hitter in decode_hitters(part)) == entry.hitters
    assert max(map(len, parts)) <= chunk


def test_a_decision_without_hitters_is_never_split(monkeypatch):
    monkeypatch.setattr(ledger_records, "CHUNK_BYTES", 1)
    assert len(step_records(step_entry())[1]) == 1


def test_records_of_the_state_are_not_larger_than_is_said():
    [counters] = counter_chunks(
        np.arange(CHUNK_USERS, dtype=np.uint64), np.ones(CHUNK_USERS, dtype=np.uint16)
    )
    _, records = step_records(step_entry(*["a" * 1_000] * 5_000, partitions=15_000))
    assert len(records) > 10
    assert CHUNK_BYTES < max(map(len, [counters, *records.values()])) <= LARGEST_STATE - 100


@pytest.mark.parametrize("item", ["\x01" * 1024, '"' * 1024, "ü" * 512, "\u2028" * 341, ""])
def test_published_records_are_not_larger_than_is_said(item):
    times = ("-9999-12-31T23:59:59.999Z",) * 2
    numbers = (*[-(2**63)] * 3, *[1.2345678901234567e-100] * 2, *[2**63] * 2)
    result = encode(ResultRecord(-(2**63), *times, item, *numbers))
    assert len(result) + len(item.encode()) <= largest_result(1024)
    assert len(encode(StepRecord(-(2**63), *times, 2**63, 2**63, -(2**63)))) <= LARGEST_STEP
