"""Leaves out items that the settings mute, before they take one of a user's places in a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress

import numpy as np

from streamer.stream.decoding import Decoded, Decoder, Envelopes
from streamer.stream.moments import Moments

_ANYTHING = "*"
_REMEMBERED = 1 << 16


class Muting:
    """Implements `Decoder`: what another one decodes, without muted items.

    `patterns`: items, or beginnings of items if they end with *.
    """

    def __init__(self, decoder: Decoder, patterns: Sequence[str]) -> None:
        self._decoder = decoder
        exact = frozenset(each for each in patterns if not each.endswith(_ANYTHING))
        prefixes = tuple(each[:-1] for each in patterns if each.endswith(_ANYTHING))

        @lru_cache(_REMEMBERED)
        def is_kept(item: str) -> bool:
            return item not in exact and not item.startswith(prefixes)

        self._is_kept = is_kept

    def decode(
        self,
        records: Sequence[bytes | None],
        arrivals: Moments | None,
        envelopes: Envelopes | None = None,
    ) -> Decoded:
        decoded = self._decoder.decode(records, arrivals, envelopes)
        kept = list(map(self._is_kept, decoded.items))
        if all(kept):
            return decoded
        mask = np.array(kept, dtype=np.bool_)
        return replace(
            decoded,
            places=decoded.places[mask],
            users=list(compress(decoded.users, kept)),
            items=list(compress(decoded.items, kept)),
            times=decoded.times[mask],
            parts=None if decoded.parts is None else decoded.parts[mask],
            ignored=decoded.ignored + kept.count(False),
        )
