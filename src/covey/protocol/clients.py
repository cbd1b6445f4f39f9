"""The clients of one daemon: streams in, submissions out; deliveries and views in, bytes to pull out.

In:        what arrives on clients' streams, the effects of the engine in their order, deadlines.
Out:       submissions (through the callback), effects for the driver, `pull`, and `declared` for a view change.
Not here:  who is in which group (groups/), what waits for one client (session/), order (the engine).

Invariants: N1 a name belongs to one session until its departure is ordered; N2 what waits for a client
is bounded, but for what one step brings.
"""

from __future__ import annotations

from collections.abc import Callable

from covey.config import COUNT_MAX, FRAME_SLACK, GROUPS_MAX
from covey.errors import FrameError
from covey.ids import Life
from covey.names import destination_problem, group_problem, name_problem
from covey.protocol.wire.session import (
    MAGIC,
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

from .deadlines import Deadline
from .effects import ClientClosed, ClientReading, ClientReady, Deliver, Effect, Installed, Notice, Signal, Stamped
from .groups.layer import Groups, Out, process_of
from .inputs import Submit
from .kit import Kit
from .session.outbox import small_copied
from .session.session import Phase, Session
from .transport.queue import SubmitQueue
from .values import Kind, Payload, Place, Service, SessionGroups

FIRST_SESSION = 100
"""Lower numbers are for a daemon's own traffic."""

BLOCK_GROUPS = 20
"""Groups named in one request to wait."""

LOOK_US = 200_000
"""How often silent and slow clients are looked after, while there are any."""

NAMES_CHECKED_MAX = 20_000

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
        self._names: dict[str, int] = {}
        self._name_of: dict[int, str] = {}
        """The same the other way round: thousands may leave in one step."""
        self._numbers = FIRST_SESSION
        self._stalled: dict[int, Session] = {}
        self._leaving: dict[int, Session] = {}
        self._declared: dict[int, tuple[str, dict[str, Place]]] = {}
        self._blocked: dict[str, set[tuple[Life, int]]] = {}
        self._names_checked: set[str] = set()
        self._former_names: set[str] = set()
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
        self._kit.deadlines.set_if_clear(Deadline.CLIENTS, now_us + LOOK_US)
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
        if session.blocking_us is not None and session.outbox.size <= self._kit.settings.session_receive_bytes // 8:
            self._kit.deadlines.set(Deadline.CLIENTS, 0)
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
        problem = self._hello_problem(word)
        if problem or not isinstance(word, Hello):
            self._reject(session, problem)
            return
        settings, me = self._kit.settings, self._kit.me
        address = f"{word.name}@{self._kit.name(me.rank)}"
        process = f"{address}:{me.boot}.{session.number}"
        session.open(word.name, process, word.priority, word.policy, settings.message_bytes_max + FRAME_SLACK)
        if word.name in self._former_names:
            self._kit.count.add("name came back")
        self._names[word.name] = session.number
        self._name_of[session.number] = word.name
        self._by_number[session.number] = session
        self.groups.addresses[address] = session.number
        self._tell(session, Welcome(VERSION, process, settings.bundle_bytes, settings.message_bytes_max))

    def _hello_problem(self, word: FromClient) -> str:
        if not isinstance(word, Hello) or word.magic != MAGIC:
            return "say HELLO first"
        if word.version != VERSION:
            return f"this daemon speaks version {VERSION}, not {word.version}: use a client library of the same version"
        if word.name in self._names:
            return f"the name {word.name!r} is taken here, or its last owner's departure is not ordered yet: try again"
        return name_problem(word.name)

    def _join(self, session: Session, group: str) -> None:
        problem = group_problem(group)
        if not problem and group in session.asked:
            problem = "it is a member already"
        if not problem and len(session.asked) >= self._kit.settings.session_groups_max:
            problem = f"a session may be in {self._kit.settings.session_groups_max} groups at most"
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
        problem = self._sending_problem(session, word)
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

    def _sending_problem(self, session: Session, word: Sending) -> str:
        if word.session_seq != session.next_seq or not 0 < word.messages <= COUNT_MAX:
            return f"its message {word.session_seq} is not the next, which is {session.next_seq}"
        if word.body[: len(session.prefix)] != session.prefix:
            return "it sent a message in another's name"
        if not 0 < len(word.groups) <= GROUPS_MAX:
            return f"a message has 1 to {GROUPS_MAX} destinations, not {len(word.groups)}"
        for destination in word.groups:
            if destination not in self._names_checked:
                if problem := destination_problem(destination):
                    return problem
                if len(self._names_checked) < NAMES_CHECKED_MAX:
                    self._names_checked.add(destination)
        return ""

    def _may_send(self, session: Session, word: Sending) -> bool:
        if self._blocked and any(self._blocked.get(group) for group in word.groups):
            return False
        if word.service is Service.UNRELIABLE:
            return True
        mine = self._queue.bytes_of(session.number)
        fits = not mine or mine + len(word.body) <= self._kit.settings.session_send_bytes
        return fits and self._queue.has_room(word.body)

    # --- the end of a session

    def _reject(self, session: Session, reason: str) -> None:
        self._kit.count.add("client rejected")
        self._tell(session, Rejected(reason))
        session.phase = Phase.ENDING
        session.words.clear()
        self._effects.append(ClientClosed(session.connection))

    def _end(self, session: Session, reason: str) -> None:
        """Tell the client why, write what waits, close, and let its groups know."""
        if session.phase is Phase.ENDING:
            return
        lag = session.outbox.size, session.outbox.lag_us(self._now_us)
        self._tell(session, Ended(reason, *lag))
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
        self._by_number.pop(session.number, None)
        del self.groups.addresses[f"{session.name}@{self._kit.name(self._kit.me.rank)}"]
        if len(self._former_names) < NAMES_CHECKED_MAX:
            self._former_names.add(session.name)
        if session.changes or session.next_seq > 1:
            if not self._is_working():
                self._kit.count.add("disconnect during a change")
            self._change(session, Kind.DISCONNECT, ())
        else:
            self._free(session.number)

    def _free(self, number: int) -> None:
        name = self._name_of.pop(number, None)
        if name is not None:
            del self._names[name]
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
        settings = self._kit.settings
        for session in list(self._by_connection.values()):
            if session.phase is Phase.GREETING and now_us - session.since_us >= settings.hello_timeout_ms * 1_000:
                self._reject(session, "it said nothing for too long: send HELLO first")
            if session.blocking_us is not None and session.phase is Phase.OPEN:
                self._look_at_blocking(session, session.blocking_us)
        if any(one.phase is Phase.GREETING or one.blocking_us is not None for one in self._by_connection.values()):
            self._kit.deadlines.set_if_clear(Deadline.CLIENTS, self._now_us + LOOK_US)

    def _look_at_blocking(self, session: Session, since_us: int) -> None:
        settings = self._kit.settings
        if session.outbox.size <= settings.session_receive_bytes // 8:
            session.blocking_us = None
            self._change(session, Kind.UNBLOCK, ())
        elif self._now_us - since_us >= settings.block_max_ms * 1_000:
            self._too_slow(session)

    def _block(self, session: Session) -> None:
        """The senders of its groups wait until it has caught up."""
        if session.blocking_us is None:
            session.blocking_us = self._now_us
            self._kit.count.add("receiver made senders wait")
            self._kit.deadlines.set_if_clear(Deadline.CLIENTS, self._now_us + LOOK_US)
        groups = sorted(self.groups.roster.groups_of(self._kit.me, session.number))
        for at in range(0, len(groups), BLOCK_GROUPS):
            self._change(session, Kind.BLOCK, tuple(groups[at : at + BLOCK_GROUPS]))

    def _too_slow(self, session: Session) -> None:
        size, lag_us = session.outbox.size, session.outbox.lag_us(self._now_us)
        self._kit.count.add("client ended: too slow")
        reason = f"it reads too slowly: {size} bytes wait, the oldest for {lag_us / 1_000_000:.1f} s"
        self._effects.append(Notice(f"session {session.process} ended: {reason}"))
        session.outbox.clear()
        self._tell(session, Ended(reason, size, lag_us))
        session.phase = Phase.ENDING
        session.words.clear()
        session.blocking_us = None
        self._effects.append(ClientClosed(session.connection))
        self._depart(session)

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
                self._on_stamped(effect)
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
        self._blocked.clear()
        for session in self._by_connection.values():
            if session.blocking_us is not None:
                self._block(session)

    def _after_change(self, effect: Deliver) -> None:
        bundle = effect.bundle
        key = (bundle.origin, bundle.session)
        if bundle.kind is Kind.JOIN and self._in_part:
            self._kit.count.add("joined in a part")
        if bundle.kind is Kind.BLOCK:
            for group in bundle.groups:
                self._blocked.setdefault(group, set()).add(key)
        elif bundle.kind in (Kind.UNBLOCK, Kind.DISCONNECT):
            for group in [group for group, keys in self._blocked.items() if key in keys]:
                self._blocked[group].discard(key)
                if not self._blocked[group]:
                    del self._blocked[group]
        if bundle.kind is Kind.DISCONNECT and bundle.origin == self._kit.me:
            self._free(bundle.session)

    def _on_stamped(self, effect: Stamped) -> None:
        """Our own joins and leaves are fixed once they are stamped: we shall deliver them in this view."""
        bundle = effect.bundle
        if bundle.kind is Kind.JOIN:
            _, groups = self._declared.setdefault(bundle.session, (process_of(bundle, effect.payloads[0]), {}))
            groups.setdefault(bundle.groups[0], Place(effect.view, bundle.stamp, bundle.site))
        elif bundle.kind is Kind.LEAVE and bundle.session in self._declared:
            self._declared[bundle.session][1].pop(bundle.groups[0], None)
        elif bundle.kind is Kind.DISCONNECT:
            self._declared.pop(bundle.session, None)

    def declared(self) -> tuple[SessionGroups, ...]:
        """What our sessions have joined, when the view is frozen."""
        return tuple(
            SessionGroups(number, process, tuple(groups.items()))
            for number, (process, groups) in sorted(self._declared.items())
            if groups
        )

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
        limit = self._kit.settings.session_receive_bytes
        if session.outbox.size > limit and session.phase is Phase.OPEN and session.outbox.lag_us(self._now_us):
            self._too_slow(session)  # It had time to read: what waits is older than this step.
        elif session.policy == "block" and session.outbox.size > limit // 4 and session.blocking_us is None:
            self._block(session)

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
            "blocked": sorted(self._blocked)[:SNAPSHOT_MAX],
        }

    def check(self, full: bool) -> None:
        limit = self._kit.settings.session_receive_bytes
        for session in self._by_connection.values():
            fresh = not session.outbox.lag_us(self._now_us)
            assert session.outbox.size <= limit or session.phase is not Phase.OPEN or fresh, "N2"
            if full:
                session.outbox.check()
        assert self._names == {name: number for number, name in self._name_of.items()}, "N1"
        if full:
            self.groups.roster.check()


def _data_parts(effect: Deliver) -> tuple[Payload, ...]:
    if len(effect.payloads) == 1:
        payload = small_copied(effect.payloads[0])
        return (arrived_head(effect.bundle, effect.view, len(payload)), payload)
    return (arrived_head(effect.bundle, effect.view, sum(map(len, effect.payloads))), *effect.payloads)
