"""Checkers of the views clients are shown: S1 to S5 at level C.

In:        a ClientHistory.
Out:       one Verdict per guarantee.
Not here:  why a view came (changes.py), what is delivered in the views (delivery.py, order.py, services.py).

  S1  every delivery to a group and every signal happens in the views that the row names, in one of them at least
  S2  a client is a member of every view it is shown
  S3  the rank of a group's views grows at each client, also where it left and joined again
  S4  equal group and id, equal members and equal rank
  S5  the transitional set holds who came along: only from the same view of the group, and, if their daemons came from
      the same daemon view too, all of them, with the same set

S14 and S15 speak of daemons only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from covey.guarantees.checkers.common.views import (
    comers,
    judge_agreement,
    judge_equal_sets,
    judge_growth,
    judge_in_both_views,
    judge_newcomers,
    judge_self_inclusion,
    listed,
    set_of,
)
from covey.guarantees.checkers.verdict import Findings, Verdict
from covey.trace.record import PRIVATE, Row

from .history import ClientHistory
from .lives import DELIVERED, DEPARTED, ClientLife, GroupStay


def initial_view(history: ClientHistory) -> Verdict:
    """S1. A row that names another view than the one its process is in would mislead every other checker."""
    findings = Findings("S1", history.run)
    for life in history.lives.values():
        _Following(findings, life).rows()
    return findings.verdict()


class _Following:
    """Follows one client through its rows, with its own account of where it is."""

    def __init__(self, findings: Findings, life: ClientLife) -> None:
        self.findings = findings
        self.life = life
        self.current: dict[str, str] = {}
        self.is_gone = False

    def rows(self) -> None:
        for row in self.life.rows:
            if row.event in DELIVERED or row.event == "send":
                self._on_message(row)
            elif row.event in _OF_A_GROUP:
                self._on_group_row(row)
            elif row.event in DEPARTED:
                self.is_gone = True
                self.current.clear()

    def _on_message(self, row: Row) -> None:
        if self.is_gone:
            self._report(row, "happened after its departure")
        if not row.groups:
            return
        self.findings.premise()
        current = tuple(self.current.get(group, "") for group in row.groups)
        if row.views != current:
            self._report(row, f"names views {_shown(row.views)}, but happened in {_shown(current)}")
        elif row.event in DELIVERED and not any(current) and not _is_written_to(row):
            self._report(row, f"to {', '.join(row.groups)} happened in no view")

    def _on_group_row(self, row: Row) -> None:
        group = row.group or ""
        current = self.current.get(group)
        self.findings.premise(1 if row.event == "transitional" else 0)
        if row.view != current or (row.event == "transitional" and current is None) or self.is_gone:
            self._report(row, f"of {group} names view {row.view}, but happened in {current}")
        if row.event == "view":
            self.current[group] = row.view_new or ""
        elif row.event == "self_leave":
            self.current.pop(group, None)

    def _report(self, row: Row, what: str) -> None:
        event = row.event if row.message is None else f"{row.event} of {row.message}"
        self.findings.violation(self.life.process, f"{event} at {self.life.process} {what}")


# A leave that takes effect before its join was shown has no view: nothing was seen of that membership.
_OF_A_GROUP: Final = ("view", "transitional", "self_leave")


def _is_written_to(row: Row) -> bool:
    """Who is in no group of a message has it all the same if it is for that program, too."""
    return row.name in (row.detail or "").removeprefix(PRIVATE).split(", ")


def _shown(views: Iterable[str]) -> str:
    return ", ".join(view or "none" for view in views)


def self_inclusion(history: ClientHistory) -> Verdict:
    """S2."""
    findings = Findings("S2", history.run)
    judge_self_inclusion(findings, history, "got")
    return findings.verdict()


def local_monotonicity(history: ClientHistory) -> Verdict:
    """S3."""
    findings = Findings("S3", history.run)
    for life in history.lives.values():
        last: dict[str, GroupStay] = {}
        for stay in life.stays():
            if earlier := last.get(stay.group):
                judge_growth(findings, earlier, stay, "got")
            last[stay.group] = stay
    return findings.verdict()


def membership_agreement(history: ClientHistory) -> Verdict:
    """S4."""
    findings = Findings("S4", history.run)
    for stays in history.arrivals.values():
        judge_agreement(findings, stays[0].where, stays)
    return findings.verdict()


def transitional_set(history: ClientHistory) -> Verdict:
    """S5. Where a daemon's rows are missing, nobody can say that its clients should be in a network view's set."""
    findings = Findings("S5", history.run)
    for stays in history.arrivals.values():
        judge_newcomers(findings, stays)
        installers = frozenset(stay.process for stay in stays)
        for together in comers(stays):
            _judge_comers(findings, history, together, installers)
    return findings.verdict()


def _judge_comers(
    findings: Findings, history: ClientHistory, together: list[GroupStay], installers: frozenset[str]
) -> None:
    """Those who came to one view of a group from one view before it: their sets against the members, and each other."""
    strangers = installers - {stay.process for stay in together}
    by_daemons: dict[str, list[GroupStay]] = defaultdict(list)
    for stay in together:
        by_daemons[_daemons_came_from(history, stay)].append(stay)
        judge_in_both_views(findings, stay)
        if wrong := stay.transitional & strangers:
            findings.violation(stay.process, f"the {set_of(stay)}, holds {listed(wrong)}, who did not come from there")
    for movers in by_daemons.values():
        _judge_movers(findings, movers)


def _judge_movers(findings: Findings, movers: list[GroupStay]) -> None:
    """Their daemons moved together too: each has all of them in its set, and the sets are equal."""
    processes = frozenset(stay.process for stay in movers)
    for stay in movers:
        if lacking := processes - stay.transitional:
            findings.violation(stay.process, f"the {set_of(stay)}, lacks {listed(lacking)}, who came along")
        else:
            judge_equal_sets(findings, stay, movers[0])


def _daemons_came_from(history: ClientHistory, stay: GroupStay) -> str:
    """The same for those whose daemons came from the same daemon view; nobody else's where that is not known."""
    if stay.is_light:
        return stay.daemon_view
    daemon = history.lives[stay.process].daemon
    return history.daemons.came_from(daemon, stay.daemon_view) or f"unknown at {stay.process}"
