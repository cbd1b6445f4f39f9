"""The processes in which a copy of the tree is run: started, given a time, and all killed at once when we are stopped.

In:        a command, the copy in which it runs, how much time it has.
Out:       how it ended, and what it said.
Not here:  what that says about a fault (judging.py).
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from threading import Lock
from typing import NamedTuple


class Ended(NamedTuple):
    code: int | None
    """As processes end: negative is a signal. None: its time was over first."""
    said: str = ""
    erred: str = ""
    """Standard error."""


class Children:
    """Processes under way. Threads share it: each waits for a child of its own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: list[subprocess.Popen[str]] = []
        self._is_stopped = False

    def run(self, command: list[str], tree: Path, seconds: float | None) -> Ended:
        """A child from its start to its end. After `stop` it is as if it had been killed."""
        child = self._start(command, tree)
        if child is None:
            return Ended(-signal.SIGKILL)
        try:
            said, erred = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return Ended(None)
        finally:
            self._running.remove(child)
        return Ended(child.returncode, said.strip(), erred.strip())

    def stop(self) -> None:
        """Kill all, and start no more."""
        with self._lock:
            self._is_stopped = True
            for child in list(self._running):
                child.kill()

    def _start(self, command: list[str], tree: Path) -> subprocess.Popen[str] | None:
        """Nobody is started between the last look of `stop` and its end: hence the lock."""
        environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}:{tree}", "PYTHONDONTWRITEBYTECODE": "1"}
        pipe = subprocess.PIPE
        with self._lock:
            if self._is_stopped:
                return None
            child = subprocess.Popen(command, cwd=tree, env=environment, stdout=pipe, stderr=pipe, text=True)
            self._running.append(child)
        return child
