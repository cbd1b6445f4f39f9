"""Multicast on loopback: a datagram for several daemons leaves once and reaches each; real daemons work with it."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from covey.cluster import Cluster, DaemonConfig
from covey.config_file import Preset
from covey.drivers.live.endpoint import Endpoint
from covey.drivers.live.sockets import bound, free_ports, joined
from covey.errors import ConfigError
from covey.guarantees.checkers import check
from covey.lab.cluster import LocalCluster
from covey.protocol.effects import Send

WITHIN_S = 5.0
HOST = "239.192.77.1"


@cache
def unavailable() -> str | None:
    """Why there is no multicast on loopback here, tried with sockets of our own; None if there is."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.settimeout(1)
        loopback = socket.inet_aton("127.0.0.1")
        try:
            receiver.bind((HOST, 0))
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(HOST) + loopback)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
            sender.sendto(b"?", receiver.getsockname())
            receiver.recv(1)
        except OSError as error:
            return f"no multicast on loopback: {error}"
    return None


@pytest.fixture
def multicast() -> str:
    if reason := unavailable():
        pytest.skip(reason)
    return f"{HOST}:{free_ports(1)[0]}"


@pytest.fixture
def endpoints(multicast: str) -> Iterator[list[Endpoint]]:
    ports = zip("abc", free_ports(3), strict=True)
    cluster = Cluster("parts", tuple(DaemonConfig(name, 0, port=port) for name, port in ports), multicast)
    made = [Endpoint(cluster, rank) for rank in range(3)]
    yield made
    for endpoint in made:
        endpoint.close()


def received(endpoint: Endpoint, until: bytes) -> list[bytes]:
    """Everything up to and with this datagram."""
    datagrams: list[bytes] = []
    deadline = time.monotonic() + WITHIN_S
    while until not in datagrams:
        left = deadline - time.monotonic()
        assert left > 0, f"{until!r} did not come; {datagrams} did"
        if select.select(endpoint.descriptors(), [], [], left)[0]:
            datagrams += [one.data for one in endpoint.receive(1_000)]
    return datagrams


def test_what_is_for_several_leaves_once_and_what_is_for_one_goes_to_it_alone(endpoints: list[Endpoint]) -> None:
    a, b, c = endpoints
    a.send([Send((), b"for nobody"), Send((1, 2), b"for both")])
    assert received(b, b"for both") == received(c, b"for both") == [b"for both"]
    assert (a.traffic.datagrams_sent, a.traffic.bytes_sent) == (1, len(b"for both"))
    a.send([Send((1,), b"for b"), Send((1, 2), b"last")])
    assert received(c, b"last") == [b"last"]
    assert sorted(received(b, b"last")) == [b"for b", b"last"]


def test_nobody_receives_what_it_sent_itself(endpoints: list[Endpoint]) -> None:
    a, b, _ = endpoints
    a.send([Send((1, 2), b"from a")])
    b.send([Send((0, 2), b"from b")])
    assert received(a, b"from b") == [b"from b"]
    assert a.count == {}
    assert a.traffic.datagrams_received == 1


def test_trains_reach_everybody_in_order(endpoints: list[Endpoint]) -> None:
    a, b, c = endpoints
    data = [number.to_bytes(2, "big") + bytes(1_398) for number in range(100)]
    a.send([Send((1, 2), one) for one in data])
    assert received(b, data[-1]) == received(c, data[-1]) == data
    assert a.traffic.datagrams_sent == len(data)


def test_multicast_stays_on_the_network_of_the_host() -> None:
    address = ("127.0.0.1", free_ports(1)[0])
    with bound(DaemonConfig("a", 0), address) as made:
        interface = made.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, 4)
        assert socket.inet_ntoa(interface) == "127.0.0.1"
        assert made.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) == 1


def test_an_address_that_cannot_be_joined_is_refused_with_what_to_do(multicast: str) -> None:
    daemon = DaemonConfig("a", 0)
    with pytest.raises(
        ConfigError, match=f"cannot receive multicast {multicast} at host 192.0.2.1 .*correct `multicast`"
    ):
        joined(daemon, "192.0.2.1", multicast)


@pytest.mark.live
@pytest.mark.parametrize("preset", ["loopback", "lan"])
def test_daemons_form_views_and_keep_every_promise(tmp_path: Path, multicast: str, preset: Preset) -> None:
    with LocalCluster(tmp_path, run=tmp_path.name, load=50, seed=1, preset=preset, multicast=multicast) as cluster:
        cluster.start("a", "b", "c")
        cluster.wait_for_view("a", "b", "c")
        cluster.wait_for_traffic(30)
        cluster.kill("a")
        cluster.wait_for_view("b", "c")
        cluster.start("a")
        cluster.wait_for_view("a", "b", "c")
        cluster.calm()
        cluster.wait_for_traffic(30)
        assert {status.snapshot["multicast"] for status in cluster.statuses()} == {multicast}
        assert cluster.finish(), "the daemons did not come to rest"
        verdicts = check(cluster.rows())
        assert not [str(one) for verdict in verdicts for one in verdict.violations]
        assert sum(verdict.premises for verdict in verdicts) > 0
