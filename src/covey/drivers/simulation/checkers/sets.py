"""Sets of messages as bit sets in Python integers: which messages a set holds, and how to name them.

In:        the messages of one run, each with its own bit (lives.py assigns them).
Out:       MessageSets: sets by service, the messages of a set, a set as text for people.
Not here:  who delivered what (history.py, clients/history.py), judgement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from typing import Generic, TypeVar

from covey.drivers.simulation.checkers.lives import AnyMessage
from covey.trace.record import SERVICES

Name = TypeVar("Name", bound=Hashable)


class MessageSets(Generic[AnyMessage]):
    """The messages of one run, by bit."""

    def __init__(self, by_bit: list[AnyMessage]) -> None:
        # The message of each bit, in all sets of messages of this run.
        self.by_bit = by_bit

    def at_least(self, strength: int) -> int:
        """The messages of this service or a stronger one."""
        return self._strength_sets[strength]

    @cached_property
    def _strength_sets(self) -> list[int]:
        exact = union_by((message.strength, message.bit) for message in self.by_bit)
        sets = [exact.get(strength, 0) for strength in range(len(SERVICES))]
        for strength in reversed(range(len(sets) - 1)):
            sets[strength] |= sets[strength + 1]
        return sets

    def members_of(self, bits: int) -> Iterator[AnyMessage]:
        """The messages of a set, in the order of their bits."""
        while bits:
            lowest = bits & -bits
            yield self.by_bit[lowest.bit_length() - 1]
            bits ^= lowest

    def names(self, bits: int, limit: int = 3) -> str:
        """A set of messages for people: the first few by name, the rest as a number."""
        total = bits.bit_count()
        shown = [message.name for message, _ in zip(self.members_of(bits), range(limit), strict=False)]
        return ", ".join(shown) + (f" and {total - limit} more" if total > limit else "")


def union_by(pairs: Iterable[tuple[Name | None, int]]) -> dict[Name, int]:
    """For each name the union of the sets that come with it; what comes without a name is left out.

    >>> union_by([("a", 1), (None, 2), ("a", 4)])
    {'a': 5}
    """
    unions: dict[Name, int] = defaultdict(int)
    for name, bits in pairs:
        if name is not None:
            unions[name] |= bits
    return dict(unions)
