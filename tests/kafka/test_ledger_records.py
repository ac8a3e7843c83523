"""The parts of a journal in a topic: what is put in is had back, and damage is refused."""

import numpy as np
import pytest

from streamer.kafka import ledger_format_1, ledger_records
from streamer.kafka.ledger_records import (
    CHUNK_BYTES,
    CHUNK_USERS,
    LARGEST_STATE,
    LARGEST_STEP,
    PeriodRecord,
    StepEntry,
    charges_of,
    chunks_of,
    decode_hitters,
    encode,
    largest_result,
    step_records,
)
from streamer.monitors.counters import Charges
from streamer.monitors.seam import Hitter
from streamer.privacy.prices import FULL
from streamer.stream.item_list import MOST_BYTES, MOST_ITEMS, check_items
from streamer.stream.periods import Period
from streamer.stream.records import ResultRecord, StepRecord
from tests.stream.making import terms

LARGEST_RECORD = 1_000_000
"""Brokers take a little more than this by default."""
ENDS = [0, 1, 2**53 + 1, 2**63, 2**64 - 2, 2**64 - 1]


def users(*numbers):
    return np.array(numbers, dtype=np.uint64)


def units(*numbers):
    return np.array(numbers, dtype=np.uint16)


def listed(charges):
    return list(zip(charges.users.tolist(), charges.units.tolist(), strict=True))


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(ledger_records, "CHUNK_USERS", 3)


@pytest.mark.parametrize(
    ("number", "sizes"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3])]
)
def test_charges_come_back_as_they_were_in_parts(short, number, sizes):
    much = [1, 2**16 - 1, 3, 256, 50_000, 7][:number]
    parts = [charges_of(each) for each in chunks_of(Charges(users(*ENDS[:number]), units(*much)))]
    assert [len(part) for part in parts] == sizes
    assert [pair for part in parts for pair in listed(part)] == [*zip(ENDS, much, strict=False)]
    assert all((part.users.dtype, part.units.dtype) == (np.uint64, np.uint16) for part in parts)


def test_many_in_one_part_come_back_as_they_were():
    charges = Charges(users(*range(5, 105)), units(*range(1, 101)))
    [chunk] = chunks_of(charges)
    assert listed(charges_of(chunk)) == listed(charges)


def test_the_bytes_are_those_of_the_format_whatever_the_machine():
    # A mark, a checksum (CRC-32) of the rest, then 8 bytes a user, then 2 bytes of units each.
    both = b"unit" + bytes.fromhex("ac03606c 0201000000000000 0400000000000000 0100 0302")
    assert chunks_of(Charges(users(258, 4), units(1, 515))) == [both]


class TestFormat1:
    """Without a mark, and each charge is a full one."""

    STEP = bytes.fromhex("a0d37081 0201000000000000")
    SNAPSHOT = bytes.fromhex("ac03606c 0201000000000000 0400000000000000 0100 0302")

    def test_charges_are_full_ones(self):
        assert listed(ledger_format_1.charges_of(self.STEP)) == [(258, FULL)]
        assert listed(ledger_format_1.counters_of(self.SNAPSHOT)) == [(258, FULL), (4, 515 * FULL)]

    @pytest.mark.parametrize("chunk", [STEP, SNAPSHOT])
    def test_its_chunks_are_not_taken_for_those_of_today(self, chunk):
        with pytest.raises(ValueError, match="of another format"):
            charges_of(chunk)

    @pytest.mark.parametrize("number", range(1, 9))
    @pytest.mark.parametrize("read", [ledger_format_1.charges_of, ledger_format_1.counters_of])
    def test_those_of_today_are_not_taken_for_its_own(self, read, number):
        [chunk] = chunks_of(Charges.full(np.arange(number, dtype=np.uint64)))
        with pytest.raises(ValueError, match="checksum"):
            read(chunk)


def test_a_full_part_is_a_record_that_a_broker_takes():
    [chunk] = chunks_of(Charges.full(np.arange(CHUNK_USERS, dtype=np.uint64)))
    assert LARGEST_RECORD / 4 < len(chunk) < LARGEST_RECORD


def test_a_part_with_any_bit_flipped_is_refused():
    [chunk] = chunks_of(Charges(users(5, 6), units(2, 7)))
    for place in range(8 * len(chunk)):
        damaged = bytearray(chunk)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(ValueError, match=r"checksum|damaged"):
            charges_of(bytes(damaged))


def test_a_part_that_is_cut_off_anywhere_is_refused():
    [chunk] = chunks_of(Charges(users(5, 6), units(2, 7)))
    for length in range(len(chunk)):
        with pytest.raises(ValueError, match=r"checksum|damaged"):
            charges_of(chunk[:length])


def test_a_part_of_nobody_is_refused():
    # Nobody is never written, and four zeros are the checksum of nothing.
    with pytest.raises(ValueError, match="checksum"):
        charges_of(chunks_of(Charges.full(users(5)))[0][:4] + bytes(4))


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
    [charges] = chunks_of(Charges.full(np.arange(CHUNK_USERS, dtype=np.uint64)))
    _, records = step_records(step_entry(*["a" * 1_000] * 5_000, partitions=15_000))
    assert len(records) > 10
    assert CHUNK_BYTES < max(map(len, [charges, *records.values()])) <= LARGEST_STATE - 100


@pytest.mark.parametrize("item", ["\x01" * 1024, '"' * 1024, "ü" * 512, "\u2028" * 341, ""])
def test_published_records_are_not_larger_than_is_said(item):
    times = ("-9999-12-31T23:59:59.999Z",) * 2
    longest = {
        **dict.fromkeys(ResultRecord.__struct_fields__, -(2**63)),
        **dict.fromkeys(("start", "end"), times[0]),
        **dict.fromkeys(("epsilon", "delta"), 1.2345678901234567e-100),
    }
    result = encode(ResultRecord(**longest | {"item": item}))
    assert len(result) + len(item.encode()) <= largest_result(1024)
    assert len(encode(StepRecord(-(2**63), *times, 2**63, 2**63, -(2**63)))) <= LARGEST_STEP


def test_a_period_with_the_longest_list_of_declared_items_fits_into_a_record():
    items = [f"{number:04}" + "\x01" * 11 for number in range(MOST_ITEMS)]
    while len(encode(items)) > MOST_BYTES:
        items = items[:-100]
    listed = check_items("stream.items_file", "line", items, 100)
    period = Period.containing(0, terms(declared_items=listed))
    record = encode(PeriodRecord(period, "0" * 16))
    assert 0.9 * MOST_BYTES < len(record) < LARGEST_STATE
