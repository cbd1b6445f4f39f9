"""Sets of the messages of clients: by service, by group, by the daemon view that ordered them, by session.

In:        the messages of one run, each with its own bit.
Out:       ClientSets.
Not here:  who delivered what (history.py), judgement.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from covey.drivers.simulation.checkers.clients.lives import ClientMessage
from covey.drivers.simulation.checkers.lives import CAUSAL, RELIABLE, union
from covey.drivers.simulation.checkers.sets import MessageSets, union_by


class ClientSets(MessageSets[ClientMessage]):
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
    def from_outside(self) -> int:
        """The messages with a destination group that their sender was not in."""
        sent = (message for message in self.by_bit if message.send is not None)
        return union(message.bit for message in sent if len(message.sent_in_stays) < len(message.groups))

    @cached_property
    def to_several(self) -> int:
        """The messages to more than one group."""
        return union(message.bit for message in self.by_bit if len(message.groups) > 1)

    @cached_property
    def earlier_in_session(self) -> dict[str, int]:
        """For each message, the earlier messages of its session that are reliable or stronger."""
        earlier: dict[str, int] = {}
        seen: dict[str, int] = defaultdict(int)
        for message in sorted(self.by_bit, key=lambda message: message.session_seq):
            earlier[message.name] = seen[message.sender]
            if message.strength >= RELIABLE:
                seen[message.sender] |= message.bit
        return earlier
