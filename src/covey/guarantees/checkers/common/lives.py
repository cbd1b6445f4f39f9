"""Lives, stays, messages and deliveries of either level: the rows of a run as the things the guarantees speak of.

In:        the trace rows of one run. Order between processes is never assumed: `step` and `time_ns` are not read.
Out:       messages by name, rows by process, and what stays, deliveries and lives have in common.
Not here:  what a level adds, and how it is filled (lives.py, clients/lives.py), what spans several processes
           (history.py), judgement.

Sets of messages are bit sets in Python integers. The messages of one view lie side by side, in the order of their
keys, so "everything ordered before m in its view" is one mask, and comparing what two processes delivered is one
comparison of integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import or_
from typing import Final, Generic, Self, TypeVar

from covey.trace.record import SERVICES, Row

STRENGTH: Final = {service: strength for strength, service in enumerate(SERVICES)}
UNRELIABLE: Final = STRENGTH["unreliable"]
RELIABLE: Final = STRENGTH["reliable"]
FIFO: Final = STRENGTH["fifo"]
CAUSAL: Final = STRENGTH["causal"]  # The weakest of the agreed class: causal, agreed, safe.
SAFE: Final = STRENGTH["safe"]

OrderKey = tuple[int, int, int]


@dataclass(slots=True, eq=False)
class TracedMessage:
    """One bundle or message, as its send row tells, or as its first delivery does where nobody sent it."""

    name: str
    sender: str
    session_seq: int
    strength: int
    order_view: str | None
    key: OrderKey | None
    # The send row and the process that wrote it; None for a message out of nowhere.
    send: Row | None
    origin: str | None
    groups: tuple[str, ...]
    # The set that holds this message alone.
    bit: int = 0

    @property
    def sent_in(self) -> str | None:
        return self.send.view if self.send is not None else None


@dataclass(slots=True, eq=False)
class AnyDelivery:
    """One delivery at one process."""

    message: TracedMessage
    row: Row


@dataclass(slots=True, eq=False, kw_only=True)
class AnyStay(ABC):
    """One process in one view: from the installation to the next view or the end of its history."""

    process: str
    view: str
    rank: tuple[int, ...]
    members: frozenset[str]
    transitional: frozenset[str]
    previous: Self | None
    next: Self | None = None
    signals: int = 0
    delivered_before_signal: int = 0
    delivered_after_signal: int = 0

    @property
    def delivered(self) -> int:
        return self.delivered_before_signal | self.delivered_after_signal

    @property
    @abstractmethod
    def key(self) -> tuple[str, ...]:
        """The same at all who installed the same view."""

    @property
    @abstractmethod
    def where(self) -> str:
        """The view, for people."""


Message_co = TypeVar("Message_co", bound=TracedMessage, covariant=True)
Delivery_co = TypeVar("Delivery_co", bound=AnyDelivery, covariant=True)


@dataclass(slots=True, eq=False, kw_only=True)
class BaseLife(Generic[Delivery_co]):
    """One process, from its first row to its last."""

    process: str
    rows: list[Row]
    deliveries: list[Delivery_co] = field(default_factory=list)
    # Sends and deliveries in their order, as (is a send, message).
    traffic: list[tuple[bool, TracedMessage]] = field(default_factory=list)
    # Where the rows say how it ended. A life that is neither excused nor ended was cut off: nothing is known of it.
    excused: bool = False
    ended: bool = False
    delivered: int = 0

    @property
    def is_witness(self) -> bool:
        """Its whole history is known: it was alive when the run had come to rest."""
        return self.ended and not self.excused

    def prefixes(self) -> Iterator[tuple[Delivery_co, int]]:
        """Each delivery, with the set of messages this process had delivered before it."""
        before = 0
        for delivery in self.deliveries:
            yield delivery, before
            before |= delivery.message.bit


AnyLife = BaseLife[AnyDelivery]


def rows_by_process(rows: Iterable[Row], level: str) -> dict[str, list[Row]]:
    """The rows of one level: processes in the order of their names, rows in the order of their index."""
    by_process: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.level == level:
            by_process[row.process].append(row)
    return {process: sorted(by_process[process], key=lambda row: row.index) for process in sorted(by_process)}


def collect_messages(
    message_type: type[Message_co], sends: Iterable[Row], deliveries: Iterable[Row]
) -> tuple[dict[str, Message_co], list[Row]]:
    """All messages by name, and the send rows whose message another send row had claimed before."""
    messages: dict[str, Message_co] = {}
    repeated_sends: list[Row] = []
    for row in sends:
        if name_of(row) in messages:
            repeated_sends.append(row)
        else:
            messages[name_of(row)] = _message_of(message_type, row)
    for row in deliveries:
        if name_of(row) not in messages:
            messages[name_of(row)] = _message_of(message_type, row)
    return messages, repeated_sends


def name_of(row: Row) -> str:
    # A nameless delivery is kept, under the empty name: it has no send, and S7 shall say so.
    return row.message or ""


def key_of(row: Row) -> OrderKey | None:
    """The born order of a send or deliver row; None for an unreliable message."""
    if row.order_stamp is None or row.order_site is None:
        return None
    return row.order_stamp, row.order_site, row.order_index or 0


def _message_of(message_type: type[Message_co], row: Row) -> Message_co:
    sent = row.event == "send"
    return message_type(
        name=name_of(row),
        sender=row.sender or "",
        session_seq=row.session_seq or 0,
        strength=STRENGTH.get(row.service or "", UNRELIABLE),
        order_view=row.order_view,
        key=key_of(row),
        send=row if sent else None,
        origin=row.process if sent else None,
        groups=row.groups,
    )


def assign_bits(messages: Iterable[Message_co]) -> list[Message_co]:
    """View by view, and inside a view in the order of the keys: masks of smaller keys rely on it."""
    ordered = sorted(messages, key=_place_of)
    for number, message in enumerate(ordered):
        message.bit = 1 << number
    return ordered


def _place_of(message: TracedMessage) -> tuple[str, tuple[int, ...], str]:
    return message.order_view or "", message.key or (), message.name


def union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)


@lru_cache(maxsize=4_096)
def life_number(process: str) -> tuple[str, tuple[int, ...]]:
    """The name of a daemon or client, and which of its lives or sessions this is.

    >>> life_number("b:12")
    ('b', (12,))
    >>> life_number("alice@b:7.3")
    ('alice@b', (7, 3))
    >>> life_number("nameless")
    ('nameless', ())
    """
    name, _, number = process.rpartition(":")
    parts = number.split(".")
    known = bool(name) and all(part.isdecimal() for part in parts)
    return (name, tuple(int(part) for part in parts)) if known else (process, ())


def later_lives(processes: set[str]) -> frozenset[str]:
    """Those that are not the first life of their name: only they can make a message come from the past."""
    lives: dict[str, list[tuple[tuple[int, ...], str]]] = defaultdict(list)
    for process in processes:
        name, number = life_number(process)
        lives[name].append((number, process))
    return frozenset(process for numbered in lives.values() for _, process in sorted(numbered)[1:])
