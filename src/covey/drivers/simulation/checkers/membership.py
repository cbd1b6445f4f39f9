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
from collections.abc import Iterable

from covey.drivers.simulation.checkers.history import History
from covey.drivers.simulation.checkers.lives import Life, Stay
from covey.drivers.simulation.checkers.verdict import Findings, Verdict


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


def _out_of_view(life: Life, event: str, message: str | None, named: str | None, current: str | None) -> str:
    what = event if message is None else f"{event} of {message}"
    where = "before its first view" if current is None else f"in view {current}"
    return f"{what} at {life.process} names view {named}, but happened {where}"


def self_inclusion(history: History) -> Verdict:
    """S2."""
    findings = Findings("S2", history.run)
    for stay in _all_stays(history):
        findings.premise()
        if stay.process not in stay.members:
            findings.violation(
                stay.process, f"{stay.process} installed {stay.view} of {_listed(stay.members)} without itself"
            )
    return findings.verdict()


def local_monotonicity(history: History) -> Verdict:
    """S3."""
    findings = Findings("S3", history.run)
    for stay in _all_stays(history):
        if stay.previous is None:
            continue
        findings.premise()
        if stay.rank <= stay.previous.rank:
            findings.violation(
                stay.process,
                f"{stay.process} installed {stay.view} of rank {stay.rank} "
                f"after {stay.previous.view} of rank {stay.previous.rank}",
            )
    return findings.verdict()


def membership_agreement(history: History) -> Verdict:
    """S4."""
    findings = Findings("S4", history.run)
    for view, stays in history.arrivals.items():
        first = stays[0]
        for stay in stays[1:]:
            findings.premise()
            if stay.members != first.members:
                findings.violation(
                    stay.process,
                    f"view {view} has members {_listed(stay.members)} at {stay.process}, "
                    f"but {_listed(first.members)} at {first.process}",
                )
            elif stay.rank != first.rank:
                findings.violation(
                    stay.process,
                    f"view {view} has rank {stay.rank} at {stay.process}, but {first.rank} at {first.process}",
                )
    return findings.verdict()


def transitional_set(history: History) -> Verdict:
    """S5."""
    findings = Findings("S5", history.run)
    for stays in history.arrivals.values():
        comers: dict[str, list[Stay]] = defaultdict(list)
        for stay in stays:
            findings.premise()
            if stay.previous is not None:
                comers[stay.previous.view].append(stay)
            elif stay.transitional != {stay.process}:
                findings.violation(
                    stay.process,
                    f"{stay.process} came to {stay.view} from no view with transitional set "
                    f"{_listed(stay.transitional)} instead of itself alone",
                )
        installers = frozenset(stay.process for stay in stays)
        for group in comers.values():
            _judge_comers(findings, group, installers)
    return findings.verdict()


def _judge_comers(findings: Findings, group: list[Stay], installers: frozenset[str]) -> None:
    """Those who came to one view from one view before it: their sets against the members, and each other."""
    first = group[0]
    comovers = frozenset(stay.process for stay in group)
    for stay in group:
        assert stay.previous is not None, "comers have a view before this one"
        where = f"transitional set of {stay.view} at {stay.process}, coming from {stay.previous.view}"
        if strangers := stay.transitional - (stay.members & stay.previous.members):
            findings.violation(
                stay.process, f"the {where}, holds {_listed(strangers)}, not in the members of both views"
            )
        if wrong := (stay.transitional & installers) ^ comovers:
            findings.violation(stay.process, f"the {where}, is wrong about {_listed(wrong)}, who also installed it")
        elif stay.transitional != first.transitional:
            findings.violation(
                stay.process,
                f"the {where}, is {_listed(stay.transitional)}, but {_listed(first.transitional)} at {first.process}",
            )


def precision(history: History) -> Verdict:
    """S14. Connectivity is transitive for a set if everybody in it reports the very same set."""
    findings = Findings("S14", history.run)
    by_connected: dict[frozenset[str], list[Life]] = defaultdict(list)
    for life in history.lives.values():
        if life.calm is not None and not life.excused:
            by_connected[life.calm].append(life)
    for connected, lives in by_connected.items():
        if connected == {life.process for life in lives}:
            _judge_component(findings, connected, [life for life in lives if life.ended])
    return findings.verdict()


def _judge_component(findings: Findings, connected: frozenset[str], lives: list[Life]) -> None:
    first: Stay | None = None
    for life in lives:
        findings.premise()
        if not life.stays:
            findings.violation(life.process, f"{life.process} ended without any view, connected {_listed(connected)}")
            continue
        last = life.stays[-1]
        first = first or last
        if last.members != connected:
            findings.violation(
                life.process,
                f"{life.process} ended in {last.view} of {_listed(last.members)}, connected {_listed(connected)}",
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
                f"{life.process} ended in {life.stays[-1].view} with {_listed(strangers)}, "
                f"but is connected both ways only with {_listed(life.calm)}",
            )
    return findings.verdict()


def _all_stays(history: History) -> Iterable[Stay]:
    return (stay for life in history.lives.values() for stay in life.stays)


def _listed(processes: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(processes)) + "}"
