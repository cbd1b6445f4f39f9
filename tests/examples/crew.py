"""Programs of the examples on real daemons: a cluster, a network that can be parted, and waiting for what is to come.

In:        which daemons and settings.  Out: sessions at daemons, programs that run until the test ends.
Not here:  what an example must hold (the tests beside this file).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import covey
from covey.client.address import socket_path
from covey.lab.cluster import Host, LocalCluster
from covey.lab.faultnet import FaultNet

ROOT = Path(__file__).parents[2]
PORT = 4_801
WITHIN_S = 40
PATIENT = """
[settings]
token_lost_ms = 2_000
peer_timeout_ms = 3_000
"""
"""On a machine with too much to do, a daemon that had no time must not be taken for a lost one. Kills are noticed at
once all the same, from the closed port."""
NAMES = "abc"


def address(cluster: LocalCluster, daemon: str) -> str:
    return f"unix:{socket_path(cluster.cluster.digest(), daemon)}"


def addresses(cluster: LocalCluster, first: str) -> list[str]:
    """This daemon, then the others."""
    return [address(cluster, first), *(address(cluster, one) for one in NAMES if one != first)]


@contextmanager
def three(directory: Path, settings: str = PATIENT, hosts: list[Host] | None = None) -> Iterator[LocalCluster]:
    """Three daemons in one view."""
    with LocalCluster(directory, run=directory.name, hosts=hosts, traced=False) as cluster:
        cluster.file.write_text(cluster.file.read_text() + settings)
        cluster.start(*NAMES)
        cluster.wait_for_view(*NAMES)
        yield cluster


@contextmanager
def three_that_can_be_parted(directory: Path) -> Iterator[tuple[LocalCluster, FaultNet]]:
    if reason := FaultNet.unavailable():
        pytest.skip(reason)
    with ExitStack() as stack:
        net = stack.enter_context(FaultNet(hosts=3))
        hosts = [Host(net.address(host), PORT, partial(net.popen, host)) for host in net.hosts]
        yield stack.enter_context(three(directory, "", hosts)), net


def run(program: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(program, WITHIN_S))


class Crew:
    """Sessions and what they do until the test ends. `news` is set by whatever a test may wait for."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._sessions: list[covey.Session] = []

    async def session(self, name: str, where: str | list[str], policy: covey.Policy = "disconnect") -> covey.Session:
        session = await covey.connect(name, where, policy=policy)
        self._sessions.append(session)
        return session

    def go(self, *programs: Coroutine[Any, Any, None]) -> None:
        for program in programs:
            task = asyncio.create_task(program)
            task.add_done_callback(lambda _: self.news.set())
            self._tasks.append(task)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Looked at again whenever there is news. A program that failed is told at once."""
        while not holds():
            for task in self._tasks:
                if task.done() and not task.cancelled() and (error := task.exception()):
                    raise error
            self.news.clear()
            await self.news.wait()

    async def end(self) -> None:
        for session in self._sessions:
            await session.disconnect()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def crew() -> AsyncIterator[Crew]:
    made = Crew()
    try:
        yield made
    finally:
        await made.end()


@asynccontextmanager
async def process(module: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """An example as its readers run it. It is gone afterwards."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"examples.{module}", *arguments),
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield program
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()


def say(program: asyncio.subprocess.Process, line: str) -> None:
    assert program.stdin is not None
    program.stdin.write(f"{line}\n".encode())


async def heard(program: asyncio.subprocess.Process, text: str) -> str:
    """The next line with this text."""
    assert program.stdout is not None
    async for line in program.stdout:
        if text in line.decode():
            return line.decode().rstrip("\n")
    raise AssertionError(f"the program ended without {text!r}")
