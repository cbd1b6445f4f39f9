"""Commands to a daemon process: lines on its standard input.

    status       say how you are
    calm P P …   faults are over; these processes are connected with one another: a row of the trace
    end          the run ends here, with you alive: write the last row, and do nothing more
    stop         stop in good order

In:        bytes as they come.  Out: calls to whoever carries the commands out.
Not here:  what a command does (daemon.py).

The end of the input is a `stop`: daemons do not outlive a supervisor that has died.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

LINE_BYTES_MAX: Final = 65_536

Command = Callable[[list[str]], None]


class CommandLines:
    r"""Cuts bytes into lines and calls the command that each line names.

    >>> said = []
    >>> lines = CommandLines({"calm": said.append}, unknown=said.append)
    >>> lines.feed(b"calm a:1 b:"); lines.feed(b"1\nhello\n"); said
    [['a:1', 'b:1'], ['hello']]
    """

    def __init__(self, commands: Mapping[str, Command], unknown: Command) -> None:
        self._commands = commands
        self._unknown = unknown
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._obey(line.decode(errors="replace").split())
        if len(self._rest) > LINE_BYTES_MAX:
            self._rest = b""
            self._unknown(["a", "line", "without", "end"])

    def _obey(self, words: list[str]) -> None:
        if not words:
            return
        command = self._commands.get(words[0])
        if command is None:
            self._unknown(words)
        else:
            command(words[1:])
