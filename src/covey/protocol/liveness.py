"""Life between programs and their daemon: who is to hear from us, and who has been silent for too long.

In:        what programs ask for when they connect; that something was read from one; the time.
Out:       a word to those who have not heard from us; the end of those who do not answer.
Not here:  when each is due, and by which clock silence is measured (session/alive.py).

Any byte counts as life. While a daemon does not read from a session, the session's clock stands still.
"""

from __future__ import annotations

from typing import Final

from covey.protocol.dialects.dialect import Shared
from covey.protocol.session.alive import SILENCE_LEAST_MS, AwakeClock, Due, interval_ms, shorter_ms
from covey.protocol.session.session import ClientSession, Phase

from .asked import Open
from .counters import Counter
from .deadlines import Deadline
from .desk import Desk
from .notices import DaemonSpoke

PER_STEP: Final = 1_000
"""Sessions looked at in one step."""


class Liveness:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._due = Due()
        self._alive = Shared(DaemonSpoke())
        self._awake = AwakeClock(max(200_000, 2_000 * desk.kit.settings.alive_interval_ms))
        self.begin = self._awake.step
        """A step, at this time."""

    def heard(self, session: ClientSession) -> None:
        session.heard_us = self._awake.now_us

    def watch(self, session: ClientSession, opening: Open) -> tuple[int, int]:
        """How often it will hear from us, and after which silence of its own it is given up, in milliseconds."""
        settings = self._desk.kit.settings
        silence_ms = shorter_ms(opening.alive_timeout_ms, settings.session_silence_max_ms)
        silence_ms = max(silence_ms, SILENCE_LEAST_MS) if silence_ms else 0
        every_ms = interval_ms(settings.session_alive_ms, opening.daemon_timeout_ms, silence_ms)
        session.lag_max_us = 1_000 * shorter_ms(opening.lag_max_ms, settings.session_lag_max_ms)
        session.silence_max_us, session.interval_us = 1_000 * silence_ms, 1_000 * every_ms
        self.heard(session)
        if every_ms:
            self._due.add(session, self._desk.now_us + session.interval_us)
            self.look_in_time()
        return every_ms, silence_ms

    def look(self, now_us: int) -> None:
        for session in self._due.take(now_us, PER_STEP):
            if session.phase is Phase.OPEN and not session.is_gone:
                self._look_at(session, now_us)

    def _look_at(self, session: ClientSession, now_us: int) -> None:
        silence_us = self._awake.now_us - session.heard_us
        if session.silence_max_us and session.reading and silence_us > session.silence_max_us:
            self._desk.kit.count.add(Counter.CLIENT_SILENT)
            self._desk.end_noticed(session, f"it did not answer for {silence_us / 1_000_000:.1f} s")
            return
        is_quiet = not session.outbox and now_us - session.spoken_us >= session.interval_us // 2
        is_asked = session.silence_max_us and silence_us >= session.interval_us // 2
        if is_quiet or is_asked:  # Who only reads is asked, however much there is to read.
            self._desk.put(session, self._alive.entry(session.dialect))
        self._due.add(session, now_us + session.interval_us)

    def look_in_time(self) -> None:
        """The deadline for clients comes no later than the next who is due."""
        deadlines, due_us = self._desk.kit.deadlines, self._due.next_us()
        current = deadlines.at(Deadline.CLIENTS)
        if due_us is not None and (current is None or due_us < current):
            deadlines.set(Deadline.CLIENTS, due_us)
