"""What clients ask for, done in turns: so many words in a step, so many of one client before others have their turn.

In:        what arrives on clients' streams.
Out:       submissions (through admission); whether a client is read from.
Not here:  how a request is written (dialects/), what is wrong with it (session/problems.py), when there is room
           (transport/queue.py), what is told.

Invariant: K1 whoever has said something that is not done is heard again: it has its turn, or waits for room, or for a
group whose senders wait.
"""

from __future__ import annotations

from covey.errors import FrameError
from covey.protocol.session.blocking import Blocked
from covey.protocol.session.problems import Destinations, join_problem, open_problem, sending_problem
from covey.protocol.session.session import ClientSession, Phase

from .asked import CannotOpen, Depart, JoinRequest, LeaveRequest, Open, Request, Sending, StillHere
from .counters import Counter, Family
from .desk import Desk
from .effects import ClientReading
from .inputs import Submit
from .liveness import Liveness
from .notices import RequestFailed, SessionOpened
from .portions import Portions
from .values import Kind


class Requests:
    def __init__(self, desk: Desk, blocked: Blocked, liveness: Liveness, portions: Portions) -> None:
        self._desk = desk
        self._blocked = blocked
        self._liveness = liveness
        self._portions = portions
        self._destinations = Destinations()
        self._words_left = portions.words

    def begin(self) -> None:
        self._words_left = self._portions.words

    def on_bytes(self, session: ClientSession, data: bytes) -> None:
        session.words.put(data)
        self._work(session)

    def go_on(self) -> None:
        """Each that has something to say has its turn, for as long as the step allows."""
        desk = self._desk
        if self._blocked.has_news:
            self._blocked.has_news = False
            desk.unheard |= desk.held
            desk.held.clear()
        while self._words_left > 0:
            for number in desk.queue.to_try():
                if (session := desk.by_number.get(number)) is not None:
                    desk.unheard[session.connection] = session
            if not desk.unheard:
                return
            before = self._words_left
            self._work(desk.unheard.pop(next(iter(desk.unheard))))
            if self._words_left == before:
                self._words_left -= 1  # A turn is some work too, also where nothing could be done in it.

    # --- one client's turn

    def _work(self, session: ClientSession) -> None:
        """Do what it said, until it has had its turn or must wait."""
        turn = min(self._portions.turn, self._words_left)
        waits = False
        words = session.words
        while words and turn > 0 and not waits and session.phase is not Phase.ENDING and (word := self._next(session)):
            turn -= 1
            self._words_left -= 1
            waits = not self._do(session, word)
            if waits:
                words.put_back(word)
        if session.phase is Phase.ENDING:
            words.clear()
        elif words.problem is not None and not waits:
            self._broken(session, words.problem)
        elif not words:
            self._desk.queue.give_up(session.number)  # What waited for room may have been refused for another reason.
        elif not waits:
            self._desk.unheard[session.connection] = session
        if words.joined:
            self._desk.kit.count.add(Counter.SENDS_JOINED, words.joined)
            words.joined = 0
        self._desk.count_words(session)
        self._after(session)

    def _after(self, session: ClientSession) -> None:
        """It is read from while nothing of it waits. If it is gone, that is when it is let go."""
        has_more = bool(session.words)
        if session.is_gone:
            if not has_more:
                self._desk.forget(session)
        elif session.reading == has_more:
            session.reading = not has_more
            self._liveness.heard(session)  # Its silence counts from here: nobody listened.
            self._desk.effects.append(ClientReading(session.connection, session.reading))

    def _next(self, session: ClientSession) -> Request | None:
        """What it said next; nothing if that is no word of its dialect: then it is ended."""
        try:
            return session.words.next()
        except FrameError as error:
            self._broken(session, error)
            return None

    def _broken(self, session: ClientSession, problem: FrameError) -> None:
        self._desk.kit.count.add(Family.CLIENT_ENDED.of(problem.reason))
        self._desk.end(session, f"{session.dialect.wording.unreadable} ({problem})")

    # --- one word

    def _do(self, session: ClientSession, word: Request) -> bool:
        """False if it must wait."""
        if session.phase is Phase.GREETING:
            self._greet(session, word)
        elif isinstance(word, Sending):
            return self._send(session, word)
        elif isinstance(word, JoinRequest):
            return self._join(session, word.group)
        elif isinstance(word, LeaveRequest):
            return self._leave(session, word.group)
        elif isinstance(word, Depart):
            self._desk.bye(session)
        elif not isinstance(word, StillHere):
            self._desk.end(session, session.dialect.wording.open_twice)
        return True

    def _greet(self, session: ClientSession, word: Request) -> None:
        desk, settings = self._desk, self._desk.kit.settings
        if not isinstance(word, Open):
            desk.reject(session, word.reason if isinstance(word, CannotOpen) else session.dialect.wording.not_open)
            return
        if problem := open_problem(word, desk.names, settings):
            desk.reject(session, problem)
            return
        address = desk.address(word.name)
        process = f"{address}:{desk.kit.me.boot}.{session.number}"
        session.open(word, process, settings.message_bytes_max, settings.bundle_bytes)
        if desk.names.take(word.name, session.number):
            desk.kit.count.add(Counter.NAME_CAME_BACK)
        desk.by_number[session.number] = session
        desk.groups.addresses[address] = session.number
        interval_ms, silence_ms = self._liveness.watch(session, word)
        sizes = (settings.bundle_bytes, settings.message_bytes_max)
        desk.tell(session, SessionOpened(process, *sizes, interval_ms, silence_ms))

    def _join(self, session: ClientSession, group: str) -> bool:
        desk, settings = self._desk, self._desk.kit.settings
        problem = join_problem(session, group, settings.session_groups_max)
        if not problem and desk.memberships >= settings.memberships_max:
            problem = f"the sessions of this daemon are in {desk.memberships} groups already, all together"
        if problem:
            desk.tell(session, RequestFailed(f"join {group}", problem))
            return True
        if not self._has_room(session, group):
            return False
        session.asked.add(group)
        desk.memberships += 1
        desk.submit_change(session, Kind.JOIN, (group,))
        return True

    def _leave(self, session: ClientSession, group: str) -> bool:
        desk = self._desk
        if group not in session.asked:
            desk.tell(session, RequestFailed(f"leave {group}", "it is no member"))
            return True
        if not self._has_room(session, group):
            return False
        session.asked.discard(group)
        desk.memberships -= 1
        desk.submit_change(session, Kind.LEAVE, (group,))
        return True

    def _has_room(self, session: ClientSession, group: str) -> bool:
        """A join or leave waits for room like a message."""
        return self._desk.admission.admits(session.number, len(session.prefix), (group,))

    def _send(self, session: ClientSession, word: Sending) -> bool:
        desk = self._desk
        problem = sending_problem(session, word, self._destinations)
        if problem:
            desk.kit.count.add(Counter.CLIENT_IMPOSSIBLE_MESSAGE)
            desk.end(session, problem)
            return True
        if self._blocked.must_wait(session.number, word.groups, desk.now_us):
            desk.queue.give_up(session.number)
            desk.held[session.connection] = session
            return False
        refused = desk.admission.take_in_turn(
            Submit(
                session.number, word.session_seq, word.service, word.body, word.messages, word.groups, Kind.MESSAGES,
                word.flags, session.priority,
            )
        )  # fmt: skip
        if refused is None:
            return False
        session.next_seq += word.messages
        if refused:
            desk.tell(session, RequestFailed(f"send {word.session_seq}", refused))
        return True

    def check(self) -> None:
        desk = self._desk
        for session in desk.by_connection.values():
            waits = session.connection in desk.unheard or session.connection in desk.held
            assert not session.words or waits or desk.queue.knows(session.number), "K1"
