"""The history of the clients of one run, indexed once for all checkers: what spans several processes.

In:        the trace rows of one run, of which those of level C count here, and the History of its daemons.
Out:       ClientHistory: lives, messages, who installed which view of which group, who moved together, what is owed.
Not here:  one process at a time (lives.py, walk.py), judgement (views.py, delivery.py, rest.py, order.py, services.py,
           changes.py, groups.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from covey.drivers.simulation.checkers.causality import Causality, causality_of
from covey.drivers.simulation.checkers.clients.daemons import Daemons
from covey.drivers.simulation.checkers.clients.lives import (
    ClientLife,
    GroupStay,
    Membership,
    collect_messages,
    split_into_lives,
)
from covey.drivers.simulation.checkers.clients.owed import owed_to
from covey.drivers.simulation.checkers.clients.sets import ClientSets
from covey.drivers.simulation.checkers.clients.walk import Walk
from covey.drivers.simulation.checkers.history import History
from covey.drivers.simulation.checkers.lives import assign_bits, union
from covey.drivers.simulation.checkers.sets import union_by
from covey.trace.record import Row


class ClientHistory(ClientSets):
    """Everything the checkers of level C ask of one run."""

    def __init__(self, run: str, rows: Iterable[Row], daemons: History) -> None:
        self.run = run
        self.daemons = Daemons(daemons)
        self.lives = split_into_lives(rows)
        self.messages, self.repeated_sends = collect_messages(self.lives.values())
        super().__init__(assign_bits(self.messages.values()))
        for life in self.lives.values():
            Walk(life, self.messages).walk()
        self._together: dict[tuple[str, str, str], int] = {}
        self._passed_by: dict[str, int] = {}

    @cached_property
    def causality(self) -> Causality:
        return causality_of(self.lives)

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

    def stays(self) -> Iterator[GroupStay]:
        return (stay for life in self.lives.values() for stay in life.stays())

    @cached_property
    def arrivals(self) -> dict[tuple[str, str], list[GroupStay]]:
        """The stays in each view, by group and view id: one for every process that installed it."""
        arrivals: dict[tuple[str, str], list[GroupStay]] = defaultdict(list)
        for stay in self.stays():
            arrivals[stay.group, stay.view].append(stay)
        return dict(arrivals)

    @cached_property
    def comovers(self) -> list[list[GroupStay]]:
        """The stays joined by vsync: same view, same next view, and one in the transitional set of the other."""
        return [comovers for stays in self.arrivals.values() for comovers in _comovers_into(stays)]

    @cached_property
    def delivered_in(self) -> dict[tuple[str, str], int]:
        """The messages that any process delivered in each view, by group and view id."""
        return union_by(((stay.group, stay.view), stay.delivered) for stay in self.stays())

    @cached_property
    def daemon_ranks(self) -> dict[str, tuple[int, ...]]:
        """The rank of each daemon view, as daemons or clients tell it."""
        return {stay.daemon_view: stay.rank[:-2] for stay in self.stays()} | self.daemons.ranks()

    def stamped_while_together(self, process: str, origin: str | None, view: str | None) -> int:
        """The messages of this daemon view, and of those before it that the daemons of both went through together."""
        if view is None or origin is None or origin not in self.lives:
            return 0
        here, there = self.lives[process].daemon, self.lives[origin].daemon
        answer = self._together.get((here, there, view))
        if answer is None:
            views = self.daemons.together(here, there, view)
            answer = self._together[here, there, view] = union(self.stamped_in.get(one, 0) for one in views)
        return answer

    def witnesses(self, processes: Iterable[str]) -> list[ClientLife]:
        """Those whose whole history is known: alive, and with nothing left to read, when the run had come to rest."""
        lives = (self.lives[process] for process in sorted(processes) if process in self.lives)
        return [life for life in lives if life.ended and not life.departed]

    def witnesses_of(self, stay: GroupStay, processes: Iterable[str]) -> list[tuple[ClientLife, Membership]]:
        """The witnesses that were in the group at this stay's view and never left it since."""
        lives = self.witnesses(processes)
        memberships = ((life, life.membership_at(stay.group, stay.rank)) for life in lives)
        return [(life, one) for life, one in memberships if one is not None and one.is_open]

    @cached_property
    def at_rest(self) -> dict[tuple[str, str], list[GroupStay]]:
        """The stays in which witnesses came to rest, by group and view id."""
        resting: dict[tuple[str, str], list[GroupStay]] = defaultdict(list)
        for life in self.witnesses(self.lives):
            for membership in life.memberships:
                if membership.is_open:
                    resting[membership.group, membership.stays[-1].view].append(membership.stays[-1])
        return dict(resting)


def _comovers_into(stays: list[GroupStay]) -> Iterator[list[GroupStay]]:
    """The co-movers among those who installed one view of a group, as their stays in the view before it."""
    by_previous: dict[str, dict[str, GroupStay]] = defaultdict(dict)
    for stay in stays:
        if stay.previous is not None:
            by_previous[stay.previous.view][stay.process] = stay
    for comers in by_previous.values():
        # Daemons that came from different views give two sets to one previous view; each is judged by itself.
        for transitional in dict.fromkeys(stay.transitional for stay in comers.values()):
            if transitional.isdisjoint(comers):
                continue
            movers = [s for s in comers.values() if s.process in transitional or s.transitional == transitional]
            if len(movers) > 1:
                yield [stay.previous for stay in movers if stay.previous is not None]
