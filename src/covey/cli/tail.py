"""`covey tail`: what happens in groups, as it happens.

In:        names of groups; on a terminal, keys: space pauses and goes on, q ends.
Out:       one line an event, or one JSON object.
Not here:  the lines (lines.py), the session (covey.connect).

A pause is a slow receiver: nothing is read, the daemon keeps what comes, and does what the policy says when it has
kept too much. So nothing is lost without a word.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from .common import BROKEN, RECONNECT_S, At, GroupNames, Json, PolicyName, finite, session_name, telling

if TYPE_CHECKING:
    import asyncio

    from covey.client.events import Single
    from covey.client.session import Session

EXAMPLES = (
    "covey tail room",
    "covey tail room kitchen --no-views",
    "covey tail room --json --count 10",
    "covey tail room --policy block",
)


def tail(
    groups: GroupNames,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many messages.")] = None,
    seconds: Annotated[float | None, typer.Option(callback=finite, min=0.1, help="Stop after so many seconds.")] = None,
    views: Annotated[bool, typer.Option("--views/--no-views", help="Show who comes and goes, and why.")] = True,
    policy: Annotated[
        PolicyName, typer.Option(help="If we read too slowly: disconnect us, or block the senders for a while.")
    ] = PolicyName.DISCONNECT,
    name: Annotated[str | None, typer.Option(help="Who listens: unique at its daemon.")] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show messages and views of groups, as they come.

    On a terminal space pauses and goes on, and q ends. Exits 1 if the daemons end it.
    """
    import asyncio

    from covey.client.address import endpoints

    with telling("tail"):
        where = [str(one) for one in endpoints(at)]
        show = Show(as_json, views, count)
        code = asyncio.run(_tail(session_name(name, "tail"), where, groups, policy.value, seconds, show))
    raise typer.Exit(code)


class Show:
    """Prints events; knows when it is enough, and whether it is paused."""

    def __init__(self, as_json: bool, views: bool, count: int | None) -> None:
        from .lines import Changes

        self._as_json = as_json
        self._views = views
        self._left = count
        self._changes = Changes("")

    def event(self, event: Single) -> bool:
        """Whether that was enough."""
        from covey.client.events import Message, Reconnected

        is_message = isinstance(event, Message)
        if isinstance(event, Reconnected):
            self._changes.forget()
        if is_message or self._views:
            self._print(event)
        if is_message and self._left is not None:
            self._left -= 1
        return self._left == 0

    def _print(self, event: Single) -> None:
        from .keys import dim
        from .lines import clock_text, event_json, event_text

        if self._as_json:
            print(json.dumps(event_json(event, time.time_ns())), flush=True)
            return
        groups, text = event_text(event, self._changes)
        line = f"{groups}  {text}" if groups else text
        print(f"{dim(clock_text(time.time()))}  {dim(line) if text.startswith('*') else line}", flush=True)


async def _tail(name: str, where: list[str], groups: list[str], policy: str, seconds: float | None, show: Show) -> int:
    """The exit code: 1 if the daemons ended it."""
    import asyncio
    import logging

    from covey.client.connection import connect

    going_on = asyncio.Event()
    going_on.set()
    logging.getLogger("covey").addHandler(logging.NullHandler())  # Events tell the same.
    async with connect(name, where, policy=policy, reconnect_for=RECONNECT_S) as session:  # type: ignore[arg-type]
        task = asyncio.ensure_future(_listen(session, groups, going_on, show))
        with _keys(going_on, task):
            try:
                return await asyncio.wait_for(asyncio.shield(task), seconds)
            except TimeoutError:
                return 0
            except asyncio.CancelledError:
                if task.cancelled():
                    return 0  # The key q.
                raise
            finally:
                task.cancel()


async def _listen(session: Session, groups: list[str], going_on: asyncio.Event, show: Show) -> int:
    from covey.client.events import Reconnected

    await _join(session, groups)
    async for event in session:
        await going_on.wait()
        if show.event(event):
            return 0
        if isinstance(event, Reconnected):
            await _join(session, groups)
    return BROKEN


async def _join(session: Session, groups: list[str]) -> None:
    from contextlib import suppress

    from covey.errors import SessionOverError

    with suppress(SessionOverError):  # The next event says why.
        for group in dict.fromkeys(groups):
            await session.join(group)


class _keys:  # noqa: N801 - used as a function is
    """While it lasts, keys pause, go on and end."""

    def __init__(self, going_on: asyncio.Event, task: asyncio.Future[int]) -> None:
        import asyncio
        from contextlib import ExitStack

        self._going_on = going_on
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._stack = ExitStack()

    def __enter__(self) -> None:
        from .keys import STDIN, is_terminal, single_keys

        if is_terminal():
            self._stack.enter_context(single_keys())
            self._loop.add_reader(STDIN, self._on_key)
            self._stack.callback(self._loop.remove_reader, STDIN)
            print("-- space pauses, q ends", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _on_key(self) -> None:
        from .keys import read_keys

        keys = read_keys()
        if not keys or b"q" in keys:
            self._task.cancel()
        elif b" " in keys or b"p" in keys:
            self._toggle()

    def _toggle(self) -> None:
        if self._going_on.is_set():
            self._going_on.clear()
            print("-- paused; space goes on, q ends", file=sys.stderr, flush=True)
        else:
            self._going_on.set()
            print("-- going on", file=sys.stderr, flush=True)
