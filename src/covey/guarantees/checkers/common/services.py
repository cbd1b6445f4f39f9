"""Judgements of the message services that both levels share: M3, M4 and M7, and parts of M5 and M6.

In:        a history of either level.
Out:       one Verdict per guarantee; for parts, premises and violations in Findings.
Not here:  M1, M2, and the one order of M5 (services.py, clients/services.py, clients/order.py).

  M3  fifo: nothing earlier of the session comes later, and nothing is missing that is owed to the receiver
  M4  causal: nothing that happened before comes later, and nothing of the same view is missing that is owed
  M7  mixing: a fifo message does not overtake an agreed one of its session

"Delivered before m' by p" is a set of messages that prefixes() of a life keeps; every promise of order becomes: the
messages required before m' are all in that set, and those forbidden after m' never come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from covey.guarantees.checkers.verdict import Findings, Verdict

from .history import AnyHistory, Stay_co
from .lives import (
    CAUSAL,
    FIFO,
    RELIABLE,
    AnyDelivery,
    AnyLife,
    AnyStay,
    union,
)


def fifo(history: AnyHistory) -> Verdict:
    """M3. Across views nothing may be missing where receiver and sender, or their daemons, moved all the way along."""
    findings = Findings("M3", history.run)
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            message = delivery.message
            earlier = history.earlier_in_session[message.name]
            if message.strength < FIFO or not earlier:
                continue
            findings.premise()
            shared = history.stamped_while_together(life.process, message.origin, message.order_view)
            late = earlier & ~before & life.delivered
            missing = earlier & shared & history.owed[life.process] & ~before & ~late
            _report_order(findings, history, delivery, missing, late)
    return findings.verdict()


def causal(history: AnyHistory) -> Verdict:
    """M4."""
    findings = Findings("M4", history.run)
    pasts = history.causality.past
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            message = delivery.message
            past = pasts.get(message.name, 0)
            if message.strength < CAUSAL or not past:
                continue
            findings.premise()
            same_view = history.stamped_in.get(message.order_view or "", 0)
            late = past & ~before & life.delivered
            missing = past & same_view & history.owed[life.process] & ~before & ~late
            _report_order(findings, history, delivery, missing, late)
    return findings.verdict()


def _report_order(findings: Findings, history: AnyHistory, delivery: AnyDelivery, missing: int, late: int) -> None:
    process, name = delivery.row.process, delivery.message.name
    if missing:
        findings.violation(process, f"{process} delivered {name} without {history.names(missing)}")
    if late:
        findings.violation(process, f"{process} delivered {name} before {history.names(late)}")


def mixing(history: AnyHistory) -> Verdict:
    """M7."""
    findings = Findings("M7", history.run)
    agreed_class = history.at_least(CAUSAL)
    for life in history.lives.values():
        owed = history.owed[life.process] | life.delivered
        for delivery, before in life.prefixes():
            message = delivery.message
            if message.strength != FIFO:
                continue
            same_view = history.stamped_in.get(message.order_view or "", 0)
            required = history.earlier_in_session[message.name] & same_view & agreed_class & owed
            findings.premise(1 if required else 0)
            if missing := required & ~before:
                findings.violation(
                    life.process,
                    f"{life.process} delivered fifo {message.name} without, before it, {history.names(missing)}",
                )
    return findings.verdict()


def judge_distinct_keys(findings: Findings, history: AnyHistory) -> None:
    """M5: no two messages of one view have the same place in the order."""
    for message, following in pairwise(history.by_bit):
        if message.key is None or message.order_view != following.order_view:
            continue
        findings.premise()
        if message.key == following.key:
            findings.violation(
                following.origin or following.sender,
                f"{message.name} and {following.name} have the same key {message.key} in {message.order_view}",
            )


class Completeness:
    """M5: what must precede deliveries of the agreed class, by stay and side of the signal; keys limit it further."""

    def __init__(self, history: AnyHistory) -> None:
        self._history = history
        self._stamped = history.at_least(RELIABLE) & ~union(one.bit for one in history.by_bit if one.key is None)
        self._from_movers: dict[AnyStay, int] = {}

    def required(self, stay: AnyStay, concerned: int, after_signal: bool) -> int:
        """Of this set."""
        anybody = self._history.delivered_in[stay.key] & concerned & self._stamped
        return anybody & self._sent_by_movers(stay) if after_signal else anybody

    def _sent_by_movers(self, stay: AnyStay) -> int:
        if stay not in self._from_movers:
            movers = stay.next.transitional if stay.next is not None else frozenset()
            self._from_movers[stay] = union(self._history.sent_by.get(process, 0) for process in movers)
        return self._from_movers[stay]


def report_hole(
    findings: Findings, history: AnyHistory, delivery: AnyDelivery, after_signal: bool, where: str | None, missing: int
) -> None:
    """M5."""
    process, when = delivery.row.process, "after" if after_signal else "before"
    findings.violation(
        process,
        f"{process} delivered {delivery.message.name} {when} its signal in {where} without, before it, "
        f"{history.names(missing)}, ordered earlier",
    )


def safe_promises(stays: Iterable[Stay_co], concerned: int) -> Iterator[tuple[Stay_co, int, frozenset[str]]]:
    """M6: in which stay something safe of this set was delivered, what, and who else is promised to deliver it."""
    for stay in stays:
        if before := stay.delivered_before_signal & concerned:
            yield stay, before, stay.members - {stay.process}
        if stay.next is not None and (after := stay.delivered_after_signal & concerned):
            yield stay, after, stay.next.transitional - {stay.process}


def judge_promise(
    findings: Findings, history: AnyHistory, stay: AnyStay, delivered: int, witnesses: Sequence[AnyLife]
) -> None:
    """M6: these deliver it too."""
    findings.premise(delivered.bit_count() if witnesses else 0)
    for witness in witnesses:
        if missing := delivered & ~witness.delivered:
            findings.violation(
                witness.process,
                f"{stay.process} delivered safe {history.names(missing)} in {stay.where}, "
                f"but {witness.process} never did",
            )
