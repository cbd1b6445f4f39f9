"""A socket whose buffer is really full: on a host that does not learn its neighbour's address, packets have to wait.

They count against the buffer of the socket that sent them until the neighbour answers, or until the host gives up some
three seconds later. On loopback there is no such wait: a datagram is at its receiver when `send` returns.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from types import SimpleNamespace

import pytest

from covey.cluster import Cluster, DaemonConfig
from covey.drivers.live import endpoint as endpoint_module
from covey.drivers.live.endpoint import Endpoint
from covey.lab.faultnet import namespace
from covey.protocol.counters import Counter, Family
from covey.protocol.effects import Send

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(namespace.unavailable() is not None, reason=namespace.unavailable() or ""),
]

ARP, ARP_REQUEST, ARP_REPLY = b"\x08\x06", 1, 2
_ARP = struct.Struct("!HHBBH6s4s6s4s")
NEIGHBOUR_MAC = b"\x02\x00\x00\x00\x00\x02"
BUFFER_BYTES = 4_096
"""Of which the system makes the double, and in which a few datagrams fit."""
WITHIN_S = 10.0


class Wire:
    """The other end of the host's cable."""

    def __init__(self, device: int) -> None:
        self.device = device

    def frames(self) -> Iterator[bytes]:
        """What the host sends, until nothing comes for a while."""
        while select.select([self.device], [], [], 0.3)[0]:
            with suppress(BlockingIOError):
                yield os.read(self.device, 2_000)

    def answer_when_full(self, endpoint: Endpoint) -> None:
        """Tell the host, which asks for it, its neighbour's address, once a datagram has had to wait."""
        until = time.monotonic() + WITHIN_S
        while Counter.WAITED_FOR_ROOM not in endpoint.count:
            assert time.monotonic() < until, "the socket was never full"
            time.sleep(0.001)
        for frame in self.frames():
            if frame[12:14] == ARP and frame[21] == ARP_REQUEST:
                *_, mac, address, _, wanted = _ARP.unpack_from(frame, 14)
                reply = _ARP.pack(1, 0x0800, 6, 4, ARP_REPLY, NEIGHBOUR_MAC, wanted, mac, address)
                os.write(self.device, mac + NEIGHBOUR_MAC + ARP + reply)
                return
        raise AssertionError("the host never asked for its neighbour")


@pytest.fixture
def wire_and_endpoint() -> Iterator[tuple[Wire, Endpoint]]:
    """A host with one daemon, whose neighbours do not answer by themselves."""
    daemons = tuple(DaemonConfig(name, 0, namespace.address_of(at), 4_801) for at, name in enumerate("abc", start=1))

    def make() -> tuple[int, int, Endpoint]:
        inside, device = namespace.make_host(1, 1_500, ethernet=True)
        return inside, device, Endpoint(Cluster("full", daemons), 0, allow_unsealed=True)

    with ThreadPoolExecutor(1) as thread:  # Whose namespace ends with it.
        inside, device, endpoint = thread.submit(make).result()
    with closing(endpoint):
        endpoint._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        yield Wire(device), endpoint
    os.close(device)
    os.close(inside)


def numbered(count: int, size: int = 1_000) -> list[Send]:
    """Each of another size than the one before: they share no train."""
    return [Send((1,), bytes([number % 256]) * (size + number % 2)) for number in range(count)]


def payload(frame: bytes) -> bytes:
    return frame[14 + 20 + 8 :]


def test_a_step_waits_once_for_a_full_socket_and_the_rest_is_lost_and_counted(
    wire_and_endpoint: tuple[Wire, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, endpoint = wire_and_endpoint
    waits: list[int] = []
    room = endpoint._room.poll

    def poll(ms: int) -> list[tuple[int, int]]:
        waits.append(ms)
        return room(ms)

    monkeypatch.setattr(endpoint, "_room", SimpleNamespace(poll=poll))
    endpoint.send(numbered(1_000))
    lost = endpoint.count[Family.DATAGRAM_NOT_SENT.of("EAGAIN")]
    assert endpoint.count[Counter.WAITED_FOR_ROOM] == 1
    assert endpoint.traffic.datagrams_sent == 1_000 - lost < 20
    assert 0 < len(waits) < 10, "not once for each datagram"


def test_when_room_comes_in_time_nothing_is_lost_and_the_order_is_kept(
    wire_and_endpoint: tuple[Wire, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, endpoint = wire_and_endpoint
    monkeypatch.setattr(endpoint_module, "SEND_WAIT_MS", int(WITHIN_S * 1_000))
    answering = threading.Thread(target=wire.answer_when_full, args=[endpoint])
    answering.start()
    sends = numbered(50)
    endpoint.send(sends)
    answering.join()
    arrived = [payload(frame) for frame in wire.frames()]
    assert endpoint.count == {Counter.WAITED_FOR_ROOM: 1}
    assert [data for data in arrived if len(data) >= 1_000] == [send.data for send in sends]


def test_a_train_waits_for_room_too(wire_and_endpoint: tuple[Wire, Endpoint], monkeypatch: pytest.MonkeyPatch) -> None:
    wire, endpoint = wire_and_endpoint
    monkeypatch.setattr(endpoint_module, "SEND_WAIT_MS", int(WITHIN_S * 1_000))
    answering = threading.Thread(target=wire.answer_when_full, args=[endpoint])
    answering.start()
    sends = [Send((1,), bytes([number]) * 1_300) for number in range(120)]  # Trains of some 40.
    endpoint.send(sends)
    answering.join()
    arrived = [payload(frame) for frame in wire.frames()]
    assert [data for data in arrived if len(data) == 1_300] == [send.data for send in sends]
    assert endpoint.count == {Counter.WAITED_FOR_ROOM: 1}
