"""Checkers of what clients deliver in which view: S7 to S10 at level C.

In:        a ClientHistory.
Out:       one Verdict per guarantee.
Not here:  S6 and S11 (common/delivery.py), the views themselves (views.py), what is owed at rest (rest.py), the order
           of deliveries (order.py).

  S7   every delivery has an earlier send of the same content to the same groups
  S8   vsync clients deliver the same causal, agreed and safe messages in the view they leave together; reliable and
       fifo ones in the span between two network views, as far as these passed while they were members
  S9   causal, agreed and safe: the same view for vsync clients, and for all who deliver before the signal (C2)
  S10  no delivery in a view before that of the send, nor beside a later session of the sender
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
from covey.guarantees.checkers.common.lives import (
    CAUSAL,
    RELIABLE,
    STRENGTH,
    later_lives,
    life_number,
    union,
)
from covey.guarantees.checkers.verdict import Findings, Verdict
from covey.trace.record import Row

from .history import ClientHistory
from .lives import DELIVERED, ClientMessage, GroupStay


def integrity(history: ClientHistory) -> Verdict:
    """S7."""
    findings = Findings("S7", history.run)
    judge_sent_once(findings, history)
    judge_sent_earlier(findings, history)
    judge_contents(findings, history, _CONTENT, _is_silent)
    return findings.verdict()


_CONTENT: Final = ("digest", "size", "service", "sender", "session_seq", "count", "groups")


def _is_silent(row: Row, here: object, _: object) -> bool:
    """Of its own message that a sender does not want back it may know little."""
    return here is None and row.event == "discard"


def virtual_synchrony(history: ClientHistory) -> Verdict:
    """S8, for reliable and fifo messages as C2 reads it."""
    findings = Findings("S8", history.run)
    judge_comovers(findings, history, history.at_least(CAUSAL))
    judge_spans(findings, history, history.early)
    return findings.verdict()


def judge_spans(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """Between two network views, what one of those who move on together delivered, all deliver that were owed it."""
    for comovers in history.comovers:
        onward = comovers[0].next
        if onward is not None and not onward.is_light:
            judge_span(findings, history, comovers, concerned)


def judge_span(findings: Findings, history: ClientHistory, stays: list[GroupStay], concerned: int) -> None:
    """Of these stays and those before them since the last network view."""
    delivered = {stay: union(one.delivered for one in stay.span()) & concerned for stay in stays}
    by_anyone = union(delivered.values())
    for stay, by_this_one in delivered.items():
        owed = by_anyone & history.owed_in[stay.membership]
        findings.premise(1 if owed else 0)
        if lacking := owed & ~by_this_one:
            findings.violation(
                stay.process,
                f"{stay.process} was with others up to {stay.where}, "
                f"but only they delivered {history.names(lacking)} since the last network view",
            )


def same_view_delivery(history: ClientHistory) -> Verdict:
    """S9, as C2 reads it."""
    findings = Findings("S9", history.run)
    judge_same_views(findings, history, history.at_least(CAUSAL))
    return findings.verdict()


def judge_same_views(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """The same view at all who deliver before the signal, and at vsync clients on either side of it."""
    first_stays: dict[tuple[str, str], GroupStay] = {}
    for life in history.lives.values():
        for delivery in life.deliveries:
            if delivery.message.bit & concerned:
                for stay, after_signal in delivery.stays:
                    if not after_signal:
                        first = first_stays.setdefault((delivery.message.name, stay.group), stay)
                        judge_same_view(findings, delivery.message, stay, first)
    for comovers in history.comovers:
        delivered = union(stay.delivered for stay in comovers) & concerned
        for stay in comovers:
            if elsewhere := delivered & history.lives[stay.process].delivered & ~stay.delivered:
                findings.violation(
                    stay.process,
                    f"{stay.process} delivered {history.names(elsewhere)} outside {stay.where}, "
                    f"but others who left that view with it in that view",
                )


def sane_view(history: ClientHistory) -> Verdict:
    """S10. After a signal light views are not shown, so the first half speaks of what comes before it.

    What is sent to a group after asking to leave it is sent from outside: the leave may hide from the others that the
    sender's part of the network has come back, and then their views are not compared with its last one.

    Reliable and fifo messages may come in a light view before that of the send; not before its network view.
    """
    findings = Findings("S10", history.run)
    for life in history.lives.values():
        for delivery in life.deliveries:
            for stay, after_signal in delivery.stays:
                sent_in = delivery.message.sent_in_stays.get(stay.group)
                if sent_in is not None and stay.group not in delivery.message.sent_from_outside:
                    _judge_sending_view(findings, delivery.message, stay, after_signal, sent_in)
    _judge_sending_lives(findings, history)
    return findings.verdict()


def _judge_sending_view(
    findings: Findings, message: ClientMessage, stay: GroupStay, after_signal: bool, sent_in: GroupStay
) -> None:
    if message.strength < RELIABLE:
        return
    here, there = stay.span_start, sent_in.span_start
    in_view = message.strength >= CAUSAL and not after_signal
    findings.premise(1 if in_view or not there.is_light else 0)
    if (in_view and stay.rank < sent_in.rank) or (not there.is_light and here.rank < there.rank):
        findings.violation(
            stay.process,
            f"{stay.process} delivered {message.name} in {stay.where}, before the view {sent_in.view} it was sent in",
        )


def _judge_sending_lives(findings: Findings, history: ClientHistory) -> None:
    """Once a view with a later session of a client was shown, nothing of an earlier one comes."""
    later = later_sessions(history)
    for life in history.lives.values() if later else ():
        # Private names, with the newest session that has been a member of a view shown here so far.
        newest: dict[str, tuple[int, ...]] = {}
        for row in life.rows:
            if row.event == "view":
                for process in later.intersection(row.members):
                    name, number = life_number(process)
                    newest[name] = max(number, newest.get(name, number))
            elif row.event in DELIVERED and newest and STRENGTH.get(row.service or "", 0) >= RELIABLE:
                name, number = life_number(row.sender or "")
                findings.premise(1 if name in newest else 0)
                if newest.get(name, number) > number:
                    findings.violation(
                        life.process,
                        f"{life.process} delivered {row.message} after a view with a later session of {name}",
                    )


def later_sessions(history: ClientHistory) -> frozenset[str]:
    """The processes that are not the first session of their private name."""
    return later_lives({process for stay in history.stays() for process in stay.members} | set(history.lives))
