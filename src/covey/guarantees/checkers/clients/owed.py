"""Which messages a client must deliver if its daemon does: those that pass while it is a member of their group.

In:        memberships, the order of messages, and when daemons passed what.
Out:       for each membership the set of messages that are *owed* to the client, of all daemon views.
Not here:  whether its daemon has to deliver them at all: that is for the checkers to say.

A membership is a piece of the agreed order: from the join's place, or from the daemon view of the network view that
first showed it, to the leave's place. A causal, agreed or safe message is owed if its place is in that piece. A
reliable or fifo message is delivered early: it may pass a daemon before a join that is ordered below it takes effect,
and is then not owed to the joiner (M3). Only the daemon's own rows tell what passed first; without them such a message,
in the daemon view of the join, is taken as not owed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict

from covey.guarantees.checkers.common.lives import CAUSAL, RELIABLE, OrderKey
from covey.guarantees.checkers.common.sets import MessageSets

from .daemons import Daemons
from .lives import ClientLife, ClientMessage, GroupStay, Membership, TracedPlace


def owed_to(lives: dict[str, ClientLife], sets: MessageSets[ClientMessage], daemons: Daemons) -> dict[Membership, int]:
    ledger = _Ledger(sets, daemons)
    return {one: ledger.membership(life, one) for life in lives.values() for one in life.memberships}


class _Ledger:
    def __init__(self, sets: MessageSets[ClientMessage], daemons: Daemons) -> None:
        self.sets = sets
        self.daemons = daemons
        self.agreed_class = sets.at_least(CAUSAL)
        self.concerned = sets.at_least(RELIABLE)
        self.scale = _Scale(sets)

    def membership(self, life: ClientLife, membership: Membership) -> int:
        views = self.daemons.views(life.daemon) or views_seen(life)
        first, left = membership.stays[0], membership.left
        if first.daemon_view not in views:
            return 0
        owed = 0
        for view in views[views.index(first.daemon_view) :]:
            stamped = self.sets.stamped_for(membership.group, view) & self.concerned
            if stamped and view == first.daemon_view and first.change is not None:
                stamped &= self._after_join(life, first, stamped)
            if left is not None and view == left.view:
                return owed | stamped & self.scale.below(left)
            owed |= stamped
        return owed

    def _after_join(self, life: ClientLife, first: GroupStay, stamped: int) -> int:
        """Of the messages of the daemon view of the join: those that passed this daemon after the join."""
        join = first.change
        assert join is not None, "asked of light views only"
        passed = self.daemons.passed(life.daemon)
        owed = stamped & self.agreed_class & self.scale.above(join)
        if join in passed:
            for message in self.sets.members_of(stamped & ~self.agreed_class):
                if message.place is not None and passed.get(message.place, -1) > passed[join]:
                    owed |= message.bit
        return owed


class _Scale:
    """The keys of each daemon view, to cut sets of messages at a place."""

    def __init__(self, sets: MessageSets[ClientMessage]) -> None:
        self.keys: dict[str, list[OrderKey]] = defaultdict(list)
        self.first_bit: dict[str, int] = {}
        for number, message in enumerate(sets.by_bit):
            if message.order_view is not None and message.key is not None:
                self.first_bit.setdefault(message.order_view, number)
                self.keys[message.order_view].append(message.key)

    def below(self, place: TracedPlace) -> int:
        """The messages of this view with smaller keys, and whatever has lower bits."""
        smaller = bisect_left(self.keys[place.view], (place.stamp, place.site, -1))
        return (1 << (self.first_bit.get(place.view, 0) + smaller)) - 1

    def above(self, place: TracedPlace) -> int:
        """The messages of this view with larger keys, and whatever has higher bits."""
        not_larger = bisect_right(self.keys[place.view], (place.stamp, place.site + 1, -1))
        return -1 << (self.first_bit.get(place.view, 0) + not_larger)


def views_seen(life: ClientLife) -> list[str]:
    """The daemon views that show in a client's rows, in the order in which they do."""
    seen: dict[str, None] = {}
    for row in life.rows:
        if row.event == "view":
            seen.setdefault((row.view_new or "").partition("/")[0])
        elif row.order_view is not None:
            seen.setdefault(row.order_view)
    return list(seen)
