"""Threads around one session: without asyncio one reads and any number send; with it, others are refused."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import covey
from covey.client import session as asyncio_sessions
from covey.client.blocking import Session
from covey.client.stream import HEAR_S
from covey.protocol.asked import Sending
from covey.protocol.wire.words import GroupSignal
from tests.unit.client.by_hand import Daemon, asyncio_session, blocking_session, pair
from tests.unit.client.fake_daemon import FakeSession, body_of, data_frame

WITHIN_S = 30


@contextmanager
def echo(daemon: Daemon, session: FakeSession) -> Iterator[None]:
    """What is said comes back. It reads on while its client does not, as daemons do."""
    waiting, lock, is_over = bytearray(), threading.Condition(), False

    def write() -> None:
        while True:
            with lock:
                lock.wait_for(lambda: waiting or is_over)
                data = bytes(waiting)
                waiting.clear()
            if not data:
                return
            daemon.socket.sendall(data)

    def read() -> None:
        nonlocal is_over
        while not session.is_over and (data := daemon.socket.recv(65_536)):
            with lock:
                waiting.extend(session.feed(data))
                lock.notify()
        with lock:
            is_over = True
            lock.notify()
        writer.join()
        daemon.socket.shutdown(socket.SHUT_RDWR)

    writer, reader = threading.Thread(target=write), threading.Thread(target=read)
    writer.start()
    reader.start()
    yield
    reader.join(WITHIN_S)
    assert not reader.is_alive()


def begun(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def done(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(WITHIN_S)
        assert not thread.is_alive()


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline


def received(session: Session, count: int) -> list[bytes]:
    got: list[bytes] = []
    while len(got) < count:
        event = session.receive(timeout=WITHIN_S)
        assert isinstance(event, covey.Message)
        got.append(event.payload)
    return got


@pytest.mark.parametrize("small", [False, True], ids=["roomy", "tiny"])
@pytest.mark.parametrize("size", [20, 3_000])
def test_one_reads_and_many_send(small: bool, size: int) -> None:
    senders, each = 6, 150
    fake = FakeSession()
    fake.process = "alice@a:7.3"
    got: list[bytes] = []
    with pair(small) as (ours, daemon), echo(daemon, fake):
        session = blocking_session(ours, interval_ms=0)

        def send(sender: int) -> None:
            for number in range(each):
                payload = bytes([sender]) + number.to_bytes(2, "big") + bytes(size)
                if number % 10:
                    session.send("room", payload)
                else:
                    session.send_many("room", [payload])

        reading = begun(lambda: got.extend(received(session, senders * each)))
        done(*[begun(lambda sender=sender: send(sender)) for sender in range(senders)], reading)  # type: ignore[misc]
        session.disconnect(timeout=WITHIN_S)
    sent = [word for word in fake.words if isinstance(word, Sending)]
    assert [word.session_seq for word in sent] == [
        1 + sum(one.messages for one in sent[:at]) for at in range(len(sent))
    ]
    for sender in range(senders):
        numbers = [int.from_bytes(payload[1:3], "big") for payload in got if payload[0] == sender]
        assert numbers == list(range(each))


def test_a_second_reader_is_told() -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=0)
        got: list[covey.Event] = []
        reading = begun(lambda: got.append(session.receive(timeout=WITHIN_S)))
        until(lambda: session._reader)
        acts: list[Callable[[], object]] = [
            session.receive,
            lambda: next(iter(session)),
            lambda: next(session.batches()),
        ]
        for act in acts:
            with pytest.raises(covey.LocalProtocolError, match="another thread waits for the events"):
                act()
        daemon.say(GroupSignal("room"), GroupSignal("hall"))
        done(reading)
        assert got == [covey.Transitional("room")]
        assert session.receive(timeout=WITHIN_S) == covey.Transitional("hall")  # Now it is our turn.


def test_a_reader_that_waits_holds_up_no_sender() -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=0)
        got: list[covey.Event] = []
        reading = begun(lambda: got.append(session.receive(timeout=WITHIN_S)))
        until(lambda: session._reader)
        assert session.send("room", b"x") == 1
        assert [type(word) for word in daemon.hear()] == [Sending]
        daemon.say(GroupSignal("room"))
        done(reading)
        assert got == [covey.Transitional("room")]


def stuck(session: Session) -> threading.Thread:
    """A thread that sends until it has to wait, and then for ever."""

    def send_for_ever() -> None:
        with suppress(covey.SessionOverError):
            while True:
                session.send("room", bytes(50_000))

    thread = begun(send_for_ever)
    until(lambda: session._stream._waiting and session._stream.waiting_bytes)
    return thread


def test_a_sender_that_waits_holds_up_no_reader() -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=0)
        sending = stuck(session)
        for _ in range(20):
            daemon.say(GroupSignal("room"))
            assert session.receive(timeout=WITHIN_S) == covey.Transitional("room")
        daemon.socket.close()
        assert isinstance(session.receive(timeout=WITHIN_S), covey.Disconnected)
        done(sending)


def test_what_a_waiting_sender_has_read_is_not_lost() -> None:
    """Nobody reads: whoever waits for room does, and the reader that comes later finds it."""
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=0)
        sending = stuck(session)
        daemon.say(GroupSignal("room"))
        until(lambda: session._inbox.size)
        assert session.receive(timeout=WITHIN_S) == covey.Transitional("room")
        daemon.socket.close()
        done(sending)


@pytest.mark.parametrize("answers", [True, False])
def test_disconnecting_elsewhere_ends_the_reading(answers: bool) -> None:
    fake = FakeSession()
    fake.process = "alice@a:7.3"
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=0)
        got: list[covey.Event] = []
        reading = begun(lambda: got.extend(session))
        until(lambda: session._reader)
        if answers:
            with echo(daemon, fake):
                session.disconnect(timeout=WITHIN_S)
        else:
            session.disconnect(timeout=0.05)
        done(reading)
        assert (got, session._stream.fileno()) == ([], -1)


def test_disconnecting_elsewhere_ends_the_sending() -> None:
    with pair() as (ours, _):
        session = blocking_session(ours, interval_ms=0)
        sending = stuck(session)
        with pytest.raises(covey.SessionOverError, match="the last messages are lost"):
            session.disconnect(timeout=0.05)
        done(sending)
        assert session._stream.fileno() == -1


def test_a_full_inbox_does_not_keep_us_from_leaving() -> None:
    fake = FakeSession()
    fake.process = "alice@a:7.3"
    frame = data_frame(body_of("bob@b:2.9", (0, bytes(1_000))), 1)
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=0)
        flooding = begun(lambda: daemon.socket.sendall(frame * 3_000))
        session.receive(timeout=WITHIN_S)
        while not session._inbox.is_full:
            with session._lock:
                session._take(session._stream)
        session.disconnect(timeout=0.2)
        daemon.socket.close()
        flooding.join(WITHIN_S)


def test_a_handler_of_signals_may_leave_while_its_thread_reads() -> None:
    fake = FakeSession()
    fake.process = "alice@a:7.3"
    with pair() as (ours, daemon), echo(daemon, fake):
        session = blocking_session(ours, interval_ms=0)

        began, left = threading.Event(), threading.Event()

        def leave(*_: object) -> None:
            if not began.is_set():
                began.set()
                session.disconnect(timeout=WITHIN_S)
                left.set()

        def interrupt() -> None:
            """Again and again: one that comes just before the system is asked to wait does not wake it."""
            until(lambda: session._stream._waiting)
            while not left.wait(0.05):
                os.kill(os.getpid(), signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, leave)
        try:
            interrupting = begun(interrupt)
            assert list(session) == []
            done(interrupting)
        finally:
            left.set()
            signal.signal(signal.SIGUSR1, before)


@contextmanager
def on_signal(number: signal.Signals, handler: Callable[[], object]) -> Iterator[None]:
    before = signal.signal(number, lambda *_: handler())
    try:
        yield
    finally:
        signal.signal(number, before)


def test_what_a_handler_of_signals_has_read_and_not_taken_is_seen_without_more_bytes() -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=0)
        taken: list[covey.Event] = []

        def take_one() -> None:
            if not taken:
                daemon.say(GroupSignal("room"), GroupSignal("hall"))
                taken.append(session.receive(timeout=WITHIN_S))

        def interrupt() -> None:
            until(lambda: session._stream._waiting)
            while not taken:
                os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0.05)

        with on_signal(signal.SIGUSR1, take_one):
            interrupting = begun(interrupt)
            assert session.receive() == covey.Transitional("hall")
            done(interrupting)
        assert taken == [covey.Transitional("room")]


@contextmanager
def signalled_while_it_waits(session: Session, daemon: Daemon) -> Iterator[None]:
    """Another thread notes a signal while ours waits; its handler runs when the wait ends, with what came."""

    def later() -> None:
        while not session._stream._waiting:
            time.sleep(0.001)
        signal.raise_signal(signal.SIGUSR1)
        daemon.say(GroupSignal("one"))

    thread = threading.Thread(target=later)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_what_came_with_a_signal_whose_handler_raises_is_not_lost() -> None:
    def leave() -> None:
        raise KeyboardInterrupt

    with pair() as (ours, daemon), on_signal(signal.SIGUSR1, leave):
        session = blocking_session(ours, interval_ms=0)
        with signalled_while_it_waits(session, daemon), pytest.raises(KeyboardInterrupt):
            session.receive(WITHIN_S)
        assert session.receive(WITHIN_S) == covey.Transitional("one")


def test_what_came_with_a_signal_comes_before_what_its_handler_reads() -> None:
    seen: list[object] = []
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=0)

        def read() -> None:
            daemon.say(GroupSignal("two"))
            seen.append(session.receive(WITHIN_S))

        with on_signal(signal.SIGUSR1, read), signalled_while_it_waits(session, daemon):
            seen.append(session.receive(WITHIN_S))
    assert sorted(map(str, seen)) == sorted(map(str, [covey.Transitional("one"), covey.Transitional("two")]))
    assert seen[0] == covey.Transitional("one")


def test_a_handler_of_signals_that_sends_while_its_thread_sends_is_told_what_to_do() -> None:
    with pair() as (ours, _):
        session = blocking_session(ours, interval_ms=0)
        session._asking = True  # As it is in the middle of a request.
        with pytest.raises(covey.LocalProtocolError, match="let it set a flag"):
            session.send("room", b"x")
        session._asking = False
        assert session.send("room", b"x") == 1


def test_signals_that_come_and_come_do_not_keep_a_wait_from_ending() -> None:
    """A wait that each of them begins anew would never end."""
    came = 0

    def count() -> None:
        nonlocal came
        came += 1
        assert came < 1_000

    with pair() as (ours, _), on_signal(signal.SIGALRM, count):
        session = blocking_session(ours, interval_ms=0)
        signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
        try:
            with pytest.raises(TimeoutError, match="no event"):
                session.receive(timeout=HEAR_S * 1.2)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert came


def test_payloads_are_made_without_holding_up_others() -> None:
    with pair() as (ours, daemon):
        session = blocking_session(ours, interval_ms=0)
        others: list[int] = []

        def payloads() -> Iterator[bytes]:
            done(begun(lambda: others.append(session.send("room", b"between"))))
            yield b"x"

        assert (session.send_many("room", payloads()), others) == (2, [1])
        assert daemon.hear()


# --- with asyncio

Act = Callable[[asyncio_sessions.Session], Coroutine[Any, Any, object]]


async def iterate(session: asyncio_sessions.Session) -> None:
    async for _ in session:
        pass


async def iterate_batches(session: asyncio_sessions.Session) -> None:
    async for _ in session.batches():
        pass


@pytest.mark.parametrize(
    "act",
    [
        lambda session: session.send("room", b"x"),
        lambda session: session.send_many("room", [b"x"]),
        lambda session: session.join("room"),
        lambda session: session.leave("room"),
        lambda session: session.receive(),
        lambda session: session.disconnect(),
        iterate,
        iterate_batches,
    ],
)
def test_asyncio_sessions_belong_to_their_loop(act: Act) -> None:
    async def program() -> None:
        with pair() as (ours, daemon):
            session = asyncio_session(ours)
            errors: list[BaseException] = []

            def elsewhere() -> None:
                try:
                    asyncio.run(asyncio.wait_for(act(session), WITHIN_S))
                except covey.LocalProtocolError as error:
                    errors.append(error)

            await asyncio.to_thread(elsewhere)
            assert "asyncio.run_coroutine_threadsafe" in str(errors[0])
            assert session.is_open
            # The way that it names works.
            loop = asyncio.get_running_loop()
            sent = await asyncio.to_thread(
                lambda: asyncio.run_coroutine_threadsafe(session.send("room", b"x"), loop).result(WITHIN_S)
            )
            assert sent == 1
            assert daemon.hear()
            await session.disconnect(timeout=0.01)

    asyncio.run(program())


@pytest.mark.parametrize("act", [lambda session: session.receive(), iterate, iterate_batches])
def test_other_threads_are_refused_what_waits_already(act: Act) -> None:
    async def program() -> None:
        with pair() as (ours, daemon):
            session = asyncio_session(ours)
            daemon.say(GroupSignal("room"), GroupSignal("hall"))
            assert await session.receive(WITHIN_S) == covey.Transitional("room")
            assert session._inbox.size
            with pytest.raises(covey.LocalProtocolError, match=r"asyncio\.run_coroutine_threadsafe"):
                await asyncio.to_thread(lambda: asyncio.run(asyncio.wait_for(act(session), WITHIN_S)))
            assert await session.receive(WITHIN_S) == covey.Transitional("hall")
            await session.disconnect(timeout=0.01)

    asyncio.run(program())


def test_a_later_loop_of_the_same_thread_is_another_one() -> None:
    with pair() as (ours, _):

        async def opened() -> asyncio_sessions.Session:
            return asyncio_session(ours)

        session = asyncio.run(opened())
        with pytest.raises(covey.LocalProtocolError, match="another event loop"):
            asyncio.run(session.send("room", b"x"))
