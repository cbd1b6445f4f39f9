"""The checkers of level S: one function per guarantee, judging daemons by their trace rows alone.

`check(rows)` judges a trace: every run by itself, the verdicts added up. `CHECKERS` names the functions, in the order
of the guarantees; each takes the History of one run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from covey.drivers.simulation.checkers import delivery, membership, services
from covey.drivers.simulation.checkers.history import History
from covey.drivers.simulation.checkers.verdict import VIOLATIONS_KEPT, Verdict, Violation, summed
from covey.trace.record import Row

__all__ = ["CHECKERS", "VIOLATIONS_KEPT", "History", "Verdict", "Violation", "check"]

CHECKERS: Final[dict[str, Callable[[History], Verdict]]] = {
    "S1": membership.initial_view,
    "S2": membership.self_inclusion,
    "S3": membership.local_monotonicity,
    "S4": membership.membership_agreement,
    "S5": membership.transitional_set,
    "S6": delivery.no_duplication,
    "S7": delivery.integrity,
    "S8": delivery.virtual_synchrony,
    "S9": delivery.same_view_delivery,
    "S10": delivery.sane_view,
    "S11": delivery.transitional_signal,
    "S12": delivery.self_delivery,
    "S13": delivery.termination,
    "S14": membership.precision,
    "S15": membership.calm,
    "M1": services.unreliable,
    "M2": services.reliable,
    "M3": services.fifo,
    "M4": services.causal,
    "M5": services.agreed,
    "M6": services.safe,
    "M7": services.mixing,
}


def check(rows: Iterable[Row]) -> list[Verdict]:
    """One verdict per guarantee, in the order of CHECKERS."""
    by_run: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_run[row.run].append(row)
    verdicts: dict[str, list[Verdict]] = {guarantee: [] for guarantee in CHECKERS}
    for run, rows_of_run in by_run.items():
        history = History(run, rows_of_run)
        for guarantee, checker in CHECKERS.items():
            verdicts[guarantee].append(checker(history))
    return [summed(guarantee, verdicts[guarantee]) for guarantee in CHECKERS]
