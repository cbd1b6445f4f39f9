"""Daemons: their lives, their stays in views, and what they deliver, from the rows of level S.

In:        the trace rows of one run; rows of other levels are passed over.
Out:       lives by process, which DaemonWalk fills with stays (one per view installed), deliveries and traffic.
Not here:  what clients have too (common/lives.py), what spans several processes (history.py), judgement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from covey.guarantees.checkers.common.lives import (
    AnyDelivery,
    AnyStay,
    BaseLife,
    TracedMessage,
    name_of,
    rows_by_process,
)
from covey.trace.record import Row


@dataclass(slots=True, eq=False)
class DaemonDelivery(AnyDelivery):
    """One delivery at one daemon; `stay` is None before the first view."""

    stay: DaemonStay | None
    after_signal: bool


@dataclass(slots=True, eq=False, kw_only=True)
class DaemonStay(AnyStay):
    """One daemon in one view."""

    sends: list[TracedMessage] = field(default_factory=list)
    deliveries: list[DaemonDelivery] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, ...]:
        return (self.view,)

    @property
    def where(self) -> str:
        return self.view


@dataclass(slots=True, eq=False, kw_only=True)
class DaemonLife(BaseLife[DaemonDelivery]):
    """One daemon from its start to its crash or stop, which excuse it."""

    stays: list[DaemonStay] = field(default_factory=list)
    # The processes this one is connected with both ways since the faults stopped; None without a calm row.
    calm: frozenset[str] | None = None


def split_into_lives(rows: Iterable[Row]) -> dict[str, DaemonLife]:
    return {process: DaemonLife(process=process, rows=own) for process, own in rows_by_process(rows, "S").items()}


class DaemonWalk:
    """Goes through one life's rows once and fills its stays, deliveries and traffic."""

    def __init__(self, life: DaemonLife, messages: dict[str, TracedMessage]) -> None:
        self.life = life
        self.messages = messages
        self.stay: DaemonStay | None = None

    def walk(self) -> None:
        for row in self.life.rows:
            if row.event == "deliver":
                self._on_deliver(row)
            elif row.event == "send":
                self._on_send(row)
            elif row.event == "view":
                self._on_view(row)
            elif row.event == "transitional" and self.stay is not None:
                self.stay.signals += 1
            elif row.event in ("crash", "stop"):
                self.life.excused = True
            elif row.event == "calm":
                self.life.calm = frozenset(row.members)
            elif row.event == "end":
                self.life.ended = True

    def _on_view(self, row: Row) -> None:
        stay = DaemonStay(
            process=self.life.process,
            view=row.view_new or "",
            rank=row.view_rank,
            members=frozenset(row.members),
            transitional=frozenset(row.transitional),
            previous=self.stay,
        )
        if self.stay is not None:
            self.stay.next = stay
        self.stay = stay
        self.life.stays.append(stay)

    def _on_send(self, row: Row) -> None:
        message = self.messages[name_of(row)]
        if message.send is not row:
            return
        self.life.traffic.append((True, message))
        if self.stay is not None:
            self.stay.sends.append(message)

    def _on_deliver(self, row: Row) -> None:
        message = self.messages[name_of(row)]
        stay = self.stay
        delivery = DaemonDelivery(message, row, stay, after_signal=stay is not None and stay.signals > 0)
        self.life.deliveries.append(delivery)
        self.life.traffic.append((False, message))
        self.life.delivered |= message.bit
        if stay is None:
            return
        stay.deliveries.append(delivery)
        if delivery.after_signal:
            stay.delivered_after_signal |= message.bit
        else:
            stay.delivered_before_signal |= message.bit
