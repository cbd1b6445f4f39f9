"""Checkers of how the views of a group follow one another: C1, C3, C5 and C6.

In:        a ClientHistory.
Out:       one Verdict per guarantee.
Not here:  agreement on views and transitional sets in general (views.py), daemon changes and names (groups.py).

  C1  a light view is made by one join, leave or disconnect at one place of the order, without a signal
  C3  equal group and id, equal members; ids are made as promised; no light view between a signal and the network view;
      at rest, the members of a view are in it
  C5  each view says why it came, alike at all members, and that was indeed what happened
  C6  a leaving member is told where its leave took effect, and had until there what all others had
"""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import Final

from covey.guarantees.checkers.common.lives import CAUSAL
from covey.guarantees.checkers.common.views import judge_agreement, listed
from covey.guarantees.checkers.verdict import Findings, Verdict

from .history import ClientHistory
from .lives import (
    REQUESTED,
    ClientLife,
    GroupStay,
    Membership,
    TracedPlace,
    is_early,
    place_of,
    was_refused,
)

LIGHT_CAUSES: Final = ("join", "leave", "disconnect")


def light_changes(history: ClientHistory) -> Verdict:
    """C1. That nothing blocks is judged at rest only: whoever last asked to join is a member then."""
    findings = Findings("C1", history.run)
    book = _Changes(findings, history)
    for stay in history.stays():
        if stay.is_light:
            findings.premise()
            book.judge(stay)
    for life in history.witnesses(history.lives):
        for group, request in _last_requests(life).items():
            if request == "join":
                findings.premise()
                if not _is_member(life, group):
                    findings.violation(life.process, f"{life.process} asked to join {group} and never became a member")
    return findings.verdict()


class _Changes:
    """The changes of a run by their place in the order: one place, one change."""

    def __init__(self, findings: Findings, history: ClientHistory) -> None:
        self.findings = findings
        self.messages = {message.place: message for message in history.by_bit if message.place is not None}
        self.known: dict[TracedPlace, tuple[str | None, frozenset[str], str]] = {}
        for life in history.lives.values():
            for membership in life.memberships:
                if membership.left is not None:
                    self.known[membership.left] = ("leave", frozenset([life.process]), membership.group)

    def judge(self, stay: GroupStay) -> None:
        who = changed_by(stay)
        if stay.previous is not None and stay.previous.signals:
            self._report(stay, f"came after a signal in {stay.previous.view}")
        if len(who) != 1:
            self._report(stay, f"is no single change: {listed(who)}")
        if stay.change is None:
            return
        if message := self.messages.get(stay.change):
            self._report(stay, f"stands at the place of {message.name}")
        cause, others, group = self.known.setdefault(stay.change, (stay.cause, who, stay.group))
        # A disconnect ends all memberships of a client at one place; a join or a leave is of one group.
        one_group = group == stay.group or stay.cause == "disconnect"
        if (cause, others) != (stay.cause, who) or not one_group:
            self._report(stay, f"shows {stay.cause} of {listed(who)}, but its place {cause} of {listed(others)}")

    def _report(self, stay: GroupStay, what: str) -> None:
        self.findings.violation(stay.process, f"light {stay.where} at {stay.process} {what}")


def changed_by(stay: GroupStay) -> frozenset[str]:
    """The members by which a view differs from the one before it; for a joiner, itself."""
    return stay.members ^ stay.previous.members if stay.previous is not None else frozenset([stay.process])


def _last_requests(life: ClientLife) -> dict[str, str]:
    """What was asked last of each group, and not refused: a row with a cause takes its request back."""
    last: dict[str, str] = {}
    for row in life.rows:
        if row.event not in REQUESTED:
            continue
        if not was_refused(row):
            last[row.group or ""] = row.event
        elif last.get(row.group or "") == row.event:
            del last[row.group or ""]
    return last


def _is_member(life: ClientLife, group: str) -> bool:
    return any(one.group == group and one.is_open for one in life.memberships)


def agreement(history: ClientHistory) -> Verdict:
    """C3. The daemon view in an id is compared with the daemon's own rows where these exist."""
    findings = Findings("C3", history.run)
    for stays in history.arrivals.values():
        judge_agreement(findings, stays[0].where, stays)
    for stay in history.stays():
        findings.premise()
        _judge_id(findings, stay)
        _judge_daemon_view(findings, history, stay)
    for life in history.lives.values():
        _judge_quiet_after_signal(findings, life)
    _judge_rest(findings, history)
    return findings.verdict()


def _judge_rest(findings: Findings, history: ClientHistory) -> None:
    """Whoever rests in a view rests there with all its members that rest."""
    for stays in history.at_rest.values():
        findings.premise()
        first = stays[0]
        for member in history.witnesses(first.members - {stay.process for stay in stays}):
            findings.violation(
                member.process,
                f"{first.process} rests in {first.view} of {first.group} with {member.process}, who does not",
            )


def _judge_id(findings: Findings, stay: GroupStay) -> None:
    change = stay.change
    made_of = f"{change.view}/{change.stamp}.{change.site}" if change is not None else f"{stay.daemon_view}/net"
    numbers = (change.stamp, change.site) if change is not None else (0, 0)
    if stay.view != made_of or stay.rank[-2:] != numbers:
        findings.violation(
            stay.process,
            f"{stay.where} of rank {stay.rank} at {stay.process} is not made of its daemon view and the order of "
            f"its cause, {made_of}",
        )


def _judge_daemon_view(findings: Findings, history: ClientHistory, stay: GroupStay) -> None:
    daemon = history.lives[stay.process].daemon
    if not history.daemons.views(daemon):
        return
    installed = history.daemons.stay(daemon, stay.daemon_view)
    if installed is None:
        findings.violation(stay.process, f"{stay.where} at {stay.process}: {daemon} never installed that daemon view")
        return
    if stay.change in history.daemons.passed_after_signal(daemon):
        findings.violation(
            stay.process, f"light {stay.where} at {stay.process} shows a change that came after the signal of {daemon}"
        )
    if stay.rank[:-2] != installed.rank:
        findings.violation(stay.process, f"{stay.where} at {stay.process} has not the rank of its daemon view")
    known = (history.lives[member] for member in sorted(stay.members) if member in history.lives)
    if elsewhere := [life.process for life in known if life.daemon not in installed.members]:
        findings.violation(
            stay.process, f"{stay.where} at {stay.process} holds {listed(elsewhere)}, whose daemons are not in it"
        )


def _judge_quiet_after_signal(findings: Findings, life: ClientLife) -> None:
    """From the signal of any group up to its network view, no light view of any group is shown."""
    signalled: set[str] = set()
    for row in life.rows:
        group = row.group or ""
        if row.event == "transitional":
            signalled.add(group)
        elif row.event == "self_leave" or (row.event == "view" and (row.view_new or "").endswith("/net")):
            signalled.discard(group)
        elif row.event == "view" and signalled:
            findings.violation(
                life.process,
                f"{life.process} got light view {row.view_new} of {group} between a signal in "
                f"{', '.join(sorted(signalled))} and the network view",
            )


def cause(history: ClientHistory) -> Verdict:
    """C5."""
    findings = Findings("C5", history.run)
    for stays in history.arrivals.values():
        for stay in stays:
            findings.premise()
            if stay.cause != stays[0].cause:
                findings.violation(
                    stay.process,
                    f"{stay.where} came by {stay.cause} at {stay.process}, "
                    f"but by {stays[0].cause} at {stays[0].process}",
                )
            elif stay.cause not in (LIGHT_CAUSES if stay.is_light else ("network",)):
                findings.violation(stay.process, f"{stay.where} at {stay.process} says it came by {stay.cause}")
            elif stay.is_light:
                _judge_reason(findings, history, stay)
    return findings.verdict()


def _judge_reason(findings: Findings, history: ClientHistory, stay: GroupStay) -> None:
    before = stay.previous.members if stay.previous is not None else stay.members - {stay.process}
    who = stay.members ^ before
    grows = stay.cause == "join"
    if len(who) != 1 or (who <= stay.members) != grows:
        findings.violation(
            stay.process, f"{stay.where} at {stay.process} says {stay.cause}, but what changed is {listed(who)}"
        )
        return
    if stay.previous is not None and stay.transitional != stay.members & before:
        findings.violation(
            stay.process,
            f"{stay.where} at {stay.process} says that only {listed(stay.transitional)} stayed through a {stay.cause}",
        )
    mover = history.lives.get(min(who))
    if mover is not None and not _can_have_caused(mover, stay):
        findings.violation(stay.process, f"{stay.where} at {stay.process} says {stay.cause} of {mover.process}: untrue")


def _can_have_caused(mover: ClientLife, stay: GroupStay) -> bool:
    if stay.cause == "disconnect":
        return not mover.is_witness
    asked = any(row.event == stay.cause and row.group == stay.group for row in mover.rows)
    return asked or (stay.cause == "leave" and any(row.event == "expelled" for row in mover.rows))


def self_leave(history: ClientHistory) -> Verdict:
    """C6. Whether the others had everything until there is not asked where the leave came after a signal."""
    findings = Findings("C6", history.run)
    for life in history.lives.values():
        for membership in life.memberships:
            if membership.closed_by is not None and membership.closed_by.event == "self_leave":
                findings.premise()
                _judge_last_stay(findings, history, membership)
    for life in history.witnesses(history.lives):
        for group, request in _last_requests(life).items():
            if request == "leave":
                findings.premise()
                if _is_member(life, group):
                    findings.violation(life.process, f"{life.process} asked to leave {group} and is a member for ever")
    _judge_leaves_shown(findings, history)
    return findings.verdict()


def _judge_last_stay(findings: Findings, history: ClientHistory, membership: Membership) -> None:
    left, last = membership.left, membership.stays[-1]
    if left is None:
        findings.violation(membership.process, f"{membership.process} left {membership.group}, but was not told where")
        return
    if last.signals:
        return
    life = history.lives[membership.process]
    by_anyone = history.delivered_in[last.key] & history.stamped_for(last.group, left.view)
    # What is owed ends at the leave.
    owed = by_anyone & history.owed_in[membership] & history.at_least(CAUSAL)
    if missing := owed & ~life.delivered:
        findings.violation(
            life.process,
            f"{life.process} left {last.where} at {left.stamp} without {history.names(missing)}, ordered earlier",
        )


def _judge_leaves_shown(findings: Findings, history: ClientHistory) -> None:
    """Whoever was seen leaving, and lived on, was told the same place."""
    told: dict[tuple[str, str], set[TracedPlace | None]] = defaultdict(set)
    for life in history.lives.values():
        for row in life.rows:
            if row.event == "self_leave":
                told[life.process, row.group or ""].add(place_of(row))
    reached = {process: _reached(life) for process, life in history.lives.items()}
    for stay in history.stays():
        if stay.cause == "leave" and stay.change is not None and stay.previous is not None:
            for leaver in sorted(stay.previous.members - stay.members):
                if reached.get(leaver, 0) <= stay.change.stamp:
                    continue
                findings.premise()
                if stay.change not in told[leaver, stay.group]:
                    findings.violation(
                        leaver, f"{stay.process} saw {leaver} leave in {stay.where}, but that one was not told"
                    )


def _reached(life: ClientLife) -> float:
    """The largest stamp up to which this client's stream is known to have gone; without end for one at rest."""
    if life.is_witness:
        return inf
    return max((row.order_stamp for row in life.rows if row.order_stamp is not None and not is_early(row)), default=0)
