"""Sessions of asyncio programs, over real sockets, with a daemon that only echoes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import covey
from covey.client.inbox import RECEIVE_BYTES_MAX
from covey.client.session import SEND_BYTES_MAX, Session
from covey.protocol.asked import Sending
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import Bye, Ended, JoinGroup
from covey.trace.client import ClientRecorder
from covey.trace.record import Row
from tests.unit.client.fake_daemon import (
    MESSAGE_BYTES_MAX,
    FakeSession,
    Serve,
    body_of,
    data_frame,
    echoing,
    greeting_then,
    listening,
)

Program = Callable[[Session], Coroutine[Any, Any, None]]


def run(path: Path, program: Program, *connections: Serve, again: bool = False) -> None:
    """Run a program that is connected to what the connections serve."""

    async def main(address: str) -> None:
        async with asyncio.timeout(30):
            async with covey.connect("alice", [address] if again else address, timeout=10) as session:
                await program(session)

    with listening(path / "socket", *connections) as address:
        asyncio.run(main(address))


async def taken(session: Session, count: int) -> list[covey.Event]:
    return [await session.receive() for _ in range(count)]


def test_a_wait_that_is_no_number_is_refused_and_nothing_is_ended(tmp_path: Path) -> None:
    async def program(session: Session) -> None:
        for wait in (session.receive, session.disconnect):
            with pytest.raises(covey.ArgumentError, match="timeout is nan: write the seconds"):
                await wait(float("nan"))
        await session.send("room", b"still here")
        assert isinstance(await session.receive(1e300), covey.Message)

    run(tmp_path, program, echoing(FakeSession()))


def test_a_session_that_is_not_open_yet_says_how_to_open_it() -> None:
    connecting: Any = covey.connect("alice", "unix:/nowhere")
    with pytest.raises(AttributeError, match=r"no 'send': write `async with covey\.connect"):
        connecting.send("room", b"hi")
    with pytest.raises(AttributeError, match="has no attribute 'sned'"):
        connecting.sned("room", b"hi")
    with pytest.raises(covey.ArgumentError, match=r"covey\.blocking\.connect"), connecting:
        pass


def test_a_program_joins_sends_and_hears_itself(tmp_path: Path) -> None:
    daemon = FakeSession()

    async def program(session: Session) -> None:
        assert (session.name, session.process, session.is_open) == ("alice@a", "alice@a:7.3", True)
        await session.join("room")
        assert await session.send("room", b"one", covey.SAFE, kind=7) == 1
        assert await session.send_many("room", [b"two", b"three"]) == 2
        await session.leave("room")
        view, one, two, three, left = await taken(session, 5)
        assert isinstance(view, covey.View)
        assert view.members == ("alice@a",)
        assert isinstance(one, covey.Message)
        assert (one.payload, one.service, one.kind, one.sender) == (b"one", covey.SAFE, 7, "alice@a")
        assert [event.payload for event in (two, three) if isinstance(event, covey.Message)] == [b"two", b"three"]
        assert isinstance(left, covey.SelfLeave)
        assert (session.groups, dict(session.views)) == ((), {})

    run(tmp_path, program, echoing(daemon))
    assert isinstance(daemon.words[-1], Bye)


def test_it_can_be_awaited_and_iterated(tmp_path: Path) -> None:
    async def main(address: str) -> None:
        session = await covey.connect("alice", address)
        async with session:
            await session.send_many("room", [b"one", b"two", b"three"])
            async for event in session:
                assert isinstance(event, covey.Message)
                if event.payload == b"two":
                    break
            assert isinstance(rest := await session.receive(), covey.Message)
            assert rest.payload == b"three"

    with listening(tmp_path / "socket", echoing(FakeSession())) as address:
        asyncio.run(main(address))


def test_batches_come_whole(tmp_path: Path) -> None:
    async def program(session: Session) -> None:
        await session.send_many("room", [b"one", b"two"])
        async for event in session.batches():
            assert isinstance(event, covey.Batch)
            assert event.payloads() == [b"one", b"two"]
            break

    run(tmp_path, program, echoing(FakeSession()))


def test_what_is_sent_in_one_turn_travels_together(tmp_path: Path) -> None:
    daemon = FakeSession()

    async def program(session: Session) -> None:
        for number in range(5):
            await session.send("room", str(number).encode())
        await taken(session, 5)

    run(tmp_path, program, echoing(daemon))
    # The first goes at once, the others at the end of the turn.
    assert [word.messages for word in daemon.words if isinstance(word, Sending)] == [1, 4]


def test_much_is_sent_and_received(tmp_path: Path) -> None:
    count, size = 600, 5_000

    async def program(session: Session) -> None:
        async def send() -> None:
            for number in range(count):
                await session.send("room", number.to_bytes(4, "big") * (size // 4))
                assert session._stream.waiting_bytes <= SEND_BYTES_MAX

        sending = asyncio.create_task(send())
        got = [event async for event in _first(session, count)]
        await sending
        assert [int.from_bytes(event.payload[:4], "big") for event in got] == list(range(count))

    run(tmp_path, program, echoing(FakeSession()))


async def _first(session: Session, count: int) -> Any:
    async for event in session:
        assert isinstance(event, covey.Message)
        yield event
        count -= 1
        if not count:
            return


def test_a_large_message_goes_and_comes(tmp_path: Path) -> None:
    large = bytes(range(250)) * 400

    async def program(session: Session) -> None:
        await session.send("room", large)
        event = await session.receive()
        assert isinstance(event, covey.Message)
        assert event.payload == large

    run(tmp_path, program, echoing(FakeSession()))


def test_a_program_that_does_not_read_stops_the_stream_and_can_go_on(tmp_path: Path) -> None:
    frame = data_frame(body_of("bob@b:2.9", (0, bytes(1_000))), 1)
    count = 4 * RECEIVE_BYTES_MAX // len(frame)

    def flood(connection: socket.socket) -> None:
        connection.sendall(frame * count)

    async def program(session: Session) -> None:
        while session._is_reading:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0)
        assert session._inbox.is_full
        assert session._inbox.size < 2 * RECEIVE_BYTES_MAX
        got = 0
        async for event in session.batches():
            if isinstance(event, covey.Disconnected):
                break
            got += 1
        assert got == count

    run(tmp_path, program, greeting_then(FakeSession(), flood))


def test_a_daemon_that_does_not_read_makes_senders_wait(tmp_path: Path) -> None:
    go_on, daemon = threading.Event(), FakeSession()

    def wait(connection: socket.socket) -> None:
        go_on.wait()
        echoing(daemon)(connection)

    async def program(session: Session) -> None:
        sent = 0

        async def send_for_ever() -> None:
            nonlocal sent
            while True:
                await session.send("room", bytes(50_000), self_discard=True)
                sent += 1

        sending = asyncio.create_task(send_for_ever())
        while not (session._is_writing and session._stream.waiting_bytes > SEND_BYTES_MAX):  # noqa: ASYNC110
            await asyncio.sleep(0)
        before = sent
        for _ in range(20):
            await asyncio.sleep(0)
        assert sent == before
        go_on.set()
        while sent < before + 20:  # noqa: ASYNC110
            await asyncio.sleep(0)
        sending.cancel()
        await session.send("room", b"last", self_discard=True)

    run(tmp_path, program, greeting_then(daemon, wait))
    sent = [word for word in daemon.words if isinstance(word, Sending)]
    assert bytes(sent[-1].body).endswith(b"last")


async def until_full(session: Session) -> asyncio.Task[int]:
    """A send that waits, because the daemon reads nothing."""
    sending = asyncio.create_task(session.send("room", bytes(MESSAGE_BYTES_MAX)))
    while not (session._is_writing and session._stream.waiting_bytes > SEND_BYTES_MAX):
        sending = asyncio.create_task(session.send("room", bytes(MESSAGE_BYTES_MAX)))
        await asyncio.sleep(0)
    return sending


def deaf(until: threading.Event) -> Serve:
    """Reads nothing, and then is gone."""

    def wait(_: socket.socket) -> None:
        until.wait()

    return greeting_then(FakeSession(), wait)


def test_a_send_that_waits_learns_that_the_daemon_is_gone(tmp_path: Path) -> None:
    gone = threading.Event()

    async def program(session: Session) -> None:
        sending = await until_full(session)
        gone.set()
        with pytest.raises(covey.SessionOverError, match="connect again"):
            await sending

    run(tmp_path, program, deaf(gone))


def test_a_send_that_waited_for_a_lost_connection_does_not_pass_for_sent(tmp_path: Path) -> None:
    gone = threading.Event()

    async def program(session: Session) -> None:
        sending = await until_full(session)
        gone.set()
        assert isinstance(await session.receive(), covey.Disconnected)
        assert isinstance(await session.receive(), covey.Reconnected)
        await session.send("room", b"of the new session")
        with pytest.raises(covey.SessionOverError, match="lost"):
            await sending

    run(tmp_path, program, deaf(gone), echoing(FakeSession("b", 9)), again=True)


def test_leaving_wakes_senders_that_wait_and_tells_what_is_lost(tmp_path: Path) -> None:
    gone = threading.Event()

    async def program(session: Session) -> None:
        sending = await until_full(session)
        with pytest.raises(covey.SessionOverError, match="the last messages are lost"):
            await session.disconnect(timeout=0.05)
        with pytest.raises(covey.SessionOverError):
            await sending
        gone.set()

    run(tmp_path, program, deaf(gone))


def test_an_error_is_not_hidden_by_what_is_lost_when_leaving(tmp_path: Path) -> None:
    gone = threading.Event()

    async def main(address: str) -> None:
        async with covey.connect("alice", address, timeout=0.2) as session:
            await until_full(session)
            raise ZeroDivisionError

    with listening(tmp_path / "socket", deaf(gone)) as address:
        with pytest.raises(ZeroDivisionError):
            asyncio.run(main(address))
        gone.set()


def test_who_has_left_does_not_come_back(tmp_path: Path) -> None:
    """The next daemon lets us in only when we have left."""
    left, second = threading.Event(), FakeSession("b", 9)

    def late(connection: socket.socket) -> None:
        left.wait()
        echoing(second)(connection)

    async def program(session: Session) -> None:
        assert isinstance(await session.receive(), covey.Disconnected)
        rest = asyncio.create_task(_all(session))
        await asyncio.sleep(0)
        await session.disconnect()
        left.set()
        assert await rest == []
        assert not session.is_open

    run(tmp_path, program, greeting_then(FakeSession(), lambda _: None), late, again=True)
    assert len(second.words) <= 1  # Its HELLO, if it was read at all.


async def _all(session: Session) -> list[covey.Event]:
    return [event async for event in session]


def test_events_can_be_taken_inside_an_iteration(tmp_path: Path) -> None:
    """Ask and answer: nothing that was read is lost between the two ways to take it."""

    async def program(session: Session) -> None:
        await session.send_many("room", [b"%d" % number for number in range(100)])
        got = []
        async for event in session:
            assert isinstance(event, covey.Message)
            got.append(event.payload)
            if len(got) == 100:
                break
            answer = await session.receive()
            assert isinstance(answer, covey.Message)
            got.append(answer.payload)
            if len(got) == 100:
                break
        assert got == [b"%d" % number for number in range(100)]

    run(tmp_path, program, echoing(FakeSession()))


def test_a_wrong_kind_harms_nothing(tmp_path: Path) -> None:
    async def program(session: Session) -> None:
        for kind in (1.5, "1", None, -1, 65_536):
            with pytest.raises(covey.ArgumentError, match="write a number from 0 to 65535"):
                await session.send("room", b"x", kind=kind)  # type: ignore[arg-type]
        assert await session.send("hall", b"x") == 1
        assert isinstance(await session.receive(), covey.Message)

    run(tmp_path, program, echoing(FakeSession()))


def test_an_end_is_told_with_its_reason_even_to_a_sender(tmp_path: Path) -> None:
    def end(connection: socket.socket) -> None:
        connection.sendall(encode_word(Ended("it reads too slowly", 500, 2_000_000)))

    async def program(session: Session) -> None:
        async def send_for_ever() -> None:
            while True:
                await session.send("room", bytes(50_000))
                await asyncio.sleep(0)

        with pytest.raises(covey.SessionOverError, match="connect again"):
            await send_for_ever()
        assert await session.receive() == covey.Disconnected("it reads too slowly", 500, 2.0)
        assert [event async for event in session] == []
        with pytest.raises(covey.SessionOverError, match="it reads too slowly"):
            await session.receive()
        assert not session.is_open

    run(tmp_path, program, greeting_then(FakeSession(), end))


def test_a_lost_connection_goes_on_at_the_next_address(tmp_path: Path) -> None:
    first, second = FakeSession(), FakeSession("b", 9)

    def leave(connection: socket.socket) -> None:
        connection.sendall(first.feed(connection.recv(65_536)))

    async def program(session: Session) -> None:
        await session.join("room")
        assert isinstance(await session.receive(), covey.View)
        event = await session.receive()
        assert event == covey.Disconnected("the daemon closed the connection", groups=("room",))
        with pytest.raises(covey.SessionOverError, match="after Reconnected"):
            await session.send("room", b"x")
        assert await session.receive() == covey.Reconnected("alice@b:7.9", "alice@b")
        assert (session.name, session.groups) == ("alice@b", ())
        assert await session.send("room", b"x") == 1
        assert isinstance(await session.receive(), covey.Message)

    run(tmp_path, program, greeting_then(first, leave), echoing(second), again=True)
    assert [type(word) for word in second.words[1:]] == [Sending, Bye]


def test_addresses_are_tried_in_order(tmp_path: Path) -> None:
    async def main(address: str) -> None:
        async with covey.connect("alice", [f"unix:{tmp_path}/nobody", "tcp://127.0.0.1:1", address]) as session:
            assert session.name == "alice@a"

    with listening(tmp_path / "socket", echoing(FakeSession())) as address:
        asyncio.run(main(address))


def test_a_refusal_is_an_error_with_its_reason(tmp_path: Path) -> None:
    async def main(address: str) -> None:
        with pytest.raises(covey.RefusedError, match="the name is taken"):
            await covey.connect("alice", address)

    with listening(tmp_path / "socket", echoing(FakeSession(refusal="the name is taken"))) as address:
        asyncio.run(main(address))


@pytest.mark.parametrize(
    ("serve", "text"),
    [
        (lambda connection: connection.recv(1 << 20), "closed the connection without a word"),
        (lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request"), "no frame of ours"),
        (lambda connection: connection.recv(1 << 20) and connection.recv(1), "did not answer within 0.1 s"),
    ],
)
def test_who_is_no_daemon_is_told(tmp_path: Path, serve: Serve, text: str) -> None:
    async def main(address: str) -> None:
        with pytest.raises(covey.ConnectError, match=text):
            await covey.connect("alice", address, timeout=0.1)

    with listening(tmp_path / "socket", serve) as address:
        asyncio.run(main(address))


def test_where_nobody_listens_it_says_how_to_start() -> None:
    async def main() -> None:
        with pytest.raises(covey.ConnectError, match=r"nobody listens at tcp://127\.0\.0\.1:1\b.*covey up"):
            await covey.connect("alice", "tcp://127.0.0.1:1")

    asyncio.run(main())


def test_over_tcp() -> None:
    daemon = FakeSession()

    async def main(port: int) -> None:
        async with covey.connect("alice", f"tcp://localhost:{port}") as session:
            await session.send("room", b"x")
            assert isinstance(await session.receive(), covey.Message)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                echoing(daemon)(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        asyncio.run(main(listener.getsockname()[1]))
        thread.join()


def test_a_receive_can_time_out_and_loses_nothing(tmp_path: Path) -> None:
    async def program(session: Session) -> None:
        with pytest.raises(TimeoutError):
            await session.receive(timeout=0.01)
        await session.send("room", b"x")
        assert isinstance(await session.receive(timeout=10), covey.Message)

    run(tmp_path, program, echoing(FakeSession()))


def test_disconnecting_wakes_a_task_that_iterates(tmp_path: Path) -> None:
    async def program(session: Session) -> None:
        async def listen() -> list[covey.Event]:
            return [event async for event in session]

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0)
        await session.disconnect()
        assert await listening == []
        with pytest.raises(covey.SessionOverError, match="we left"):
            await session.join("room")
        await session.disconnect()

    run(tmp_path, program, echoing(FakeSession()))


def test_other_tasks_get_their_turn_while_a_busy_stream_is_read(tmp_path: Path) -> None:
    frame = data_frame(body_of("bob@b:2.9", (0, bytes(1_000))), 1)

    def flood(connection: socket.socket) -> None:
        connection.sendall(frame * 3_000)

    async def program(session: Session) -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        async for event in session:
            if isinstance(event, covey.Disconnected):
                break
        counting.cancel()
        assert turns > 5

    run(tmp_path, program, greeting_then(FakeSession(), flood))


def test_a_history_is_recorded(tmp_path: Path) -> None:
    rows: list[Row] = []

    async def main(address: str) -> None:
        async with covey.connect("alice", address, trace=ClientRecorder("live", rows.append)) as session:
            await session.join("room")
            await session.send("room", b"x")
            await taken(session, 2)

    with listening(tmp_path / "socket", echoing(FakeSession())) as address:
        asyncio.run(main(address))
    assert [row.event for row in rows] == ["connect", "join", "send", "view", "deliver", "disconnect"]


def test_a_daemon_that_never_answers_goodbye_is_left_all_the_same(tmp_path: Path) -> None:
    done = threading.Event()

    async def main(address: str) -> None:
        async with covey.connect("alice", address, timeout=0.1):
            pass
        done.set()

    def wait(_: socket.socket) -> None:
        done.wait()

    with listening(tmp_path / "socket", greeting_then(FakeSession(), wait)) as address:
        asyncio.run(main(address))


def test_joins_are_written_at_once(tmp_path: Path) -> None:
    daemon = FakeSession()

    async def program(session: Session) -> None:
        await session.join("room")
        await session.join("hall")
        views = await taken(session, 2)
        assert [view.group for view in views if isinstance(view, covey.View)] == ["room", "hall"]

    run(tmp_path, program, echoing(daemon))
    assert [word for word in daemon.words if isinstance(word, JoinGroup)] == [JoinGroup("room"), JoinGroup("hall")]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"name": "a@b"}, "'@'"),
        ({"name": 5}, "is a str, not int"),
        ({"name": "alice", "timeout": 0}, "seconds"),
        ({"name": "alice", "timeout": None}, "seconds"),
        ({"name": "alice", "timeout": float("nan")}, "seconds"),
        ({"name": "alice", "address": []}, "1 to 100"),
        ({"name": "alice", "address": 5}, "or a list of them"),
        ({"name": "alice", "address": [5]}, "or a list of them"),
        ({"name": "alice", "priority": 5}, "priority"),
        ({"name": "alice", "priority": True}, "priority"),
    ],
)
def test_impossible_arguments_are_refused_at_once(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(covey.ArgumentError, match=text):
        covey.connect(**arguments)
