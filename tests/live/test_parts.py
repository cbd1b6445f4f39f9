"""The parts of a live daemon, each in this process: the socket, the load, the commands."""

from __future__ import annotations

import select
from collections.abc import Iterator

import pytest

from covey.config import Cluster, DaemonConfig, one_daemon_sites
from covey.drivers.live.cluster import free_ports
from covey.drivers.live.control import LINE_BYTES_MAX, CommandLines
from covey.drivers.live.endpoint import Endpoint, check_cluster
from covey.drivers.live.load import DUE_MAX, Load
from covey.errors import ConfigError
from covey.protocol.values import Service

SECOND_US = 1_000_000


@pytest.fixture
def cluster() -> Cluster:
    ports = zip("abc", free_ports(3), strict=True)
    return Cluster("parts", tuple(DaemonConfig(name, 0, port=port) for name, port in ports))


@pytest.fixture
def pair(cluster: Cluster) -> Iterator[tuple[Endpoint, Endpoint]]:
    endpoints = Endpoint(cluster, 0), Endpoint(cluster, 1)
    yield endpoints
    for endpoint in endpoints:
        endpoint.close()


def wait_for(endpoint: Endpoint) -> None:
    assert select.select([endpoint], [], [], 5)[0], "nothing came within 5 s"


def test_what_is_sent_arrives_and_no_more_is_taken_than_asked_for(pair: tuple[Endpoint, Endpoint]) -> None:
    a, b = pair
    for data in (b"one", b"two", b"three"):
        a.send((1,), data)
    wait_for(b)
    assert b.receive(2) == [b"one", b"two"]
    assert b.receive(2) == [b"three"]
    assert b.receive(2) == []


def test_a_closed_port_is_reported_once_and_harms_no_other_send(pair: tuple[Endpoint, Endpoint]) -> None:
    a, b = pair
    a.send((2,), b"to nobody")
    # The refusal waits in the socket; the system would hand it to this send in place of sending.
    a.send((1,), b"to b")
    wait_for(b)
    assert b.receive(10) == [b"to b"]
    assert a.refused() == [2]
    assert a.refused() == []


def test_a_datagram_that_is_too_large_is_lost_and_counted(pair: tuple[Endpoint, Endpoint]) -> None:
    a, _ = pair
    a.send((1,), bytes(70_000))
    assert a.count == {"datagram not sent: EMSGSIZE": 1}


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


def test_the_same_seed_gives_the_same_load() -> None:
    loads = [Load(200, 7, 0), Load(200, 7, 0)]
    first, second = ([load.due(at) for at in range(0, 2 * SECOND_US, 100_000)] for load in loads)
    assert first == second
    submissions = [one for batch in first for one in batch]
    assert 200 < len(submissions) < 600
    assert {one.service for one in submissions} == set(Service)


def test_a_load_makes_up_for_little_after_a_pause_and_nothing_after_its_stop() -> None:
    load = Load(1_000, 7, 0)
    assert len(load.due(60 * SECOND_US)) == DUE_MAX
    assert load.next_us() == 60 * SECOND_US
    load.stop()
    assert load.next_us() is None
    assert load.due(120 * SECOND_US) == []


def test_a_line_without_end_is_given_up() -> None:
    unknown: list[list[str]] = []
    lines = CommandLines({"quiet": unknown.append}, unknown=unknown.append)
    lines.feed(b"x" * (LINE_BYTES_MAX + 1))
    lines.feed(b"quiet\n\n")
    assert unknown == [["a", "line", "without", "end"], []]
