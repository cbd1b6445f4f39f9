"""`covey chat`: talk to the members of a group, and see who comes and goes, and why.

In:        lines, from a terminal or from a file or pipe.
Out:       lines, or JSON objects, as in `covey tail`.
Not here:  the line that is being typed (editor.py), how events read (lines.py).
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Final

import typer

from .common import BROKEN, RECONNECT_S, At, Json, ServiceName, telling
from .complete import group_names

if TYPE_CHECKING:
    import asyncio

    from covey.client.events import Message, Single
    from covey.client.session import Session

    from .lines import Changes

HELP: Final = "a line is sent to all; /who lists members; /quit ends\n/to NAME@DAEMON TEXT is for one of them alone"

EXAMPLES = (
    "covey chat",
    "covey chat kitchen --name alice --at b",
    "fortune | covey chat room --name poet",
)


def chat(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Where to talk.", autocompletion=group_names)] = "room",
    name: Annotated[str | None, typer.Option(help="Who you are: unique at your daemon. Your login if unset.")] = None,
    service: Annotated[ServiceName, typer.Option(help="What is promised of each line.")] = ServiceName.AGREED,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Talk in a group, and see who comes and goes.

    Everybody sees the same lines in the same order. /help lists what else can be typed; Ctrl-D or /quit ends.
    """
    import asyncio
    import getpass

    from covey.client.address import endpoints

    with telling("chat"):
        where = [str(one) for one in endpoints(at)]
        screen: Screen = Objects() if as_json else Prompt() if _is_terminal() else Screen()
        talk = Talk(group, service, screen)
        code = asyncio.run(_run(talk, [name] if name else _own_names(getpass.getuser()), where))
    raise typer.Exit(code)


def _own_names(login: str) -> list[str]:
    """Who did not choose a name has any that is free.

    >>> _own_names("ann")[:3]
    ['ann', 'ann2', 'ann3']
    """
    return [login, *(f"{login}{number}" for number in range(2, 10))]


async def _run(talk: Talk, names: list[str], where: list[str]) -> int:
    from covey.errors import RefusedError

    for name in names[:-1]:
        try:
            return await talk.run(name, where)
        except RefusedError as error:
            if "taken" not in str(error):
                raise
    return await talk.run(names[-1], where)


def _is_terminal() -> bool:
    from .keys import is_terminal

    return is_terminal()


class Screen:
    """Where lines appear, one after the other."""

    def event(self, event: Single, text: str) -> None:
        del event
        self.line(text)

    def line(self, text: str) -> None:
        print(text, flush=True)

    def end(self) -> None:
        return


class Objects(Screen):
    """For programs."""

    def event(self, event: Single, text: str) -> None:
        from .lines import event_json

        del text
        print(json.dumps(event_json(event, time.time_ns())), flush=True)

    def line(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class Prompt(Screen):
    """Lines appear above the one that is being typed."""

    def __init__(self) -> None:
        from .editor import CLEAR, LineEditor

        self._clear = CLEAR
        self._editor = LineEditor()

    def line(self, text: str) -> None:
        from .keys import dim

        print(f"{self._clear}{dim(text) if text[9:10] == '*' else text}", flush=True)
        self._draw()

    def type(self, data: bytes) -> list[str]:
        lines = self._editor.feed(data)
        self._draw()
        return lines

    def end(self) -> None:
        print(self._clear, end="", flush=True)

    def _draw(self) -> None:
        columns = os.get_terminal_size().columns
        print(f"{self._clear}{self._editor.shown('> ', columns)}", end="", flush=True)


class Talk:
    """One session in one group."""

    def __init__(self, group: str, service: ServiceName, screen: Screen) -> None:
        import asyncio

        from covey.protocol.values import Service

        self._heard = asyncio.Event()
        self._group = group
        self._service = Service[service.name]
        self._screen = screen
        self._members: tuple[str, ...] = ()
        self._sent = 0
        self._seen = 0

    async def run(self, name: str, where: list[str]) -> int:
        """The exit code: 1 if the daemons ended it."""
        import asyncio
        import logging

        from covey.client.connection import connect

        from .lines import Changes

        logging.getLogger("covey").addHandler(logging.NullHandler())  # Events tell the same.
        async with connect(name, where, reconnect_for=RECONNECT_S) as session:
            lines: asyncio.Queue[str | None] = asyncio.Queue(100)
            with ExitStack() as stack:
                self._open_input(lines, stack)
                listening = asyncio.ensure_future(self._listen(session, Changes(session.name)))
                talking = asyncio.ensure_future(self._talk(session, lines))
                try:
                    await asyncio.wait((listening, talking), return_when=asyncio.FIRST_COMPLETED)
                    if listening.done():
                        listening.result()
                        return BROKEN
                    return talking.result()
                finally:
                    listening.cancel()
                    talking.cancel()
                    self._screen.end()

    # --- what others do

    async def _listen(self, session: Session, changes: Changes) -> None:
        from covey.client.events import Message, Reconnected, View

        from .lines import clock_text, event_text

        await session.join(self._group)
        async for event in session:
            if isinstance(event, Message):
                self._screen.event(event, f"{clock_text(time.time())[:8]} {self._said(event, session)}")
                continue
            if isinstance(event, View):
                self._members = event.members
            elif isinstance(event, Reconnected):
                changes.forget()
                self._seen = self._sent = 0
                self._heard.set()
                await session.join(self._group)
            self._screen.event(event, f"{clock_text(time.time())[:8]} {event_text(event, changes)[1]}")

    def _said(self, message: Message, session: Session) -> str:
        from .lines import message_text

        if message.process == session.process:
            self._seen = message.session_seq
            self._heard.set()
        return message_text(message) + ("" if self._group in message.groups else "  (to you alone)")

    # --- what we type

    async def _talk(self, session: Session, lines: asyncio.Queue[str | None]) -> int:
        from .lines import printable

        if isinstance(self._screen, Prompt):
            self._screen.line(f"you are {session.name}, in {printable(self._group)}\n{HELP}")
        while (line := await lines.get()) is not None and line.strip() != "/quit":
            if line.strip():
                await self._say(session, line)
        while self._seen < self._sent:
            self._heard.clear()
            await self._heard.wait()  # What we said last is ours to see too.
        return 0

    async def _say(self, session: Session, line: str) -> None:
        from covey.errors import CoveyError

        if not _is_text(line):
            self._screen.line(f"nobody was told this line, it is not UTF-8 text: {line!a}")
            return
        words = line.split(None, 2)
        try:
            if not line.startswith("/"):
                self._sent = await session.send(self._group, line.encode(), self._service)
            elif words[0] == "/who":
                self._screen.line(f"here: {' '.join(self._members) or 'nobody yet'}")
            elif words[0] == "/to" and len(words) == 3:
                await session.send(words[1], words[2].encode(), self._service)
                self._screen.line(f"(to {words[1]} alone) {words[2]}")
            else:
                self._screen.line(HELP if words[0] == "/help" else f"nobody was told that; {HELP}")
        except CoveyError as error:
            self._screen.line(str(error))

    def _open_input(self, lines: asyncio.Queue[str | None], stack: ExitStack) -> None:
        import asyncio
        import threading

        from .keys import STDIN, single_keys

        loop = asyncio.get_running_loop()
        if isinstance(self._screen, Prompt):
            stack.enter_context(single_keys())
            loop.add_reader(STDIN, self._on_keys, self._screen, lines)
            stack.callback(loop.remove_reader, STDIN)
        else:
            threading.Thread(target=_read_lines, args=(loop, lines), daemon=True).start()

    def _on_keys(self, prompt: Prompt, lines: asyncio.Queue[str | None]) -> None:
        from .editor import EndOfInput
        from .keys import read_keys

        try:
            data = read_keys()
            finished: list[str | None] = [*prompt.type(data)] if data else [None]
        except EndOfInput:
            finished = [None]
        for line in finished:
            if not lines.full():
                lines.put_nowait(line)


def _is_text(line: str) -> bool:
    r"""Whether UTF-8 was read; what was not is kept in characters that nothing else has.

    >>> _is_text("grüß"), _is_text(b"caf\xe9".decode(errors="surrogateescape"))
    (True, False)
    """
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_lines(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str | None]) -> None:
    """In a thread of its own: a file cannot be waited for. The end of the input is a None."""
    import asyncio

    for read in sys.stdin.buffer:
        line = read.decode(errors="surrogateescape").rstrip("\r\n")
        asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
    asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()
