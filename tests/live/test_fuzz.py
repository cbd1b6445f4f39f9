"""A live cluster among wrong datagrams: no crash, no growth, every one counted, and the traffic goes on."""

from __future__ import annotations

import os
import socket
from itertools import islice
from pathlib import Path

import pytest

from covey.config import digest, loopback
from covey.drivers.live.cluster import LocalCluster
from covey.drivers.live.fuzz import wrong_datagrams
from covey.drivers.simulation.checkers import check

pytestmark = pytest.mark.live

DATAGRAMS = int(os.environ.get("COVEY_FUZZ_DATAGRAMS", "20000"))
"""Set it to 100000 for the long run."""

BATCH = 500
GROWTH_KB_MAX = 8_000


STRANGE = ("not a covey datagram", "another")
"""Reasons for which a datagram is rejected before it is parsed."""


def _counted(cluster: LocalCluster, name: str) -> tuple[int, int]:
    """Datagrams that came from nobody in the view, by any reason; and how many of them were parsed first."""
    (status,) = [status for status in cluster.statuses() if status.name == name]
    wrong = {what: n for what, n in status.snapshot["count"].items() if "rejected" in what or "dropped" in what}
    return sum(wrong.values()), sum(n for what, n in wrong.items() if not any(word in what for word in STRANGE))


def test_wrong_datagrams_are_counted_and_change_nothing(tmp_path: Path) -> None:
    with (
        LocalCluster(tmp_path, 3, load=40, seed=5) as cluster,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        cluster.start("a", "b", "c")
        cluster.wait_for_view("a", "b", "c")
        cluster.wait_for_traffic(20)
        view, before_kb = cluster.child("b").view, cluster.child("b").resident_kb()
        sent, datagrams = 0, wrong_datagrams(cluster.cluster, digest(cluster.cluster, loopback(3)), seed=1)
        while sent < DATAGRAMS:
            # A batch at a time: what the socket buffer cannot hold would be lost before anyone could count it.
            for data in islice(datagrams, BATCH):
                sender.sendto(data, cluster.address("b"))
            sent += BATCH
            cluster.statuses()
        cluster.wait_for_traffic(20)
        counted, parsed = _counted(cluster, "b")
        assert counted >= sent * 0.9
        assert parsed >= sent * 0.3, "most of the good frames with bytes changed reach the parsers"
        assert cluster.child("b").resident_kb() - before_kb < GROWTH_KB_MAX
        assert cluster.child("b").view == view
        cluster.calm()
        assert cluster.finish()
        assert not [one for verdict in check(cluster.rows()) for one in verdict.violations]
