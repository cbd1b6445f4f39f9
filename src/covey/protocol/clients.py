"""The clients of one daemon: streams in, submissions out; deliveries and views in, bytes to pull out.

In:        what arrives on clients' streams, the effects of the engine in their order, deadlines.
Out:       submissions (through the callback), effects for the driver, `pull`, and `declared` for a view change.
Not here:  who is in which group, and what is declared of it (groups/); what waits for one client, names, what is wrong
           with what a client says, and when it is too slow (session/); order (the engine).
"""

from __future__ import annotations

from collections.abc import Callable

from covey.config import FRAME_SLACK
from covey.errors import FrameError
from covey.protocol.wire.session import (
    VERSION,
    Bye,
    Ended,
    Failed,
    FromClient,
    Hello,
    JoinGroup,
    LeaveGroup,
    Rejected,
    Sending,
    Welcome,
    Word,
    arrived_head,
    encode_word,
    read_from_client,
    sender_prefix,
)

from .effects import ClientClosed, ClientReading, ClientReady, Deliver, Effect, Installed, Notice, Signal, Stamped
from .groups.declared import Declared
from .groups.layer import Groups, Out
from .inputs import Submit
from .kit import Kit
from .session.names import Names
from .session.outbox import small_copied
from .session.problems import Destinations, hello_problem, join_problem, sending_problem
from .session.session import Phase, Session
from .session.slow import Remedy, SlowClients, requests
from .transport.queue import SubmitQueue
from .values import Kind, Payload, Service, SessionGroups

FIRST_SESSION = 100
"""Lower numbers are for a daemon's own traffic."""

SNAPSHOT_MAX = 100
"""Sessions, and groups, that a snapshot tells of."""

SubmitNow = Callable[[Submit], str]
"""Hands a submission to the engine; why it was refused, or nothing."""


class Clients:
    def __init__(self, kit: Kit, queue: SubmitQueue, submit: SubmitNow, is_working: Callable[[], bool]) -> None:
        self._kit = kit
        self._queue = queue
        self._submit = submit
        self._is_working = is_working
        self.groups = Groups(kit.me, kit.count)
        self._by_connection: dict[int, Session] = {}
        self._by_number: dict[int, Session] = {}
        self._names = Names()
        self._destinations = Destinations()
        self._slow = SlowClients(kit)
        self._numbers = FIRST_SESSION
        self._stalled: dict[int, Session] = {}
        self._leaving: dict[int, Session] = {}
        self._declared = Declared()
        self._in_part = True
        self._signalled: list[Deliver] | None = None
        self._effects: list[Effect] = []
        self._now_us = 0

    def take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    # --- streams

    def on_connected(self, connection: int, now_us: int) -> None:
        self._now_us = now_us
        self._numbers += 1
        session = self._by_connection[connection] = Session(connection, self._numbers, now_us)
        self._slow.look_soon(now_us)
        if len(self._by_connection) > self._kit.settings.sessions_max:
            self._reject(session, f"this daemon has {self._kit.settings.sessions_max} sessions, and takes no more")

    def on_bytes(self, connection: int, data: bytes, now_us: int) -> None:
        self._now_us = now_us
        session = self._by_connection.get(connection)
        if session is None or session.phase is Phase.ENDING:
            return
        try:
            for kind, body in session.splitter.feed(data):
                session.words.append(read_from_client(kind, body))
            problem = session.splitter.problem
        except FrameError as error:
            problem = error
        self._work(session)
        if problem is not None:
            self._kit.count.add(f"client ended: {problem.reason}")
            self._end(session, f"it sent something that is no frame of ours ({problem})")

    def on_gone(self, connection: int, now_us: int) -> None:
        """The stream is over, whoever ended it."""
        self._now_us = now_us
        session = self._by_connection.pop(connection, None)
        if session is None:
            return
        self._stalled.pop(connection, None)
        if session.phase is Phase.OPEN:
            self._kit.count.add("client gone without goodbye")
            self._depart(session)

    def pull(self, connection: int, room: int) -> list[Payload]:
        """What to write to a client now. The second door of the engine."""
        session = self._by_connection.get(connection)
        if session is None:
            return []
        parts = session.outbox.pull(room)
        session.ready = bool(session.outbox)
        self._slow.after_pull(session)
        return parts

    # --- what clients say

    def resume(self, now_us: int) -> None:
        """There may be room again for those whose words wait."""
        self._now_us = now_us
        for session in list(self._stalled.values()):
            self._work(session)

    def _work(self, session: Session) -> None:
        while session.words and session.phase is not Phase.ENDING:
            word = session.words.popleft()
            if not self._do(session, word):
                session.words.appendleft(word)
                break
        stalled = bool(session.words) and session.phase is not Phase.ENDING
        if stalled:
            self._stalled[session.connection] = session
        else:
            self._stalled.pop(session.connection, None)
        if session.reading == stalled:
            session.reading = not stalled
            self._effects.append(ClientReading(session.connection, session.reading))

    def _do(self, session: Session, word: FromClient) -> bool:
        """False if it must wait."""
        if session.phase is Phase.GREETING:
            self._greet(session, word)
        elif isinstance(word, Sending):
            return self._send(session, word)
        elif isinstance(word, JoinGroup):
            self._join(session, word.group)
        elif isinstance(word, LeaveGroup):
            self._leave(session, word.group)
        elif isinstance(word, Bye):
            self._bye(session)
        else:
            self._end(session, "it said HELLO twice")
        return True

    def _greet(self, session: Session, word: FromClient) -> None:
        problem = hello_problem(word, self._names)
        if problem or not isinstance(word, Hello):
            self._reject(session, problem)
            return
        settings, me = self._kit.settings, self._kit.me
        address = f"{word.name}@{self._kit.name(me.rank)}"
        process = f"{address}:{me.boot}.{session.number}"
        session.open(word.name, process, word.priority, word.policy, settings.message_bytes_max + FRAME_SLACK)
        if self._names.take(word.name, session.number):
            self._kit.count.add("name came back")
        self._by_number[session.number] = session
        self.groups.addresses[address] = session.number
        self._tell(session, Welcome(VERSION, process, settings.bundle_bytes, settings.message_bytes_max))

    def _join(self, session: Session, group: str) -> None:
        problem = join_problem(session, group, self._kit.settings.session_groups_max)
        if problem:
            self._tell(session, Failed(f"join {group}", problem))
            return
        session.asked.add(group)
        self._change(session, Kind.JOIN, (group,))

    def _leave(self, session: Session, group: str) -> None:
        if group not in session.asked:
            self._tell(session, Failed(f"leave {group}", "it is no member"))
            return
        session.asked.discard(group)
        self._change(session, Kind.LEAVE, (group,))

    def _change(self, session: Session, kind: Kind, groups: tuple[str, ...]) -> None:
        """An ordered change, in the session's own line: never refused for want of room."""
        session.changes += 1
        self._submit(
            Submit(
                session.number, session.changes, Service.AGREED, sender_prefix(session.process), groups=groups,
                kind=kind, priority=session.priority,
            )
        )  # fmt: skip

    def _send(self, session: Session, word: Sending) -> bool:
        problem = sending_problem(session, word, self._destinations)
        if problem:
            self._kit.count.add("client ended: impossible message")
            self._end(session, problem)
            return True
        if not self._may_send(session, word):
            return False
        session.next_seq += word.messages
        refused = self._submit(
            Submit(
                session.number, word.session_seq, word.service, word.body, word.messages, word.groups, Kind.MESSAGES,
                word.flags, session.priority,
            )
        )  # fmt: skip
        if refused:
            self._tell(session, Failed(f"send {word.session_seq}", refused))
        return True

    def _may_send(self, session: Session, word: Sending) -> bool:
        if self._slow.must_wait(word.groups):
            return False
        if word.service is Service.UNRELIABLE:
            return True
        mine = self._queue.bytes_of(session.number)
        fits = not mine or mine + len(word.body) <= self._kit.settings.session_send_bytes
        return fits and self._queue.has_room(word.body)

    # --- the end of a session

    def _reject(self, session: Session, reason: str) -> None:
        self._kit.count.add("client rejected")
        self._close(session, Rejected(reason))

    def _end(self, session: Session, reason: str) -> None:
        if session.phase is not Phase.ENDING:
            self._close(session, Ended(reason, session.outbox.size, session.outbox.lag_us(self._now_us)))

    def _close(self, session: Session, word: Rejected | Ended) -> None:
        """Tell the client why, write what waits, close, and let its groups know."""
        self._tell(session, word)
        was_open, session.phase = session.phase is Phase.OPEN, Phase.ENDING
        session.words.clear()
        self._effects.append(ClientClosed(session.connection))
        if was_open:
            self._depart(session)

    def _bye(self, session: Session) -> None:
        """It is let go once its departure is ordered: then its name is free again."""
        session.phase = Phase.ENDING
        session.words.clear()
        self._leaving[session.number] = session
        self._depart(session)

    def _depart(self, session: Session) -> None:
        """Its departure is ordered after everything it sent; only then is its name free."""
        session.blocking_us = None  # Nobody waits for it any more: not in the next view either.
        self._by_number.pop(session.number, None)
        del self.groups.addresses[f"{session.name}@{self._kit.name(self._kit.me.rank)}"]
        self._names.on_departure(session.name)
        if session.changes or session.next_seq > 1:
            if not self._is_working():
                self._kit.count.add("disconnect during a change")
            self._change(session, Kind.DISCONNECT, ())
        else:
            self._free(session.number)

    def _free(self, number: int) -> None:
        self._names.free(number)
        session = self._leaving.pop(number, None)
        if session is not None:
            word = encode_word(Ended("goodbye", 0, 0))
            session.outbox.put((word,), len(word), self._now_us)
            self._effects += [ClientReady(session.connection), ClientClosed(session.connection)]

    def end_all(self, reason: str, now_us: int) -> None:
        """The daemon stops: everyone is told."""
        self._now_us = now_us
        for session in list(self._by_connection.values()):
            if session.phase is Phase.OPEN:
                self._end(session, reason)
            elif session.phase is Phase.GREETING:
                self._reject(session, reason)

    # --- slow and silent clients

    def on_deadline(self, now_us: int) -> None:
        self._now_us = now_us
        for session in list(self._by_connection.values()):
            if remedy := self._slow.look(session, now_us):
                self._carry_out(session, remedy)
        self._slow.look_again(self._by_connection.values(), now_us)

    def _carry_out(self, session: Session, remedy: Remedy) -> None:
        if remedy is Remedy.REJECT:
            self._reject(session, "it said nothing for too long: send HELLO first")
        elif remedy is Remedy.BLOCK:
            self._block(session)
        elif remedy is Remedy.UNBLOCK:
            self._change(session, Kind.UNBLOCK, ())
        elif remedy is Remedy.END:
            self._too_slow(session)

    def _block(self, session: Session) -> None:
        """The senders of its groups, and those who send to it alone, wait until it has caught up."""
        own = f"{session.name}@{self._kit.name(self._kit.me.rank)}"
        for groups in requests([own, *self.groups.roster.groups_of(self._kit.me, session.number)]):
            self._change(session, Kind.BLOCK, groups)

    def _too_slow(self, session: Session) -> None:
        size, lag_us = session.outbox.size, session.outbox.lag_us(self._now_us)
        self._kit.count.add("client ended: too slow")
        reason = f"it reads too slowly: {size} bytes wait, the oldest for {lag_us / 1_000_000:.1f} s"
        self._effects.append(Notice(f"session {session.process} ended: {reason}"))
        session.outbox.clear()
        self._close(session, Ended(reason, size, lag_us))
        session.blocking_us = None

    # --- what the engine did

    def observe(self, effects: list[Effect], now_us: int) -> None:
        """Deliveries and views, in their order; the step from a signal to the view is looked at as a whole."""
        self._now_us = now_us
        for effect in effects:
            if isinstance(effect, Deliver):
                if self._signalled is not None:
                    self._signalled.append(effect)
                else:
                    self._on_deliver(effect)
            elif isinstance(effect, Stamped):
                self._declared.on_stamped(effect)
            elif isinstance(effect, Signal):
                self._signalled = []
            elif isinstance(effect, Installed):
                self._on_installed(effect)

    def _on_deliver(self, effect: Deliver) -> None:
        self._tell_all(self.groups.deliver(effect))
        if effect.bundle.kind > Kind.MESSAGES:
            self._after_change(effect)

    def _on_installed(self, effect: Installed) -> None:
        after, self._signalled = self._signalled or [], None
        self._in_part = len(effect.members) < len(self._kit.cluster.daemons)
        self._tell_all(self.groups.change(after, effect))
        for one in after:
            if one.bundle.kind > Kind.MESSAGES:
                self._after_change(one)
        self._slow.on_view()
        for session in self._by_connection.values():
            if session.blocking_us is not None:
                self._block(session)

    def _after_change(self, effect: Deliver) -> None:
        bundle = effect.bundle
        if bundle.kind is Kind.JOIN and self._in_part:
            self._kit.count.add("joined in a part")
        self._slow.on_change(bundle)
        if bundle.kind is Kind.DISCONNECT and bundle.origin == self._kit.me:
            self._free(bundle.session)

    def declared(self) -> tuple[SessionGroups, ...]:
        """What our sessions have joined, when the view is frozen."""
        return self._declared.declared()

    # --- telling clients

    def _tell_all(self, outs: list[Out]) -> None:
        for sessions, what in outs:
            parts = (encode_word(what),) if isinstance(what, Word) else _data_parts(what)
            size = sum(map(len, parts))
            for number in sessions:
                session = self._by_number.get(number)
                if session is not None:
                    session.delivered += what.bundle.count if isinstance(what, Deliver) else 0
                    self._put(session, parts, size)

    def _tell(self, session: Session, word: Word) -> None:
        data = encode_word(word)
        self._put(session, (data,), len(data))

    def _put(self, session: Session, parts: tuple[Payload, ...], size: int) -> None:
        if session.phase is Phase.ENDING:
            return
        session.outbox.put(parts, size, self._now_us)
        if not session.ready:
            session.ready = True
            self._effects.append(ClientReady(session.connection))
        if remedy := self._slow.after_put(session, self._now_us):
            self._carry_out(session, remedy)

    def snapshot(self, now_us: int) -> dict[str, object]:
        """The sessions for which most waits, the largest groups: however many there are, the answer is bounded."""
        named = [session for session in self._by_connection.values() if session.phase is not Phase.GREETING]
        sessions = sorted(named, key=lambda one: (-one.outbox.size, one.connection))
        sizes = sorted(self.groups.roster.sizes().items(), key=lambda one: (-one[1], one[0]))
        return {
            "sessions": [session.snapshot(now_us) for session in sessions[:SNAPSHOT_MAX]],
            "session_count": len(sessions),
            "connection_count": len(self._by_connection),
            "backlog_bytes": sum(session.outbox.size for session in sessions),
            "groups": dict(sizes[:SNAPSHOT_MAX]),
            "group_count": len(sizes),
            "blocked": self._slow.blocked()[:SNAPSHOT_MAX],
        }

    def check(self, full: bool) -> None:
        self._slow.check(self._by_connection.values())
        self._names.check()
        if full:
            for session in self._by_connection.values():
                session.outbox.check()
            self.groups.roster.check()


def _data_parts(effect: Deliver) -> tuple[Payload, ...]:
    if len(effect.payloads) == 1:
        payload = small_copied(effect.payloads[0])
        return (arrived_head(effect.bundle, effect.view, len(payload)), payload)
    return (arrived_head(effect.bundle, effect.view, sum(map(len, effect.payloads))), *effect.payloads)
