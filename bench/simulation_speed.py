"""How fast the simulator runs, and how that grows with the number of daemons.

python bench/simulation_speed.py 3 10 30 100
"""

from __future__ import annotations

import sys
from statistics import median
from time import process_time

from covey.drivers.simulation.options import Asked
from covey.drivers.simulation.run import run_seed

SEEDS = range(3)


def measure(daemons: int) -> str:
    """Medians over a few seeds: CPU seconds a seed, virtual seconds, trace rows, CPU per virtual second."""
    costs, virtual, rows = [], [], []
    for seed in SEEDS:
        start = process_time()
        result = run_seed(seed, Asked(daemons=daemons, seconds=6.0))
        costs.append(process_time() - start)
        virtual.append(result.virtual_seconds)
        rows.append(result.events)
        broken = [verdict.guarantee for verdict in result.verdicts if verdict.violations]
        if broken:
            raise SystemExit(f"seed {seed} with {daemons} daemons breaks {broken}")
    cost, span = median(costs), median(virtual)
    return f"| {daemons} | {cost:.2f} | {span:.1f} | {median(rows):.0f} | {cost / span:.3f} |"


if __name__ == "__main__":
    print("| daemons | CPU s a seed | virtual s | trace rows | CPU s a virtual s |\n|---|---|---|---|---|")
    for text in sys.argv[1:] or ["3", "10", "30", "100"]:
        print(measure(int(text)), flush=True)
