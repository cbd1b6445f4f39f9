"""Checkers of the message services between daemons: M1, M2, M5 and M6.

In:        a History.
Out:       one Verdict per guarantee.
Not here:  fifo, causal, mixing (common/services.py), what the services share (delivery.py).

  M1  unreliable: at most once, only in the view of the send
  M2  reliable: S6, S8 and S12 for messages of this service
  M5  agreed: one order, and no hole in it before the signal; after it, none of those who move along
  M6  safe: what one delivers, all deliver, unless they crash
"""

from __future__ import annotations

from itertools import pairwise

from covey.guarantees.checkers.common.delivery import judge_comovers, judge_duplicates
from covey.guarantees.checkers.common.lives import CAUSAL, FIFO, RELIABLE, SAFE, UNRELIABLE, key_of
from covey.guarantees.checkers.common.services import (
    Completeness,
    judge_distinct_keys,
    judge_promise,
    report_hole,
    safe_promises,
)

from .delivery import judge_self_delivery
from .history import History
from .lives import DaemonDelivery
from .verdict import Findings, Verdict


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


def agreed(history: History) -> Verdict:
    """M5."""
    findings = Findings("M5", history.run)
    judge_distinct_keys(findings, history)
    _judge_keys(findings, history)
    _judge_growth(findings, history)
    completeness = Completeness(history)
    agreed_class = history.at_least(CAUSAL)
    for life in history.lives.values():
        for delivery, before in life.prefixes():
            message, stay = delivery.message, delivery.stay
            # Keys compare within one view only; a delivery in another view than that of the key is S9's matter.
            if message.strength < CAUSAL or stay is None or message.key is None or message.order_view != stay.view:
                continue
            same_view = history.stamped_in[stay.view]
            # Within a view, smaller keys are lower bits.
            smaller_keys = message.bit - 1
            required = completeness.required(stay, same_view & smaller_keys, delivery.after_signal)
            preceding = before & same_view & agreed_class
            findings.premise(1 if required or preceding else 0)
            if missing := required & ~before:
                report_hole(findings, history, delivery, delivery.after_signal, delivery.row.view, missing)
            if overtaken_by := preceding & ~smaller_keys & ~message.bit:
                _report_overtaken(findings, history, delivery, overtaken_by)
    return findings.verdict()


def _judge_keys(findings: Findings, history: History) -> None:
    """Each message has one key everywhere."""
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


def _report_overtaken(findings: Findings, history: History, delivery: DaemonDelivery, overtaken_by: int) -> None:
    process, message = delivery.row.process, delivery.message
    findings.violation(
        process,
        f"{process} delivered {message.name} of key {message.key} in {delivery.row.view} "
        f"after {history.names(overtaken_by)}, ordered later",
    )


def safe(history: History) -> Verdict:
    """M6. Who crashed or stopped in that view is excused; of daemons whose history breaks off nothing is known."""
    findings = Findings("M6", history.run)
    for stay, delivered, promised in safe_promises(history.stays(), history.at_least(SAFE)):
        judge_promise(findings, history, stay, delivered, history.survivors(promised, stay.view))
    return findings.verdict()
