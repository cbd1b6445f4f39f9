"""Checkers of the views daemons install: S1 to S5, S14 and S15.

In:        a History.
Out:       one Verdict per guarantee.
Not here:  what is delivered in the views (delivery.py, services.py).

  S1   every delivery, send and signal happens in the view its row names
  S2   a daemon is a member of every view it installs
  S3   the rank of the views grows at each daemon
  S4   equal ids, equal members and equal rank
  S5   the transitional set holds exactly those who came along from the same view
  S14  stable and transitive connectivity: one view of exactly the connected set
  S15  any stable connectivity: views stop, and hold only daemons connected both ways
"""

from __future__ import annotations

from collections import defaultdict

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

from .history import History
from .lives import DaemonLife, DaemonStay
from .verdict import Findings, Verdict


def initial_view(history: History) -> Verdict:
    """S1. A row that names another view than the one its process is in would mislead every other checker."""
    findings = Findings("S1", history.run)
    for life in history.lives.values():
        current: str | None = None
        for row in life.rows:
            if row.event == "view":
                if row.view != current:
                    findings.violation(
                        life.process, f"{life.process} installed {row.view_new} from {row.view}, but was in {current}"
                    )
                current = row.view_new
            elif row.event in ("deliver", "send", "transitional"):
                findings.premise()
                if current is None or row.view != current:
                    findings.violation(life.process, _out_of_view(life, row.event, row.message, row.view, current))
    return findings.verdict()


def _out_of_view(life: DaemonLife, event: str, message: str | None, named: str | None, current: str | None) -> str:
    what = event if message is None else f"{event} of {message}"
    where = "before its first view" if current is None else f"in view {current}"
    return f"{what} at {life.process} names view {named}, but happened {where}"


def self_inclusion(history: History) -> Verdict:
    """S2."""
    findings = Findings("S2", history.run)
    judge_self_inclusion(findings, history, "installed")
    return findings.verdict()


def local_monotonicity(history: History) -> Verdict:
    """S3."""
    findings = Findings("S3", history.run)
    for stay in history.stays():
        if stay.previous is not None:
            judge_growth(findings, stay.previous, stay, "installed")
    return findings.verdict()


def membership_agreement(history: History) -> Verdict:
    """S4."""
    findings = Findings("S4", history.run)
    for stays in history.arrivals.values():
        judge_agreement(findings, f"view {stays[0].view}", stays)
    return findings.verdict()


def transitional_set(history: History) -> Verdict:
    """S5."""
    findings = Findings("S5", history.run)
    for stays in history.arrivals.values():
        judge_newcomers(findings, stays)
        installers = frozenset(stay.process for stay in stays)
        for group in comers(stays):
            _judge_comers(findings, group, installers)
    return findings.verdict()


def _judge_comers(findings: Findings, group: list[DaemonStay], installers: frozenset[str]) -> None:
    """Those who came to one view from one view before it: their sets against the members, and each other."""
    comovers = frozenset(stay.process for stay in group)
    for stay in group:
        judge_in_both_views(findings, stay)
        if wrong := (stay.transitional & installers) ^ comovers:
            findings.violation(
                stay.process, f"the {set_of(stay)}, is wrong about {listed(wrong)}, who also installed it"
            )
        else:
            judge_equal_sets(findings, stay, group[0])


def precision(history: History) -> Verdict:
    """S14. Connectivity is transitive for a set if everybody in it reports the very same set."""
    findings = Findings("S14", history.run)
    by_connected: dict[frozenset[str], list[DaemonLife]] = defaultdict(list)
    for life in history.lives.values():
        if life.calm is not None and not life.excused:
            by_connected[life.calm].append(life)
    for connected, lives in by_connected.items():
        if connected == {life.process for life in lives}:
            _judge_component(findings, connected, [life for life in lives if life.ended])
    return findings.verdict()


def _judge_component(findings: Findings, connected: frozenset[str], lives: list[DaemonLife]) -> None:
    first: DaemonStay | None = None
    for life in lives:
        findings.premise()
        if not life.stays:
            findings.violation(life.process, f"{life.process} ended without any view, connected {listed(connected)}")
            continue
        last = life.stays[-1]
        first = first or last
        if last.members != connected:
            findings.violation(
                life.process,
                f"{life.process} ended in {last.view} of {listed(last.members)}, connected {listed(connected)}",
            )
        elif last.view != first.view:
            findings.violation(
                life.process,
                f"{life.process} ended in {last.view}, but {first.process}, connected with it, in {first.view}",
            )


def calm(history: History) -> Verdict:
    """S15."""
    findings = Findings("S15", history.run)
    for life in history.lives.values():
        if life.calm is None or life.excused:
            continue
        findings.premise()
        if not life.ended:
            findings.violation(life.process, f"{life.process} never came to rest after the faults stopped")
        elif not life.stays:
            findings.violation(life.process, f"{life.process} ended without any view")
        elif strangers := life.stays[-1].members - life.calm:
            findings.violation(
                life.process,
                f"{life.process} ended in {life.stays[-1].view} with {listed(strangers)}, "
                f"but is connected both ways only with {listed(life.calm)}",
            )
    return findings.verdict()
