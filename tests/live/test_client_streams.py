"""The streams of a daemon's clients, in this process: real sockets, whose other ends do not read."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from covey.drivers.live.clients import LINGERING_MAX, ClientStreams
from covey.protocol.effects import ClientClosed, ClientReady
from covey.protocol.engine import Engine
from covey.protocol.inputs import ClientBytes, ClientConnected, ClientGone, Input
from covey.protocol.values import Payload

CLIENTS = LINGERING_MAX + 6


class Endless:
    """An engine that always has something more for everybody."""

    def pull(self, connection: int, room: int) -> list[Payload]:
        return [bytes(room)]


class House:
    def __init__(self, path: Path) -> None:
        self.given: list[Input] = []
        self._epoll = select.epoll()
        self.streams = ClientStreams(self._epoll, cast("Engine", Endless()), self.given.append)
        self.streams.listen_unix(path)
        self.clients = [_connected(path) for _ in range(CLIENTS)]

    def turn(self) -> None:
        for descriptor, mask in self._epoll.poll(0.1):
            self.streams.on_event(descriptor, mask)

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


def test_nothing_is_taken_from_who_was_given_up(house: House) -> None:
    """It does not read why; so its writes must fail, or it would go on sending into nothing."""
    while len(house.given) < CLIENTS:
        house.turn()
    house.streams.perform([ClientReady(1), ClientClosed(1)])
    with pytest.raises(BrokenPipeError):
        house.clients[0].sendall(b"more")
    house.clients[1].sendall(b"of another")
    house.turn()
    assert [one for one in house.given if isinstance(one, ClientBytes)] == [ClientBytes(2, b"of another")]


def test_of_those_who_were_given_up_and_do_not_read_only_some_are_kept(house: House) -> None:
    while len(house.given) < CLIENTS:
        house.turn()
    connections = [one.connection for one in house.given if isinstance(one, ClientConnected)]
    house.streams.perform([ClientReady(connection) for connection in connections])
    house.streams.perform([ClientClosed(connection) for connection in connections])
    gone = [one.connection for one in house.given if isinstance(one, ClientGone)]
    assert gone == connections[: CLIENTS - LINGERING_MAX]  # Those that waited longest.
