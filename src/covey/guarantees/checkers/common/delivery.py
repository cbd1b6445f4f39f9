"""Judgements of what is delivered that both levels share: S6 and S11, and parts of S7, S8 and S9.

In:        a history of either level.
Out:       one Verdict per guarantee; for parts, premises and violations in Findings.
Not here:  S10, S12 and S13, which each level reads in its own way; order (services.py).

  S6   no message is delivered twice (unreliable ones: M1)
  S11  one signal a view at most, and vsync processes agree on what comes before and after it
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from covey.guarantees.checkers.verdict import Findings, Verdict
from covey.trace.record import Row

from .history import AnyHistory
from .lives import CAUSAL, RELIABLE, AnyDelivery, AnyStay, TracedMessage


def no_duplication(history: AnyHistory) -> Verdict:
    """S6."""
    findings = Findings("S6", history.run)
    judge_duplicates(findings, history, history.at_least(RELIABLE))
    return findings.verdict()


def judge_duplicates(findings: Findings, history: AnyHistory, concerned: int) -> None:
    """Nobody delivers a message of this set twice."""
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            if not delivery.message.bit & concerned:
                continue
            findings.premise()
            if delivery.message.bit & before:
                findings.violation(life.process, f"{life.process} delivered {delivery.message.name} twice")


def judge_sent_once(findings: Findings, history: AnyHistory) -> None:
    """S7."""
    for row in history.repeated_sends:
        findings.violation(row.process, f"{row.process} sent {row.message}, which had been sent before")


def judge_sent_earlier(findings: Findings, history: AnyHistory) -> None:
    """S7. Without a common clock a send is known to come too late if the histories run in a circle otherwise."""
    for process, message in history.causality.circles:
        findings.violation(process, f"{process} delivered {message.name} before {message.origin} can have sent it")


Silent = Callable[[Row, object, object], bool]
"""Whether a column of this delivery says nothing, with what stands there, and what in the send."""


def judge_contents(findings: Findings, history: AnyHistory, columns: tuple[str, ...], is_silent: Silent) -> None:
    """S7: what is delivered was sent, and with the same content in these columns."""
    content: Callable[[Row], tuple[object, ...]] = attrgetter(*columns)
    for life in history.lives.values():
        findings.premise(len(life.deliveries))
        for delivery in life.deliveries:
            send = delivery.message.send
            if send is None:
                findings.violation(life.process, f"{life.process} delivered {delivery.message.name}, which nobody sent")
            elif content(delivery.row) != content(send):
                for column, here, there in zip(columns, content(delivery.row), content(send), strict=True):
                    if here != there and not is_silent(delivery.row, here, there):
                        _report_content(findings, delivery, f"{column} {here}, sent with {there}")


def _report_content(findings: Findings, delivery: AnyDelivery, what: str) -> None:
    process = delivery.row.process
    findings.violation(process, f"{process} delivered {delivery.message.name} with {what}")


def judge_comovers(findings: Findings, history: AnyHistory, concerned: int) -> None:
    """S8: vsync processes deliver the same of this set; where nobody delivers anything, there is nothing to say."""
    for comovers in history.comovers:
        first = comovers[0]
        for stay in comovers[1:]:
            if not (stay.delivered | first.delivered) & concerned:
                continue
            findings.premise()
            if (stay.delivered ^ first.delivered) & concerned:
                difference = _difference(history, stay, stay.delivered & concerned, first, first.delivered & concerned)
                findings.violation(stay.process, f"{_journey(stay, first)}, but {difference}")


def _journey(stay: AnyStay, other: AnyStay) -> str:
    onward = stay.next.view if stay.next is not None else "nowhere"
    return f"{stay.process} and {other.process} went together from {stay.where} to {onward}"


def _difference(history: AnyHistory, stay: AnyStay, here: int, other: AnyStay, there: int) -> str:
    only = [(stay.process, here & ~there), (other.process, there & ~here)]
    return " and ".join(f"only {process} delivered {history.names(bits)}" for process, bits in only if bits)


def judge_same_view(findings: Findings, message: TracedMessage, stay: AnyStay, first: AnyStay) -> None:
    """S9: delivered in this stay, and before that in another."""
    if stay is first:
        return
    findings.premise()
    if stay.view != first.view:
        findings.violation(
            stay.process,
            f"{stay.process} delivered {message.name} in {stay.where}, but {first.process} in {first.view}",
        )


def transitional_signal(history: AnyHistory) -> Verdict:
    """S11."""
    findings = Findings("S11", history.run)
    for stay in history.stays():
        findings.premise(1 if stay.signals else 0)
        if stay.signals > 1:
            findings.violation(stay.process, f"{stay.process} had {stay.signals} signals in {stay.where}")
    agreed = history.at_least(CAUSAL)
    for comovers in history.comovers:
        for stay in comovers[1:]:
            findings.premise(1 if (stay.delivered | comovers[0].delivered) & agreed else 0)
            _judge_signal_position(findings, history, stay, comovers[0], agreed)
    return findings.verdict()


def _judge_signal_position(findings: Findings, history: AnyHistory, stay: AnyStay, other: AnyStay, agreed: int) -> None:
    before = (stay.delivered_before_signal & agreed, other.delivered_before_signal & agreed)
    after = (stay.delivered_after_signal & agreed, other.delivered_after_signal & agreed)
    for (here, there), side in ((before, "before"), (after, "after")):
        if here != there:
            difference = _difference(history, stay, here, other, there)
            findings.violation(stay.process, f"{_journey(stay, other)}, but {side} the signal {difference}")
