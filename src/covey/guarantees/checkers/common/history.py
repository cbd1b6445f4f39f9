"""The history of one run at either level, indexed once for all checkers: what spans several processes.

In:        lives and messages, as a level has read them from its rows.
Out:       BaseHistory: who installed which view, who moved together, who is known to the end, and sets of messages.
Not here:  one process at a time (lives.py), judgement (views.py, delivery.py, services.py, and the files of a level).

What a level knows better is abstract here: which stays there are, at which daemon a process is, which views two
daemons went through together, and what is owed to a process.

A trace with lost rows (`gap`) must not be judged at all; whoever reads the trace sees to that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from covey.trace.record import Row

from .causality import Causality, causality_of
from .lives import (
    AnyLife,
    AnyStay,
    Message_co,
    TracedMessage,
    assign_bits,
    union,
)
from .sets import MessageSets, union_by

Stay_co = TypeVar("Stay_co", bound=AnyStay, covariant=True)
Life_co = TypeVar("Life_co", bound=AnyLife, covariant=True)


class BaseHistory(MessageSets[Message_co], ABC, Generic[Message_co, Stay_co, Life_co]):
    """Everything that the shared judgements ask of one run."""

    def __init__(
        self, run: str, lives: dict[str, Life_co], messages: dict[str, Message_co], repeated_sends: list[Row]
    ) -> None:
        super().__init__(assign_bits(messages.values()))
        self.run = run
        self.lives = lives
        self.messages = messages
        self.repeated_sends = repeated_sends
        self._together: dict[tuple[str, str, str], int] = {}

    @abstractmethod
    def stays(self) -> Iterator[Stay_co]:
        """Life by life, in the order in which each came to them."""

    @abstractmethod
    def daemon_of(self, process: str) -> str: ...

    @abstractmethod
    def views_together(self, one: str, other: str, view: str) -> list[str]:
        """This daemon view, and those before it back to where the two daemons met."""

    @property
    @abstractmethod
    def owed(self) -> Mapping[str, int]:
        """By process, the messages that it must not lack where its daemon has them."""

    @cached_property
    def causality(self) -> Causality:
        return causality_of(self.lives)

    @cached_property
    def arrivals(self) -> dict[tuple[str, ...], list[Stay_co]]:
        """The stays in each view, by its key: one for every process that installed it."""
        arrivals: dict[tuple[str, ...], list[Stay_co]] = defaultdict(list)
        for stay in self.stays():
            arrivals[stay.key].append(stay)
        return dict(arrivals)

    @cached_property
    def comovers(self) -> list[list[Stay_co]]:
        """The stays joined by vsync: same view, same next view, and one in the transitional set of the other.

        Each list holds two stays or more, and "delivered the same" must hold between all of them.
        """
        return [comovers for stays in self.arrivals.values() for comovers in _comovers_into(stays)]

    @cached_property
    def delivered_in(self) -> dict[tuple[str, ...], int]:
        """The messages that any process delivered in each view, by its key."""
        return union_by((stay.key, stay.delivered) for stay in self.stays())

    def stamped_while_together(self, process: str, origin: str | None, view: str | None) -> int:
        """The messages of this daemon view, and of those before it that the daemons of both went through together."""
        if origin is None or view is None:
            return 0
        here, there = self.daemon_of(process), self.daemon_of(origin)
        answer = self._together.get((here, there, view))
        if answer is None:
            views = self.views_together(here, there, view)
            answer = self._together[here, there, view] = union(self.stamped_in.get(one, 0) for one in views)
        return answer

    def witnesses(self, processes: Iterable[str]) -> list[Life_co]:
        """Those whose whole history is known: alive, and with nothing left to read, when the run had come to rest."""
        lives = (self.lives[process] for process in sorted(processes) if process in self.lives)
        return [life for life in lives if life.is_witness]


AnyHistory = BaseHistory[TracedMessage, AnyStay, AnyLife]


def _comovers_into(stays: list[Stay_co]) -> Iterator[list[Stay_co]]:
    """The co-movers among those who installed one view, as their stays in the view before it."""
    by_previous: dict[str, dict[str, Stay_co]] = defaultdict(dict)
    for stay in stays:
        if stay.previous is not None:
            by_previous[stay.previous.view][stay.process] = stay
    for comers in by_previous.values():
        # Among daemons there is one transitional set to a group of comers where S5 holds. Where it does not, or where
        # daemons of clients came from different views, there are several: each is judged by itself.
        for transitional in dict.fromkeys(stay.transitional for stay in comers.values()):
            if transitional.isdisjoint(comers):
                continue
            movers = [s for s in comers.values() if s.process in transitional or s.transitional == transitional]
            if len(movers) > 1:
                yield [stay.previous for stay in movers if stay.previous is not None]
