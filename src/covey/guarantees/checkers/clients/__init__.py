"""The checkers of level C: one function per guarantee, judging the clients of groups by their trace rows.

`CHECKERS` names the functions by guarantee; each takes the ClientHistory of one run. Rows of daemons are consulted
where a promise to clients speaks of daemons: without them, those parts stay undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from covey.guarantees.checkers.clients import changes, delivery, groups, order, rest, services, views
from covey.guarantees.checkers.common.delivery import no_duplication, transitional_signal
from covey.guarantees.checkers.common.services import causal, fifo, mixing
from covey.guarantees.checkers.verdict import Verdict

from .history import ClientHistory

__all__ = ["CHECKERS", "ClientHistory"]

CHECKERS: Final[dict[str, Callable[[ClientHistory], Verdict]]] = {
    "S1": views.initial_view,
    "S2": views.self_inclusion,
    "S3": views.local_monotonicity,
    "S4": views.membership_agreement,
    "S5": views.transitional_set,
    "S6": no_duplication,
    "S7": delivery.integrity,
    "S8": delivery.virtual_synchrony,
    "S9": delivery.same_view_delivery,
    "S10": delivery.sane_view,
    "S11": transitional_signal,
    "S12": rest.self_delivery,
    "S13": rest.termination,
    "M1": services.unreliable,
    "M2": services.reliable,
    "M3": fifo,
    "M4": causal,
    "M5": order.agreed,
    "M6": services.safe,
    "M7": mixing,
    "M8": services.open_groups,
    "M9": services.several_groups,
    "C1": changes.light_changes,
    "C2": groups.same_view,
    "C3": changes.agreement,
    "C4": groups.unaffected_groups,
    "C5": changes.cause,
    "C6": changes.self_leave,
    "C7": groups.client_crash,
    "C8": groups.private_name,
}
