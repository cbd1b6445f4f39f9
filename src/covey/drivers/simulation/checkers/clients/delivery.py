"""Checkers of what clients deliver in which view: S6 to S11 at level C.

In:        a ClientHistory.
Out:       one Verdict per guarantee.
Not here:  the views themselves (views.py), what is owed at rest (rest.py), the order of deliveries (order.py).

  S6   no message is delivered twice (unreliable ones: M1)
  S7   every delivery has an earlier send of the same content to the same groups
  S8   vsync clients deliver the same causal, agreed and safe messages in the view they leave together; reliable and
       fifo ones in the span between two network views, as far as these passed while they were members
  S9   causal, agreed and safe: the same view for vsync clients, and for all who deliver before the signal (C2)
  S10  no delivery in a view before that of the send, nor beside a later session of the sender
  S11  one signal a view at most, and vsync clients agree on what comes before and after it
"""

from __future__ import annotations

from collections import defaultdict

from covey.drivers.simulation.checkers.clients.history import ClientHistory
from covey.drivers.simulation.checkers.clients.lives import (
    DELIVERED,
    ClientDelivery,
    ClientLife,
    ClientMessage,
    GroupStay,
    life_number,
)
from covey.drivers.simulation.checkers.clients.views import where
from covey.drivers.simulation.checkers.lives import CAUSAL, RELIABLE, STRENGTH, union
from covey.drivers.simulation.checkers.verdict import Findings, Verdict
from covey.trace.record import Row


def no_duplication(history: ClientHistory) -> Verdict:
    """S6."""
    findings = Findings("S6", history.run)
    judge_duplicates(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def judge_duplicates(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """Nobody delivers a message of this set twice."""
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            if not delivery.message.bit & concerned:
                continue
            findings.premise()
            if delivery.message.bit & before:
                findings.violation(life.process, f"{life.process} delivered {delivery.message.name} twice")


def integrity(history: ClientHistory) -> Verdict:
    """S7. Without a common clock a send is known to come too late if the histories run in a circle otherwise."""
    findings = Findings("S7", history.run)
    for row in history.repeated_sends:
        findings.violation(row.process, f"{row.process} sent {row.message}, which had been sent before")
    for process, message in history.causality.circles:
        findings.violation(process, f"{process} delivered {message.name} before {message.origin} can have sent it")
    for life in history.lives.values():
        findings.premise(len(life.deliveries))
        for delivery in life.deliveries:
            _judge_content(findings, life, delivery)
    return findings.verdict()


def _judge_content(findings: Findings, life: ClientLife, delivery: ClientDelivery) -> None:
    send, name = delivery.message.send, delivery.message.name
    if send is None:
        findings.violation(life.process, f"{life.process} delivered {name}, which nobody sent")
    elif _content(delivery.row) != (sent := _content(send)):
        for column, here, there in zip(_CONTENT_COLUMNS, _content(delivery.row), sent, strict=True):
            if here != there and not (here is None and delivery.row.event == "discard"):
                findings.violation(
                    life.process, f"{life.process} delivered {name} with {column} {here}, sent with {there}"
                )


_CONTENT_COLUMNS = ("digest", "size", "service", "sender", "session_seq", "count", "groups")


def _content(row: Row) -> tuple[object, ...]:
    return (row.digest, row.size, row.service, row.sender, row.session_seq, row.count, row.groups)


def virtual_synchrony(history: ClientHistory) -> Verdict:
    """S8, for reliable and fifo messages as C2 reads it."""
    findings = Findings("S8", history.run)
    judge_comovers(findings, history, history.at_least(CAUSAL))
    judge_spans(findings, history, history.early)
    return findings.verdict()


def judge_comovers(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """vsync clients deliver the same messages of this set; where nobody delivers one, there is nothing to say."""
    for comovers in history.comovers:
        first = comovers[0]
        for stay in comovers[1:]:
            if not (stay.delivered | first.delivered) & concerned:
                continue
            findings.premise()
            if (stay.delivered ^ first.delivered) & concerned:
                difference = _difference(history, stay, stay.delivered & concerned, first, first.delivered & concerned)
                findings.violation(stay.process, f"{_journey(stay, first)}, but {difference}")


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
                f"{stay.process} was with others up to {where(stay)}, "
                f"but only they delivered {history.names(lacking)} since the last network view",
            )


def _journey(stay: GroupStay, other: GroupStay) -> str:
    onward = stay.next.view if stay.next is not None else "nowhere"
    return f"{stay.process} and {other.process} went together from {where(stay)} to {onward}"


def _difference(history: ClientHistory, stay: GroupStay, here: int, other: GroupStay, there: int) -> str:
    only = [(stay.process, here & ~there), (other.process, there & ~here)]
    return " and ".join(f"only {process} delivered {history.names(bits)}" for process, bits in only if bits)


def same_view_delivery(history: ClientHistory) -> Verdict:
    """S9, as C2 reads it."""
    findings = Findings("S9", history.run)
    judge_same_view(findings, history, history.at_least(CAUSAL))
    return findings.verdict()


def judge_same_view(findings: Findings, history: ClientHistory, concerned: int) -> None:
    """The same view at all who deliver before the signal, and at vsync clients on either side of it."""
    first_stays: dict[tuple[str, str], GroupStay] = {}
    for life in history.lives.values():
        for delivery in life.deliveries:
            if delivery.message.bit & concerned:
                for stay, after_signal in delivery.stays:
                    if not after_signal:
                        first = first_stays.setdefault((delivery.message.name, stay.group), stay)
                        _judge_view(findings, delivery.message, stay, first)
    for comovers in history.comovers:
        delivered = union(stay.delivered for stay in comovers) & concerned
        for stay in comovers:
            if elsewhere := delivered & history.lives[stay.process].delivered & ~stay.delivered:
                findings.violation(
                    stay.process,
                    f"{stay.process} delivered {history.names(elsewhere)} outside {where(stay)}, "
                    f"but others who left that view with it in that view",
                )


def _judge_view(findings: Findings, message: ClientMessage, stay: GroupStay, first: GroupStay) -> None:
    if stay is first:
        return
    findings.premise()
    if stay.view != first.view:
        findings.violation(
            stay.process,
            f"{stay.process} delivered {message.name} in {where(stay)}, but {first.process} in {first.view}",
        )


def sane_view(history: ClientHistory) -> Verdict:
    """S10. After a signal light views are not shown, so the first half speaks of what comes before it.

    Reliable and fifo messages may come in a light view before that of the send; not before its network view.
    """
    findings = Findings("S10", history.run)
    for life in history.lives.values():
        for delivery in life.deliveries:
            for stay, after_signal in delivery.stays:
                if sent_in := delivery.message.sent_in_stays.get(stay.group):
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
            f"{stay.process} delivered {message.name} in {where(stay)}, before the view {sent_in.view} it was sent in",
        )


def _judge_sending_lives(findings: Findings, history: ClientHistory) -> None:
    """Once a view with a later session of a client was shown, nothing of an earlier one comes."""
    later = later_lives(history)
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


def later_lives(history: ClientHistory) -> frozenset[str]:
    """The processes that are not the first session of their private name."""
    processes = {process for stay in history.stays() for process in stay.members} | set(history.lives)
    lives: dict[str, list[tuple[tuple[int, ...], str]]] = defaultdict(list)
    for process in processes:
        name, number = life_number(process)
        lives[name].append((number, process))
    return frozenset(process for numbered in lives.values() for _, process in sorted(numbered)[1:])


def transitional_signal(history: ClientHistory) -> Verdict:
    """S11."""
    findings = Findings("S11", history.run)
    for stay in history.stays():
        findings.premise(1 if stay.signals else 0)
        if stay.signals > 1:
            findings.violation(stay.process, f"{stay.process} had {stay.signals} signals in {where(stay)}")
    agreed = history.at_least(CAUSAL)
    for comovers in history.comovers:
        for stay in comovers[1:]:
            findings.premise(1 if (stay.delivered | comovers[0].delivered) & agreed else 0)
            _judge_signal_position(findings, history, stay, comovers[0], agreed)
    return findings.verdict()


def _judge_signal_position(
    findings: Findings, history: ClientHistory, stay: GroupStay, other: GroupStay, agreed: int
) -> None:
    before = (stay.delivered_before_signal & agreed, other.delivered_before_signal & agreed)
    after = (stay.delivered_after_signal & agreed, other.delivered_after_signal & agreed)
    for (here, there), side in ((before, "before"), (after, "after")):
        if here != there:
            difference = _difference(history, stay, here, other, there)
            findings.violation(stay.process, f"{_journey(stay, other)}, but {side} the signal {difference}")
