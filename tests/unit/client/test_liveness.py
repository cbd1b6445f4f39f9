"""Programs that notice a daemon that hangs, and daemons that can notice a program that does."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import covey
from covey.client.inbox import RECEIVE_BYTES_MAX
from covey.client.protocol import ClientProtocol
from covey.protocol.asked import Sending
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import ClientAlive, DaemonAlive, GroupSignal
from tests.unit.client.by_hand import TIMEOUT_S, age, asyncio_session, blocking_session, pair
from tests.unit.client.fake_daemon import (
    FakeSession,
    body_of,
    data_frame,
    echoing,
    greeting_then,
    listening,
    welcome,
    words_of,
)

GIVEN_UP = covey.Disconnected("the daemon did not answer for 5 s")
ALIVE_MS = 9_000
FLOOD = data_frame(body_of("bob@b:2.9", (0, bytes(1_000))), 1) * (RECEIVE_BYTES_MAX // 1_000)


def run(program: Any) -> None:
    asyncio.run(asyncio.wait_for(program, 30))


# --- without a socket


def open_protocol(alive_ms: int) -> ClientProtocol:
    client = ClientProtocol("alice")
    client.take(1)
    client.feed(encode_word(welcome(interval_ms=1_000, alive_ms=alive_ms)))
    return client


def test_the_daemons_sign_of_life_is_no_event_and_is_answered_where_silence_is_judged() -> None:
    client = open_protocol(ALIVE_MS)
    assert (client.alive_interval_ms, client.alive_timeout_ms) == (1_000, ALIVE_MS)
    assert client.feed(encode_word(DaemonAlive()) * 3) == []
    client.send("room", b"x")
    first, *rest = words_of(client.take(1 << 20))
    assert first == ClientAlive()
    assert [type(word) for word in rest] == [Sending]


def test_it_is_not_answered_where_nobody_judges() -> None:
    client = open_protocol(0)
    assert client.feed(encode_word(DaemonAlive())) == []
    assert client.take(1 << 20) == []


def test_who_has_left_says_no_more_that_it_lives() -> None:
    client = open_protocol(ALIVE_MS)
    client.feed(encode_word(DaemonAlive()))
    client.lost("gone")
    client.say_alive()
    assert client.take(1 << 20) == []


# --- with asyncio


def test_asyncio_gives_up_a_silent_daemon(tmp_path: Path) -> None:
    """In real time, and the next daemon is found."""
    done = threading.Event()

    def hang(_: socket.socket) -> None:
        done.wait()

    async def program(addresses: list[str]) -> None:
        async with covey.connect("alice", addresses, daemon_timeout=0.05) as session:
            assert await session.receive() == covey.Disconnected("the daemon did not answer for 0.05 s")
            with pytest.raises(covey.SessionOverError, match="after Reconnected"):
                await session.send("room", b"x")
            done.set()
            assert isinstance(await session.receive(), covey.Reconnected)
            await session.send("room", b"x")
            assert isinstance(await session.receive(), covey.Message)

    with (
        listening(tmp_path / "first", greeting_then(FakeSession(interval_ms=10), hang)) as first,
        listening(tmp_path / "second", echoing(FakeSession("b", 9))) as second,
    ):
        run(program([first, second]))


def test_asyncio_senders_notice_too() -> None:
    async def program() -> None:
        with pair() as (ours, _):
            session = asyncio_session(ours)
            await session.send("room", b"x")
            age(session, TIMEOUT_S)
            session._on_time(session._watch.due)
            assert not session.is_open
            with pytest.raises(covey.SessionOverError, match="did not answer for 5 s"):
                await session.send("room", b"x")
            assert [event async for event in session] == [GIVEN_UP]

    run(program())


def test_asyncio_reads_before_it_judges() -> None:
    """A program that was stopped finds the daemon's words in its socket."""

    async def program() -> None:
        with pair() as (ours, daemon):
            session = asyncio_session(ours)
            daemon.say(DaemonAlive())
            age(session, TIMEOUT_S)
            session._on_time(session._watch.due)
            assert session.is_open
            assert session._watch.due > session._loop.time()
            await session.disconnect(timeout=0.01)

    run(program())


@pytest.mark.parametrize("interval_ms", [0, 1_000])
def test_asyncio_sets_one_timer_and_sets_it_anew_only_when_its_time_has_come(interval_ms: int) -> None:
    async def program() -> None:
        with pair() as (ours, daemon):
            session = asyncio_session(ours, interval_ms)
            timer = session._timer
            assert (timer is not None) == bool(interval_ms)
            for _ in range(3):
                daemon.say(GroupSignal("room"))
                await session.receive()
            assert session._timer is timer
            await session.disconnect(timeout=0.01)
            assert timer is None or timer.cancelled()

    run(program())


def test_asyncio_answers_as_it_reads() -> None:
    async def program() -> None:
        with pair() as (ours, daemon):
            session = asyncio_session(ours, alive_ms=ALIVE_MS)
            daemon.say(DaemonAlive(), DaemonAlive())
            assert await asyncio.to_thread(daemon.hear) == [ClientAlive()]
            await session.disconnect(timeout=0.01)

    run(program())


async def until_full(session: covey.Session) -> None:
    while session._is_reading:  # noqa: ASYNC110 - nobody is told
        await asyncio.sleep(0)


def test_asyncio_does_not_judge_while_it_does_not_read_and_says_that_it_lives() -> None:
    async def program() -> None:
        with pair() as (ours, daemon):
            session = asyncio_session(ours, alive_ms=ALIVE_MS)
            filling = asyncio.create_task(asyncio.to_thread(daemon.socket.sendall, FLOOD))
            await until_full(session)
            age(session, TIMEOUT_S)
            session._on_time(session._watch.due)
            assert session.is_open
            assert await asyncio.to_thread(daemon.hear) == [ClientAlive()]
            while not (session._is_reading and filling.done()):
                with suppress(TimeoutError):  # All may be taken before the loop knows that all is sent.
                    await session.receive(0.01)
            while session.is_open:  # What is left is read, then nothing is.
                age(session, TIMEOUT_S)
                session._on_time(session._watch.due)

    run(program())


# --- without asyncio


def test_a_blocking_program_gives_up_a_silent_daemon(tmp_path: Path) -> None:
    """In real time, over several calls, and the next daemon is found."""
    done = threading.Event()

    def hang(_: socket.socket) -> None:
        done.wait()

    with (
        listening(tmp_path / "first", greeting_then(FakeSession(interval_ms=10), hang)) as first,
        listening(tmp_path / "second", echoing(FakeSession("b", 9))) as second,
        covey.blocking.connect("alice", [first, second], daemon_timeout=0.1) as session,
    ):
        assert patient(session) == covey.Disconnected("the daemon did not answer for 0.1 s")
        done.set()
        assert isinstance(patient(session), covey.Reconnected)
        session.send("room", b"x")
        assert isinstance(session.receive(), covey.Message)


def patient(session: covey.blocking.Session) -> covey.Event:
    """In small steps, each of which is too short to tell."""
    while True:
        try:
            return session.receive(timeout=0.02)
        except TimeoutError:
            pass


def test_blocking_senders_notice_too() -> None:
    with pair() as (ours, _):
        session = blocking_session(ours)
        session.send("room", b"x")
        age(session, TIMEOUT_S)
        with pytest.raises(covey.SessionOverError, match="did not answer for 5 s"):
            session.send("room", b"x")
        assert list(session) == [GIVEN_UP]


def test_blocking_senders_read_what_has_come() -> None:
    """Those who only send hear the daemon all the same, and answer it."""
    with pair() as (ours, daemon):
        session = blocking_session(ours, alive_ms=ALIVE_MS)
        daemon.say(DaemonAlive(), GroupSignal("room"))
        age(session, TIMEOUT_S)
        session.send("room", b"x")
        assert session.is_open
        words = daemon.hear()
        while len(words) < 2:
            words += daemon.hear()
        assert [type(word) for word in words] == [ClientAlive, Sending]
        assert session.receive() == covey.Transitional("room")


def test_a_blocking_program_that_was_away_reads_before_it_judges() -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours)
        daemon.say(GroupSignal("room"))
        age(session, 10 * TIMEOUT_S)
        assert session.receive(timeout=0) == covey.Transitional("room")
        age(session, 10 * TIMEOUT_S)  # It may have been stopped together with its daemon.
        with pytest.raises(TimeoutError):
            session.receive(timeout=0)
        age(session, TIMEOUT_S)
        session._watch._excused_at = session._watch.heard_at
        assert session.receive(timeout=0) == GIVEN_UP


def test_a_blocking_program_does_not_judge_who_did_not_promise() -> None:
    with pair() as (ours, _):
        session = blocking_session(ours, interval_ms=0)
        age(session, 10 * TIMEOUT_S)
        session.send("room", b"x")
        with pytest.raises(TimeoutError):
            session.receive(timeout=0)


def test_blocking_calls_answer() -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours, alive_ms=ALIVE_MS)
        daemon.say(DaemonAlive(), GroupSignal("room"))
        assert session.receive() == covey.Transitional("room")
        assert daemon.hear() == [ClientAlive()]


def test_a_thread_answers_between_calls() -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=5, alive_ms=ALIVE_MS, alive_thread=True)
        daemon.say(DaemonAlive(), GroupSignal("room"))
        assert daemon.hear() == [ClientAlive()]
        assert session.receive() == covey.Transitional("room")
        session.disconnect(timeout=0.01)


def test_the_thread_answers_also_while_the_inbox_is_full() -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=5, alive_ms=ALIVE_MS, alive_thread=True)
        filling = threading.Thread(target=daemon.socket.sendall, args=(FLOOD,))
        filling.start()
        assert daemon.hear()[0] == ClientAlive()
        assert session._inbox.is_full
        while filling.is_alive():
            session.receive(timeout=10)
        filling.join()
        session.disconnect(timeout=0.01)


def test_the_thread_ends_with_a_session_that_nobody_has_any_more() -> None:
    with pair() as (ours, _):
        session = blocking_session(ours, interval_ms=5, alive_ms=ALIVE_MS, alive_thread=True)
        gone = session._gone
        del session
        assert gone.wait(10)


# --- hosts that vanish


def test_sockets_over_tcp_ask_whether_the_other_host_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as connection:
                echoing(FakeSession())(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        with covey.blocking.connect("alice", f"tcp://127.0.0.1:{listener.getsockname()[1]}") as session:
            ours = session._stream._socket
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        thread.join()
