"""Checkers of the message services that are no matter of order alone: M1, M2, M6, M8 and M9 at level C.

In:        a ClientHistory.
Out:       one Verdict per guarantee.
Not here:  fifo, causal, mixing (common/services.py), agreed (order.py), what the services share (delivery.py, rest.py).

  M1  unreliable: at most once
  M2  reliable: S6, S8 and S12 for messages of this service
  M6  safe: what one delivers, all members deliver, unless they left or departed
  M8  open groups: S6, S8, S9, S13, M5 and M6 for messages to groups that their sender was not in
  M9  several groups: one delivery to each member of any of them, at one place of the order
"""

from __future__ import annotations

from covey.guarantees.checkers.common.delivery import judge_comovers, judge_duplicates
from covey.guarantees.checkers.common.lives import CAUSAL, FIFO, RELIABLE, SAFE, UNRELIABLE
from covey.guarantees.checkers.common.services import judge_promise, safe_promises
from covey.guarantees.checkers.verdict import Findings, Verdict

from .delivery import judge_same_views, judge_spans
from .history import ClientHistory
from .order import judge_completeness, judge_places
from .rest import judge_handed_out, judge_resting, judge_self_delivery


def unreliable(history: ClientHistory) -> Verdict:
    """M1. A client does not know its daemon's view, so whether it came in that of the send is judged at level S."""
    findings = Findings("M1", history.run)
    judge_duplicates(findings, history, history.at_least(UNRELIABLE) & ~history.at_least(RELIABLE))
    return findings.verdict()


def reliable(history: ClientHistory) -> Verdict:
    """M2."""
    findings = Findings("M2", history.run)
    concerned = history.at_least(RELIABLE) & ~history.at_least(FIFO)
    judge_duplicates(findings, history, concerned)
    judge_spans(findings, history, concerned)
    judge_self_delivery(findings, history, concerned)
    return findings.verdict()


def safe(history: ClientHistory) -> Verdict:
    """M6. Who left, departed, or has no `end` row is excused.

    So is a member whose own daemon had not yet passed its join when the view ended there: it gets no data before the
    network view that shows it. How often that is so is counted.
    """
    findings = Findings("M6", history.run)
    judge_safe(findings, history, history.at_least(SAFE))
    return findings.verdict()


def judge_safe(findings: Findings, history: ClientHistory, concerned: int) -> None:
    for stay, delivered, promised in safe_promises(history.stays(), concerned):
        witnesses = [life for life, _ in history.witnesses_of(stay, promised)]
        judge_promise(findings, history, stay, delivered, witnesses)
        for life in history.witnesses(promised):
            if life.membership_at(stay.group, stay.rank) is None and delivered & ~life.delivered:
                findings.excuse()


def open_groups(history: ClientHistory) -> Verdict:
    """M8."""
    findings = Findings("M8", history.run)
    concerned = history.from_outside & history.at_least(RELIABLE)
    judge_duplicates(findings, history, concerned)
    judge_comovers(findings, history, concerned & history.at_least(CAUSAL))
    judge_spans(findings, history, concerned & history.early)
    judge_same_views(findings, history, concerned & history.at_least(CAUSAL))
    judge_resting(findings, history, concerned)
    judge_handed_out(findings, history, concerned)
    if concerned:
        judge_completeness(findings, history, concerned)
    judge_safe(findings, history, concerned & history.at_least(SAFE))
    return findings.verdict()


def several_groups(history: ClientHistory) -> Verdict:
    """M9. That all its groups are served by that one delivery is in the views the row names: see S1."""
    findings = Findings("M9", history.run)
    judge_duplicates(findings, history, history.to_several)
    judge_places(findings, history, history.to_several & history.at_least(RELIABLE))
    judge_handed_out(findings, history, history.to_several & history.at_least(RELIABLE))
    return findings.verdict()
