"""Checkers of the order in which clients deliver: M3, M4, M5 and M7 at level C.

In:        a ClientHistory.
Out:       one Verdict per guarantee.
Not here:  the other services (services.py), happened-before (causality.py), what is owed to whom (owed.py).

  M3  fifo: nothing earlier of the session comes later, and nothing is missing that is owed to the receiver
  M4  causal: nothing that happened before comes later, and nothing of the same daemon view is missing that is owed
  M5  agreed: one order of messages and light changes, the same in all groups, and no hole in it before the signal;
      after it, none of those who move along
  M7  mixing: a fifo message does not overtake an agreed one of its session

A message that nobody delivered has no place in the order, so nobody can be said to lack it here: S12 and S13 see it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from covey.drivers.simulation.checkers.clients.history import ClientHistory
from covey.drivers.simulation.checkers.clients.lives import DELIVERED, ClientDelivery, ClientLife, GroupStay, is_early
from covey.drivers.simulation.checkers.lives import CAUSAL, FIFO, RELIABLE, key_of, union
from covey.drivers.simulation.checkers.verdict import Findings, Verdict
from covey.trace.record import Row


def fifo(history: ClientHistory) -> Verdict:
    """M3. Across daemon views nothing may be missing where the daemons of both moved along with one another."""
    findings = Findings("M3", history.run)
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            message = delivery.message
            earlier = history.earlier_in_session[message.name]
            if message.strength < FIFO or not earlier:
                continue
            findings.premise()
            shared = history.stamped_while_together(life.process, message.origin, message.order_view)
            late = earlier & ~before & life.delivered
            missing = earlier & shared & history.owed[life.process] & ~before & ~late
            _report_order(findings, history, delivery, missing, late)
    return findings.verdict()


def causal(history: ClientHistory) -> Verdict:
    """M4."""
    findings = Findings("M4", history.run)
    pasts = history.causality.past
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            message = delivery.message
            past = pasts.get(message.name, 0)
            if message.strength < CAUSAL or not past:
                continue
            findings.premise()
            same_view = history.stamped_in.get(message.order_view or "", 0)
            late = past & ~before & life.delivered
            missing = past & same_view & history.owed[life.process] & ~before & ~late
            _report_order(findings, history, delivery, missing, late)
    return findings.verdict()


def mixing(history: ClientHistory) -> Verdict:
    """M7."""
    findings = Findings("M7", history.run)
    agreed_class = history.at_least(CAUSAL)
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            message = delivery.message
            if message.strength != FIFO:
                continue
            same_view = history.stamped_in.get(message.order_view or "", 0)
            owed = history.owed[life.process] | life.delivered
            required = history.earlier_in_session[message.name] & same_view & agreed_class & owed
            findings.premise(1 if required else 0)
            if missing := required & ~before:
                findings.violation(
                    life.process,
                    f"{life.process} delivered fifo {message.name} without, before it, {history.names(missing)}",
                )
    return findings.verdict()


def _report_order(
    findings: Findings, history: ClientHistory, delivery: ClientDelivery, missing: int, late: int
) -> None:
    process, name = delivery.row.process, delivery.message.name
    if missing:
        findings.violation(process, f"{process} delivered {name} without {history.names(missing)}")
    if late:
        findings.violation(process, f"{process} delivered {name} before {history.names(late)}")


def agreed(history: ClientHistory) -> Verdict:
    """M5."""
    findings = Findings("M5", history.run)
    _judge_keys(findings, history)
    for life in history.lives.values():
        _judge_growth(findings, history, life)
    judge_completeness(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def _judge_keys(findings: Findings, history: ClientHistory) -> None:
    """Each message has one place everywhere, and shares it with no other of its daemon view."""
    for message, following in pairwise(history.by_bit):
        if message.key is None or message.order_view != following.order_view:
            continue
        findings.premise()
        if message.key == following.key:
            findings.violation(
                following.origin or following.sender,
                f"{message.name} and {following.name} have the same key {message.key} in {message.order_view}",
            )
    judge_places(findings, history, history.at_least(RELIABLE))


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
    completeness = _Completeness(history)
    for life in history.lives.values():
        owed = history.owed[life.process]
        for delivery, before in life.prefixes():
            message = delivery.message
            if message.strength < CAUSAL or message.key is None:
                continue
            # Within a daemon view, smaller keys are lower bits.
            smaller_keys = (message.bit - 1) & owed & (-1 if message.bit & concerned else concerned)
            for stay, after_signal in delivery.stays:
                required = completeness.required(stay, message.order_view or "", after_signal) & smaller_keys
                findings.premise(1 if required else 0)
                if missing := required & ~before:
                    _report_hole(findings, history, delivery, stay, after_signal, missing)


def _report_hole(
    findings: Findings,
    history: ClientHistory,
    delivery: ClientDelivery,
    stay: GroupStay,
    after_signal: bool,
    missing: int,
) -> None:
    when = "after" if after_signal else "before"
    findings.violation(
        stay.process,
        f"{stay.process} delivered {delivery.message.name} {when} its signal in view {stay.view} of {stay.group} "
        f"without, before it, {history.names(missing)}, ordered earlier",
    )


class _Completeness:
    """What must precede deliveries of the agreed class, by stay and side of the signal; keys limit it further."""

    def __init__(self, history: ClientHistory) -> None:
        self.history = history
        self.stamped = history.at_least(RELIABLE) & ~union(one.bit for one in history.by_bit if one.key is None)
        self.after: dict[GroupStay, int] = {}

    def required(self, stay: GroupStay, view: str, after_signal: bool) -> int:
        history, group = self.history, stay.group
        anybody = history.delivered_in[group, stay.view] & history.stamped_for(group, view) & self.stamped
        if not after_signal:
            return anybody
        if stay not in self.after:
            movers = stay.next.transitional if stay.next is not None else frozenset()
            self.after[stay] = union(history.sent_by.get(process, 0) for process in movers)
        return anybody & self.after[stay]
