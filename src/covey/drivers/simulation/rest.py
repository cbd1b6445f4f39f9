"""The end of a simulated run: who is connected with whom from now on, and whether all has come to rest.

In:        a world in which nothing goes wrong any more.
Out:       a `calm` row for each daemon, with whom it can be in one view; an `end` row for each that is at rest.
Not here:  what happens until then (run.py), what must have come to pass between the two rows (guarantees/).
"""

from __future__ import annotations

from covey.cluster import Cluster

from .faults import MS, SECOND
from .node import Node
from .world import World

GIVE_UP_US = 60 * SECOND
HELD_DOWN_SLACK_US = SECOND
"""More than the time until the next look around."""


def calm(world: World) -> None:
    living = world.living()
    for node in living:
        connected = [other for other in living if other is node or world.connected(node.rank, other.rank)]
        members = tuple(sorted(other.recorder.process for other in _joined_by_links(world.cluster, node, connected)))
        node.recorder.event("calm", world.time_ns, members=members)


def _joined_by_links(cluster: Cluster, node: Node, connected: list[Node]) -> list[Node]:
    """Those in its own site, and in sites that configured links join with it where each has a gateway."""
    site_of = {one.rank: cluster.daemons[one.rank].site for one in connected}
    gateways = {site_of[one.rank] for one in connected if cluster.daemons[one.rank].gateway}
    reached, before = {site_of[node.rank]}, 0
    while before < len(reached):
        before = len(reached)
        for link in cluster.all_links:
            ends = {link.one, link.other}
            reached |= ends if ends <= gateways and ends & reached else set()
    return [one for one in connected if site_of[one.rank] in reached]


def settle(world: World, silence_us: int) -> bool:
    """Let the world run until nothing visible has happened for so long; False if that never comes.

    Who came and went is merged late, out of silence: a moment after nobody is held down any more it would have been.
    """
    deadline, held_at = world.now + GIVE_UP_US, world.now - HELD_DOWN_SLACK_US
    while world.now < deadline:
        world.run_until(world.now + 100 * MS)
        if _somebody_is_held_down(world):
            held_at = world.now
        if world.now - world.changed_at >= silence_us and world.now - held_at >= HELD_DOWN_SLACK_US:
            return True
    return False


def _somebody_is_held_down(world: World) -> bool:
    return any(node.core.engine.report(node.clocks.at(world.now).mono_us).held_down_us for node in world.living())


def longest_silence(world: World) -> int:
    """After this long without an event nothing is coming any more: longer than the longest patience with a peer."""
    settings = world.settings
    return settings.peer_timeout_ms * settings.peer_timeout_growth_max * MS + SECOND


def end(world: World) -> None:
    """Whoever still has something to send is not at rest, however silent, nor is who has lost it before it was stamped:
    without an `end` row S15 names it.
    """
    for node in world.living():
        if not node.core.snapshot(0)["waiting_bytes"] and not node.owed:
            node.recorder.event("end", world.time_ns)
