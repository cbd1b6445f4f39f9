"""Checkers of what daemons deliver in which view: S6 to S13.

In:        a History.
Out:       one Verdict per guarantee.
Not here:  the views themselves (membership.py), the order of deliveries (services.py).

  S6   no message is delivered twice (unreliable ones: M1)
  S7   every delivery has an earlier send of the same content
  S8   vsync daemons deliver the same messages in the view they leave together
  S9   all who deliver a message do so in the same view
  S10  no delivery in a view before that of the send, nor beside a later life of the sender
  S11  one signal a view at most, and vsync daemons agree on what comes before and after it
  S12  a sender delivers its own message in the view it sent it in, unless it crashes there
  S13  a message is delivered by all members, or its sender moves on
"""

from __future__ import annotations

from collections import defaultdict

from covey.drivers.simulation.checkers.history import History
from covey.drivers.simulation.checkers.lives import CAUSAL, RELIABLE, Delivery, Life, Message, Stay, union
from covey.drivers.simulation.checkers.verdict import Findings, Verdict
from covey.trace.record import Row


def no_duplication(history: History) -> Verdict:
    """S6."""
    findings = Findings("S6", history.run)
    judge_duplicates(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def judge_duplicates(findings: Findings, history: History, concerned: int) -> None:
    """Nobody delivers a message of this set twice."""
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            if not delivery.message.bit & concerned:
                continue
            findings.premise()
            if delivery.message.bit & before:
                findings.violation(life.process, f"{life.process} delivered {delivery.message.name} twice")


def integrity(history: History) -> Verdict:
    """S7. Without a common clock a send is known to come too late if the histories run in a circle otherwise."""
    findings = Findings("S7", history.run)
    for row in history.repeated_sends:
        findings.violation(row.process, f"{row.process} sent {row.message}, which had been sent before")
    for message in history.messages.values():
        if message.send is not None and message.order_view is not None and message.order_view != message.sent_in:
            findings.violation(
                message.send.process,
                f"{message.name} was sent in {message.sent_in} but stamped in {message.order_view}",
            )
    for process, message in history.causality.circles:
        findings.violation(process, f"{process} delivered {message.name} before {message.origin} can have sent it")
    for life in history.lives.values():
        findings.premise(len(life.deliveries))
        for delivery in life.deliveries:
            _judge_content(findings, life, delivery)
    return findings.verdict()


def _judge_content(findings: Findings, life: Life, delivery: Delivery) -> None:
    send, name = delivery.message.send, delivery.message.name
    if send is None:
        findings.violation(life.process, f"{life.process} delivered {name}, which nobody sent")
    elif _content(delivery.row) != (sent := _content(send)):
        columns = zip(_CONTENT_COLUMNS, _content(delivery.row), sent, strict=True)
        # A null on either side says nothing: where only the header was needed, a delivery has no digest.
        for column, here, there in columns:
            if here is not None and there is not None and here != there:
                findings.violation(
                    life.process, f"{life.process} delivered {name} with {column} {here}, sent with {there}"
                )


_CONTENT_COLUMNS = (
    "digest",
    "size",
    "service",
    "sender",
    "session_seq",
    "count",
    "order_view",
    "order_stamp",
    "order_site",
    "order_index",
)


def _content(row: Row) -> tuple[int | str | None, ...]:
    return (
        row.digest,
        row.size,
        row.service,
        row.sender,
        row.session_seq,
        row.count,
        row.order_view,
        row.order_stamp,
        row.order_site,
        row.order_index,
    )


def virtual_synchrony(history: History) -> Verdict:
    """S8."""
    findings = Findings("S8", history.run)
    judge_comovers(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def judge_comovers(findings: Findings, history: History, concerned: int) -> None:
    """vsync daemons deliver the same messages of this set; where nobody delivers one, there is nothing to say."""
    for comovers in history.comovers:
        first = comovers[0]
        for stay in comovers[1:]:
            if not (stay.delivered | first.delivered) & concerned:
                continue
            findings.premise()
            if (stay.delivered ^ first.delivered) & concerned:
                difference = _difference(history, stay, stay.delivered & concerned, first, first.delivered & concerned)
                findings.violation(stay.process, f"{_journey(stay, first)}, but {difference}")


def _journey(stay: Stay, other: Stay) -> str:
    onward = stay.next.view if stay.next is not None else "nowhere"
    return f"{stay.process} and {other.process} went together from {stay.view} to {onward}"


def _difference(history: History, stay: Stay, here: int, other: Stay, there: int) -> str:
    only = [(stay.process, here & ~there), (other.process, there & ~here)]
    return " and ".join(f"only {process} delivered {history.names(bits)}" for process, bits in only if bits)


def same_view_delivery(history: History) -> Verdict:
    """S9."""
    findings = Findings("S9", history.run)
    first_stays: dict[str, Stay] = {}
    for life in history.lives.values():
        for delivery in life.deliveries:
            if delivery.stay is None:
                continue
            first = first_stays.setdefault(delivery.message.name, delivery.stay)
            if first is delivery.stay:
                continue
            findings.premise()
            if first.view != delivery.stay.view:
                findings.violation(
                    life.process,
                    f"{life.process} delivered {delivery.message.name} in {delivery.stay.view}, "
                    f"but {first.process} in {first.view}",
                )
    return findings.verdict()


def sane_view(history: History) -> Verdict:
    """S10."""
    findings = Findings("S10", history.run)
    ranks = {view: stays[0].rank for view, stays in history.arrivals.items()}
    later_lives = _later_lives(history)
    for life in history.lives.values():
        # Names of daemons, with the newest life that has been a member of a view installed here so far.
        newest: dict[str, int] = {}
        for stay in life.stays:
            for process in stay.members & later_lives:
                name, number = _life_number(process)
                newest[name] = max(number, newest.get(name, number))
            for delivery in stay.deliveries:
                _judge_sending_view(findings, stay, delivery.message, ranks)
                _judge_sending_life(findings, stay, delivery.message, newest)
    return findings.verdict()


def _judge_sending_view(findings: Findings, stay: Stay, message: Message, ranks: dict[str, tuple[int, ...]]) -> None:
    if message.sent_in not in ranks:
        return
    findings.premise()
    if stay.rank < ranks[message.sent_in]:
        findings.violation(
            stay.process,
            f"{stay.process} delivered {message.name} in {stay.view}, before the view {message.sent_in} it was sent in",
        )


def _judge_sending_life(findings: Findings, stay: Stay, message: Message, newest: dict[str, int]) -> None:
    if not newest or message.origin is None:
        return
    name, number = _life_number(message.origin)
    if newest.get(name, number) > number:
        findings.violation(
            stay.process,
            f"{stay.process} delivered {message.name} of {message.origin} in {stay.view}, "
            f"after a view with {name}:{newest[name]}",
        )


def _later_lives(history: History) -> frozenset[str]:
    """The processes that are not the first life of their daemon: only they can make a message come from the past."""
    processes = {process for stays in history.arrivals.values() for process in stays[0].members} | set(history.lives)
    lives: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for process in processes:
        name, number = _life_number(process)
        lives[name].append((number, process))
    return frozenset(process for numbered in lives.values() for _, process in sorted(numbered)[1:])


def _life_number(process: str) -> tuple[str, int]:
    """The daemon's name and the number of its life.

    >>> _life_number("a:12")
    ('a', 12)
    >>> _life_number("nameless")
    ('nameless', 0)
    """
    name, _, number = process.rpartition(":")
    return (name, int(number)) if name and number.isdecimal() else (process, 0)


def transitional_signal(history: History) -> Verdict:
    """S11."""
    findings = Findings("S11", history.run)
    for life in history.lives.values():
        for stay in life.stays:
            findings.premise(1 if stay.signals else 0)
            if stay.signals > 1:
                findings.violation(life.process, f"{life.process} had {stay.signals} signals in {stay.view}")
    agreed = history.at_least(CAUSAL)
    for comovers in history.comovers:
        for stay in comovers[1:]:
            findings.premise(1 if (stay.delivered | comovers[0].delivered) & agreed else 0)
            _judge_signal_position(findings, history, stay, comovers[0], agreed)
    return findings.verdict()


def _judge_signal_position(findings: Findings, history: History, stay: Stay, other: Stay, agreed: int) -> None:
    before = (stay.delivered_before_signal & agreed, other.delivered_before_signal & agreed)
    after = (stay.delivered_after_signal & agreed, other.delivered_after_signal & agreed)
    for (here, there), side in ((before, "before"), (after, "after")):
        if here != there:
            difference = _difference(history, stay, here, other, there)
            findings.violation(stay.process, f"{_journey(stay, other)}, but {side} the signal {difference}")


def self_delivery(history: History) -> Verdict:
    """S12."""
    findings = Findings("S12", history.run)
    judge_self_delivery(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def judge_self_delivery(findings: Findings, history: History, concerned: int) -> None:
    """A daemon that left the view of its message, or came to rest in it, has delivered the message there."""
    for life in history.lives.values():
        for stay in life.stays:
            if stay.next is None and (life.excused or not life.ended):
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
        if not life.ended or life.excused or not life.stays:
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
