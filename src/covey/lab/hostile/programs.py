"""The processes of a hostile measurement, as its supervisor holds them; and what each of them does with its streams.

In:        a module and its task.  Out: what it says, line by line, each within its time.
Not here:  what the programs do (bystander.py, crowd.py, sender.py).
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from typing import Any, Final, TypeVar

import msgspec

from covey.lab.cluster import LiveError

PATIENCE_S: Final = 120.0
NICE: Final = 10
"""By how much those who make trouble stand back: what is measured is the daemon, not the want of processors."""
READ_BYTES: Final = 4_096

Told = TypeVar("Told")


class Program:
    """One process: ready, go, stop, result. Whatever it says comes within its time, or LiveError."""

    def __init__(self, module: str, task: Any) -> None:
        command = [sys.executable, "-m", f"{__package__}.{module}", msgspec.json.encode(task).decode()]
        self.name: str = task.name
        # A session of its own: Ctrl-C comes to us, and we end it.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        self._unread = b""

    def ready(self) -> None:
        said = msgspec.json.decode(self._line(PATIENCE_S))
        if said != "ready":
            raise LiveError(f"{self.name} could not begin: {said}")

    def tell(self, word: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{word}\n".encode())
        except BrokenPipeError:
            return  # It has died; whoever reads what it says is told.

    def answer(self, kind: type[Told], within_s: float = PATIENCE_S) -> Told:
        return msgspec.json.decode(self._line(within_s), type=kind)

    def _line(self, within_s: float) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            if not select.select([self._process.stdout], [], [], within_s)[0]:
                raise LiveError(f"{self.name} has said nothing for {within_s:g} s: a message is lost, or it hangs")
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                raise LiveError(f"{self.name} ended early, with exit code {self._process.wait(PATIENCE_S)}")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


# --- inside such a process


def say(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def told(within_s: float | None = None) -> str:
    """What the supervisor says next; nothing, if it does not in time. Its end is a `stop`."""
    stdin = sys.stdin.fileno()
    if not select.select([stdin], [], [], within_s)[0]:
        return ""
    return os.read(stdin, READ_BYTES).decode().strip() or "stop"
