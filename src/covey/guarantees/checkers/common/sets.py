"""Sets of messages as bit sets in Python integers: which messages a set holds, and how to name them.

In:        the messages of one run, each with its own bit (lives.py assigns them).
Out:       MessageSets: sets by service, view, group, sender and session; the messages of a set; a set as text.
Not here:  who delivered what (history.py), judgement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import Generic, TypeVar

from covey.trace.record import SERVICES

from .lives import CAUSAL, RELIABLE, Message_co

Name = TypeVar("Name", bound=Hashable)


class MessageSets(Generic[Message_co]):
    """The messages of one run, by bit."""

    def __init__(self, by_bit: list[Message_co]) -> None:
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

    @cached_property
    def early(self) -> int:
        """Reliable and fifo messages: they may be delivered ahead of their place."""
        return self.at_least(RELIABLE) & ~self.at_least(CAUSAL)

    @cached_property
    def stamped_in(self) -> dict[str, int]:
        """The messages by the daemon view that ordered them."""
        return union_by((message.order_view, message.bit) for message in self.by_bit)

    def stamped_for(self, group: str, view: str) -> int:
        """The messages to this group that this daemon view ordered."""
        return self._stamped_for.get((group, view), 0)

    @cached_property
    def _stamped_for(self) -> dict[tuple[str, str], int]:
        return union_by(
            ((group, message.order_view), message.bit)
            for message in self.by_bit
            if message.order_view is not None
            for group in message.groups
        )

    @cached_property
    def sent_by(self) -> dict[str, int]:
        """The messages by the process that sent them."""
        return union_by((message.origin, message.bit) for message in self.by_bit)

    @cached_property
    def earlier_in_session(self) -> dict[str, int]:
        """For each message, the earlier messages of its session that are reliable or stronger, of all views."""
        earlier: dict[str, int] = {}
        seen: dict[str, int] = defaultdict(int)
        for message in sorted(self.by_bit, key=attrgetter("session_seq")):
            earlier[message.name] = seen[message.sender]
            if message.strength >= RELIABLE:
                seen[message.sender] |= message.bit
        return earlier

    def members_of(self, bits: int) -> Iterator[Message_co]:
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
