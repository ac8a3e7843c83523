"""Users as 64-bit pseudonyms under a secret key.

The state contains pseudonyms only: without the key, nobody can test whether a user is in it.
An id is hashed to 128 bits, and the hashes of a whole batch are encrypted as AES blocks; half
of each block is the pseudonym. Two ids that collide share one budget, which costs accuracy
but no privacy (docs/privacy.md, 10.1).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from xxhash import xxh3_128_digest

from streamer.errors import SettingError
from streamer.monitors.seam import Users

KEY_BYTES = 32


class Pseudonyms:
    """The pseudonyms of one key."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise SettingError(
                "key", f"{len(key)} bytes long", f"it must be {KEY_BYTES} bytes, as 64 hex digits"
            )
        # ECB is unsafe for messages. Here each block is a separate input to a pseudorandom
        # permutation, and equal ids must have equal pseudonyms.
        self._cipher = Cipher(algorithms.AES256(key), modes.ECB())  # noqa: S305
        check = hmac.digest(key, b"streamer: which key is this?", hashlib.sha256)
        self.fingerprint = check[:8].hex()
        """Identifies the key and reveals nothing else about it."""

    def of(self, ids: Sequence[str]) -> Users:
        """The pseudonym of each id."""
        hashes = b"".join([xxh3_128_digest(name.encode()) for name in ids])
        blocks = self._cipher.encryptor().update(hashes)
        return np.frombuffer(blocks, dtype="<u8")[::2].astype(np.uint64)
