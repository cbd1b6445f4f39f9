"""What a virtual second of a cluster without faults costs, and how that grows with the number of daemons.

python bench/simulation_steady.py 3 10 30 100
"""

from __future__ import annotations

import sys
from random import Random
from time import process_time

from covey.cluster import one_site
from covey.config import lan
from covey.drivers.simulation.network import NetworkOptions
from covey.drivers.simulation.node import Clocks
from covey.drivers.simulation.style import Style
from covey.drivers.simulation.workload import Workload
from covey.drivers.simulation.world import World
from covey.trace.record import Row

SECOND = 1_000_000
SPAN_S = 4
PLAIN_SEED = 1
"""The style of this seed has no traits: nothing is sent all at once, or to many groups."""


def measure(daemons: int) -> str:
    """CPU seconds a virtual second once all are in one view; some fifty messages a second in all, invariants off."""
    rows: list[Row] = []
    random = Random(1)
    settings = lan(daemons)
    world = World(one_site(daemons), settings, NetworkOptions(), random, "steady", rows.append)
    world.check_invariants = False
    workload = Workload(world, random, 50 / max(5, daemons), Style(PLAIN_SEED, 0, settings))
    for rank in range(daemons):
        world.start(rank, Clocks(0, 0, 100 * SECOND))
        world.play(workload.script(rank))
    world.run_until(2 * SECOND)
    views = {node.core.engine.report(0).view for node in world.living()}
    if len(views) != 1:
        raise SystemExit(f"{daemons} daemons are in {len(views)} views after two seconds")
    start, before = process_time(), len(rows)
    world.run_until((2 + SPAN_S) * SECOND)
    return f"| {daemons} | {(process_time() - start) / SPAN_S:.2f} | {(len(rows) - before) / SPAN_S:.0f} |"


if __name__ == "__main__":
    print("| daemons | CPU s a virtual s | trace rows a virtual s |\n|---|---|---|")
    for text in sys.argv[1:] or ["3", "10", "30", "100"]:
        print(measure(int(text)), flush=True)
