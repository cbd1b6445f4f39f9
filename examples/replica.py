"""State that the members of a group have in common, through joins, crashes, partitions and merges.

A subclass says three things: how a message changes the state (`apply`), what the state is as bytes (`snapshot`), and
what becomes of several states when their holders meet (`merge`). When to do which is decided here:

- Who moves together has seen the same messages, so it has the same state. `holders` are those of whom we know that.
- In a view with members who are no holders of our state, the lowest holder of each state sends it to all. A newcomer is
  the only holder of an empty state: joining is merging.
- Messages that come before all states are here wait; then everyone merges the same states, and goes on with the same
  messages in the same order.
- A view may come in between. Then everyone applies what has waited, and the exchange begins anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress

import msgspec

import covey

STATE = 65_535
"""The `kind` of messages that carry a state."""

Processes = frozenset[str]


class State(msgspec.Struct, frozen=True):
    view: str
    """Messages may be delivered in a later view than the one they were sent in: then this one is of no use."""
    holders: Processes
    data: bytes


class Replica(ABC):
    def __init__(self, session: covey.Session, group: str) -> None:
        self.session = session
        self.group = group
        self.view: covey.View | None = None
        self.holders: Processes = frozenset([session.process])
        """Who has the state that we have, ourselves included."""
        self._in_transition = False
        """The view is ending: we do not know yet who moves on with us."""
        self._states: list[State] = []
        self._waiting: list[covey.Message] = []

    # --- what a subclass says

    @abstractmethod
    def apply(self, message: covey.Message, seen_by: Processes) -> None:
        """Change the state. `seen_by`: who has this message too, if it is a safe one and they have not crashed."""

    @abstractmethod
    def snapshot(self) -> bytes: ...

    @abstractmethod
    def merge(self, states: Sequence[bytes], seen_by: Processes) -> None:
        """Replace our state by one made of all these. Ours is among them; everyone has them in the same order."""

    def changed(self) -> None:  # noqa: B027 - who wants to know overrides it
        """Something has happened."""

    # --- when it is done

    @property
    def members(self) -> Processes:
        return frozenset(self.view.processes if self.view else ())

    @property
    def is_ready(self) -> bool:
        """All members have this state."""
        return self.holders == self.members and not self._in_transition

    async def run(self) -> None:
        await self.session.join(self.group)
        async for event in self.session:
            with suppress(covey.SessionOverError):  # The next events tell, and how it goes on.
                await self.on_event(event)
            self.changed()

    async def on_event(self, event: covey.Event) -> None:
        match event:
            case covey.Message(kind=kind) if kind == STATE:
                self._on_state(msgspec.msgpack.decode(event.payload, type=State))
            case covey.Message(groups=groups) if self.group in groups:
                self._waiting.append(event)
                if self.is_ready:
                    self._go_on(self.members)
            case covey.Transitional():
                self._go_on(self.members)
                self._in_transition = True
            case covey.View():
                await self._on_view(event)
            case covey.Disconnected():
                self._go_on(frozenset([self.session.process]))
                self.view, self._in_transition = None, False
            case covey.Reconnected(process=process):
                # What we have is ours alone now: the group has gone on without us.
                self.holders = frozenset([process])
                await self.session.join(self.group)

    def _go_on(self, seen_by: Processes) -> None:
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self.apply(message, seen_by)

    async def _on_view(self, view: covey.View) -> None:
        came_with_us = frozenset(view.transitional_processes)
        self._go_on(came_with_us if self._in_transition else self.members)
        self.view, self._in_transition, self._states = view, False, []
        self.holders &= came_with_us
        if not self.is_ready and self.session.process == min(self.holders):
            state = State(view.id, self.holders, self.snapshot())
            await self.session.send(self.group, msgspec.msgpack.encode(state), covey.SAFE, kind=STATE)

    def _on_state(self, state: State) -> None:
        if self.view is None or state.view != self.view.id or self._in_transition:
            return
        self._states.append(state)
        if self.members == frozenset[str]().union(*(one.holders for one in self._states)):
            self.holders = self.members
            self.merge([one.data for one in self._states], self.members)
            self._go_on(self.members)
