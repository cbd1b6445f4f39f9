"""Sessions without asyncio, over real sockets, with a daemon that only echoes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import covey
from covey.client.blocking import Session
from covey.protocol.asked import Sending
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import Bye, Ended, Rejected
from covey.trace.client import ClientRecorder
from covey.trace.record import Row
from tests.unit.client.fake_daemon import (
    FakeSession,
    Serve,
    body_of,
    data_frame,
    echoing,
    greeting_then,
    listening,
)


def run(path: Path, program: Callable[[Session], None], *connections: Serve, again: bool = False) -> None:
    """Run a program that is connected to what the connections serve."""
    with (
        listening(path / "socket", *connections) as address,
        covey.blocking.connect("alice", [address] if again else address, timeout=10) as session,
    ):
        program(session)


def test_a_program_joins_sends_and_hears_itself(tmp_path: Path) -> None:
    daemon = FakeSession()

    def program(session: Session) -> None:
        assert (session.name, session.process, session.is_open) == ("alice@a", "alice@a:7.3", True)
        session.join("room")
        assert session.send("room", b"one", covey.SAFE, kind=7) == 1
        assert session.send_many("room", [b"two", b"three"]) == 2
        session.leave("room")
        view, one, two, three, left = (session.receive(timeout=10) for _ in range(5))
        assert isinstance(view, covey.View)
        assert isinstance(one, covey.Message)
        assert (one.payload, one.service, one.kind, one.sender) == (b"one", covey.SAFE, 7, "alice@a")
        assert [event.payload for event in (two, three) if isinstance(event, covey.Message)] == [b"two", b"three"]
        assert isinstance(left, covey.SelfLeave)

    run(tmp_path, program, echoing(daemon))
    assert isinstance(daemon.words[-1], Bye)


def test_a_wait_that_is_no_number_is_refused_and_nothing_is_ended(tmp_path: Path) -> None:
    def program(session: Session) -> None:
        for wait in (session.receive, session.disconnect):
            with pytest.raises(covey.ArgumentError, match="timeout is nan: write the seconds"):
                wait(float("nan"))
        session.send("room", b"still here")
        assert isinstance(session.receive(1e300), covey.Message)

    run(tmp_path, program, echoing(FakeSession()))


def test_iterations_and_batches_go_on_where_the_last_one_was_given_up(tmp_path: Path) -> None:
    def program(session: Session) -> None:
        session.send_many("room", [b"one", b"two", b"three"])
        for event in session:
            assert isinstance(event, covey.Message)
            if event.payload == b"two":
                break
        session.send_many("room", [b"four", b"five"])
        got: list[covey.Event] = []
        for arrival in session.batches():
            got.append(arrival)
            if isinstance(arrival, covey.Batch):
                break
        assert [type(event) for event in got] == [covey.Message, covey.Batch]

    run(tmp_path, program, echoing(FakeSession()))


def test_much_is_sent_while_much_comes(tmp_path: Path) -> None:
    # More than both directions of the socket hold: a request has to read while it waits.
    count, daemon = 1_500, FakeSession()

    def program(session: Session) -> None:
        for number in range(count):
            session.send("room", number.to_bytes(4, "big") * 500)
        got = [session.receive(timeout=10) for _ in range(count)]
        numbers = [int.from_bytes(event.payload[:4], "big") for event in got if isinstance(event, covey.Message)]
        assert numbers == list(range(count))

    def serve(connection: socket.socket) -> None:
        """Reads on while its client does not."""
        waiting, lock = bytearray(), threading.Condition()

        def write() -> None:
            while True:
                with lock:
                    lock.wait_for(lambda: waiting or daemon.is_over)
                    data = bytes(waiting)
                    waiting.clear()
                if not data:
                    return
                connection.sendall(data)

        writer = threading.Thread(target=write)
        writer.start()
        while not daemon.is_over and (data := connection.recv(65_536)):
            with lock:
                waiting.extend(daemon.feed(data))
                lock.notify()
        writer.join()

    run(tmp_path, program, serve)


def test_a_large_message_goes_and_comes(tmp_path: Path) -> None:
    large = bytes(range(250)) * 400

    def program(session: Session) -> None:
        session.send("room", large)
        event = session.receive(timeout=10)
        assert isinstance(event, covey.Message)
        assert event.payload == large

    run(tmp_path, program, echoing(FakeSession()))


def test_an_end_is_told_with_its_reason_even_to_a_sender(tmp_path: Path) -> None:
    def end(connection: socket.socket) -> None:
        connection.sendall(encode_word(Ended("it reads too slowly", 500, 2_000_000)))

    def program(session: Session) -> None:
        def send_for_ever() -> None:
            while True:
                session.send("room", bytes(50_000))

        with pytest.raises(covey.SessionOverError, match="connect again"):
            send_for_ever()
        assert list(session) == [covey.Disconnected("it reads too slowly", 500, 2.0)]
        with pytest.raises(covey.SessionOverError, match="it reads too slowly"):
            session.receive()

    run(tmp_path, program, greeting_then(FakeSession(), end))


def test_a_lost_connection_goes_on_at_the_next_address(tmp_path: Path) -> None:
    first, second = FakeSession(), FakeSession("b", 9)

    def leave(connection: socket.socket) -> None:
        connection.sendall(first.feed(connection.recv(65_536)))

    def program(session: Session) -> None:
        session.join("room")
        assert isinstance(session.receive(), covey.View)
        assert session.receive() == covey.Disconnected("the daemon closed the connection", groups=("room",))
        with pytest.raises(covey.SessionOverError, match="after Reconnected"):
            session.send("room", b"x")
        assert session.receive() == covey.Reconnected("alice@b:7.9", "alice@b")
        assert session.send("room", b"x") == 1
        assert isinstance(session.receive(), covey.Message)

    run(tmp_path, program, greeting_then(first, leave), echoing(second), again=True)
    assert [type(word) for word in second.words[1:]] == [Sending, Bye]


def test_when_patience_is_over_nobody_can_miss_it(tmp_path: Path) -> None:
    with (
        listening(tmp_path / "socket", greeting_then(FakeSession(), lambda _: None)) as address,
        covey.blocking.connect("alice", [address], reconnect_for=0.2) as session,
    ):
        (tmp_path / "socket").unlink()
        seen: list[covey.Event] = []
        with pytest.raises(covey.ReconnectError, match=r"within .* s: .*nobody listens"):
            seen.extend(session)
        assert [type(event) for event in seen] == [covey.Disconnected, covey.Reconnecting]
        for _ in range(2):
            with pytest.raises(covey.ReconnectError, match="nobody listens"):
                session.receive()
        with pytest.raises(covey.SessionOverError, match=r"no daemon let us in again .* connect again"):
            session.send("room", b"x")


def test_a_search_outlives_a_receive_that_waits_no_longer(tmp_path: Path) -> None:
    """The daemon is back after some receives have timed out: each time the same search went on."""
    second = FakeSession("b", 9)
    with listening(tmp_path / "first", greeting_then(FakeSession(), lambda _: None)) as first:
        addresses = [first, f"unix:{tmp_path}/second"]
        session = covey.blocking.connect("alice", addresses)
    assert isinstance(session.receive(timeout=10), covey.Disconnected)
    assert isinstance(session.receive(timeout=10), covey.Reconnecting)
    for _ in range(3):
        with pytest.raises(TimeoutError, match="no event"):
            session.receive(timeout=0.02)
    search = session._search
    with listening(tmp_path / "second", echoing(second)):
        assert session.receive(timeout=10) == covey.Reconnected("alice@b:7.9", "alice@b")
        assert (search is not None, session._search) == (True, None)
        session.disconnect()


def test_leaving_ends_a_search_and_whoever_waits_for_it(tmp_path: Path) -> None:
    with listening(tmp_path / "socket", greeting_then(FakeSession(), lambda _: None)) as address:
        session = covey.blocking.connect("alice", [address])
    assert isinstance(session.receive(timeout=10), covey.Disconnected)
    assert isinstance(session.receive(timeout=10), covey.Reconnecting)
    rest: list[covey.Event] = []
    reading = threading.Thread(target=lambda: rest.extend(session))
    reading.start()
    session.disconnect()
    reading.join(10)
    assert (reading.is_alive(), rest) == (False, [])


def test_a_receive_can_time_out_and_loses_nothing(tmp_path: Path) -> None:
    def program(session: Session) -> None:
        with pytest.raises(TimeoutError, match="no event"):
            session.receive(timeout=0)
        session.send("room", b"x")
        assert isinstance(session.receive(timeout=10), covey.Message)

    run(tmp_path, program, echoing(FakeSession()))


def test_events_that_were_read_can_be_taken_after_disconnecting(tmp_path: Path) -> None:
    def program(session: Session) -> None:
        session.send_many("room", [b"one", b"two"])
        assert isinstance(session.receive(), covey.Message)
        session.disconnect()
        assert [event.payload for event in session if isinstance(event, covey.Message)] == [b"two"]
        with pytest.raises(covey.SessionOverError, match="we left"):
            session.join("room")

    run(tmp_path, program, echoing(FakeSession()))


@pytest.mark.parametrize(
    ("serve", "text"),
    [
        (echoing(FakeSession(refusal="the name is taken")), "the name is taken"),
        (lambda connection: connection.recv(1 << 20), "closed the connection without a word"),
        (lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request"), "no frame of ours"),
        (lambda connection: connection.recv(1 << 20) and connection.recv(1), "did not answer within 0.1 s"),
    ],
)
def test_who_does_not_let_us_in_is_told(tmp_path: Path, serve: Serve, text: str) -> None:
    with (
        listening(tmp_path / "socket", serve) as address,
        pytest.raises(covey.ConnectError, match=text),
    ):
        covey.blocking.connect("alice", address, timeout=0.1)


def test_a_daemon_that_refuses_before_it_is_greeted_is_understood(tmp_path: Path) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(encode_word(Rejected("too many sessions")))

    with listening(tmp_path / "socket", refuse) as address, pytest.raises(covey.RefusedError, match="too many"):
        covey.blocking.connect("alice", address)


def test_where_nobody_listens_it_says_how_to_start(tmp_path: Path) -> None:
    addresses = [f"unix:{tmp_path}/nobody", "tcp://127.0.0.1:1"]
    with pytest.raises(covey.ConnectError, match=r"nobody listens at unix.*nobody listens at tcp.*covey up"):
        covey.blocking.connect("alice", addresses)


def test_a_history_is_recorded(tmp_path: Path) -> None:
    rows: list[Row] = []
    with (
        listening(tmp_path / "socket", echoing(FakeSession())) as address,
        covey.blocking.connect("alice", address, trace=ClientRecorder("live", rows.append)) as session,
    ):
        session.join("room")
        session.receive()
    assert [row.event for row in rows] == ["connect", "join", "view", "disconnect"]


def test_what_came_with_the_welcome_is_not_lost(tmp_path: Path) -> None:
    def serve(connection: socket.socket) -> None:
        session = FakeSession()
        connection.sendall(session.feed(connection.recv(65_536)) + data_frame(body_of("bob@b:2.9", (0, b"x")), 1))
        echoing(session)(connection)

    run(tmp_path, lambda session: check_message(session.receive(timeout=10)), serve)


def check_message(event: covey.Event) -> None:
    assert isinstance(event, covey.Message)
