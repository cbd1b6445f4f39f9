"""The checkers: one function per guarantee and level, judging daemons and clients by their trace rows alone.

`check(rows)` judges a trace: every run by itself, at level S and at level C, and adds the verdicts up. The process of
a violation tells its level: a client's has an @. `DAEMON_CHECKERS` names the functions of level S, each of which takes
the History of one run; those of level C are in `clients`, and what both levels read alike is in `common`. `CHECKERS` is
all guarantees that have a checker, in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from covey.guarantees.checkers import clients, delivery, membership, services
from covey.guarantees.checkers.common.delivery import no_duplication, transitional_signal
from covey.guarantees.checkers.common.services import causal, fifo, mixing
from covey.trace.record import Row

from .history import History
from .verdict import VIOLATIONS_KEPT, Verdict, Violation, summed

__all__ = ["CHECKERS", "DAEMON_CHECKERS", "VIOLATIONS_KEPT", "History", "Verdict", "Violation", "check", "check_levels"]

DAEMON_CHECKERS: Final[dict[str, Callable[[History], Verdict]]] = {
    "S1": membership.initial_view,
    "S2": membership.self_inclusion,
    "S3": membership.local_monotonicity,
    "S4": membership.membership_agreement,
    "S5": membership.transitional_set,
    "S6": no_duplication,
    "S7": delivery.integrity,
    "S8": delivery.virtual_synchrony,
    "S9": delivery.same_view_delivery,
    "S10": delivery.sane_view,
    "S11": transitional_signal,
    "S12": delivery.self_delivery,
    "S13": delivery.termination,
    "S14": membership.precision,
    "S15": membership.calm,
    "M1": services.unreliable,
    "M2": services.reliable,
    "M3": fifo,
    "M4": causal,
    "M5": services.agreed,
    "M6": services.safe,
    "M7": mixing,
}

CHECKERS: Final[tuple[str, ...]] = tuple(dict.fromkeys([*DAEMON_CHECKERS, *clients.CHECKERS]))


def check(rows: Iterable[Row]) -> list[Verdict]:
    """One verdict per guarantee, in the order of CHECKERS."""
    by_run: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_run[row.run].append(row)
    verdicts: dict[str, list[Verdict]] = {guarantee: [] for guarantee in CHECKERS}
    for run, rows_of_run in by_run.items():
        for verdict in _check_run(run, rows_of_run):
            verdicts[verdict.guarantee].append(verdict)
    return [summed(guarantee, verdicts[guarantee]) for guarantee in CHECKERS]


def check_levels(run: str, rows: list[Row]) -> tuple[list[Verdict], list[Verdict]]:
    """Of one run: what is promised between daemons, and what is promised between clients."""
    history = History(run, rows)
    daemons = [checker(history) for checker in DAEMON_CHECKERS.values()]
    if not any(row.level == "C" for row in rows):
        return daemons, []
    client_history = clients.ClientHistory(run, rows, history)
    return daemons, [checker(client_history) for checker in clients.CHECKERS.values()]


def _check_run(run: str, rows: list[Row]) -> list[Verdict]:
    daemons, of_clients = check_levels(run, rows)
    return daemons + of_clients
