"""The streams of a daemon's clients, in this process: real sockets, whose other ends do not read, or all speak."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from covey.drivers.live import clients as module
from covey.drivers.live.clients import LINGERING_MAX, PULL_BYTES, ClientStreams
from covey.drivers.live.sockets import free_ports
from covey.protocol.boundary import OrderingEngine
from covey.protocol.daemon import Daemon
from covey.protocol.effects import ClientClosed, ClientReading, ClientReady
from covey.protocol.inputs import ClientBytes, ClientConnected, ClientGone, Identity, Input
from covey.protocol.values import Payload

CLIENTS = LINGERING_MAX + 6
A_TURN = 8
"""How many streams a turn serves, where a test says so."""


class Endless:
    """An daemon that always has something more for everybody, or once a few words for each."""

    def __init__(self) -> None:
        self.pulled: list[int] = []
        self.words: dict[int, bytes] | None = None

    def pull(self, connection: int, room: int) -> list[Payload]:
        self.pulled.append(connection)
        if self.words is None:
            return [bytes(room)]
        word = self.words.pop(connection, b"")
        return [word] if word else []


class House:
    def __init__(self, path: Path) -> None:
        self.given: list[Input] = []
        self.daemon = Endless()
        self._epoll = select.epoll()
        self.streams = ClientStreams(self._epoll, cast("Daemon[OrderingEngine]", self.daemon), self.given.append)
        self.streams.listen_unix(path)
        self.clients = [_connected(path) for _ in range(CLIENTS)]
        while len(self.given) < CLIENTS:
            self.turn()
        connected = [one for one in self.given if isinstance(one, ClientConnected)]
        self.connections = [one.connection for one in connected]
        self.identities = {one.identity for one in connected}
        self.given.clear()

    def turn(self) -> None:
        for descriptor, mask in self._epoll.poll(0 if self.streams.is_behind() else 0.1):
            self.streams.on_event(descriptor, mask)
        self.streams.read()
        self.streams.write()

    def perform(self, *effects: ClientReady | ClientClosed | ClientReading) -> None:
        self.streams.perform(list(effects))
        self.streams.write()

    def said(self) -> list[int]:
        """Who was heard, since the last question."""
        found = [one.connection for one in self.given if isinstance(one, ClientBytes)]
        self.given.clear()
        return found

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.streams.close()
        self._epoll.close()


def _connected(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(str(path))
    return client


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "clients")
    yield made
    made.close()


# --- those who were given up


def test_the_kernel_tells_who_opened_a_stream_of_this_host(house: House) -> None:
    assert house.identities == {Identity(os.getpid(), os.getuid(), os.getgid())}


def test_nothing_is_taken_from_who_was_given_up(house: House) -> None:
    """It does not read why; so its writes must fail, or it would go on sending into nothing."""
    house.perform(ClientReady(1), ClientClosed(1))
    with pytest.raises(BrokenPipeError):
        house.clients[0].sendall(b"more")
    house.clients[1].sendall(b"of another")
    house.turn()
    assert [one for one in house.given if isinstance(one, ClientBytes)] == [ClientBytes(2, b"of another")]


def test_of_those_who_were_given_up_and_do_not_read_only_some_are_kept(house: House) -> None:
    house.perform(*map(much_for, house.connections))
    house.perform(*map(ClientClosed, house.connections))
    house.streams.write_all()
    gone = [one.connection for one in house.given if isinstance(one, ClientGone)]
    assert gone == house.connections[: CLIENTS - LINGERING_MAX]  # Those that waited longest.


def test_everybody_who_has_room_gets_the_last_words_however_many_are_given_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITE_STREAMS_MAX", A_TURN)
    house.daemon.words = dict.fromkeys(house.connections, b"the daemon stops")
    house.perform(*map(much_for, house.connections), *map(ClientClosed, house.connections))
    house.streams.write_all()
    assert [client.recv(100) for client in house.clients] == [b"the daemon stops"] * CLIENTS
    assert [client.recv(100) for client in house.clients] == [b""] * CLIENTS


# --- one stream


def test_a_number_is_never_used_again(house: House, tmp_path: Path) -> None:
    house.clients.pop().close()
    while not house.given:
        house.turn()
    house.clients.append(_connected(tmp_path / "clients"))
    while len(house.given) < 2:
        house.turn()
    [identity] = house.identities
    assert house.given == [ClientGone(CLIENTS), ClientConnected(CLIENTS + 1, identity)]


def test_the_end_of_a_stream_is_told_once_and_after_what_it_said(house: House) -> None:
    house.clients[0].sendall(b"last words")
    house.clients[0].close()
    while ClientGone(1) not in house.given:
        house.turn()
    house.turn()
    assert house.given == [ClientBytes(1, b"last words"), ClientGone(1)]


# --- bounded turns


def test_a_turn_reads_a_bounded_number_of_streams_and_the_others_come_next(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_STREAMS_MAX", A_TURN)
    heard: list[int] = []
    for _ in range(-(-CLIENTS // A_TURN)):
        for client in house.clients:
            client.sendall(b"again")  # Everybody always has something to say.
        house.turn()
        heard += house.said()
        assert house.streams.is_behind()
    assert len(heard) == A_TURN * -(-CLIENTS // A_TURN)
    assert set(heard) == set(house.connections), "somebody was passed over"


def test_a_turn_reads_a_bounded_number_of_bytes(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_TURN_BYTES_MAX", 10)
    for client in house.clients[:5]:
        client.sendall(b"sixsix")
    turns: list[list[int]] = []
    while sum(map(len, turns)) < 5:
        house.turn()
        turns.append(house.said())
    assert turns == [[1, 2], [3, 4], [5]]


def test_many_who_hang_up_at_once_are_noticed_in_portions(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_STREAMS_MAX", A_TURN)
    for client in house.clients:
        client.close()
    gone: list[Input] = []
    while len(gone) < CLIENTS:
        house.turn()
        assert len(house.given) <= A_TURN
        gone += house.given
        house.given.clear()
    assert all(isinstance(one, ClientGone) for one in gone)
    assert not house.streams.is_behind()


def test_who_is_not_to_be_read_is_left_alone_though_it_was_in_the_queue(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_STREAMS_MAX", 1)
    for client in house.clients[:2]:
        client.sendall(b"hello")
    house.turn()
    (heard,) = house.said()
    other = 3 - heard
    house.perform(ClientReading(other, read=False))
    house.turn()
    assert house.said() == []
    assert not house.streams.is_behind()
    house.perform(ClientReading(other, read=True))
    house.turn()
    assert house.said() == [other]


def much_for(connection: int) -> ClientReady:
    return ClientReady(connection, module.LITTLE_BYTES + 1)


def test_those_for_whom_little_waits_do_not_stand_behind_the_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITE_STREAMS_MAX", 4)
    monkeypatch.setattr(module, "PULL_BYTES", 1)
    first, last = house.connections[:10], house.connections[-1]
    house.perform(*map(much_for, first), ClientReady(last, 10))
    assert house.daemon.pulled == [last, *first[:3]]


def test_a_turn_writes_to_a_bounded_number_of_streams_and_the_others_come_next(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITE_STREAMS_MAX", A_TURN)
    monkeypatch.setattr(module, "PULL_BYTES", 1)
    house.perform(*map(much_for, house.connections))
    assert house.daemon.pulled == house.connections[:A_TURN]
    assert house.streams.unwritten() == CLIENTS  # Everybody has more waiting, so nobody has left the queue.
    while len(house.daemon.pulled) < CLIENTS:
        house.turn()
    assert house.daemon.pulled[:CLIENTS] == house.connections, "each once before anybody twice"


def test_a_turn_writes_a_bounded_number_of_bytes_round_robin(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_TURN_BYTES_MAX", 4 * PULL_BYTES)
    house.perform(*map(much_for, house.connections[:3]))
    assert house.daemon.pulled == [1, 2, 3, 1]
    assert house.streams.is_behind()


def test_who_has_no_room_leaves_the_queue_until_it_has(house: House) -> None:
    house.perform(ClientReady(1))
    house.streams.write_all()
    house.turn()
    assert not house.streams.is_behind()
    pulled = len(house.daemon.pulled)
    while len(house.daemon.pulled) == pulled:
        house.clients[0].recv(1_000_000)
        house.turn()


# --- programs whose host vanished


def test_a_program_over_tcp_is_asked_now_and_then_whether_it_is_there(house: House) -> None:
    (port,) = free_ports(1)
    house.streams.listen_tcp("127.0.0.1", port)
    with socket.create_connection(("127.0.0.1", port)):
        while not house.given:
            house.turn()
        sock = house.streams._by_connection[CLIENTS + 1].sock
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [sock.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [15, 5, 3]
