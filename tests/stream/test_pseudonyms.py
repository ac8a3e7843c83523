"""Pseudonyms against an independent computation, and what a key does to them."""

import hashlib
import hmac

import numpy as np
import pytest
import xxhash
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import SettingError
from streamer.stream.pseudonyms import Pseudonyms

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
MANY = 200_000
UNUSUAL = [
    "",
    " ",
    "\0",
    "a\0",
    "a",
    "A",
    "\n",
    "\r\n",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "用户",
    "مستخدم",
    "🦊",
    "👩‍👩‍👧",
    "\u202eabc",
    "\ufeff",
    "\U0010ffff",
    "x" * 1_000_000,
]


@pytest.fixture(scope="module")
def many():
    return Pseudonyms(KEY).of([f"u-{number}" for number in range(MANY)])


def by_hand(key, name):
    """The first half of one AES block, as a number with its lowest byte first.

    One block under CBC with a zero vector is the block cipher itself.
    """
    cipher = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    block = cipher.update(xxhash.xxh3_128(name.encode()).digest()) + cipher.finalize()
    return int.from_bytes(block[:8], "little")


@given(st.lists(st.text(), max_size=20), st.binary(min_size=32, max_size=32))
def test_they_are_half_of_the_encrypted_hash_of_each_id(names, key):
    assert Pseudonyms(key).of(names).tolist() == [by_hand(key, name) for name in names]


def test_they_never_change_between_versions():
    # Journals hold them: with other numbers every user would get a new budget.
    assert Pseudonyms(KEY).of(["u-17", ""]).tolist() == [
        10_264_190_613_000_529_333,
        8_678_580_704_590_284_811,
    ]


def test_one_key_gives_an_id_the_same_pseudonym_every_time():
    names = ["a", "b", "a"]
    first, second = Pseudonyms(KEY).of(names), Pseudonyms(KEY).of(names)
    assert first.tolist() == second.tolist()
    assert first[0] == first[2]


def test_an_id_has_the_same_pseudonym_in_any_batch():
    pseudonyms = Pseudonyms(KEY)
    together = pseudonyms.of(UNUSUAL).tolist()
    assert together == [int(pseudonyms.of([name])[0]) for name in UNUSUAL]


def test_another_key_gives_other_pseudonyms():
    names = [f"u-{number}" for number in range(1_000)]
    ours, others = Pseudonyms(KEY).of(names), Pseudonyms(OTHER_KEY).of(names)
    assert not set(ours.tolist()) & set(others.tolist())


def test_an_empty_batch_has_no_pseudonyms():
    users = Pseudonyms(KEY).of([])
    assert (len(users), users.dtype) == (0, np.uint64)


def test_ids_of_unusual_characters_are_told_apart():
    assert len(set(Pseudonyms(KEY).of(UNUSUAL).tolist())) == len(UNUSUAL)


def test_no_two_of_many_ids_collide(many):
    assert len(np.unique(many)) == MANY


def test_every_bit_is_set_in_half_of_many_pseudonyms(many):
    # Six standard deviations; key and ids are fixed, so this never changes by chance.
    shares = [np.count_nonzero(many >> np.uint64(bit) & np.uint64(1)) for bit in range(64)]
    assert max(abs(share - MANY / 2) for share in shares) < 6 * (MANY / 4) ** 0.5


def test_the_highest_bits_spread_evenly(many):
    buckets = np.bincount((many >> np.uint64(58)).astype(np.int64), minlength=64)
    assert abs(buckets - MANY / 64).max() < 6 * (MANY / 64) ** 0.5


class TestKey:
    @pytest.mark.parametrize("length", [0, 16, 24, 31, 33, 64])
    def test_a_key_of_another_length_is_refused(self, length):
        with pytest.raises(SettingError, match=f"key is {length} bytes long"):
            Pseudonyms(bytes(length))

    def test_the_refusal_does_not_show_the_key(self):
        with pytest.raises(SettingError) as refused:
            Pseudonyms(b"secret")
        assert "secret" not in str(refused.value)

    def test_a_key_has_one_fingerprint(self):
        assert Pseudonyms(KEY).fingerprint == Pseudonyms(KEY).fingerprint == "20975cecccaa2026"

    def test_keys_that_differ_in_one_bit_have_different_fingerprints(self):
        keys = [KEY] + [
            bytes([*KEY[:place], KEY[place] ^ 1, *KEY[place + 1 :]]) for place in range(32)
        ]
        assert len({Pseudonyms(key).fingerprint for key in keys}) == 33

    def test_the_fingerprint_is_64_bits_of_a_keyed_hash(self):
        whole = hmac.new(KEY, b"streamer: which key is this?", hashlib.sha256).hexdigest()
        assert Pseudonyms(KEY).fingerprint == whole[:16]

    def test_the_fingerprint_is_no_part_of_the_key(self):
        assert bytes.fromhex(Pseudonyms(KEY).fingerprint) not in KEY
