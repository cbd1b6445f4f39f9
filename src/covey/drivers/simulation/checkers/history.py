"""The history of one run, indexed once for all checkers: what spans several processes.

In:        the trace rows of one run; rows of other levels than S are passed over.
Out:       History: lives, messages, who installed which view, who moved together, and sets of messages.
Not here:  one process at a time (lives.py), judgement (membership.py, delivery.py, services.py).

A trace with lost rows (`gap`) must not be judged at all; whoever reads the trace sees to that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from covey.drivers.simulation.checkers.causality import Causality, causality_of
from covey.drivers.simulation.checkers.lives import (
    RELIABLE,
    Life,
    Message,
    Stay,
    Walk,
    assign_bits,
    collect_messages,
    split_into_lives,
)
from covey.drivers.simulation.checkers.sets import MessageSets, union_by
from covey.trace.record import Row


class History(MessageSets[Message]):
    """Everything the checkers ask of one run."""

    def __init__(self, run: str, rows: Iterable[Row]) -> None:
        self.run = run
        self.lives = split_into_lives(rows)
        self.messages, self.repeated_sends = collect_messages(self.lives.values())
        super().__init__(assign_bits(self.messages.values()))
        for life in self.lives.values():
            Walk(life, self.messages).walk()
        self._together: dict[tuple[str, str, str], int] = {}

    @cached_property
    def causality(self) -> Causality:
        return causality_of(self.lives)

    @cached_property
    def arrivals(self) -> dict[str, list[Stay]]:
        """The stays in each view, by view id: one for every process that installed it."""
        arrivals: dict[str, list[Stay]] = defaultdict(list)
        for life in self.lives.values():
            for stay in life.stays:
                arrivals[stay.view].append(stay)
        return dict(arrivals)

    @cached_property
    def comovers(self) -> list[list[Stay]]:
        """The stays joined by vsync: same view, same next view, and one in the transitional set of the other.

        Each list holds two stays or more, and "delivered the same" must hold between all of them.
        """
        return [comovers for stays in self.arrivals.values() for comovers in _comovers_into(stays)]

    @cached_property
    def view_sets(self) -> dict[str, int]:
        """The messages stamped in each view."""
        return union_by((message.order_view, message.bit) for message in self.messages.values())

    @cached_property
    def origin_sets(self) -> dict[str, int]:
        """The messages sent by each daemon."""
        return union_by((message.origin, message.bit) for message in self.messages.values())

    @cached_property
    def delivered_in(self) -> dict[str, int]:
        """The messages that any process delivered in each view."""
        stays = (stay for life in self.lives.values() for stay in life.stays)
        return union_by((stay.view, stay.delivered) for stay in stays)

    @cached_property
    def earlier_in_session(self) -> dict[str, int]:
        """For each message, the earlier messages of its session that are reliable or stronger, of all views."""
        earlier: dict[str, int] = {}
        seen: dict[str, int] = defaultdict(int)
        for message in sorted(self.messages.values(), key=lambda message: message.session_seq):
            earlier[message.name] = seen[message.sender]
            if message.strength >= RELIABLE:
                seen[message.sender] |= message.bit
        return earlier

    def stamped_while_together(self, process: str, origin: str | None, view: str | None) -> int:
        """The messages of this view, and of those before it that both processes went through together."""
        if origin is None or view is None:
            return 0
        answer = self._together.get((process, origin, view))
        if answer is None:
            answer = self._together[process, origin, view] = self._stamped_while_together(process, origin, view)
        return answer

    def _stamped_while_together(self, process: str, origin: str, view: str) -> int:
        stamped = self.view_sets.get(view, 0)
        here, there = self.lives[process].stay_in(view), self.lives[origin].stay_in(view)
        while here is not None and there is not None and came_together(here, there):
            here, there = here.previous, there.previous
            stamped |= self.view_sets.get(here.view, 0) if here is not None else 0
        return stamped

    def witnesses(self, processes: Iterable[str]) -> list[Life]:
        """Those whose whole history is known: alive when the run had come to rest."""
        lives = (self.lives[process] for process in sorted(processes) if process in self.lives)
        return [life for life in lives if life.ended and not life.excused]

    def survivors(self, processes: Iterable[str], view: str) -> list[Life]:
        """Witnesses, and those who left this view alive for a later one: what became of them later is no excuse."""
        known = (self.lives[process] for process in sorted(processes) if process in self.lives)
        return [life for life in known if (life.ended and not life.excused) or life.left_alive(view)]


def _comovers_into(stays: list[Stay]) -> Iterator[list[Stay]]:
    """The co-movers among those who installed one view, as their stays in the view before it."""
    by_previous: dict[str, dict[str, Stay]] = defaultdict(dict)
    for stay in stays:
        if stay.previous is not None:
            by_previous[stay.previous.view][stay.process] = stay
    for group in by_previous.values():
        # Where S5 holds there is one transitional set to a group. Where it does not, each set is judged by itself.
        for transitional in dict.fromkeys(stay.transitional for stay in group.values()):
            if transitional.isdisjoint(group):
                continue
            movers = [s for s in group.values() if s.process in transitional or s.transitional == transitional]
            if len(movers) > 1:
                yield [stay.previous for stay in movers if stay.previous is not None]


def came_together(here: Stay, there: Stay) -> bool:
    """Both came to this view from the same one, each in the transitional set of the other."""
    return (
        here.previous is not None
        and there.previous is not None
        and here.previous.view == there.previous.view
        and there.process in here.transitional
        and here.process in there.transitional
    )
