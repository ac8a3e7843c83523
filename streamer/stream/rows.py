"""What a reader of a format makes of records: one row per event, one column per path.

A reader knows the format and nothing else; `mapped_events.py` judges the rows. A value is a
text, a number, a boolean, None if it is not there, a list of such values, or OTHER.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from streamer.stream.decoding import Rejection
from streamer.stream.paths import Place

OTHER: Final = object()
"""A value that is there and is of no use, such as an object."""


@dataclass(frozen=True, slots=True)
class Rows:
    """`places`: positions of the rows' records in the batch; `parts`: positions of the rows in
    their records, None if every record has one row."""

    places: NDArray[np.int64]
    columns: Mapping[Place, list[object]]
    rejections: list[Rejection]
    parts: NDArray[np.int64] | None = None

    def chosen(self, which: Sequence[bool]) -> Rows:
        """Some of the rows."""
        mask = np.array(which, dtype=np.bool_)
        columns = {place: list(compress(values, which)) for place, values in self.columns.items()}
        parts = None if self.parts is None else self.parts[mask]
        return Rows(self.places[mask], columns, self.rejections, parts)


class Reader(Protocol):
    def read(self, records: Sequence[bytes | None]) -> Rows:
        """The rows of these records, with a column for each path in the value of a record."""
