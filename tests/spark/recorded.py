"""Traces of the real protocol in simulation: good ones, and one for each planted bug.

A mutant is run for a short time on a seed that is known to show it then; where that seed no longer does, for as long as
others on the first seed where it is known to be caught, and on the next ones.
"""

from __future__ import annotations

from contextlib import ExitStack

import msgspec

from covey.analysis.tables.columns import RELIABLE
from covey.drivers.simulation.options import Asked
from covey.drivers.simulation.run import WATCHED, play
from covey.guarantees.checkers import DAEMON_CHECKERS, History, clients
from covey.trace.record import SERVICES, Row
from tests.simulation.client_mutants import CLIENT_MUTANTS
from tests.simulation.first_seeds import FIRST_SEEDS
from tests.simulation.mutants import COMPANIONS, MUTANTS, Mutant
from tests.spark.processes import in_processes
from tests.spark.short_seeds import SHORT_SECONDS, SHORT_SEEDS
from tests.unit.checkers.ideal import IdealRun, Sent

Rows = list[Row]

IN_SIMULATION = frozenset(
    {"apart forgotten", "told before the last is"}
    | {name for name, mutant in {**MUTANTS, **CLIENT_MUTANTS}.items() if mutant.guarantee in WATCHED}
)
"""Caught by the simulation's own tests: who starves is not in a trace, and the others show in too few seeds."""

IN_TRACES = [name for name in (*MUTANTS, *CLIENT_MUTANTS) if name not in IN_SIMULATION]

SEEDS_TRIED = 50
GOOD_SEEDS = (3, 11, 24)
SENT_FROM_OUTSIDE = 94
"""A leave hides a merge from who gets a message of its sender (S10)."""


def good_runs() -> dict[str, Rows]:
    """Simulated ones, and one of more daemons than a 64-bit mask has room for."""
    many = IdealRun(seed=2, daemons=70, steps=2, batch=2).trace.rows
    seeds = (*GOOD_SEEDS, SENT_FROM_OUTSIDE)
    simulated = {f"seed-{seed}": rows for seed, rows in zip(seeds, in_processes(_good, seeds), strict=True)}
    return simulated | {"many": [msgspec.structs.replace(row, run="many") for row in many]}


def _good(seed: int) -> Rows:
    return _played(seed, Asked() if seed == SENT_FROM_OUTSIDE else Asked(clients=6), [])


class Lossless(IdealRun):
    """Nobody crashes, and all who part have delivered the same: what the screen is made for."""

    def crash(self) -> None:
        self.split()

    def what_a_part_delivers(self, batch: list[Sent], part: list[str]) -> list[Sent]:
        return batch

    def send_batch(self, component: list[str]) -> list[Sent]:
        batch = []
        for _ in range(self.random.randint(0, self.batch)):
            name, service = self.random.choice(component), self.random.choice(SERVICES[RELIABLE:])
            session = self.random.choice(["s1", "s2"])
            batch.append(Sent(self.trace.send(name, service, session), name, f"{session}@{name}", service))
        return batch


def lossless_runs() -> dict[str, Rows]:
    made = {seed: Lossless(seed, daemons=2 + seed % 4, steps=6, batch=12).trace.rows for seed in range(8)}
    return {
        f"lossless-{seed}": [msgspec.structs.replace(row, run=f"lossless-{seed}") for row in rows]
        for seed, rows in made.items()
    }


def mutated_runs() -> dict[str, Rows]:
    return dict(zip(IN_TRACES, in_processes(_hunted, IN_TRACES), strict=True))


def _hunted(name: str) -> Rows:
    """The trace of the first seed on which the guarantee that this mutant names catches it."""
    mutant = MUTANTS.get(name) or CLIENT_MUTANTS[name]
    planted = [mutant, *([COMPANIONS[name]] if name in COMPANIONS else [])]
    programs = 0 if name in MUTANTS else 8
    tries = [(seed, None) for seed in dict.fromkeys([FIRST_SEEDS.get(name, 0), *range(SEEDS_TRIED)])]
    short = [(SHORT_SEEDS[name], SHORT_SECONDS)] if name in SHORT_SEEDS else []
    for seed, seconds in [*short, *tries]:
        try:
            rows = _played(seed, Asked(clients=programs, seconds=seconds), planted)
        except Exception:  # noqa: BLE001 - dying of a bug is not being caught by a guarantee
            continue
        if _catches(mutant.guarantee, rows):
            return [msgspec.structs.replace(row, run=name) for row in rows]
    raise AssertionError(f"no seed shows that {mutant.what}")


def _catches(guarantee: str, rows: Rows) -> bool:
    """Whether this guarantee is broken, for daemons or for clients; the others are not asked, which takes longer."""
    history = History(rows[0].run, rows)
    if guarantee in DAEMON_CHECKERS and not DAEMON_CHECKERS[guarantee](history).holds:
        return True
    if guarantee not in clients.CHECKERS or not any(row.level == "C" for row in rows):
        return False
    return not clients.CHECKERS[guarantee](clients.ClientHistory(rows[0].run, rows, history)).holds


def _played(seed: int, asked: Asked, planted: list[Mutant]) -> Rows:
    rows: Rows = []
    with ExitStack() as stack:
        for mutant in planted:
            stack.enter_context(mutant.applied())
        play(seed, asked, rows.append, invariants=False)
    return rows
