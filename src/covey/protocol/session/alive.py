"""When each session is to hear from this daemon, and when its silence is too long.

In:        sessions, and when each is due; the time.
Out:       the sessions that are due, a bounded number at a time.
Not here:  what is said to them (clients.py).

Sessions wait in slots of a tenth of a second, so that thousands of idle ones cost nothing until they are due. Silence
is measured by a clock that stands still while this daemon does not run: whoever spoke meanwhile is heard first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .session import ClientSession

SLOT_US: Final = 100_000
INTERVAL_LEAST_MS: Final = 200
SILENCE_LEAST_MS: Final = 500
TIMES_WITHIN_TIMEOUT: Final = 2


def interval_ms(longest_ms: int, *timeouts_ms: int) -> int:
    """How often to speak: twice within each timeout that somebody has; 0 if nobody has any.

    >>> interval_ms(2_000, 5_000, 0), interval_ms(2_000, 0, 0), interval_ms(2_000, 90, 0)
    (2000, 0, 200)
    """
    asked = [timeout // TIMES_WITHIN_TIMEOUT for timeout in timeouts_ms if timeout]
    return max(INTERVAL_LEAST_MS, min(longest_ms, *asked)) if asked else 0


def shorter_ms(one: int, other: int) -> int:
    """The shorter of two bounds, of which 0 means none.

    >>> shorter_ms(0, 5), shorter_ms(7, 5), shorter_ms(0, 0)
    (5, 5, 0)
    """
    return min(one, other) if one and other else one or other


class AwakeClock:
    """Microseconds during which this daemon has run."""

    def __init__(self, step_max_us: int) -> None:
        self.now_us = 0
        self._step_max_us = step_max_us
        self._last_us: int | None = None

    def step(self, now_us: int) -> None:
        passed = 0 if self._last_us is None else now_us - self._last_us
        self.now_us += min(passed, self._step_max_us)
        self._last_us = now_us


class Due:
    """Sessions, by when they are due."""

    def __init__(self) -> None:
        self._slots: dict[int, list[ClientSession]] = {}

    def add(self, session: ClientSession, at_us: int) -> None:
        self._slots.setdefault(at_us // SLOT_US + 1, []).append(session)

    def take(self, now_us: int, most: int) -> Iterator[ClientSession]:
        """Who is due now."""
        for slot in sorted(slot for slot in self._slots if slot * SLOT_US <= now_us):
            sessions = self._slots[slot]
            while sessions and most > 0:
                most -= 1
                yield sessions.pop()
            if sessions:
                return
            del self._slots[slot]

    def next_us(self) -> int | None:
        return min(self._slots) * SLOT_US if self._slots else None
