"""The sockets of a daemon, in this process: what is sent arrives, in its order, whatever the system can do at once."""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Iterator

import pytest

from covey.cluster import Cluster, DaemonConfig, one_daemon_sites
from covey.drivers.live.endpoint import Endpoint
from covey.drivers.live.sockets import check_cluster, free_ports
from covey.errors import ConfigError
from covey.protocol.counters import Counter, Family
from covey.protocol.effects import Send
from covey.protocol.inputs import Datagram

WITHIN_S = 5.0
FRAME = 1_400
"""Bytes of a datagram that fits a network frame."""


def three(multicast: str | None = None) -> Cluster:
    ports = zip("abc", free_ports(3), strict=True)
    return Cluster("parts", tuple(DaemonConfig(name, 0, port=port) for name, port in ports), multicast)


@pytest.fixture
def cluster() -> Cluster:
    return three()


@pytest.fixture
def pair(cluster: Cluster) -> Iterator[tuple[Endpoint, Endpoint]]:
    endpoints = Endpoint(cluster, 0), Endpoint(cluster, 1)
    yield endpoints
    for endpoint in endpoints:
        endpoint.close()


def wait_for(endpoint: Endpoint) -> None:
    assert select.select(endpoint.descriptors(), [], [], WITHIN_S)[0], f"nothing came within {WITHIN_S:g} s"


def received(endpoint: Endpoint, count: int) -> list[bytes]:
    """So many datagrams, or as many as came in time."""
    datagrams: list[bytes] = []
    deadline = time.monotonic() + WITHIN_S
    while len(datagrams) < count and (left := deadline - time.monotonic()) > 0:
        if select.select(endpoint.descriptors(), [], [], left)[0]:
            datagrams += [one.data for one in endpoint.receive(1_000)]
    return datagrams


def numbered(count: int, to: tuple[int, ...] = (1,), size: int = FRAME) -> list[Send]:
    return [Send(to, number.to_bytes(2, "big") + bytes(size - 2)) for number in range(count)]


def data_of(sends: list[Send]) -> list[bytes]:
    return [send.data for send in sends]


class OneByOne:
    """A socket whose system refuses trains with this error, and counts how often it was asked."""

    def __init__(self, real: socket.socket, number: int) -> None:
        self._real = real
        self._number = number
        self.asked = 0

    def sendmsg(self, *_: object) -> int:
        self.asked += 1
        raise OSError(self._number, "refused")

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


# --- one by one


def test_what_is_sent_arrives_and_no_more_is_taken_than_asked_for(pair: tuple[Endpoint, Endpoint]) -> None:
    a, b = pair
    a.send([Send((1,), data) for data in (b"one", b"three", b"four")])
    wait_for(b)
    assert b.receive(1) == [Datagram(b"one", a.address)]
    assert b.receive(9) == [Datagram(b"three", a.address), Datagram(b"four", a.address)]
    assert b.receive(9) == []


def test_who_has_no_daemons_address_is_told_apart(pair: tuple[Endpoint, Endpoint]) -> None:
    _, b = pair
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outsider:
        outsider.bind(("127.0.0.1", 0))
        outsider.sendto(b"hello", b.address)
        wait_for(b)
        assert b.receive(9) == [Datagram(b"hello", outsider.getsockname(), unlisted=True)]


def test_a_closed_port_is_reported_once_and_harms_no_other_send(pair: tuple[Endpoint, Endpoint]) -> None:
    a, b = pair
    a.send([Send((2,), b"to nobody")])
    # The refusal waits in the socket; the system would hand it to this send in place of sending.
    a.send([Send((1,), b"to b")])
    assert received(b, 1) == [b"to b"]
    assert a.refused() == [2]
    assert a.refused() == []


def test_a_datagram_that_is_too_large_is_lost_and_counted(pair: tuple[Endpoint, Endpoint]) -> None:
    a, b = pair
    a.send([Send((1,), bytes(70_000))])
    assert a.count == {Family.DATAGRAM_NOT_SENT.of("EMSGSIZE"): 1}
    assert (a.lost, a.lost_to) == ({"EMSGSIZE": 1}, b.address)
    assert a.traffic.datagrams_sent == a.traffic.bytes_sent == 0


# --- trains


def test_trains_arrive_whole_and_in_order(pair: tuple[Endpoint, Endpoint]) -> None:
    a, b = pair
    sends = [*numbered(150), Send((1,), b"the token"), *numbered(3, size=200)]
    a.send(sends)
    assert received(b, len(sends)) == data_of(sends)
    assert (a.count, b.count) == ({}, {})
    assert a.traffic.datagrams_sent == b.traffic.datagrams_received == len(sends)
    assert a.traffic.bytes_sent == b.traffic.bytes_received == sum(map(len, data_of(sends)))


def test_a_train_to_a_closed_port_is_reported_and_harms_no_other_train(pair: tuple[Endpoint, Endpoint]) -> None:
    a, b = pair
    a.send(numbered(20, (2,)))
    sends = numbered(20)
    a.send(sends)
    assert received(b, len(sends)) == data_of(sends)
    assert a.refused() == [2]


@pytest.mark.parametrize("number", [errno.EIO, errno.EINVAL, errno.EOPNOTSUPP, errno.EMSGSIZE])
def test_where_the_system_refuses_trains_datagrams_go_one_by_one(
    pair: tuple[Endpoint, Endpoint], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    a, b = pair
    refusing = OneByOne(a._socket, number)
    monkeypatch.setattr(a, "_socket", refusing)
    sends = numbered(5)
    for _ in range(3):
        a.send(sends)
        assert received(b, 5) == data_of(sends)
    assert refusing.asked == 1, "one refusal is enough"
    assert a.count == {Family.SENT_ONE_BY_ONE.of(errno.errorcode[number]): 1}
    a.send(numbered(2, size=100))
    assert refusing.asked == 2, "smaller datagrams may fit where larger ones did not"


def test_a_train_that_finds_no_room_is_lost_and_counted(
    pair: tuple[Endpoint, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = pair
    monkeypatch.setattr(a, "_socket", OneByOne(a._socket, errno.EAGAIN))
    a.send(numbered(5))
    assert a.count == {Family.DATAGRAM_NOT_SENT.of("EAGAIN"): 5, Counter.WAITED_FOR_ROOM: 1}
    assert a.traffic.datagrams_sent == 0


# --- what is refused


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::1", ""])
def test_only_loopback_is_allowed(host: str) -> None:
    with pytest.raises(ConfigError, match=r"write (127\.0\.0\.1|an IPv4 address)"):
        check_cluster(Cluster("far", (DaemonConfig("a", 0, host, 4803),)))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost"])
def test_loopback_is_allowed(host: str) -> None:
    check_cluster(Cluster("near", (DaemonConfig("a", 0, host, 4803),)))


def test_a_port_of_zero_and_several_sites_are_refused() -> None:
    with pytest.raises(ConfigError, match="port 0"):
        check_cluster(Cluster("near", (DaemonConfig("a", 0),)))
    sites = tuple(DaemonConfig(daemon.name, daemon.site, port=4803) for daemon in one_daemon_sites(2).daemons)
    with pytest.raises(ConfigError, match="one site"):
        check_cluster(Cluster("near", sites))


def test_a_port_in_use_is_refused_with_what_to_do(cluster: Cluster, pair: tuple[Endpoint, Endpoint]) -> None:
    with pytest.raises(ConfigError, match="is it running already"):
        Endpoint(cluster, 0)
