"""The sessions of one daemon, and what can be done to one: tell it something, order a change of it, end it.

In:        sessions and notices for them; remedies for slow ones.
Out:       submissions to admission, and effects for the driver.
Not here:  what clients say (requests.py), what they are told of the order (clients.py, telling.py).

Invariants: X3 `late_count` is the number of views that sessions are still to be told of; X4 who is gone and over is
forgotten.
"""

from __future__ import annotations

from collections import deque

from covey.protocol.dialects.entries import Entry
from covey.protocol.groups.layer import Groups
from covey.protocol.session.blocking import Blocked
from covey.protocol.session.names import Names
from covey.protocol.session.outbox import USER_BYTES, SessionOutbox, Total
from covey.protocol.session.session import ClientSession, Phase
from covey.protocol.session.slow import Remedy, SlowClients, requests
from covey.protocol.wire.bodies import sender_prefix

from .admission import Admission
from .counters import Counter
from .effects import ClientClosed, ClientReady, Effect, Notice
from .inputs import Submit
from .kit import Kit
from .notices import SessionEnded, SessionNotice, SessionRejected
from .values import Kind, Service

CLEARED_AT_ONCE = 2_000
"""Entries let go of at once when a session is ended for the sake of all."""


class Desk:
    def __init__(self, kit: Kit, admission: Admission, budget_bytes: int) -> None:
        self.kit = kit
        self.admission = admission
        self.queue = admission.queue
        self.is_working = False
        """Whether there was a view in which messages are ordered when the step began."""
        self.groups = Groups(kit)
        self.by_connection: dict[int, ClientSession] = {}
        self.by_number: dict[int, ClientSession] = {}
        self.names = Names()
        self.total = Total()
        self.slow = SlowClients(kit, self.total, budget_bytes)
        self.blocked = Blocked(kit.settings.block_percent, kit.settings.block_max_ms)
        self.unheard: dict[int, ClientSession] = {}
        """By connection: their words can be done now, as far as a step allows."""
        self.held: dict[int, ClientSession] = {}
        """They send to groups whose senders wait."""
        self.late: dict[int, ClientSession] = {}
        """By number: they are still to be told of views, which the rest of their step does not wait for."""
        self.late_count = 0
        self.memberships = 0
        self.effects: list[Effect] = []
        self.now_us = 0
        self.over: set[int] = set()
        """Connections whose sessions are over; their last words may still be written."""
        self._leaving: dict[int, ClientSession] = {}
        self.left_behind: deque[SessionOutbox] = deque()
        """What waited for sessions that are gone."""

    # --- telling one

    def tell(self, session: ClientSession, notice: SessionNotice) -> None:
        self.put(session, session.dialect.entry(notice))

    def put_later(self, session: ClientSession, entry: Entry) -> None:
        """Of a view that many are told of: each when its turn comes, or before it is told anything else."""
        if session.phase is Phase.OPEN:
            session.late.append(entry)
            self.late[session.number] = session
            self.late_count += 1

    def catch_up(self, session: ClientSession) -> int:
        """It is told what it was to be told later; how much that was."""
        entries, session.late = session.late, []
        self.late.pop(session.number, None)
        self.late_count -= len(entries)
        for entry in entries:
            self.put(session, entry)
        return len(entries)

    def put(self, session: ClientSession, entry: Entry) -> None:
        if session.late:
            self.catch_up(session)
        if session.phase is Phase.ENDING:
            return
        session.outbox.put(entry, self.now_us)
        if not session.ready:
            session.ready = True
            self.effects.append(ClientReady(session.connection, session.outbox.size))
        if remedy := self.slow.after_put(session, self.now_us):
            self.apply_remedy(session, remedy)

    # --- ordered changes

    def submit_change(self, session: ClientSession, kind: Kind, groups: tuple[str, ...], why: str = "") -> None:
        """An ordered change, behind what the session has sent."""
        session.changes += 1
        self.admission.put(
            Submit(
                session.number, session.changes, Service.AGREED, sender_prefix(session.process) + why.encode(),
                groups=groups, kind=kind, priority=session.priority,
            )
        )  # fmt: skip

    def block(self, session: ClientSession) -> None:
        """The senders of its groups, and those who send to it alone, wait until it has caught up."""
        mine = self.groups.roster.groups_of(self.kit.me, session.number)
        for groups in requests([self.address(session.name), *mine]):
            self.submit_change(session, Kind.BLOCK, groups)

    def address(self, name: str) -> str:
        return f"{name}@{self.kit.name(self.kit.me.rank)}"

    # --- the end of one

    def reject(self, session: ClientSession, reason: str) -> None:
        self.kit.count.add(Counter.CLIENT_REJECTED)
        self._close(session, SessionRejected(reason), "")

    def end(self, session: ClientSession, reason: str, why: str = "") -> None:
        """`why` is for the others in its groups, where it is their business."""
        if session.phase is not Phase.ENDING:
            self._close(session, SessionEnded(reason, session.outbox.size, session.outbox.lag_us(self.now_us)), why)

    def end_noticed(self, session: ClientSession, reason: str) -> None:
        """It does not do its part: the operator, and the others in its groups, learn why it is ended."""
        self.effects.append(Notice(f"session {session.process} ended: {reason}"))
        self.end(session, reason, reason)

    def bye(self, session: ClientSession) -> None:
        """It is let go once its departure is ordered: then its name is free again."""
        session.phase = Phase.ENDING
        self._wait_no_more(session)
        self._leaving[session.number] = session
        self.depart(session, "")

    def forget(self, session: ClientSession) -> None:
        """Its stream is over, and all it said is done."""
        if self.by_connection.pop(session.connection, None) is None:
            return
        self._wait_no_more(session)
        self.over.discard(session.connection)
        self.slow.on_gone(session)
        if session.outbox:
            self.left_behind.append(session.outbox)
        if session.phase is Phase.OPEN:
            self.kit.count.add(Counter.CLIENT_GONE)
            self.depart(session, "")

    def clear_away(self, most: int) -> None:
        """What waited for those who are gone is let go a portion at a time: it may be very much."""
        while self.left_behind and most > 0:
            most -= self.left_behind[0].clear(most)
            if not self.left_behind[0]:
                self.left_behind.popleft()

    def free(self, number: int) -> None:
        """Its departure is ordered."""
        self.names.free(number)
        self.blocked.forget(number)
        session = self._leaving.pop(number, None)
        if session is not None and session.connection in self.by_connection:
            session.outbox.put(session.dialect.entry(SessionEnded("goodbye", 0, 0)), self.now_us)
            self.effects += [ClientReady(session.connection), ClientClosed(session.connection)]

    def depart(self, session: ClientSession, why: str) -> None:
        """Its departure is ordered after everything it sent; only then is its name free."""
        session.blocking_us = None  # Nobody waits for it any more: not in the next view either.
        self.memberships -= len(session.asked)
        self.by_number.pop(session.number, None)
        del self.groups.addresses[self.address(session.name)]
        self.names.on_departure(session.name)
        if session.changes or session.next_seq > 1:
            if not self.is_working:
                self.kit.count.add(Counter.DISCONNECT_DURING_CHANGE)
            self.submit_change(session, Kind.DISCONNECT, (), why)
        else:
            self.free(session.number)

    def _close(self, session: ClientSession, notice: SessionRejected | SessionEnded, why: str) -> None:
        """Tell the client why, write what waits, close, and let its groups know."""
        self.tell(session, notice)
        if session.phase is Phase.ENDING:
            return  # What was too much was the last word itself.
        was_open, session.phase = session.phase is Phase.OPEN, Phase.ENDING
        self._wait_no_more(session)
        self.effects.append(ClientClosed(session.connection))
        if was_open:
            self.depart(session, why)
        if session.is_gone:
            self.forget(session)

    def _wait_no_more(self, session: ClientSession) -> None:
        if session.phase is Phase.ENDING:
            self.over.add(session.connection)
        session.words.clear()
        self.total.size -= session.words_bytes
        session.words_bytes = 0
        self.slow.note_backlog(session)
        self._drop_late(session)
        self.unheard.pop(session.connection, None)
        self.held.pop(session.connection, None)
        self.queue.give_up(session.number)

    def _drop_late(self, session: ClientSession) -> None:
        self.late.pop(session.number, None)
        self.late_count -= len(session.late)
        session.late = []

    # --- slow ones

    def apply_remedy(self, session: ClientSession, remedy: Remedy) -> None:
        if remedy is Remedy.REJECT:
            self.reject(session, session.dialect.wording.silent)
        elif remedy is Remedy.BLOCK:
            self.block(session)
        elif remedy is Remedy.UNBLOCK:
            self.submit_change(session, Kind.UNBLOCK, ())
        elif remedy is Remedy.END:
            self._too_slow(session, "it reads too slowly")

    def _too_slow(self, session: ClientSession, what: str) -> None:
        size, lag_us = session.outbox.size, session.outbox.lag_us(self.now_us)
        self.kit.count.add(Counter.CLIENT_TOO_SLOW)
        reason = f"{what}: {size} bytes wait, the oldest for {lag_us / 1_000_000:.1f} s"
        self.effects.append(Notice(f"session {session.process} ended: {reason}"))
        self.left_behind.append(session.outbox)
        session.outbox = SessionOutbox(self.total)
        self._drop_late(session)  # Views are told of what was before them, and that is gone.
        self._close(session, SessionEnded(reason, size, lag_us), what)

    def keep_to_budget(self, most: int) -> None:
        """The longest backlog goes first; what that frees is seen before the next one goes."""
        if not self.must_end():
            return
        for session in self.slow.longest(most):
            self.kit.count.add(Counter.CLIENT_LONGEST_BACKLOG)
            self._too_slow(session, "too much waits for all sessions here, and most of it for this one")
            self.clear_away(CLEARED_AT_ONCE)
            if not self.must_end():
                return

    def must_end(self) -> bool:
        """More waits than may; and nothing is on its way out that would make it less."""
        return self.slow.is_over_budget and not self.left_behind and self.slow.has_large

    def count_words(self, session: ClientSession) -> None:
        """What it said and was not done counts like what waits for it."""
        size = session.words.size
        if size != session.words_bytes:
            self.total.size += size - session.words_bytes
            session.words_bytes = size
            self.slow.note_backlog(session)

    def check(self) -> None:
        sessions = self.by_connection.values()
        waiting = [one for outbox in [*(one.outbox for one in sessions), *self.left_behind] for one in outbox.entries()]
        kept = sum(one.weight for one in dict.fromkeys(waiting)) + USER_BYTES * len(waiting)
        assert self.total.size == kept + sum(session.words_bytes for session in sessions), "X2"
        assert not any(session.is_gone and session.phase is not Phase.OPEN for session in sessions), "X4"
