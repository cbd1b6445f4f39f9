"""A live cluster among wrong datagrams: no crash, no growth, every one counted, and the traffic goes on."""

from __future__ import annotations

import os
import socket
from itertools import islice
from pathlib import Path

import pytest

from covey.drivers.live.cluster import LocalCluster
from covey.drivers.live.fuzz import wrong_datagrams
from covey.drivers.simulation.checkers import check

pytestmark = pytest.mark.live

DATAGRAMS = int(os.environ.get("COVEY_FUZZ_DATAGRAMS", "20000"))
"""Set it to 100000 for the long run."""

BATCH = 500
GROWTH_KB_MAX = 8_000


def _counted(cluster: LocalCluster, name: str) -> int:
    """Datagrams that came from nobody in the view, by any reason."""
    (status,) = [status for status in cluster.statuses() if status.name == name]
    return sum(amount for what, amount in status.snapshot["count"].items() if "rejected" in what or "dropped" in what)


def test_wrong_datagrams_are_counted_and_change_nothing(tmp_path: Path) -> None:
    with (
        LocalCluster(tmp_path, 3, load=40, seed=5) as cluster,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        cluster.start("a", "b", "c")
        cluster.wait_for_view("a", "b", "c")
        cluster.wait_for_traffic(20)
        view, before_kb = cluster.child("b").view, cluster.child("b").resident_kb()
        sent, datagrams = 0, wrong_datagrams(cluster.cluster, seed=1)
        while sent < DATAGRAMS:
            # A batch at a time: what the socket buffer cannot hold would be lost before anyone could count it.
            for data in islice(datagrams, BATCH):
                sender.sendto(data, cluster.address("b"))
            sent += BATCH
            cluster.statuses()
        cluster.wait_for_traffic(20)
        assert _counted(cluster, "b") >= sent * 0.9
        assert cluster.child("b").resident_kb() - before_kb < GROWTH_KB_MAX
        assert cluster.child("b").view == view
        cluster.calm()
        assert cluster.finish()
        assert not [one for verdict in check(cluster.rows()) for one in verdict.violations]
