"""Lives, stays, messages and deliveries: the rows of a run as the things the guarantees speak of.

In:        the trace rows of one run. Order between processes is never assumed: `step` and `time_ns` are not read.
Out:       messages by name, lives by process; each life with its stays (one per view installed) and deliveries.
Not here:  what spans several processes (history.py), happened-before (causality.py), judgement.

Sets of messages are bit sets in Python integers. The messages of one view lie side by side, in the order of their
keys, so "everything ordered before m in its view" is one mask, and comparing what two daemons delivered is one
comparison of integers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Final, TypeVar

from covey.trace.record import SERVICES, Row

STRENGTH: Final = {service: strength for strength, service in enumerate(SERVICES)}
UNRELIABLE: Final = STRENGTH["unreliable"]
RELIABLE: Final = STRENGTH["reliable"]
FIFO: Final = STRENGTH["fifo"]
CAUSAL: Final = STRENGTH["causal"]  # The weakest of the agreed class: causal, agreed, safe.
SAFE: Final = STRENGTH["safe"]

OrderKey = tuple[int, int, int]


@dataclass(slots=True, eq=False)
class Message:
    """One bundle, as its send row tells, or as its first delivery does where no daemon sent it."""

    name: str
    sender: str
    session_seq: int
    strength: int
    order_view: str | None
    key: OrderKey | None
    # The send row and the daemon that wrote it; None for a message out of nowhere.
    send: Row | None
    origin: str | None
    # The set that holds this message alone.
    bit: int = 0

    @property
    def sent_in(self) -> str | None:
        return self.send.view if self.send is not None else None


AnyMessage = TypeVar("AnyMessage", bound=Message)


@dataclass(slots=True, eq=False)
class Delivery:
    """One delivery at one process; `stay` is None before the first view."""

    message: Message
    row: Row
    stay: Stay | None
    after_signal: bool


@dataclass(slots=True, eq=False)
class Stay:
    """One process in one view: from the installation to the next view or the end of its history."""

    process: str
    view: str
    rank: tuple[int, ...]
    members: frozenset[str]
    transitional: frozenset[str]
    previous: Stay | None
    next: Stay | None = None
    signals: int = 0
    sends: list[Message] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    delivered_before_signal: int = 0
    delivered_after_signal: int = 0

    @property
    def delivered(self) -> int:
        return self.delivered_before_signal | self.delivered_after_signal


@dataclass(slots=True, eq=False)
class Life:
    """One process: a daemon from its start to its crash or stop."""

    process: str
    rows: list[Row]
    stays: list[Stay] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    # Sends and deliveries in their order, as (is a send, message).
    traffic: list[tuple[bool, Message]] = field(default_factory=list)
    # Where the rows say how it ended. A life that is neither excused nor ended was cut off: nothing is known of it.
    excused: bool = False
    ended: bool = False
    # The processes this one is connected with both ways since the faults stopped; None without a calm row.
    calm: frozenset[str] | None = None
    delivered: int = 0

    def stay_in(self, view: str) -> Stay | None:
        return next((stay for stay in self.stays if stay.view == view), None)

    def left_alive(self, view: str) -> bool:
        stay = self.stay_in(view)
        return stay is not None and stay.next is not None

    def prefixes(self) -> Iterator[tuple[Delivery, int]]:
        """Each delivery, with the set of messages this process had delivered before it."""
        before = 0
        for delivery in self.deliveries:
            yield delivery, before
            before |= delivery.message.bit


def split_into_lives(rows: Iterable[Row]) -> dict[str, Life]:
    """The lives of a run in the order of their names, each with its rows in the order of their index."""
    by_process: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.level == "S":
            by_process[row.process].append(row)
    return {
        process: Life(process, sorted(by_process[process], key=lambda row: row.index)) for process in sorted(by_process)
    }


def collect_messages(lives: Iterable[Life]) -> tuple[dict[str, Message], list[Row]]:
    """All messages by name, and the send rows whose message another send row had claimed before."""
    messages: dict[str, Message] = {}
    repeated_sends: list[Row] = []
    deliveries: list[Row] = []
    for life in lives:
        for row in life.rows:
            if row.event == "deliver":
                deliveries.append(row)
            elif row.event == "send" and _name(row) in messages:
                repeated_sends.append(row)
            elif row.event == "send":
                messages[_name(row)] = _message_of(row)
    for row in deliveries:
        if _name(row) not in messages:
            messages[_name(row)] = _message_of(row)
    return messages, repeated_sends


def _name(row: Row) -> str:
    # A nameless delivery is kept, under the empty name: it has no send, and S7 shall say so.
    return row.message or ""


def key_of(row: Row) -> OrderKey | None:
    """The born order of a send or deliver row; None for an unreliable message."""
    if row.order_stamp is None or row.order_site is None:
        return None
    return row.order_stamp, row.order_site, row.order_index or 0


def _message_of(row: Row) -> Message:
    return Message(
        name=_name(row),
        sender=row.sender or "",
        session_seq=row.session_seq or 0,
        strength=STRENGTH.get(row.service or "", UNRELIABLE),
        order_view=row.order_view,
        key=key_of(row),
        send=row if row.event == "send" else None,
        origin=row.process if row.event == "send" else None,
    )


def assign_bits(messages: Iterable[AnyMessage]) -> list[AnyMessage]:
    """View by view, and inside a view in the order of the keys: the masks of services.py rely on it."""
    ordered = sorted(messages, key=lambda message: (message.order_view or "", message.key or (), message.name))
    for number, message in enumerate(ordered):
        message.bit = 1 << number
    return ordered


def union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)


class Walk:
    """Goes through one life's rows once and fills its stays, deliveries and traffic."""

    def __init__(self, life: Life, messages: dict[str, Message]) -> None:
        self.life = life
        self.messages = messages
        self.stay: Stay | None = None

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
        stay = Stay(
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
        message = self.messages[_name(row)]
        if message.send is not row:
            return
        self.life.traffic.append((True, message))
        if self.stay is not None:
            self.stay.sends.append(message)

    def _on_deliver(self, row: Row) -> None:
        message = self.messages[_name(row)]
        stay = self.stay
        delivery = Delivery(message, row, stay, after_signal=stay is not None and stay.signals > 0)
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
