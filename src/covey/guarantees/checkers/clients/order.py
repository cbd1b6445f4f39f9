"""The checker of the order in which clients deliver: M5 at level C.

In:        a ClientHistory.
Out:       one Verdict.
Not here:  fifo, causal, mixing (common/services.py), the other services (services.py), what is owed to whom (owed.py).

  M5  agreed: one order of messages and light changes, the same in all groups, and no hole in it before the signal;
      after it, none of those who move along

A message that nobody delivered has no place in the order, so nobody can be said to lack it here: S12 and S13 see it.
"""

from __future__ import annotations

from typing import NamedTuple

from covey.guarantees.checkers.common.lives import CAUSAL, RELIABLE, key_of
from covey.guarantees.checkers.common.services import Completeness, judge_distinct_keys, report_hole
from covey.guarantees.checkers.verdict import Findings, Verdict
from covey.trace.record import Row

from .history import ClientHistory
from .lives import DELIVERED, ClientLife, is_early


def agreed(history: ClientHistory) -> Verdict:
    """M5."""
    findings = Findings("M5", history.run)
    judge_distinct_keys(findings, history)
    judge_places(findings, history, history.at_least(RELIABLE))
    for life in history.lives.values():
        _judge_growth(findings, history, life)
    judge_completeness(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def judge_places(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """Who delivers a message of this set delivers it at the place where all others do."""
    for life in history.lives.values():
        for delivery in life.deliveries:
            message, row = delivery.message, delivery.row
            # A sender that does not want its own message back may not know where it stood.
            if not message.bit & concerned or (row.event == "discard" and row.order_stamp is None):
                continue
            findings.premise()
            if key_of(row) is None or (row.order_view, key_of(row)) != (message.order_view, message.key):
                findings.violation(
                    life.process,
                    f"{life.process} delivered {message.name} with key {key_of(row)} of {row.order_view}, "
                    f"elsewhere it has {message.key} of {message.order_view}",
                )


class _Moment(NamedTuple):
    """Something that stands in the order: a message of the agreed class, or a change."""

    row: Row
    key: tuple[int, ...]


def _judge_growth(findings: Findings, history: ClientHistory, life: ClientLife) -> None:
    """One order over the whole life, of messages of the agreed class and of light changes, in all groups."""
    last: _Moment | None = None
    daemon_view: tuple[tuple[int, ...], int] | None = None
    for row in life.rows:
        reached = _daemon_view_reached(history, row)
        if reached is not None and daemon_view is not None and reached < daemon_view:
            findings.violation(life.process, f"{_event(row)} at {life.process} comes after a later daemon view")
        daemon_view = reached or daemon_view
        moment = _moment_of(row)
        if moment is None:
            continue
        findings.premise(1 if last is not None else 0)
        # One disconnect may change several groups at one place.
        if last is not None and (moment.key < last.key or (moment.key == last.key and row.event in DELIVERED)):
            findings.violation(
                life.process,
                f"{_event(row)} at {life.process} has key {moment.key}, not above {last.key} of {_event(last.row)}",
            )
        last = moment


def _daemon_view_reached(history: ClientHistory, row: Row) -> tuple[tuple[int, ...], int] | None:
    """The daemon view that a row shows, as its rank; a network view comes before everything else in it."""
    if row.event == "view" and (row.view_new or "").endswith("/net"):
        return row.view_rank[:-2], 0
    rank = history.daemon_ranks.get(row.order_view or "")
    return (rank, 1) if rank is not None else None


def _moment_of(row: Row) -> _Moment | None:
    if row.order_stamp is None or row.order_site is None or is_early(row):
        return None
    place = (row.order_stamp, row.order_site)
    return _Moment(row, (*place, row.order_index or 0) if row.event in DELIVERED else place)


def _event(row: Row) -> str:
    if row.message is not None:
        return f"{row.event} of {row.message}"
    return f"view {row.view_new} of {row.group}" if row.event == "view" else f"{row.event} of {row.group}"


def judge_completeness(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """What must precede a delivery of the agreed class does, if either of the two messages is in this set."""
    completeness = Completeness(history)
    for life in history.lives.values():
        owed = history.owed[life.process]
        for delivery, before in life.prefixes():
            message = delivery.message
            if message.strength < CAUSAL or message.key is None:
                continue
            # Within a daemon view, smaller keys are lower bits.
            smaller_keys = (message.bit - 1) & owed & (-1 if message.bit & concerned else concerned)
            for stay, after_signal in delivery.stays:
                stamped = history.stamped_for(stay.group, message.order_view or "")
                required = completeness.required(stay, stamped & smaller_keys, after_signal)
                findings.premise(1 if required else 0)
                if missing := required & ~before:
                    report_hole(findings, history, delivery, after_signal, stay.where, missing)
