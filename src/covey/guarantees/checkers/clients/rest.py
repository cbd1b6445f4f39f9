"""Checkers of what clients must have delivered when all is at rest: S12 and S13 at level C.

In:        a ClientHistory.
Out:       one Verdict per guarantee.
Not here:  what is delivered in which view (delivery.py).

  S12  a sender delivers its own messages to groups that it is in and stays in
  S13  a message is delivered by all members, or its sender moves on; at rest, all members of a view have the same
"""

from __future__ import annotations

from covey.guarantees.checkers.common.lives import RELIABLE, union
from covey.guarantees.checkers.verdict import Findings, Verdict

from .delivery import judge_span
from .history import ClientHistory
from .lives import GroupStay, Membership


def self_delivery(history: ClientHistory) -> Verdict:
    """S12."""
    findings = Findings("S12", history.run)
    judge_self_delivery(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def judge_self_delivery(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """A client that came to rest has delivered what it sent to groups that it was in and has not left since."""
    for message in history.members_of(concerned):
        life = history.lives.get(message.origin or "")
        if life is None or not life.is_witness:
            continue
        if not any(stay.membership.is_open for stay in message.sent_in_stays.values()):
            continue
        findings.premise()
        if not message.bit & life.delivered:
            findings.violation(
                life.process, f"{life.process} sent {message.name} to a group it is in and never delivered it"
            )


def termination(history: ClientHistory) -> Verdict:
    """S13. Members that left or departed are excused; of members without an `end` row nothing is known.

    A reliable or fifo message that passed a member's daemon before its join took effect there is not owed to it (M3).
    """
    findings = Findings("S13", history.run)
    for stays in history.at_rest.values():
        for stay in stays:
            _judge_rest(findings, history, stay)
    judge_resting(findings, history, history.at_least(RELIABLE))
    judge_handed_out(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def _judge_rest(findings: Findings, history: ClientHistory, last: GroupStay) -> None:
    """The sender rests in the view of these messages: all who were in it with the sender have them."""
    own = history.members_of(history.sent_by.get(last.process, 0) & history.at_least(RELIABLE))
    sent = union(message.bit for message in own if message.sent_in_stays.get(last.group) is last)
    findings.premise(sent.bit_count())
    for member, membership in history.witnesses_of(last, last.members) if sent else ():
        if missing := sent & ~member.delivered & ~_passed_before_join(history, membership):
            findings.violation(
                member.process,
                f"{last.process} sent {history.names(missing)} in {last.where} and rests there, "
                f"but {member.process} never delivered that",
            )


def _passed_before_join(history: ClientHistory, membership: Membership) -> int:
    """The early messages of the daemon view in which this member joined that are not owed to it."""
    first = membership.stays[0]
    if first.change is None:
        return 0
    return history.stamped_for(first.group, first.daemon_view) & history.early & ~history.owed_in[membership]


def judge_resting(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """Those who rest in one view have delivered the same there, as if they had moved on together."""
    for stays in history.at_rest.values():
        delivered = union(stay.delivered for stay in stays) & concerned & ~history.early
        for stay in stays if delivered and len(stays) > 1 else ():
            findings.premise()
            if lacking := delivered & ~stay.delivered:
                findings.violation(
                    stay.process,
                    f"{stay.process} rests in {stay.where} without {history.names(lacking)}, unlike others there",
                )
        judge_span(findings, history, stays, concerned & history.early)


def judge_handed_out(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """What passed the daemon of a client at rest, while the client was in the group, the client has delivered."""
    for stays in history.at_rest.values():
        for stay in stays:
            life = history.lives[stay.process]
            due = history.owed_in[stay.membership] & history.passed_by(life.daemon) & concerned
            findings.premise(due.bit_count())
            if missing := due & ~life.delivered:
                findings.violation(
                    life.process,
                    f"{life.daemon} passed {history.names(missing)} while {life.process} was in {stay.group}, "
                    f"but {life.process} never delivered that",
                )
