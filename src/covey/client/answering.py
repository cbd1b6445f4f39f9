"""A thread that says between the calls of a program that its process lives.

In:        a session, and the event that it has left.
Out:       now and then what came is read into its inbox, and the daemon gets its answer.
Not here:  what is read and answered (blocking.py).

It holds nobody up, and a session that its program has dropped ends it.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Final

from .watch import ALIVE_SHARE

if TYPE_CHECKING:
    from .blocking import Session

PAUSE_MAX_S: Final = 1.0


def answer_between_calls(session: Session, gone: threading.Event) -> None:
    """Begin to."""
    thread = threading.Thread(target=_run, args=(weakref.ref(session), gone), name="covey-alive", daemon=True)
    thread.start()


def _run(session: weakref.ref[Session], gone: threading.Event) -> None:
    while not gone.wait(_answered(session(), gone)):
        pass


def _answered(session: Session | None, gone: threading.Event) -> float:
    """Say that we live; the pause until the next time."""
    if session is None:
        gone.set()
        return 0.0
    protocol = session._stream.protocol
    if protocol.alive_timeout_ms:
        session._answer()
    times = [ms for ms in (protocol.alive_interval_ms, protocol.alive_timeout_ms // ALIVE_SHARE) if ms]
    return min([PAUSE_MAX_S, *(ms / 1_000 for ms in times)])
