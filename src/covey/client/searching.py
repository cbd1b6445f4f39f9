"""A thread that looks for another daemon, so that whoever waits for events waits no longer than it wanted to.

In:        a plan, and the address to begin with; that the program has left.
Out:       `Reconnecting` events, then an open stream or the reason why there is none.
Not here:  trying (dial_blocking.py), how often and how long (search.py), the same with asyncio (session.py).
"""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue

from covey.errors import ConnectError

from .dial_blocking import Dialled, dial
from .events import Reconnecting
from .plan import ConnectPlan
from .search import Search

Found = Reconnecting | Dialled | Exception | None
"""None: we have left."""


class Searching:
    """One search. It ends by itself, at the latest when the attempt that is under way has failed after `stop`."""

    def __init__(self, plan: ConnectPlan, first: int) -> None:
        self._plan = plan
        self._first = first
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._found: SimpleQueue[Found] = SimpleQueue()
        threading.Thread(target=self._run, name="covey-reconnect", daemon=True).start()

    def next(self, timeout_s: float | None) -> Found:
        """What is found next; TimeoutError if that takes too long."""
        try:
            return self._found.get(timeout=timeout_s)
        except Empty:
            raise TimeoutError("no event came in time") from None

    def stop(self) -> None:
        """Nobody needs it any more. Whoever waits for it is told."""
        with self._lock:
            self._stopped.set()
        while not self._found.empty():
            drop(self._found.get())
        self._found.put(None)

    def _run(self) -> None:
        try:
            found: Found = self._dialled()
        except Exception as error:  # noqa: BLE001 - whoever waits for events gets it
            found = error
        with self._lock:
            if self._stopped.is_set():
                drop(found)
            else:
                self._found.put(found)

    def _dialled(self) -> Dialled | None:
        """Try all addresses in turn until one lets us in, for as long as the program wants."""
        search = Search(self._plan.name, self._plan.bounds.reconnect_for_s, time.monotonic())
        while not self._stopped.is_set():
            try:
                return dial(self._plan, self._first, search.left(time.monotonic()))
            except ConnectError as error:
                if told := search.failed(error, time.monotonic()):
                    self._found.put(told)
            self._stopped.wait(search.pause(time.monotonic()))
        return None


def drop(found: Found) -> None:
    """It came too late."""
    if isinstance(found, tuple):
        found[0].close()
