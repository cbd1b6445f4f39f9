"""The keyboard and the end of a program, for all examples."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import covey

STDIN = 0


async def lines() -> AsyncIterator[str]:
    """Lines from standard input, until its end; the event loop goes on meanwhile."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        data = b"?"
        while data:
            data = os.read(STDIN, 65_536)
            loop.call_soon_threadsafe(queue.put_nowait, data)

    threading.Thread(target=read, daemon=True).start()
    rest = b""
    while data := await queue.get():
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


async def until_one_ends(*programs: Coroutine[Any, Any, None]) -> None:
    """Run all of them; when one ends, so do the others. If it failed, its error is ours."""
    tasks = [asyncio.create_task(program) for program in programs]
    ended, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    for task in ended:
        task.result()


def run(program: Coroutine[Any, Any, None]) -> None:
    """Run until its end or Ctrl-C. What Covey has to say goes to standard error."""
    try:
        asyncio.run(program)
    except KeyboardInterrupt:
        sys.exit(130)
    except covey.CoveyError as error:
        sys.exit(f"{error}")
