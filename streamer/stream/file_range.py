"""Which events of a file are for this run, and, if the file is sorted, how far it is read.

A file has no arrivals and no clock, so all that says how far time has passed is users' own
event times. Two rules keep one user from deciding what counts of the others:

- A run that ends at a given step leaves the events of later steps for the next run. They
  close nothing.
- A sorted file is past a step once *two* users have an event after it. If the file without
  one user's events is sorted, no other event is ever late: of the two, one is another's.

An event of a step that the file is past is late. That is judged line by line, so it does not
depend on how much is read at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from streamer.stream.fate import Fates

_NONE = -1


class FileRange:
    """Judges the events of one run, in the order of its file."""

    def __init__(self, until: int | None = None, ordered: bool = False) -> None:
        """`until`: the first step that is not for this run; None: all are. `ordered`: the file is
        sorted by time, so steps can close while it is read."""
        self.until = until
        self._ordered = ordered
        self._furthest = _NONE
        """The latest step that any user has reached."""
        self._leader: str | None = None
        """The first user who reached it."""
        self._reached = _NONE
        """The latest step that two users have reached."""

    @property
    def passed(self) -> int | None:
        """The last step that a sorted file is past; None if there is none."""
        return None if self._reached == _NONE else self._reached - 1

    def judge(self, fates: Fates, users: Sequence[str]) -> Fates:
        """What becomes of the next events, given by step and user."""
        if self.until is not None:
            fates = replace(fates, left=fates.steps >= self.until)
        if self._ordered:
            fates = replace(fates, late=fates.late | self._late(fates, users))
        return fates

    def _late(self, fates: Fates, users: Sequence[str]) -> NDArray[np.bool_]:
        late = np.zeros(len(users), dtype=np.bool_)
        events = zip(fates.steps.tolist(), users, fates.left.tolist(), strict=True)
        for place, (step, user, left) in enumerate(events):
            if left or step == self._reached:
                continue
            if step < self._reached:
                late[place] = True
            elif user == self._leader:
                self._furthest = max(step, self._furthest)
            elif step <= self._furthest:
                self._reached = step
            else:
                self._reached, self._furthest, self._leader = self._furthest, step, user
        return late
