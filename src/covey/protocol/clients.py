"""The clients of one daemon: streams in, submissions out; deliveries and views in, bytes to pull out.

In:        what arrives on clients' streams, the effects of the engine in their order, deadlines.
Out:       submissions to admission, effects for the driver, `pull`, and what is declared for a view change.
Not here:  what clients ask (requests.py), what is still to be told (telling.py), what is done to a session (desk.py),
           whether its program lives (liveness.py), who is in which group (groups/), order (the engine).

A step does a bounded amount of work for clients: so many words of theirs, so many sessions told. The rest waits for the
next step, which comes at once, after whatever the network has brought meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from covey.errors import LocalProtocolError
from covey.protocol.dialects.dialect import Dialect
from covey.protocol.groups.declared import Declared
from covey.protocol.session.session import ClientSession, Phase
from covey.protocol.status import ClientsStatus

from .admission import Admission
from .counters import Counter
from .deadlines import Deadline
from .desk import Desk
from .effects import Deliver, Effect, Installed, Signal, Stamped
from .inputs import ClientConnected
from .kit import Kit
from .liveness import Liveness
from .notices import Views
from .portions import PORTIONS, Portions
from .requests import Requests
from .telling import NextView, Telling, Told, told
from .values import Kind, Payload, Service

FIRST_SESSION: Final = 100
"""Lower numbers are for a daemon's own traffic."""

SNAPSHOT_MAX: Final = 100
"""Sessions, and groups, that a snapshot tells of."""


PROGRESS_BYTES: Final = 64 * 1024
"""Who reads on while so much waits for it is alive, though it has not come to what we asked."""

LATE_PER_UNIT: Final = 10
"""To note that a session is to be told later is so much less work than to tell it."""


class Clients:
    def __init__(
        self,
        kit: Kit,
        admission: Admission,
        declared: Declared,
        dialects: Mapping[str, Dialect],
        budget_bytes: int = 0,
        portions: Portions = PORTIONS,
    ) -> None:
        self._kit = kit
        self._dialects = dialects
        self._portions = portions
        self._desk = Desk(kit, admission, budget_bytes)
        self.groups = self._desk.groups
        self._blocked = self._desk.blocked
        self._liveness = Liveness(self._desk)
        self._requests = Requests(self._desk, self._blocked, self._liveness, portions)
        self._telling = Telling(self.groups, portions)
        self._declared = declared
        """What our sessions have joined, as far as it is fixed."""
        self._numbers = FIRST_SESSION
        self._told_left = portions.told
        self._held_up: Told | None = None
        """Taken from what is to be told, but many streams wait to be written."""
        self._in_part = True
        self._signalled: list[Deliver] | None = None
        self.behind = False
        """More waits to be told than may wait: others should send less."""
        self.streams_unwritten = 0
        """Streams that the driver has not come to yet."""

    def take_effects(self) -> list[Effect]:
        effects, self._desk.effects = self._desk.effects, []
        return effects

    # --- a step

    def begin(self, now_us: int, is_working: bool) -> None:
        self._desk.now_us = now_us
        self._desk.is_working = is_working
        self._told_left = self._portions.told
        self._requests.begin()
        self._liveness.begin(now_us)

    def work(self) -> bool:
        """Go on with what is left, as far as this step allows. Whether there was anything to do."""
        if not (self._blocked.has_news or self._desk.queue.has_news or self._has_more()):
            self.behind = False
            return False  # Most steps have nothing for clients.
        self._tell_waiting()
        self._tell_late()
        self._requests.go_on()
        self._desk.clear_away(self._portions.cleared)
        self._desk.keep_to_budget(self._portions.ended)
        self.behind = self._telling.is_behind or self._desk.late_count > self._portions.behind_late
        return True

    def go_on_soon(self, now_us: int, has_submitted: bool) -> None:
        """The next step comes at once if this one could not do all, or something was submitted after it had sent."""
        if self._has_more():
            self._kit.count.add(Counter.CLIENT_WORK_LEFT)
        elif not (has_submitted or self._blocked.has_news or self._desk.queue.is_to_try):
            return
        self._kit.deadlines.set(Deadline.CLIENT_WORK, now_us)

    def _has_more(self) -> bool:
        """Something is left that the next step can do."""
        desk = self._desk
        more = desk.unheard or desk.late or desk.left_behind or self._held_up or self._telling
        return bool(more) or self.groups.where.has_news or desk.must_end()

    @property
    def waiting_bytes(self) -> int:
        """What waits for clients: what waits for several counts once."""
        return self._desk.total.size + self._telling.bytes_waiting

    # --- streams

    def on_connected(self, connected: ClientConnected, now_us: int) -> None:
        desk, most, connection = self._desk, self._kit.settings.sessions_max, connected.connection
        desk.now_us = now_us
        dialect = self._dialect(connected.dialect)
        self._numbers += 1
        session = desk.by_connection[connection] = ClientSession(connected, self._numbers, dialect, now_us, desk.total)
        desk.slow.on_connected(session, now_us)
        if len(desk.by_connection) - len(desk.over) > most:
            desk.reject(session, f"this daemon has {most} sessions, and takes no more")

    def _dialect(self, name: str) -> Dialect:
        if name not in self._dialects:
            raise LocalProtocolError(f"this daemon was given no dialect {name!r}, but {', '.join(self._dialects)}")
        return self._dialects[name]

    def on_bytes(self, connection: int, data: bytes, now_us: int) -> None:
        self._desk.now_us = now_us
        session = self._desk.by_connection.get(connection)
        if session is not None and session.phase is not Phase.ENDING:
            self._liveness.heard(session)
            self._requests.on_bytes(session, data)

    def on_gone(self, connection: int, now_us: int) -> None:
        """The stream is over, whoever ended it. What it said before is still done."""
        self._desk.now_us = now_us
        session = self._desk.by_connection.get(connection)
        if session is not None:
            session.is_gone = True
            if session.phase is not Phase.OPEN or not session.words:
                self._desk.forget(session)

    def pull(self, connection: int, room: int) -> list[Payload]:
        """What to write to a client now. The second door of the daemon."""
        session = self._desk.by_connection.get(connection)
        if session is None:
            return []
        if session.silence_max_us and session.outbox.size > PROGRESS_BYTES:
            self._liveness.heard(session)  # It reads, or there would be no room; our questions stand behind all that.
        parts = session.outbox.pull(room)
        session.ready = bool(session.outbox)
        if parts:
            session.spoken_us = self._desk.now_us
        self._desk.slow.after_pull(session)
        return parts

    def end_all(self, reason: str, now_us: int) -> None:
        """The daemon stops: everyone is told."""
        self._desk.now_us = now_us
        for session in list(self._desk.by_connection.values()):
            if session.phase is Phase.OPEN:
                self._desk.end(session, reason)
            elif session.phase is Phase.GREETING:
                self._desk.reject(session, reason)

    def on_deadline(self, now_us: int) -> None:
        """Look after silent and slow clients."""
        desk = self._desk
        desk.now_us = now_us
        for session, remedy in desk.slow.look(now_us):
            desk.apply_remedy(session, remedy)
        self._blocked.look(now_us)
        self._blocked.has_news = self._blocked.has_news or bool(desk.held)
        self._liveness.look(now_us)
        desk.slow.look_again(now_us)
        self._look_at_blocks()
        self._liveness.look_in_time()

    # --- what the engine did

    def observe(self, effects: list[Effect], now_us: int) -> None:
        """Deliveries and views, in their order; the step from a signal to the view is looked at as a whole."""
        self._desk.now_us = now_us
        for effect in effects:
            if isinstance(effect, Deliver):
                self._on_deliver(effect)
            elif isinstance(effect, Stamped):
                self._declared.on_stamped(effect)
            elif isinstance(effect, Signal):
                self._signalled = []
            elif isinstance(effect, Installed):
                self._telling.put(NextView(self._signalled or [], effect))
                self._signalled = None
                self._tell_waiting()

    def _on_deliver(self, effect: Deliver) -> None:
        """Most are told at once: the others wait their turn, and all that comes after them."""
        if effect.bundle.kind >= Kind.INTEREST:
            return  # It is between daemons.
        if self._signalled is not None:
            self._signalled.append(effect)
        elif self._telling or self._held_up is not None or effect.bundle.kind is not Kind.MESSAGES:
            self._tell_later(effect)
        else:
            outs = self.groups.message(effect)
            count = sum([len(out.sessions) for out in outs])
            if count > self._told_left or self._must_wait(count):
                self._tell_later(effect)
                return
            for out in outs:
                self._hand_out(told(out))

    def _tell_later(self, effect: Deliver) -> None:
        if effect.bundle.service is Service.UNRELIABLE and self._telling.is_behind:
            self._kit.count.add(Counter.UNRELIABLE_BEHIND)
        else:
            self._telling.put(effect)

    def _tell_waiting(self) -> None:
        while self._told_left > 0:
            portion = self._held_up or self._telling.next()
            self._held_up = None
            if portion is None:
                return
            if not isinstance(portion, Told):
                self._passed(portion.effect)
            elif self._must_wait(len(portion.sessions)) and not self._is_late(portion):
                self._held_up = portion
                return
            else:
                self._hand_out(portion)

    def _must_wait(self, sessions: int) -> bool:
        """What many are told waits while many streams wait to be written: little is to be kept for them."""
        return sessions > self._portions.many and self.streams_unwritten > self._portions.unwritten_many

    def _is_late(self, portion: Told) -> bool:
        """Views that many are told of: what comes after them, for others, need not wait."""
        what = portion.what
        return what is not None and isinstance(what.notice, Views) and len(portion.sessions) > self._portions.late

    def _passed(self, effect: Deliver | Installed) -> None:
        """All that it shows has been told."""
        self._told_left -= 1
        if isinstance(effect, Installed):
            self._after_view(effect)
        else:
            self._after_change(effect)

    def _tell_late(self) -> None:
        """Each who is to be told of views later is told of all of them at once."""
        late = self._desk.late
        left = max(self._told_left, self._portions.told // 4)
        while late and left > 0 and self.streams_unwritten <= self._portions.unwritten_late:
            left -= 1 + self._desk.catch_up(next(iter(late.values())))

    def _hand_out(self, portion: Told) -> None:
        what, by_number = portion.what, self._desk.by_number
        self._told_left -= 1
        if what is None:
            return
        is_late = self._is_late(portion)
        put = self._desk.put_later if is_late else self._desk.put
        self._told_left -= len(portion.sessions) // (LATE_PER_UNIT if is_late else 1)
        for number in tuple(portion.sessions):
            session = by_number.get(number)
            if session is not None:
                session.delivered += portion.messages
                put(session, what.entry(session.dialect))

    def _after_view(self, installed: Installed) -> None:
        self._in_part = len(installed.members) < len(self._kit.cluster.daemons)
        self._blocked.on_view(self._desk.now_us)
        for session in self._desk.slow.blocking():
            self._desk.block(session)

    def _after_change(self, effect: Deliver) -> None:
        bundle = effect.bundle
        if bundle.kind is Kind.JOIN and self._in_part:
            self._kit.count.add(Counter.JOINED_IN_PART)
        self._blocked.on_ordered(bundle, self._desk.now_us)
        self._look_at_blocks()
        if bundle.kind is Kind.DISCONNECT and bundle.origin == self._kit.me:
            self._desk.free(bundle.session)

    def _look_at_blocks(self) -> None:
        if not self._blocked.is_idle:
            self._desk.slow.look_soon(self._desk.now_us)

    # --- for people and tests

    def has_queued(self, number: int) -> bool:
        """Whether something of a session waits to be ordered."""
        return self._desk.queue.bytes_of(number) > 0

    def waits_for_interest(self, number: int) -> bool:
        """Whether what this session sent stands behind a join that other sites must hear of first."""
        return self._desk.queue.is_aside(number)

    def has_words_of(self, number: int) -> bool:
        """Whether something that this session said waits here."""
        session = self._desk.by_number.get(number)
        return session is not None and (bool(session.words) or self._desk.queue.bytes_of(number) > 0)

    def snapshot(self, now_us: int) -> ClientsStatus:
        """The sessions for which most waits, the largest groups. Its cost does not grow with their number."""
        desk, roster = self._desk, self.groups.roster
        waiting = desk.slow.longest(SNAPSHOT_MAX)
        known = {session.connection for session in waiting}
        some = [one for one in islice(desk.by_number.values(), SNAPSHOT_MAX) if one.connection not in known]
        return {
            "sessions": [session.snapshot(now_us) for session in [*waiting, *some][:SNAPSHOT_MAX]],
            "session_count": len(desk.by_number),
            "connection_count": len(desk.by_connection),
            "backlog_bytes": desk.total.size,
            "telling_bytes": self._telling.bytes_waiting,
            "late_views": desk.late_count,
            "behind": self.behind,
            "groups": roster.largest(SNAPSHOT_MAX),
            "group_count": len(roster),
            "memberships": desk.memberships,
            "blocked": self._blocked.groups()[:SNAPSHOT_MAX],
        }

    def check(self, full: bool) -> None:
        desk = self._desk
        desk.slow.check(desk.by_connection.values())
        self._blocked.check()
        self._requests.check()
        self._telling.check()
        desk.names.check()
        assert desk.late_count == sum(len(session.late) for session in desk.late.values()), "X3"
        if full:
            for session in desk.by_connection.values():
                session.outbox.check()
            desk.check()
            self.groups.roster.check()
            self._declared.check()
