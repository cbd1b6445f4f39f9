"""Views of one group that follow one another, each as its difference from the one before, and each encoded once.

In:        changes, in their order.  Out: frames for any run of them.
Not here:  who is told which (groups/), what waits for whom (session/).
"""

from __future__ import annotations

from typing import NamedTuple

from covey.protocol.notices import Change
from covey.protocol.wire.session import change_piece, changes_bytes, changes_frame


class Run:
    def __init__(self, group: str) -> None:
        self.group = group
        self.changes: list[Change] = []
        self._pieces: list[bytes] = []
        self._made: tuple[int, int, bytes] = (0, 0, b"")

    def __len__(self) -> int:
        return len(self.changes)

    def add(self, change: Change) -> None:
        self.changes.append(change)
        self._pieces.append(change_piece(change))

    def size(self, start: int, stop: int) -> int:
        """The bytes of a frame with these views."""
        return changes_bytes(self.group, self._pieces[start:stop])

    def frame(self, start: int, stop: int) -> bytes:
        """Made once for all who are told the same, since they are told one after the other."""
        if self._made[:2] != (start, stop):
            self._made = (start, stop, changes_frame(self.group, self._pieces[start:stop]))
        return self._made[2]


class Views(NamedTuple):
    """The views `start` to `stop` of a run."""

    run: Run
    start: int
    stop: int

    @property
    def changes(self) -> list[Change]:
        return self.run.changes[self.start : self.stop]
