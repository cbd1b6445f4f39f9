"""The router as seen from the bench: a child process that is asked, and answers.

In:        requests.  Out: replies; the namespaces of the hosts.
Not here:  what a request means to hosts and paths (net.py).

A child, because a busy test would otherwise hold up the packets: two threads of Python take turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Final, TypeVar

from .messages import REPLY, Adopt, HostsReady, Request, RequestDone, Start, channel, hear, say
from .path import FaultNetError

WITHIN_S: Final = 30.0
"""How long any answer may take, that of a router that has yet to start on a busy machine included."""

Answer = TypeVar("Answer")


class RouterProcess:
    """A running router. Any thread may ask."""

    def __init__(self, start: Start) -> None:
        self._one_at_a_time = threading.Lock()
        self._control, theirs = channel()
        self._control.settimeout(WITHIN_S)
        self.namespaces: list[int] = []
        # Its own session: a Ctrl-C at the terminal is for the bench, whose end is the router's end.
        command = [sys.executable, "-m", "covey.lab.faultnet.router"]
        with theirs:
            self._popen = subprocess.Popen(command, stdin=theirs.fileno(), start_new_session=True)
        try:
            _, self.namespaces = self._exchange(start, HostsReady)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._popen.pid

    def ask(self, request: Request, wanted: type[Answer]) -> Answer:
        """FaultNetError: the router is gone."""
        return self._exchange(request, wanted)[0]

    def adopt(self, pid: int) -> None:
        """Should the bench die without a chance to clean up, this process is killed."""
        process = os.pidfd_open(pid)
        try:
            self._exchange(Adopt(), RequestDone, process)
        finally:
            os.close(process)

    def close(self) -> None:
        """The router, its devices and, unless somebody is inside, the namespaces are gone afterwards."""
        self._control.close()
        self._reap()
        for namespace in self.namespaces:
            os.close(namespace)
        self.namespaces = []

    def _exchange(self, request: Request, wanted: type[Answer], *descriptors: int) -> tuple[Answer, list[int]]:
        with self._one_at_a_time:
            try:
                say(self._control, request, descriptors)
                heard = hear(self._control, REPLY)
            except OSError as error:
                self._control.close()  # A late answer must not be taken for that to the next question.
                raise FaultNetError(f"the router does not answer: {error}") from error
        if heard is None:
            raise FaultNetError(f"the router has ended, with code {self._reap()}: it said why on standard error")
        reply, received = heard
        assert isinstance(reply, wanted), f"{request} was answered by {reply}"
        return reply, received

    def _reap(self) -> int:
        """Its exit code. It ends by itself when its control socket does; a stopped one has to be killed."""
        try:
            return self._popen.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self._popen.wait()
