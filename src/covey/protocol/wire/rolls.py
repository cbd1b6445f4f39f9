"""The members of a group that grows, encoded once: each who joins is shown all that are there, and that costs a copy.

In:        the members at some time, then those who join, one by one.
Out:       frames with the members at any time since.
Not here:  who they are (groups/). When somebody leaves, another roll begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from covey.protocol.wire.session import text_piece, view_around, view_bytes, view_frame
from covey.protocol.wire.words import GroupView

CAME_MAX: Final = 256
"""So many join pieces are put together for each frame; then another roll begins with all of them."""


class Roll:
    def __init__(self, count: int, names: bytes) -> None:
        """So many members, and the encodings of their names."""
        self._count = count
        self._names = names
        self._came: list[bytes] = []
        self._sizes = [len(names)]

    @classmethod
    def of(cls, members: Iterable[str]) -> Self:
        pieces = [text_piece(name) for name in members]
        return cls(len(pieces), b"".join(pieces))

    @property
    def came(self) -> int:
        """Members that have come since it began."""
        return len(self._came)

    def add(self, name: str) -> Roll:
        """With one more who has come; another roll where this one has become long."""
        roll = self
        if len(self._came) == CAME_MAX:
            roll = Roll(self._count + CAME_MAX, b"".join((self._names, *self._came)))
        piece = text_piece(name)
        roll._came.append(piece)
        roll._sizes.append(roll._sizes[-1] + len(piece))
        return roll

    def whole(self, view: GroupView) -> Whole:
        """This view, with those who are members now."""
        return Whole(self, self.came, view_around(view))

    def size(self, whole: Whole) -> int:
        return view_bytes(whole.around, self._sizes[whole.came])

    def frame(self, whole: Whole) -> bytes:
        names = (self._names, *self._came[: whole.came])
        return view_frame(whole.around, self._count + whole.came, names, self._sizes[whole.came])


class Whole(NamedTuple):
    """A view with the members of a roll when so many had come."""

    roll: Roll
    came: int
    around: tuple[bytes, bytes]
    """What stands before and after them."""
