"""The history of the clients of one run, indexed once for all checkers: what spans several processes.

In:        the trace rows of one run, of which those of level C count here, and the History of its daemons.
Out:       ClientHistory: what daemons have too, what is owed to whom, and who came to rest in which groups.
Not here:  one process at a time (lives.py, walk.py), judgement (views.py, delivery.py, rest.py, order.py, services.py,
           changes.py, groups.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from covey.guarantees.checkers.common.history import BaseHistory
from covey.guarantees.checkers.common.lives import union
from covey.guarantees.checkers.common.sets import union_by
from covey.guarantees.checkers.history import History
from covey.trace.record import Row

from .daemons import Daemons
from .lives import (
    ClientLife,
    ClientMessage,
    GroupStay,
    Membership,
    collect_messages,
    split_into_lives,
)
from .owed import owed_to
from .walk import ClientWalk


class ClientHistory(BaseHistory[ClientMessage, GroupStay, ClientLife]):
    """Everything the checkers of level C ask of one run."""

    def __init__(self, run: str, rows: Iterable[Row], daemons: History) -> None:
        lives = split_into_lives(rows)
        super().__init__(run, lives, *collect_messages(lives.values()))
        self.daemons = Daemons(daemons)
        for life in lives.values():
            ClientWalk(life, self.messages).walk()
        self._passed_by: dict[str, int] = {}

    def stays(self) -> Iterator[GroupStay]:
        return (stay for life in self.lives.values() for stay in life.stays())

    def daemon_of(self, process: str) -> str:
        return self.lives[process].daemon

    def views_together(self, one: str, other: str, view: str) -> list[str]:
        return self.daemons.views_together(one, other, view)

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
    def owed_in(self) -> dict[Membership, int]:
        """By membership, the messages to its group that passed meanwhile."""
        return owed_to(self.lives, self, self.daemons)

    @cached_property
    def owed(self) -> dict[str, int]:
        """By client, the messages that passed while it was a member of one of their groups."""
        nothing = dict.fromkeys(self.lives, 0)
        return nothing | union_by((membership.process, bits) for membership, bits in self.owed_in.items())

    def passed_by(self, daemon: str) -> int:
        """The messages that this daemon delivered, by its own rows."""
        if daemon not in self._passed_by:
            passed = self.daemons.passed(daemon)
            self._passed_by[daemon] = union(one.bit for one in self.by_bit if one.place in passed) if passed else 0
        return self._passed_by[daemon]

    @cached_property
    def daemon_ranks(self) -> dict[str, tuple[int, ...]]:
        """The rank of each daemon view, as daemons or clients tell it."""
        return {stay.daemon_view: stay.rank[:-2] for stay in self.stays()} | self.daemons.ranks()

    def witnesses_of(self, stay: GroupStay, processes: Iterable[str]) -> list[tuple[ClientLife, Membership]]:
        """The witnesses that were in the group at this stay's view and never left it since."""
        lives = self.witnesses(processes)
        memberships = ((life, life.membership_at(stay.group, stay.rank)) for life in lives)
        return [(life, one) for life, one in memberships if one is not None and one.is_open]

    @cached_property
    def at_rest(self) -> dict[tuple[str, ...], list[GroupStay]]:
        """The stays in which witnesses came to rest, by the key of the view."""
        resting: dict[tuple[str, ...], list[GroupStay]] = defaultdict(list)
        for life in self.witnesses(self.lives):
            for membership in life.memberships:
                if membership.is_open:
                    resting[membership.stays[-1].key].append(membership.stays[-1])
        return dict(resting)
