"""Checkers of what groups have to do with daemons and with names: C2, C4, C7 and C8.

In:        a ClientHistory.
Out:       one Verdict per guarantee.
Not here:  how views of a group follow one another (changes.py).

  C2  causal, agreed and safe: the same view for vsync clients, and for all who deliver before the signal, which is that
      of the daemons; reliable and fifo: the same messages between two network views
  C4  a daemon change that touches no member of a group, and after whose signal nothing agreed or safe of the group
      comes, gives it no signal and no view; one that takes members away gives it both
  C7  when a client departs, it alone leaves its groups, and it does leave them
  C8  a private name belongs to one session at a time, and who is refused is told why
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from covey.guarantees.checkers.common.lives import CAUSAL, life_number
from covey.guarantees.checkers.common.views import listed
from covey.guarantees.checkers.lives import DaemonStay
from covey.guarantees.checkers.verdict import Findings, Verdict

from .changes import changed_by
from .delivery import judge_same_views, judge_spans, later_sessions
from .history import ClientHistory
from .lives import ClientLife, GroupStay, TracedPlace, place_of


def same_view(history: ClientHistory) -> Verdict:
    """C2."""
    findings = Findings("C2", history.run)
    judge_same_views(findings, history, history.at_least(CAUSAL))
    judge_spans(findings, history, history.early)
    for life in history.lives.values():
        _judge_sides(findings, history, life)
    return findings.verdict()


def _judge_sides(findings: Findings, history: ClientHistory, life: ClientLife) -> None:
    """Causal and stronger messages are on the side of the group's signal on which they are of the daemon's."""
    passed, after_daemons = history.daemons.passed(life.daemon), history.daemons.passed_after_signal(life.daemon)
    for delivery in life.deliveries if passed else ():
        place = delivery.message.place
        if delivery.message.strength < CAUSAL or place not in passed:
            continue
        for stay, after_signal in delivery.stays:
            findings.premise()
            if after_signal != (place in after_daemons):
                sides = ("after", "before") if after_signal else ("before", "after")
                findings.violation(
                    life.process,
                    f"{life.process} delivered {delivery.message.name} {sides[0]} the signal in {stay.where}, "
                    f"its daemon {sides[1]} its own",
                )


def unaffected_groups(history: ClientHistory) -> Verdict:
    """C4. Decided with the rows of the daemons: without them, nothing is.

    Left open where a daemon passed a bundle after the signal that no client delivered: it may have been of the group.
    """
    findings = Findings("C4", history.run)
    touch = _Touch(history)
    for stay in history.stays():
        if not stay.is_light and stay.previous is not None:
            _judge_network_view(findings, touch, stay, stay.previous)
        for change in touch.changes_during(stay):
            findings.premise()
            if lost := touch.members_elsewhere(stay, change):
                findings.violation(
                    stay.process,
                    f"{stay.process} stayed in {stay.where} when its daemon came to {change.view} without "
                    f"the daemons of {listed(lost)}",
                )
    return findings.verdict()


def _judge_network_view(findings: Findings, touch: _Touch, stay: GroupStay, before: GroupStay) -> None:
    if not before.signals:
        findings.violation(stay.process, f"{stay.process} got {stay.where} without a signal in {before.view}")
    if touch.is_untouched(stay, before):
        findings.violation(stay.process, f"{stay.process} got {stay.where}, but nothing touched {before.view}")


class _Touch:
    """Which daemon changes touch which views of groups."""

    def __init__(self, history: ClientHistory) -> None:
        self.history = history
        self.daemons = history.daemons
        self.groups_at: dict[TracedPlace, tuple[str, ...]] = {
            message.place: message.groups for message in history.by_bit if message.place is not None
        }

    def is_untouched(self, stay: GroupStay, before: GroupStay) -> bool:
        """Certainly: the same members, all at daemons that moved along, and nothing of the group after the signal."""
        change = self.daemons.stay(self.history.lives[stay.process].daemon, stay.daemon_view)
        if change is None or change.previous is None or not stay.members == before.members == stay.transitional:
            return False
        if not stay.members <= self.history.lives.keys() or self.members_elsewhere(before, change):
            return False
        return not self._may_be_busy(stay.group, change.previous)

    def members_elsewhere(self, stay: GroupStay, change: DaemonStay) -> list[str]:
        """The members of a view whose daemons did not move along."""
        known = (self.history.lives[member] for member in sorted(stay.members) if member in self.history.lives)
        return [life.process for life in known if life.daemon not in change.transitional]

    def _may_be_busy(self, group: str, ending: DaemonStay) -> bool:
        """Whether something agreed or safe of this group may have passed after the signal that ended a daemon view."""
        for delivery in ending.deliveries:
            if delivery.after_signal and delivery.message.strength >= CAUSAL:
                place = place_of(delivery.row)
                if place is None or group in self.groups_at.get(place, (group,)):
                    return True
        return False

    def changes_during(self, stay: GroupStay) -> Iterator[DaemonStay]:
        """The daemon views that this client's daemon came to while the client certainly stayed in one view."""
        daemon = self.history.lives[stay.process].daemon
        views = self.daemons.views(daemon)
        last = self._last_daemon_view(stay)
        if stay.daemon_view in views and last in views:
            for view in views[views.index(stay.daemon_view) + 1 : views.index(last) + 1]:
                change = self.daemons.stay(daemon, view)
                if change is not None and (stay.next is None or stay.next.is_light or view != stay.next.daemon_view):
                    yield change

    def _last_daemon_view(self, stay: GroupStay) -> str | None:
        """The last daemon view of which it is known that the client came to it, or up to it, in this stay."""
        life = self.history.lives[stay.process]
        if stay.next is not None:
            return stay.next.daemon_view
        if stay.membership.left is not None:
            return stay.membership.left.view
        at_rest = life.is_witness and self.daemons.has_ended(life.daemon)
        views = self.daemons.views(life.daemon)
        return views[-1] if at_rest and views else None


def client_crash(history: ClientHistory) -> Verdict:
    """C7. That no daemon view came of it is not decided: another reason for one can never be excluded by a trace.

    A light view shows it as far as can be: it has the daemon view of before, and came without a signal (C1, C3).
    """
    findings = Findings("C7", history.run)
    for stay in history.stays():
        if stay.is_light and stay.cause == "disconnect":
            findings.premise()
            _judge_departure(findings, history, stay)
    departed = frozenset(process for process, life in history.lives.items() if life.excused)
    for life in history.witnesses(history.lives) if departed else ():
        for membership in life.memberships:
            if membership.is_open:
                _judge_last_view(findings, membership.stays[-1], departed)
    return findings.verdict()


def _judge_departure(findings: Findings, history: ClientHistory, stay: GroupStay) -> None:
    gone = changed_by(stay)
    if len(gone) != 1:
        findings.violation(stay.process, f"{stay.where} at {stay.process}: one departure took away {listed(gone)}")
    elif history.witnesses(gone):
        findings.violation(stay.process, f"{stay.where} at {stay.process} lost {listed(gone)}, who never departed")


def _judge_last_view(findings: Findings, last: GroupStay, departed: frozenset[str]) -> None:
    findings.premise()
    if lingering := last.members & departed:
        findings.violation(last.process, f"{last.process} rests in {last.where} with {listed(lingering)}, who departed")


def private_name(history: ClientHistory) -> Verdict:
    """C8. Without a common clock: no view holds two sessions of a name, none comes back after a later one was seen,
    and none is at rest, alive, beside a later one at the same daemon.
    """
    findings = Findings("C8", history.run)
    accepted: dict[tuple[str, str], list[ClientLife]] = defaultdict(list)
    for life in history.lives.values():
        if any(row.event == "refused" for row in life.rows):
            findings.premise()
            _judge_refusal(findings, life)
        else:
            accepted[life.name, life.daemon].append(life)
    for lives in accepted.values():
        _judge_succession(findings, sorted(lives, key=lambda life: life_number(life.process)))
    # Only names that several sessions have had can be wrong.
    names = {life_number(process)[0] for process in later_sessions(history)}
    for life in history.lives.values() if names else ():
        _judge_names_seen(findings, life, names)
    return findings.verdict()


def _judge_refusal(findings: Findings, life: ClientLife) -> None:
    if len(life.rows) > 1 or not life.rows[0].cause:
        findings.violation(life.process, f"{life.process} was refused without a reason, or went on nevertheless")


def _judge_succession(findings: Findings, lives: list[ClientLife]) -> None:
    for earlier, later in pairwise(lives):
        findings.premise()
        if earlier.is_witness:
            findings.violation(
                later.process, f"{later.process} was let in, but {earlier.process} of the same name never departed"
            )


def _judge_names_seen(findings: Findings, life: ClientLife, names: set[str]) -> None:
    newest: dict[str, tuple[int, ...]] = {}
    for row in life.rows:
        if row.event != "view":
            continue
        seen: dict[str, tuple[int, ...]] = {}
        for name, number in map(life_number, row.members):
            if name not in names:
                continue
            findings.premise()
            if name in seen or number < newest.get(name, number):
                findings.violation(
                    life.process,
                    f"{life.process} saw a second session of {name}, or an earlier one again, "
                    f"in {row.view_new} of {row.group}",
                )
            seen[name] = number
        newest |= seen
