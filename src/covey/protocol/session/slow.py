"""Silent and slow clients: when senders wait for a receiver, when they go on, and when a session ends for it.

In:        what waits for a session, each time that this changed; a look at all sessions now and then; the ordered
           requests of the sessions of all daemons.
Out:       what to do about a session, if anything: `Remedy`; and which groups' senders must wait.
Not here:  doing it (clients.py), what waits (outbox.py), who is in which group (groups/).

A receiver with the policy `block` asks, by an ordered change, that the senders of its groups, and those who send to it
alone, wait once a quarter of its bound waits for it, and lets them go on at an eighth. The rest is room for what
daemons hold already.

Invariants: W1 beyond its bound, what waits for an open session came in one step; W2 a group is blocked while some
session asks for it, and no request outlives its view.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from covey.ids import Life
from covey.protocol.deadlines import Deadline
from covey.protocol.kit import Kit
from covey.protocol.values import Bundle, Kind

from .session import Phase, Session

LOOK_US = 200_000
"""How often silent and slow clients are looked after, while there are any."""

BLOCK_GROUPS = 20
"""Groups named in one request to wait."""


class Remedy(Enum):
    """What to do about a client."""

    REJECT = "it said nothing for too long"
    BLOCK = "the senders of its groups shall wait"
    UNBLOCK = "it has caught up: they may go on"
    END = "it reads too slowly"


class SlowClients:
    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._requests: dict[str, set[tuple[Life, int]]] = {}
        """The groups whose senders wait, each with the sessions that asked for it."""

    # --- our own sessions

    def after_put(self, session: Session, now_us: int) -> Remedy | None:
        limit, size = self._kit.settings.session_receive_bytes, session.outbox.size
        if size <= limit // 4:
            return None
        if size > limit and session.phase is Phase.OPEN and session.outbox.lag_us(now_us):
            return Remedy.END  # It had time to read: what waits is older than this step.
        if session.policy == "block" and session.blocking_us is None:
            session.blocking_us = now_us
            self._kit.count.add("receiver made senders wait")
            self.look_soon(now_us)
            return Remedy.BLOCK
        return None

    def after_pull(self, session: Session) -> None:
        if session.blocking_us is not None and self._has_caught_up(session):
            self._kit.deadlines.set(Deadline.CLIENTS, 0)

    def look(self, session: Session, now_us: int) -> Remedy | None:
        settings = self._kit.settings
        if session.phase is Phase.GREETING:
            is_silent = now_us - session.since_us >= settings.hello_timeout_ms * 1_000
            return Remedy.REJECT if is_silent else None
        if session.phase is Phase.ENDING or session.blocking_us is None:
            return None
        if self._has_caught_up(session):
            session.blocking_us = None
            return Remedy.UNBLOCK
        return Remedy.END if now_us - session.blocking_us >= settings.block_max_ms * 1_000 else None

    def look_again(self, sessions: Iterable[Session], now_us: int) -> None:
        """Only while somebody is silent or slow."""
        if any(one.phase is Phase.GREETING or one.blocking_us is not None for one in sessions):
            self.look_soon(now_us)

    def look_soon(self, now_us: int) -> None:
        self._kit.deadlines.set_if_clear(Deadline.CLIENTS, now_us + LOOK_US)

    def _has_caught_up(self, session: Session) -> bool:
        return session.outbox.size <= self._kit.settings.session_receive_bytes // 8

    # --- the groups of all

    def on_change(self, bundle: Bundle) -> None:
        """A change of any session, at its place in the order."""
        session = (bundle.origin, bundle.session)
        if bundle.kind is Kind.BLOCK:
            for group in bundle.groups:
                self._requests.setdefault(group, set()).add(session)
        elif bundle.kind in (Kind.UNBLOCK, Kind.DISCONNECT):
            for group in [group for group, sessions in self._requests.items() if session in sessions]:
                self._requests[group].discard(session)
                if not self._requests[group]:
                    del self._requests[group]

    def on_view(self) -> None:
        """Requests end with their view: who still blocks asks again."""
        self._requests.clear()

    def must_wait(self, groups: tuple[str, ...]) -> bool:
        """Whether a sender to these groups must."""
        return bool(self._requests) and any(group in self._requests for group in groups)

    def blocked(self) -> list[str]:
        return sorted(self._requests)

    def check(self, sessions: Iterable[Session]) -> None:
        limit = self._kit.settings.session_receive_bytes
        for session in sessions:
            at_once = not session.outbox.span_us()
            assert session.outbox.size <= limit or session.phase is not Phase.OPEN or at_once, "W1"
        assert all(self._requests.values()), "W2"


def requests(groups: Iterable[str]) -> list[tuple[str, ...]]:
    """The groups of a session, as many at a time as one request names.

    >>> requests(["b", "a"])
    [('a', 'b')]
    """
    ordered = sorted(groups)
    return [tuple(ordered[at : at + BLOCK_GROUPS]) for at in range(0, len(ordered), BLOCK_GROUPS)]
