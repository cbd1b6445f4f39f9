"""Checkers of what daemons deliver in which view: S7 to S10, S12 and S13.

In:        a History.
Out:       one Verdict per guarantee.
Not here:  S6 and S11 (common/delivery.py), the views themselves (membership.py), the order of deliveries (services.py).

  S7   every delivery has an earlier send of the same content
  S8   vsync daemons deliver the same messages in the view they leave together
  S9   all who deliver a message do so in the same view
  S10  no delivery in a view before that of the send, nor beside a later life of the sender
  S12  a sender delivers its own message in the view it sent it in, unless it crashes there
  S13  a message is delivered by all members, or its sender moves on
"""

from __future__ import annotations

from typing import Final

from covey.guarantees.checkers.common.delivery import (
    judge_comovers,
    judge_contents,
    judge_same_view,
    judge_sent_earlier,
    judge_sent_once,
)
from covey.guarantees.checkers.common.lives import RELIABLE, TracedMessage, later_lives, life_number, union
from covey.trace.record import Row

from .history import History
from .lives import DaemonStay
from .verdict import Findings, Verdict


def integrity(history: History) -> Verdict:
    """S7."""
    findings = Findings("S7", history.run)
    judge_sent_once(findings, history)
    for message in history.messages.values():
        if message.send is not None and message.order_view is not None and message.order_view != message.sent_in:
            findings.violation(
                message.send.process,
                f"{message.name} was sent in {message.sent_in} but stamped in {message.order_view}",
            )
    judge_sent_earlier(findings, history)
    judge_contents(findings, history, _CONTENT, _is_silent)
    return findings.verdict()


_CONTENT: Final = (
    *("digest", "size", "service", "sender", "session_seq", "count"),
    *("order_view", "order_stamp", "order_site", "order_index"),
)


def _is_silent(_: Row, here: object, there: object) -> bool:
    """A null on either side says nothing: where only the header was needed, a delivery has no digest."""
    return here is None or there is None


def virtual_synchrony(history: History) -> Verdict:
    """S8."""
    findings = Findings("S8", history.run)
    judge_comovers(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def same_view_delivery(history: History) -> Verdict:
    """S9."""
    findings = Findings("S9", history.run)
    first_stays: dict[str, DaemonStay] = {}
    for life in history.lives.values():
        for delivery in life.deliveries:
            if delivery.stay is not None:
                first = first_stays.setdefault(delivery.message.name, delivery.stay)
                judge_same_view(findings, delivery.message, delivery.stay, first)
    return findings.verdict()


def sane_view(history: History) -> Verdict:
    """S10."""
    findings = Findings("S10", history.run)
    ranks = {stays[0].view: stays[0].rank for stays in history.arrivals.values()}
    members = {process for stays in history.arrivals.values() for process in stays[0].members}
    later = later_lives(members | set(history.lives))
    for life in history.lives.values():
        # Names of daemons, with the newest life that has been a member of a view installed here so far.
        newest: dict[str, tuple[int, ...]] = {}
        for stay in life.stays:
            for process in stay.members & later:
                name, number = life_number(process)
                newest[name] = max(number, newest.get(name, number))
            for delivery in stay.deliveries:
                _judge_sending_view(findings, stay, delivery.message, ranks)
                _judge_sending_life(findings, stay, delivery.message, newest)
    return findings.verdict()


def _judge_sending_view(
    findings: Findings, stay: DaemonStay, message: TracedMessage, ranks: dict[str, tuple[int, ...]]
) -> None:
    if message.sent_in not in ranks:
        return
    findings.premise()
    if stay.rank < ranks[message.sent_in]:
        findings.violation(
            stay.process,
            f"{stay.process} delivered {message.name} in {stay.view}, before the view {message.sent_in} it was sent in",
        )


def _judge_sending_life(
    findings: Findings, stay: DaemonStay, message: TracedMessage, newest: dict[str, tuple[int, ...]]
) -> None:
    if not newest or message.origin is None:
        return
    name, number = life_number(message.origin)
    if newest.get(name, number) > number:
        findings.violation(
            stay.process,
            f"{stay.process} delivered {message.name} of {message.origin} in {stay.view}, "
            f"after a view with {name}:{newest[name][0]}",
        )


def self_delivery(history: History) -> Verdict:
    """S12."""
    findings = Findings("S12", history.run)
    judge_self_delivery(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def judge_self_delivery(findings: Findings, history: History, concerned: int) -> None:
    """A daemon that left the view of its message, or came to rest in it, has delivered the message there."""
    for life in history.lives.values():
        for stay in life.stays:
            if stay.next is None and not life.is_witness:
                continue
            for message in stay.sends:
                if not message.bit & concerned:
                    continue
                findings.premise()
                if not message.bit & stay.delivered:
                    findings.violation(
                        life.process, f"{life.process} sent {message.name} in {stay.view} and never delivered it there"
                    )


def termination(history: History) -> Verdict:
    """S13. Members that crashed or stopped are excused; of members whose history breaks off nothing is known."""
    findings = Findings("S13", history.run)
    for life in history.lives.values():
        if not life.is_witness or not life.stays:
            continue
        last = life.stays[-1]
        sent = union(message.bit for message in last.sends) & history.at_least(RELIABLE)
        findings.premise(sent.bit_count())
        for member in history.witnesses(last.members):
            if missing := sent & ~member.delivered:
                findings.violation(
                    member.process,
                    f"{life.process} sent {history.names(missing)} in {last.view} and rests there, "
                    f"but {member.process} never delivered that",
                )
    return findings.verdict()
