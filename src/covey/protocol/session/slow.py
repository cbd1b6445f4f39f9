"""Silent and slow clients: when senders wait for a receiver, when they go on, and when a session ends for it.

In:        what waits for a session, each time that this changed; a look now and then.
Out:       what to do about a session, if anything: `Remedy`.
Not here:  doing it (clients.py), what waits (outbox.py), whose senders wait (blocking.py).

A receiver with the policy `block` asks, by an ordered change, that the senders of its groups, and those who send to it
alone, wait once a quarter of its bound waits for it, and lets them go on at an eighth. The rest is room for what
daemons hold already. Where more waits for all sessions together than the daemon's bound, the longest backlog goes.

Invariants: W1 beyond its bound, what waits for an open session came in one step; W3 whoever has a large backlog is
known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from heapq import nlargest
from itertools import islice
from typing import Final

from covey.protocol.counters import Counter
from covey.protocol.deadlines import Deadline
from covey.protocol.kit import Kit

from .outbox import Total
from .session import ClientSession, Phase

LOOK_US: Final = 200_000
"""How often silent and slow clients are looked after, while there are any."""

BLOCK_GROUPS: Final = 20
"""Groups named in one request to wait."""

LARGE_BYTES: Final = 4_096
"""A backlog that can be the longest when the daemon's bound is reached."""

REMEDIES_MAX: Final = 200
"""In one step."""

BUDGET_LEAST: Final = 128 * 1024 * 1024
"""What may wait for all sessions where neither configuration nor driver says anything."""


class Remedy(Enum):
    """What to do about a client."""

    REJECT = "it said nothing for too long"
    BLOCK = "the senders of its groups shall wait"
    UNBLOCK = "it has caught up: they may go on"
    END = "it reads too slowly"


class SlowClients:
    def __init__(self, kit: Kit, total: Total, budget_bytes: int) -> None:
        self._kit = kit
        self._total = total
        self._budget_bytes = kit.settings.clients_bytes_max or budget_bytes or BUDGET_LEAST
        self._greeting: dict[int, ClientSession] = {}
        """By connection, the longest silent first."""
        self._blocking: dict[int, ClientSession] = {}
        self._hurried: dict[int, ClientSession] = {}
        """Something waits for them, and it must not wait long."""
        self._large: dict[int, ClientSession] = {}

    # --- one session

    def on_connected(self, session: ClientSession, now_us: int) -> None:
        self._greeting[session.connection] = session
        self.look_soon(now_us)

    def on_gone(self, session: ClientSession) -> None:
        for index in (self._greeting, self._blocking, self._hurried, self._large):
            index.pop(session.connection, None)

    def after_put(self, session: ClientSession, now_us: int) -> Remedy | None:
        size = session.outbox.size
        if size + session.words_bytes < LARGE_BYTES and not session.lag_max_us:
            return None
        self.note_backlog(session)
        if session.lag_max_us:
            self._hurried[session.connection] = session
            self.look_soon(now_us)
        limit = self._kit.settings.session_receive_bytes
        if size <= limit // 4:
            return None
        if size > limit and session.phase is Phase.OPEN and session.outbox.lag_us(now_us):
            return Remedy.END  # It had time to read: what waits is older than this step.
        if session.policy == "block" and session.blocking_us is None:
            session.blocking_us = now_us
            self._blocking[session.connection] = session
            self._kit.count.add(Counter.RECEIVER_BLOCKS)
            self.look_soon(now_us)
            return Remedy.BLOCK
        return None

    def note_backlog(self, session: ClientSession) -> None:
        if session.backlog >= LARGE_BYTES and session.phase is Phase.OPEN:
            self._large[session.connection] = session
        else:
            self._large.pop(session.connection, None)

    def after_pull(self, session: ClientSession) -> None:
        if session.backlog < LARGE_BYTES:
            self._large.pop(session.connection, None)
        if session.blocking_us is not None and self._has_caught_up(session):
            self._kit.deadlines.set(Deadline.CLIENTS, 0)

    # --- a look at all that may need one

    def look(self, now_us: int) -> list[tuple[ClientSession, Remedy]]:
        """What to do about whom; if that is very much, the rest at once in the next step."""
        found = list(islice(self._remedies(now_us), REMEDIES_MAX))
        if len(found) == REMEDIES_MAX:
            self._kit.deadlines.set(Deadline.CLIENTS, now_us)
        return found

    def _remedies(self, now_us: int) -> Iterator[tuple[ClientSession, Remedy]]:
        for session in self._silent(now_us):
            yield session, Remedy.REJECT
        for session in list(self._blocking.values()):
            if remedy := self._of_blocking(session, now_us):
                yield session, remedy
        for session in list(self._hurried.values()):
            if not session.outbox or session.phase is not Phase.OPEN:
                del self._hurried[session.connection]
            elif session.outbox.lag_us(now_us) >= session.lag_max_us:
                yield session, Remedy.END

    def _silent(self, now_us: int) -> Iterator[ClientSession]:
        """Who has not asked to be let in, in time."""
        limit_us = self._kit.settings.hello_timeout_ms * 1_000
        while self._greeting:
            session = next(iter(self._greeting.values()))
            if session.phase is Phase.GREETING and now_us - session.since_us < limit_us:
                return
            del self._greeting[session.connection]
            if session.phase is Phase.GREETING:
                yield session

    def _of_blocking(self, session: ClientSession, now_us: int) -> Remedy | None:
        if session.phase is Phase.ENDING or session.blocking_us is None:
            del self._blocking[session.connection]
            return None
        if self._has_caught_up(session):
            session.blocking_us = None
            del self._blocking[session.connection]
            return Remedy.UNBLOCK
        return Remedy.END if now_us - session.blocking_us >= self._kit.settings.block_max_ms * 1_000 else None

    def look_again(self, now_us: int) -> None:
        """Only while somebody is silent or slow."""
        if self._greeting or self._blocking or self._hurried:
            self.look_soon(now_us)

    def look_soon(self, now_us: int) -> None:
        at_us, current = now_us + LOOK_US, self._kit.deadlines.at(Deadline.CLIENTS)
        if current is None or current > at_us:
            self._kit.deadlines.set(Deadline.CLIENTS, at_us)

    def blocking(self) -> list[ClientSession]:
        return [session for session in self._blocking.values() if session.blocking_us is not None]

    def _has_caught_up(self, session: ClientSession) -> bool:
        return session.outbox.size <= self._kit.settings.session_receive_bytes // 8

    # --- all sessions together

    @property
    def is_over_budget(self) -> bool:
        return self._total.size > self._budget_bytes

    @property
    def has_large(self) -> bool:
        return bool(self._large)

    def longest(self, most: int) -> list[ClientSession]:
        """The open sessions with the longest backlogs, the longest first."""
        waiting = (one for one in self._large.values() if one.phase is Phase.OPEN)
        return nlargest(most, waiting, key=lambda one: (one.backlog, -one.connection))

    def check(self, sessions: Iterable[ClientSession]) -> None:
        limit = self._kit.settings.session_receive_bytes
        for session in sessions:
            at_once = not session.outbox.span_us()
            assert session.outbox.size <= limit or session.phase is not Phase.OPEN or at_once, "W1"
            is_known = session.connection in self._large or session.phase is not Phase.OPEN
            assert session.backlog < LARGE_BYTES or is_known, "W3"


def requests(groups: Iterable[str]) -> list[tuple[str, ...]]:
    """The groups of a session, as many at a time as one request names.

    >>> requests(["b", "a"])
    [('a', 'b')]
    """
    ordered = sorted(groups)
    return [tuple(ordered[at : at + BLOCK_GROUPS]) for at in range(0, len(ordered), BLOCK_GROUPS)]
