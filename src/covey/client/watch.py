"""Whether the daemon is still there: when it was last heard, and when it has been silent for too long.

In:        what the welcome promised; the time of each read, and of a look that found nothing.
Out:       when to look again; whether the daemon is to be given up, and the words for it.
Not here:  clocks, timers and reading (session.py, blocking.py).

Any byte is life. Silence counts while we listen: who does not read, because its program takes nothing, learns nothing.
Bytes may wait in the socket of a program that was stopped itself: nobody is judged before a read finds nothing. Who
comes much too late for its look may have been stopped together with the daemon, and waits once more.
"""

from __future__ import annotations

from math import inf
from typing import Final

ALIVE_SHARE: Final = 3
"""So many times within the daemon's patience a program that takes nothing says that it lives."""


class Watch:
    """
    >>> watch = Watch(timeout_s=5.0, interval_s=1.0, now=100.0)
    >>> watch.heard_at = 103.0  # a read
    >>> watch.due, watch.is_silent(now=108.1, planned=108.0)
    (108.0, True)
    >>> watch.reason
    'the daemon did not answer for 5 s'
    """

    def __init__(self, timeout_s: float | None, interval_s: float, now: float) -> None:
        self.heard_at = now
        """Of the last byte, or of the time from which on silence counts."""
        self.interval_s = interval_s
        self.is_on = timeout_s is not None and interval_s > 0
        self.timeout_s = max(timeout_s, 2 * interval_s) if timeout_s is not None and self.is_on else inf
        """Of silence; infinite if it is not judged."""
        self._excused_at = -inf

    @property
    def due(self) -> float:
        """When to look again: infinite if silence is not judged."""
        return self.heard_at + self.timeout_s

    @property
    def reason(self) -> str:
        return f"the daemon did not answer for {self.timeout_s:g} s"

    def is_silent(self, now: float, planned: float) -> bool:
        """Whether to give it up, after a look that found nothing and was planned for then."""
        if now < self.due:
            return False
        if now - planned <= self.timeout_s / 2 or self._excused_at == self.heard_at:
            return True
        self.heard_at = self._excused_at = now
        return False
