"""Looking for another daemon, with asyncio: for as long as the program wants, and no longer than it stays."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest

import covey
from covey.client.session import Session
from tests.unit.client.fake_daemon import FakeSession, Serve, echoing, greeting_then, listening


async def taken(session: Session, count: int) -> list[covey.Event]:
    return [await session.receive() for _ in range(count)]


async def _all(session: Session) -> list[covey.Event]:
    return [event async for event in session]


def test_when_patience_is_over_nobody_can_miss_it(tmp_path: Path) -> None:
    async def main(address: str) -> None:
        async with covey.connect("alice", [address], reconnect_for=0.2) as session:
            (tmp_path / "socket").unlink()
            assert [type(event) for event in await taken(session, 2)] == [covey.Disconnected, covey.Reconnecting]
            with pytest.raises(covey.ReconnectError, match=r"within .* s: .*nobody listens"):
                await _all(session)
            for _ in range(2):
                with pytest.raises(covey.ReconnectError, match="nobody listens"):
                    await session.receive()
            with pytest.raises(covey.SessionOverError, match=r"no daemon let us in again .* connect again"):
                await session.send("room", b"x")

    with listening(tmp_path / "socket", greeting_then(FakeSession(), lambda _: None)) as address:
        asyncio.run(main(address))


def test_patience_ends_while_a_daemon_hangs(tmp_path: Path) -> None:
    """It lets us connect and says nothing: that may take longer than we want to try."""
    done = threading.Event()

    async def main(address: str) -> None:
        async with covey.connect("alice", [address], timeout=20, reconnect_for=0.1) as session:
            assert isinstance(await session.receive(), covey.Disconnected)
            with pytest.raises(covey.ReconnectError, match="none has answered yet"):
                await session.receive()
        done.set()

    def hang(_: socket.socket) -> None:
        done.wait()

    with listening(tmp_path / "socket", greeting_then(FakeSession(), lambda _: None), hang) as address:
        asyncio.run(main(address))


def lost(path: Path) -> tuple[str, Serve]:
    return f"unix:{path}/second", greeting_then(FakeSession(), lambda _: None)


def test_a_search_outlives_a_receive_that_waits_no_longer(tmp_path: Path) -> None:
    """The daemon is back after some receives have timed out: each time the same search went on."""

    async def main(first: str, second: str) -> None:
        async with asyncio.timeout(30), covey.connect("alice", [first, second]) as session:
            assert isinstance(await session.receive(), covey.Disconnected)
            (tmp_path / "first").unlink()
            assert isinstance(await session.receive(), covey.Reconnecting)
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await session.receive(timeout=0.02)
            search = session._search
            with listening(tmp_path / "second", echoing(FakeSession("b", 9))):
                assert await session.receive() == covey.Reconnected("alice@b:7.9", "alice@b")
                assert (search is not None, session._search) == (True, None)
                await session.disconnect()

    second, serve = lost(tmp_path)
    with listening(tmp_path / "first", serve) as first:
        asyncio.run(main(first, second))


def test_a_search_can_be_cancelled_and_left(tmp_path: Path) -> None:
    async def main(first: str, second: str) -> None:
        async with asyncio.timeout(30), covey.connect("alice", [first, second]) as session:
            assert isinstance(await session.receive(), covey.Disconnected)
            (tmp_path / "first").unlink()
            assert isinstance(await session.receive(), covey.Reconnecting)
            reading = asyncio.create_task(session.receive())
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            rest = asyncio.create_task(_all(session))
            await asyncio.sleep(0)
            await session.disconnect()
            assert await rest == []
            assert session._search is None

    second, serve = lost(tmp_path)
    with listening(tmp_path / "first", serve) as first:
        asyncio.run(main(first, second))
