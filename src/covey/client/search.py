"""Looking for another daemon when the connection is lost: how often, for how long, and what is told meanwhile.

In:        how long the program wants to go on; each round through the addresses that failed; the time.
Out:       pauses, `Reconnecting` events now and then, one line in the log; a ReconnectError when patience is over.
Not here:  trying (dial.py, dial_blocking.py), waiting (session.py, blocking.py).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from typing import Final

from covey.errors import ConnectError, ReconnectError

from .events import Reconnecting

PAUSE_FIRST_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0
TELL_EVERY_S: Final = 5.0
"""At most one `Reconnecting` comes in this time."""

LOG: Final = logging.getLogger("covey")


def pauses() -> Iterator[float]:
    """How long to wait, in seconds, before each further round: a random half, so that not all programs come at once."""
    pause = PAUSE_FIRST_S
    while True:
        yield pause * random.uniform(0.5, 1.0)
        pause = min(2 * pause, PAUSE_MAX_S)


class Search:
    """One search, from the loss of the connection on.

    >>> search = Search("alice", patience_s=10.0, now=100.0)
    >>> search.failed(ConnectError("nobody listens"), now=100.5)
    Reconnecting(attempt=1, reason='nobody listens', seconds=0.5)
    >>> search.failed(ConnectError("nobody listens"), now=101.5)  # too soon to tell again
    >>> 0.025 <= search.pause(now=101.5) <= 0.05
    True
    """

    def __init__(self, name: str, patience_s: float | None, now: float) -> None:
        self._name = name
        self._patience_s = patience_s
        self._began = now
        self._attempts = 0
        self._reason = ""
        self._told_at: float | None = None
        self._pauses = pauses()

    def failed(self, error: ConnectError, now: float) -> Reconnecting | None:
        """All addresses were tried; what to tell the program."""
        self._attempts += 1
        self._reason = str(error)
        if self._told_at is None:
            LOG.warning("%s has lost its daemon, and looks for one: %s", self._name, error)
        elif now - self._told_at < TELL_EVERY_S:
            return None
        self._told_at = now
        return Reconnecting(self._attempts, self._reason, round(now - self._began, 3))

    def left(self, now: float) -> float | None:
        """Seconds of patience; None if it never ends."""
        return None if self._patience_s is None else max(0.0, self._began + self._patience_s - now)

    def pause(self, now: float) -> float:
        """Before the next round, in seconds; ReconnectError if patience does not last so long."""
        pause, left = next(self._pauses), self.left(now)
        if left is not None and left <= pause:
            raise self.over(now)
        return pause

    def over(self, now: float) -> ReconnectError:
        tried = f"no daemon let us in again within {now - self._began:.3g} s"
        return ReconnectError(f"{tried}: {self._reason or 'none has answered yet'}")
