"""Judgements of views that both levels share: parts of S2 to S5.

In:        the stays of a history of either level.
Out:       premises and violations in Findings.
Not here:  S1, who else belongs in a transitional set (membership.py, clients/views.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from covey.guarantees.checkers.verdict import Findings

from .history import AnyHistory, Stay_co
from .lives import AnyStay


def judge_self_inclusion(findings: Findings, history: AnyHistory, came_to: str) -> None:
    """S2. `came_to` is what a process of this level does with a view, for people."""
    for stay in history.stays():
        findings.premise()
        if stay.process not in stay.members:
            findings.violation(
                stay.process, f"{stay.process} {came_to} {stay.where} of {listed(stay.members)} without itself"
            )


def judge_growth(findings: Findings, earlier: AnyStay, later: AnyStay, came_to: str) -> None:
    """S3, for two stays of one process."""
    findings.premise()
    if later.rank <= earlier.rank:
        findings.violation(
            later.process,
            f"{later.process} {came_to} {later.where} of rank {later.rank} after {earlier.view} of rank {earlier.rank}",
        )


def judge_agreement(findings: Findings, view: str, stays: Sequence[AnyStay]) -> None:
    """S4, for those who installed this view."""
    first = stays[0]
    for stay in stays[1:]:
        findings.premise()
        if stay.members != first.members:
            findings.violation(
                stay.process,
                f"{view} has members {listed(stay.members)} at {stay.process}, "
                f"but {listed(first.members)} at {first.process}",
            )
        elif stay.rank != first.rank:
            findings.violation(
                stay.process, f"{view} has rank {stay.rank} at {stay.process}, but {first.rank} at {first.process}"
            )


def judge_newcomers(findings: Findings, stays: Iterable[AnyStay]) -> None:
    """S5, for those who came to a view from none: they came alone."""
    for stay in stays:
        findings.premise()
        if stay.previous is None and stay.transitional != {stay.process}:
            findings.violation(
                stay.process,
                f"{stay.process} came to {stay.where} from no view with transitional set "
                f"{listed(stay.transitional)} instead of itself alone",
            )


def comers(stays: Iterable[Stay_co]) -> list[list[Stay_co]]:
    """Those who came to one view, by the view they came from; newcomers are left out."""
    by_previous: dict[str, list[Stay_co]] = defaultdict(list)
    for stay in stays:
        if stay.previous is not None:
            by_previous[stay.previous.view].append(stay)
    return list(by_previous.values())


def judge_in_both_views(findings: Findings, stay: AnyStay) -> None:
    """S5: who moved along was a member before and is one now."""
    assert stay.previous is not None, "comers have a view before this one"
    if strangers := stay.transitional - (stay.members & stay.previous.members):
        findings.violation(
            stay.process, f"the {set_of(stay)}, holds {listed(strangers)}, not in the members of both views"
        )


def judge_equal_sets(findings: Findings, stay: AnyStay, first: AnyStay) -> None:
    """S5, for two who moved along with one another."""
    if stay.transitional != first.transitional:
        findings.violation(
            stay.process,
            f"the {set_of(stay)}, is {listed(stay.transitional)}, but {listed(first.transitional)} at {first.process}",
        )


def set_of(stay: AnyStay) -> str:
    """A transitional set, for people."""
    came_from = stay.previous.view if stay.previous is not None else None
    return f"transitional set of {stay.where} at {stay.process}, coming from {came_from}"


def listed(processes: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(processes)) + "}"
