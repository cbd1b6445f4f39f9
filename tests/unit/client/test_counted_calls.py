"""What one message costs the library, counted and not timed: calls of Python functions, and calls of the system.

A bound is what is reached today and a little more. Who raises one says why in the commit.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

import covey
from covey.client.stream import Stream
from tests.unit.client.by_hand import asyncio_session, blocking_session, pair
from tests.unit.client.fake_daemon import body_of, data_frame

FRAME = data_frame(body_of("bob@b:2.9", (0, bytes(100))), 1)
PAYLOAD = bytes(100)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Calls of Covey's own functions, by name; each time that a generator or coroutine goes on is one too."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        module = str(frame.f_globals["__name__"])
        if event == "call" and module.startswith("covey."):
            calls[f"{module}.{frame.f_code.co_name}"] += 1

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What the library asks the system for."""
    asked: Counter[str] = Counter()
    hear, read, writev, poll = Stream.hear, os.read, os.writev, select.poll

    def noted_hear(stream: Stream) -> bytes | OSError | None:
        asked["recv"] += 1
        return hear(stream)

    def noted_poll() -> select.poll:
        asked["poll"] += 1
        return poll()

    def noted_read(fileno: int, size: int) -> bytes:
        asked["read"] += 1
        return read(fileno, size)

    def noted_writev(fileno: int, parts: list[bytes]) -> int:
        asked["writev"] += 1
        return writev(fileno, parts)

    monkeypatch.setattr(Stream, "hear", noted_hear)
    monkeypatch.setattr(select, "poll", noted_poll)
    monkeypatch.setattr(os, "read", noted_read)
    monkeypatch.setattr(os, "writev", noted_writev)
    return asked


def test_calls_of_a_blocking_receive() -> None:
    with pair() as (ours, daemon):
        events = iter(blocking_session(ours))
        for _ in range(3):  # Names and places are learned.
            daemon.socket.sendall(FRAME)
            assert isinstance(next(events), covey.Message)
        daemon.socket.sendall(FRAME)
        with counted() as calls:
            next(events)
    assert calls.total() <= 26, calls


def test_calls_of_a_blocking_send() -> None:
    with pair() as (ours, _):
        session = blocking_session(ours)
        session.send("room", PAYLOAD)
        with counted() as calls:
            session.send("room", PAYLOAD)
    assert calls.total() <= 13, calls


def test_a_blocking_receive_is_one_read_and_a_send_one_write(asked: Counter[str]) -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours)
        daemon.socket.sendall(FRAME)
        session.receive()
        assert asked == {"recv": 1}
        daemon.socket.sendall(FRAME)
        session.receive(timeout=10)
        assert asked == {"recv": 2}
        session.send("room", PAYLOAD)
        assert asked == {"recv": 2, "writev": 1}


def test_a_wait_that_is_short_asks_first(asked: Counter[str]) -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours)
        daemon.socket.sendall(FRAME)
        session.receive(timeout=0.1)
        assert asked == {"poll": 1, "read": 1}


def test_calls_and_writes_of_an_asyncio_send(asked: Counter[str]) -> None:
    async def program() -> None:
        with pair() as (ours, _):
            session = asyncio_session(ours)
            await session.send("room", PAYLOAD)
            await asyncio.sleep(0)
            asked.clear()
            with counted() as calls:
                await session.send("room", PAYLOAD)
            assert calls.total() <= 16, calls
            assert asked == {"writev": 1}  # Written when the call returns, without a turn of the loop.
            await asyncio.sleep(0)
            assert asked == {"writev": 1}
            await session.disconnect(timeout=0.01)

    asyncio.run(program())


def test_calls_of_an_asyncio_receive() -> None:
    async def program() -> None:
        with pair() as (ours, daemon):
            session = asyncio_session(ours)
            events = aiter(session)
            for _ in range(3):
                daemon.socket.sendall(FRAME)
                await anext(events)
            daemon.socket.sendall(FRAME)
            with counted() as calls:
                await anext(events)
            assert calls.total() <= 24, calls
            await session.disconnect(timeout=0.01)

    asyncio.run(program())
