"""Checkers of the message services: M1 to M7.

In:        a History.
Out:       one Verdict per guarantee.
Not here:  what the services share (delivery.py), happened-before (causality.py).

  M1  unreliable: at most once, only in the view of the send
  M2  reliable: S6, S8 and S12 for messages of this service
  M3  fifo: nothing earlier of the session is missing or comes later
  M4  causal: nothing that happened before is missing or comes later
  M5  agreed: one order, and no hole in it before the signal; after it, none of those who move along
  M6  safe: what one delivers, all deliver, unless they crash
  M7  mixing: a fifo message does not overtake an agreed one of its session

"Delivered before m' by p" is a set of messages that Life.prefixes() keeps; every promise of order becomes: the
messages required before m' are all in that set, and those forbidden after m' never come.
"""

from __future__ import annotations

from itertools import pairwise

from covey.drivers.simulation.checkers.delivery import judge_comovers, judge_duplicates, judge_self_delivery
from covey.drivers.simulation.checkers.history import History
from covey.drivers.simulation.checkers.lives import (
    CAUSAL,
    FIFO,
    RELIABLE,
    SAFE,
    UNRELIABLE,
    Delivery,
    Stay,
    key_of,
    union,
)
from covey.drivers.simulation.checkers.verdict import Findings, Verdict


def unreliable(history: History) -> Verdict:
    """M1."""
    findings = Findings("M1", history.run)
    concerned = history.at_least(UNRELIABLE) & ~history.at_least(RELIABLE)
    judge_duplicates(findings, history, concerned)
    for life in history.lives.values():
        for delivery in life.deliveries:
            message, stay = delivery.message, delivery.stay
            if message.strength == UNRELIABLE and message.send and stay and stay.view != message.sent_in:
                findings.violation(
                    life.process,
                    f"{life.process} delivered unreliable {message.name} in {stay.view}, sent in {message.sent_in}",
                )
    return findings.verdict()


def reliable(history: History) -> Verdict:
    """M2."""
    findings = Findings("M2", history.run)
    concerned = history.at_least(RELIABLE) & ~history.at_least(FIFO)
    judge_duplicates(findings, history, concerned)
    judge_comovers(findings, history, concerned)
    judge_self_delivery(findings, history, concerned)
    return findings.verdict()


def fifo(history: History) -> Verdict:
    """M3. Across views nothing may be missing where the receiver moved all the way along with the sender's daemon."""
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
            _report_order(findings, history, delivery, missing=earlier & shared & ~before & ~late, late=late)
    return findings.verdict()


def causal(history: History) -> Verdict:
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
            same_view = history.view_sets.get(message.order_view or "", 0)
            late = past & ~before & life.delivered
            _report_order(findings, history, delivery, missing=past & same_view & ~before & ~late, late=late)
    return findings.verdict()


def _report_order(findings: Findings, history: History, delivery: Delivery, missing: int, late: int) -> None:
    process, name = delivery.row.process, delivery.message.name
    if missing:
        findings.violation(process, f"{process} delivered {name} without {history.names(missing)}")
    if late:
        findings.violation(process, f"{process} delivered {name} before {history.names(late)}")


def agreed(history: History) -> Verdict:
    """M5."""
    findings = Findings("M5", history.run)
    _judge_keys(findings, history)
    _judge_growth(findings, history)
    completeness = _Completeness(history)
    agreed_class = history.at_least(CAUSAL)
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            message, stay = delivery.message, delivery.stay
            # Keys compare within one view only; a delivery in another view than that of the key is S9's matter.
            if message.strength < CAUSAL or stay is None or message.key is None or message.order_view != stay.view:
                continue
            same_view = history.view_sets[stay.view]
            # Within a view, smaller keys are lower bits.
            smaller_keys = message.bit - 1
            required = completeness.required(stay, delivery.after_signal) & smaller_keys
            preceding = before & same_view & agreed_class
            findings.premise(1 if required or preceding else 0)
            overtaken_by = preceding & ~smaller_keys & ~message.bit
            _report_agreed(findings, history, delivery, required & ~before, overtaken_by)
    return findings.verdict()


def _judge_keys(findings: Findings, history: History) -> None:
    """Each message has one key everywhere, and shares it with no other of its view."""
    for message, following in pairwise(history.by_bit):
        if message.key is None or message.order_view != following.order_view:
            continue
        findings.premise()
        if message.key == following.key:
            findings.violation(
                following.origin or following.sender,
                f"{message.name} and {following.name} have the same key {message.key} in {message.order_view}",
            )
    for life in history.lives.values():
        for delivery in life.deliveries:
            key, message = key_of(delivery.row), delivery.message
            if (key is None and message.strength >= CAUSAL) or (key and message.key and key != message.key):
                findings.violation(
                    life.process,
                    f"{life.process} delivered {message.name} with key {key}, elsewhere it has {message.key}",
                )


def _judge_growth(findings: Findings, history: History) -> None:
    """One order across views too: the keys of what a daemon delivers as agreed grow over its whole life."""
    for life in history.lives.values():
        ordered = [one for one in life.deliveries if one.message.strength >= CAUSAL and key_of(one.row) is not None]
        for earlier, later in pairwise(ordered):
            if earlier.stay is later.stay:
                continue
            findings.premise()
            if (key_of(later.row) or ()) <= (key_of(earlier.row) or ()):
                findings.violation(
                    life.process,
                    f"{life.process} delivered {later.message.name} in {later.row.view} with key {key_of(later.row)}, "
                    f"not above {key_of(earlier.row)} of {earlier.message.name} in the view before",
                )


def _report_agreed(findings: Findings, history: History, delivery: Delivery, missing: int, overtaken_by: int) -> None:
    process, message, view = delivery.row.process, delivery.message, delivery.row.view
    when = "after" if delivery.after_signal else "before"
    if missing:
        findings.violation(
            process,
            f"{process} delivered {message.name} {when} its signal in {view} without, before it, "
            f"{history.names(missing)}, ordered earlier",
        )
    if overtaken_by:
        findings.violation(
            process,
            f"{process} delivered {message.name} of key {message.key} in {view} "
            f"after {history.names(overtaken_by)}, ordered later",
        )


class _Completeness:
    """What must precede deliveries of the agreed class, by stay and side of the signal; keys limit it further."""

    def __init__(self, history: History) -> None:
        self.history = history
        unstamped = sum(message.bit for message in history.messages.values() if message.key is None)
        self.stamped = history.at_least(RELIABLE) & ~unstamped
        self.after: dict[Stay, int] = {}

    def required(self, stay: Stay, after_signal: bool) -> int:
        history = self.history
        anybody = history.view_sets[stay.view] & history.delivered_in[stay.view] & self.stamped
        if not after_signal:
            return anybody
        if stay not in self.after:
            movers = stay.next.transitional if stay.next is not None else frozenset()
            self.after[stay] = union(history.origin_sets.get(process, 0) for process in movers)
        return anybody & self.after[stay]


def safe(history: History) -> Verdict:
    """M6. Who crashed or stopped in that view is excused; of daemons whose history breaks off nothing is known."""
    findings = Findings("M6", history.run)
    safe_messages = history.at_least(SAFE)
    for life in history.lives.values():
        for stay in life.stays:
            before = stay.delivered_before_signal & safe_messages
            _judge_safe(findings, history, stay, before, stay.members)
            if stay.next is not None:
                after = stay.delivered_after_signal & safe_messages
                _judge_safe(findings, history, stay, after, stay.next.transitional)
    return findings.verdict()


def _judge_safe(findings: Findings, history: History, stay: Stay, delivered: int, promised: frozenset[str]) -> None:
    witnesses = history.survivors(promised - {stay.process}, stay.view) if delivered else []
    if not witnesses:
        return
    findings.premise(delivered.bit_count())
    for witness in witnesses:
        if missing := delivered & ~witness.delivered:
            findings.violation(
                witness.process,
                f"{stay.process} delivered safe {history.names(missing)} in {stay.view}, "
                f"but {witness.process} never did",
            )


def mixing(history: History) -> Verdict:
    """M7."""
    findings = Findings("M7", history.run)
    agreed_class = history.at_least(CAUSAL)
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            message = delivery.message
            if message.strength != FIFO:
                continue
            same_view = history.view_sets.get(message.order_view or "", 0)
            required = history.earlier_in_session[message.name] & same_view & agreed_class
            findings.premise(1 if required else 0)
            if missing := required & ~before:
                findings.violation(
                    life.process,
                    f"{life.process} delivered fifo {message.name} without, before it, {history.names(missing)}",
                )
    return findings.verdict()
