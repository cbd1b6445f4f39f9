"""Trains on a network that carries single frames: the system cuts them, or refuses, and daemons do not notice."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path as FilePath

import pytest

from covey.cluster import Cluster, DaemonConfig
from covey.drivers.live.endpoint import Endpoint
from covey.guarantees.checkers import check
from covey.lab.cluster import Host, LocalCluster
from covey.lab.faultnet import FaultNet, Path
from covey.protocol.counters import Family
from covey.protocol.effects import Send

pytestmark = pytest.mark.live

PORT = 4_801
WITHIN_S = 10.0


@pytest.fixture(autouse=True)
def available() -> None:
    if reason := FaultNet.unavailable():
        pytest.skip(reason)


def pair(net: FaultNet, stack: ExitStack) -> Iterator[Endpoint]:
    hosts = zip("ab", net.hosts, strict=True)
    cluster = Cluster("frames", tuple(DaemonConfig(name, 0, net.address(host), PORT) for name, host in hosts))
    for rank, host in enumerate(net.hosts):
        with net.inside(host):
            yield stack.enter_context(closing(Endpoint(cluster, rank, allow_unsealed=True)))


def received(endpoint: Endpoint, count: int) -> list[bytes]:
    datagrams: list[bytes] = []
    deadline = time.monotonic() + WITHIN_S
    while len(datagrams) < count and (left := deadline - time.monotonic()) > 0:
        if select.select(endpoint.descriptors(), [], [], left)[0]:
            datagrams += [one.data for one in endpoint.receive(1_000)]
    return datagrams


@pytest.mark.parametrize(("mtu", "refused"), [(1_500, False), (900, True)])
def test_a_train_crosses_as_frames_also_where_the_system_does_not_cut(mtu: int, refused: bool) -> None:
    data = [number.to_bytes(2, "big") + bytes(1_398) for number in range(40)]
    with FaultNet(hosts=2, mtu=mtu) as net, ExitStack() as stack:
        a, b = pair(net, stack)
        a.send([Send((1,), one) for one in data])
        assert received(b, len(data)) == data
        assert net.counters()[1, 2].carried == len(data) * (2 if refused else 1)
        assert (a.count.of(Family.SENT_ONE_BY_ONE) > 0) == refused


def test_a_closed_port_on_another_host_is_reported() -> None:
    with FaultNet(hosts=2) as net, ExitStack() as stack:
        a, b = pair(net, stack)
        b.close()
        a.send([Send((1,), bytes(1_400))] * 20)
        assert select.select(a.descriptors(), [], [], WITHIN_S)[0], "no word of the closed port"
        a.on_errors()
        assert a.refused() == [1]


def test_daemons_keep_every_promise_among_lost_and_delayed_frames(tmp_path: FilePath) -> None:
    with FaultNet(hosts=3, seed=1, path=Path(delay_ms=1, jitter_ms=1, loss=0.02)) as net:
        hosts = [Host(net.address(host), PORT, partial(net.popen, host)) for host in net.hosts]
        with LocalCluster(tmp_path, run=tmp_path.name, load=80, seed=1, hosts=hosts) as cluster:
            cluster.start("a", "b", "c")
            cluster.wait_for_view("a", "b", "c")
            cluster.wait_for_traffic(150)
            net.set_all(Path(delay_ms=1))
            cluster.wait_for_view("a", "b", "c")
            cluster.calm()
            cluster.wait_for_traffic(30)
            assert cluster.finish(), "the daemons did not come to rest"
            verdicts = check(cluster.rows())
            assert not [str(one) for verdict in verdicts for one in verdict.violations]
            assert sum(verdict.premises for verdict in verdicts) > 0
