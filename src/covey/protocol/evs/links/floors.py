"""A minimum over all members of a ring, carried by the token.

Each visit lowers the value to the visitor's own if that is less, and remembers who lowered it; only that member (or
anybody, when nobody has lowered it) may raise it again. One value may be too high for members not yet visited in this
rotation: the minimum of two consecutive visits is what every member has.
"""

from __future__ import annotations

from covey.protocol.evs.frames import Floor

NOBODY = -1


def visit(floor: Floor, mine: int, me: int, top: int) -> Floor:
    """The floor after a visit by a member whose own value is `mine`; `top` is the value when nothing is missing.

    >>> visit(Floor(5, NOBODY), 3, 1, 9), visit(Floor(3, 1), 7, 1, 9), visit(Floor(3, 1), 7, 2, 9)
    (Floor(value=3, modifier=1), Floor(value=7, modifier=1), Floor(value=3, modifier=1))
    """
    if mine < floor.value or floor.modifier in (me, NOBODY):
        return Floor(mine, NOBODY if mine >= top else me)
    return floor


def visited(floor: Floor, mine: int, me: int) -> int:
    """The value that a visit makes of it.

    >>> visited(Floor(5, NOBODY), 3, 1), visited(Floor(3, 2), 7, 1)
    (3, 3)
    """
    return mine if mine < floor.value or floor.modifier in (me, NOBODY) else floor.value


class TwoVisits:
    """The usable value: the minimum of the last two visits."""

    def __init__(self) -> None:
        self._last = 0
        self.usable = 0

    def see(self, value: int) -> int:
        self.usable = max(self.usable, min(self._last, value))
        self._last = value
        return self.usable

    def revise(self, value: int) -> None:
        """The value that the last visit leaves behind, where that has changed since. It was one visit."""
        self._last = value
