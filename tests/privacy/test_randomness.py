"""Random bytes: fresh from the system in every call, repeatable only when seeded."""

import math
import os

import numpy as np
import pytest

from streamer.privacy import randomness
from streamer.privacy.randomness import SeededBytes, secure_bytes

AROUND_BULK = [0, 1, 15, 2046, 2047, 2048, 2049, 4096, 100_003]
BLOCK = 16
FALSE_ALARM = 1e-9


def blocks(data: bytes) -> set[bytes]:
    return {data[i : i + BLOCK] for i in range(0, len(data) - BLOCK + 1, BLOCK)}


def unevenly_spread(data: bytes) -> bool:
    """Whether some byte value is too rare or too frequent for uniform bytes.

    Chernoff: n·KL(seen share ‖ 1/256) exceeds c with probability at most 2e^-c. A union
    over the 256 values makes the false-alarm rate at most FALSE_ALARM, one in a billion.
    """
    size, fair = len(data), 1 / 256
    shares = np.bincount(np.frombuffer(data, dtype=np.uint8), minlength=256) / size
    some = np.maximum(shares, 1e-300)
    divergence = some * np.log(some / fair) + (1 - shares) * np.log((1 - shares) / (1 - fair))
    return bool(np.max(divergence) * size > math.log(2 * 256 / FALSE_ALARM))


@pytest.mark.parametrize("size", AROUND_BULK)
def test_secure_bytes_are_as_many_as_asked_for(size):
    data = secure_bytes(size)
    assert type(data) is bytes
    assert len(data) == size


# Two honest calls of 15 bytes or more agree with probability 2^-120 at most.
@pytest.mark.parametrize("size", [size for size in AROUND_BULK if size >= 15])
def test_no_two_calls_give_the_same_bytes(size):
    assert len({secure_bytes(size) for _ in range(20)}) == 20


# Honest blocks of 16 bytes collide with probability below 2^-95 here.
def test_blocks_repeat_neither_within_a_bulk_call_nor_between_two():
    first, second = secure_bytes(1 << 18), secure_bytes(1 << 18)
    assert len(blocks(first)) == len(first) // BLOCK
    assert not blocks(first) & blocks(second)


def test_a_key_that_is_used_twice_is_caught_by_its_repeated_blocks(monkeypatch):
    monkeypatch.setattr(randomness.os, "urandom", lambda size: b"k" * size)
    assert blocks(secure_bytes(4096)) & blocks(secure_bytes(8192))


@pytest.mark.parametrize(("size", "read"), [(0, 0), (2047, 2047), (2048, 32), (1 << 20, 32)])
def test_every_call_reads_the_system_afresh_and_bulk_calls_just_a_key(monkeypatch, size, read):
    asked = []

    def urandom(count, real=os.urandom):
        asked.append(count)
        return real(count)

    monkeypatch.setattr(randomness.os, "urandom", urandom)
    secure_bytes(size)
    secure_bytes(size)
    assert asked == [read, read]


@pytest.mark.parametrize("size", [2047, 1 << 22], ids=["system", "bulk"])
def test_every_byte_value_is_equally_frequent(size):
    assert not unevenly_spread(b"".join(secure_bytes(size) for _ in range((1 << 22) // size)))


def test_bytes_with_one_value_a_tenth_too_frequent_are_caught():
    data = np.frombuffer(SeededBytes(1)(1 << 22), dtype=np.uint8).copy()
    data[np.flatnonzero(data == 9)[::10]] = 0
    assert unevenly_spread(data.tobytes())


def test_the_same_seed_gives_the_same_bytes():
    one, other = SeededBytes(42), SeededBytes(42)
    assert [one(100), one(3), one(5000)] == [other(100), other(3), other(5000)]


def test_different_seeds_give_different_bytes():
    assert len({SeededBytes(seed)(64) for seed in range(100)}) == 100


def test_a_seeded_source_goes_on_and_does_not_start_again():
    source = SeededBytes(7)
    assert source(64) != source(64)


@pytest.mark.parametrize("size", AROUND_BULK)
def test_seeded_bytes_are_as_many_as_asked_for(size):
    data = SeededBytes(0)(size)
    assert type(data) is bytes
    assert len(data) == size
