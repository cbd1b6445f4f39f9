"""The simulated network keeps its promises: what a reliable link carries is not lost, whatever the daemon does."""

from __future__ import annotations

from random import Random

import pytest

from covey.cluster import one_daemon_sites
from covey.config import Settings
from covey.drivers.simulation.network import NetworkOptions
from covey.drivers.simulation.node import INBOX_MAX, Clocks
from covey.drivers.simulation.world import World


@pytest.mark.parametrize(("reliable", "kept"), [(False, INBOX_MAX), (True, INBOX_MAX + 50)])
def test_a_paused_daemon_loses_datagrams_and_nothing_of_a_reliable_link(reliable: bool, kept: int) -> None:
    world = World(one_daemon_sites(2), Settings(), NetworkOptions(), Random(1), "test", lambda _row: None)
    world.start(1, Clocks(0, 0, 0))
    node = world.nodes[1]
    node.paused = True
    for number in range(INBOX_MAX + 50):
        world.network.send(world.now, 0, 1, b"%d" % number, reliable)
    world.run_until(1_000_000)
    assert len(node.inbox) == kept
