"""A helper process of a measurement, as who started it holds it: it says `ready`, is told `go`, and answers.

In:        a module and its task; words for the process, one a line.
Out:       what it says, one JSON line each, within its time; LiveError if it does not, or has ended.
Not here:  the other end of its streams (helper_streams.py); processes that tell events unasked (child.py).
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from .cluster import LiveError

PATIENCE_S: Final = 120.0
READ_BYTES: Final = 65_536

Answer = TypeVar("Answer")


class NamedTask(Protocol):
    """What a helper is told to do, as one JSON argument; its name stands in every error."""

    @property
    def name(self) -> str: ...


class HelperProcess:
    """Whoever starts one closes it."""

    def __init__(self, module: str, task: NamedTask, command: Sequence[str] = ()) -> None:
        """`command`: what to run instead of a module of ours."""
        command = command or [sys.executable, "-m", module, msgspec.json.encode(task).decode()]
        self.name = task.name
        # A session of its own: Ctrl-C comes to us, and we end it.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        self._unread = b""

    def ready(self) -> None:
        """Wait until it can begin. Instead of `ready` it may say why it cannot, as a text or as a result."""
        said: Any = msgspec.json.decode(self._line(PATIENCE_S))
        if said != "ready":
            problem = said.get("problem", said) if isinstance(said, dict) else said
            raise LiveError(f"{self.name} could not begin: {problem}")

    def tell(self, word: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{word}\n".encode())
        except BrokenPipeError:
            return  # It has died; whoever reads what it says is told.

    def answer(self, wanted: type[Answer], within_s: float = PATIENCE_S) -> Answer:
        return msgspec.json.decode(self._line(within_s), type=wanted)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _line(self, within_s: float) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            if not select.select([self._process.stdout], [], [], within_s)[0]:
                raise LiveError(f"{self.name} has said nothing for {within_s:g} s: a message is lost, or it hangs")
            data = os.read(self._process.stdout.fileno(), READ_BYTES)
            if not data:
                raise LiveError(f"{self.name} ended early, with exit code {self._process.wait(PATIENCE_S)}")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line
