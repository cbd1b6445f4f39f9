"""Traces of the real protocol in simulation: good ones, and one for each planted bug.

A mutant is run on the first seed where it is known to be caught; where that seed no longer does, on the next ones.
"""

from __future__ import annotations

from contextlib import ExitStack

import msgspec

from covey.drivers.simulation.checkers import check
from covey.drivers.simulation.options import Asked
from covey.drivers.simulation.run import play
from covey.trace.record import Row
from tests.simulation.client_mutants import CLIENT_MUTANTS
from tests.simulation.first_seeds import FIRST_SEEDS
from tests.simulation.mutants import COMPANIONS, MUTANTS, Mutant
from tests.unit.checkers.ideal import IdealRun

Rows = list[Row]

SEEDS_TRIED = 50
GOOD_SEEDS = (3, 11, 24)


def good_runs() -> dict[str, Rows]:
    """Simulated ones, and one of more daemons than a 64-bit mask has room for."""
    many = IdealRun(seed=2, daemons=70, steps=2, batch=2).trace.rows
    simulated = {f"seed-{seed}": _played(seed, Asked(clients=6), []) for seed in GOOD_SEEDS}
    return simulated | {"many": [msgspec.structs.replace(row, run="many") for row in many]}


def mutated_runs() -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for name, mutant in MUTANTS.items():
        companion = COMPANIONS.get(name)
        found[name] = _hunted(name, mutant, [*([companion] if companion else [])], Asked(clients=0))
    for name, mutant in CLIENT_MUTANTS.items():
        found[name] = _hunted(name, mutant, [], Asked(clients=8))
    return found


def _hunted(name: str, mutant: Mutant, companions: list[Mutant], asked: Asked) -> Rows:
    first = FIRST_SEEDS.get(name, 0)
    for seed in range(first, first + SEEDS_TRIED):
        try:
            rows = _played(seed, asked, [mutant, *companions])
        except Exception:  # noqa: BLE001 - dying of a bug is not being caught by a guarantee
            continue
        verdicts = {verdict.guarantee: verdict for verdict in check(rows)}
        if verdicts[mutant.guarantee].violations:
            return [msgspec.structs.replace(row, run=name) for row in rows]
    raise AssertionError(f"no seed shows that {mutant.what}")


def _played(seed: int, asked: Asked, planted: list[Mutant]) -> Rows:
    rows: Rows = []
    with ExitStack() as stack:
        for mutant in planted:
            stack.enter_context(mutant.applied())
        play(seed, asked, rows.append, invariants=False)
    return rows
