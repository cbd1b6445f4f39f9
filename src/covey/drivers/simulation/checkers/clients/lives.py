"""Clients, their stays in groups, and what they deliver: the rows of level C as the things the guarantees speak of.

In:        the trace rows of one run. Order between processes is never assumed: `step` and `time_ns` are not read.
Out:       messages by name, and lives by process, which walk.py fills with memberships, stays and deliveries.
Not here:  what spans several processes (history.py), daemons (daemons.py), judgement.

A *membership* is one process in one group, from its first view there to its leave or its departure; joining again
makes another. It is a chain of *stays*, one for every view of the group. A message to several groups is delivered once,
in the stays of all those groups that the receiver is in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from covey.drivers.simulation.checkers.lives import CAUSAL, STRENGTH, UNRELIABLE, Message, key_of
from covey.trace.record import Row

DELIVERED: Final = ("deliver", "discard")
DEPARTED: Final = ("disconnect", "crash", "stop", "expelled")
REQUESTED: Final = ("join", "leave")


class Place(NamedTuple):
    """Where in the agreed order a change or a bundle stands."""

    view: str
    stamp: int
    site: int


@dataclass(slots=True, eq=False)
class ClientMessage(Message):
    """One message of a client. Its view and key of order come from a delivery: a sender does not know them."""

    groups: tuple[str, ...] = ()
    # The sender's stay in each destination group that it was a member of when it sent.
    sent_in_stays: dict[str, GroupStay] = field(default_factory=dict)

    @property
    def place(self) -> Place | None:
        if self.order_view is None or self.key is None:
            return None
        return Place(self.order_view, *self.key[:2])


@dataclass(slots=True, eq=False)
class ClientDelivery:
    """One delivery at one client: its stays in the groups of the message, each with "after the signal there"."""

    message: ClientMessage
    row: Row
    stays: tuple[tuple[GroupStay, bool], ...]


@dataclass(slots=True, eq=False)
class GroupStay:
    """One process in one view of one group: up to the next view of the group, the leave, or the departure."""

    membership: Membership
    view: str
    rank: tuple[int, ...]
    members: frozenset[str]
    transitional: frozenset[str]
    cause: str | None
    # The daemon view that the id of this view names.
    daemon_view: str
    # Of the join, leave or disconnect that made a light view; None for a network view.
    change: Place | None
    previous: GroupStay | None
    # The stay in the last network view of this membership, or the first stay of all.
    span_start: GroupStay = field(init=False)
    next: GroupStay | None = None
    signals: int = 0
    delivered_before_signal: int = 0
    delivered_after_signal: int = 0

    def __post_init__(self) -> None:
        self.span_start = self.previous.span_start if self.previous is not None and self.is_light else self

    @property
    def process(self) -> str:
        return self.membership.process

    @property
    def group(self) -> str:
        return self.membership.group

    @property
    def is_light(self) -> bool:
        return not self.view.endswith("/net")

    @property
    def delivered(self) -> int:
        return self.delivered_before_signal | self.delivered_after_signal

    def span(self) -> Iterator[GroupStay]:
        """This stay and those before it, back to the last network view or to the join."""
        stay = self
        yield stay
        while stay is not self.span_start and stay.previous is not None:
            stay = stay.previous
            yield stay


@dataclass(slots=True, eq=False)
class Membership:
    """One process in one group, from its first view to the row that ended it, if any did."""

    process: str
    group: str
    stays: list[GroupStay] = field(default_factory=list)
    closed_by: Row | None = None

    @property
    def is_open(self) -> bool:
        return self.closed_by is None

    @property
    def left(self) -> Place | None:
        """Where its leave took effect; None if it did not leave, or if nobody told it where."""
        row = self.closed_by
        return place_of(row) if row is not None and row.event == "self_leave" else None


@dataclass(slots=True, eq=False)
class ClientLife:
    """One process: a client's session, from its connection to its end."""

    process: str
    name: str
    daemon: str
    rows: list[Row]
    memberships: list[Membership] = field(default_factory=list)
    deliveries: list[ClientDelivery] = field(default_factory=list)
    # Sends and deliveries in their order, as (is a send, message).
    traffic: list[tuple[bool, ClientMessage]] = field(default_factory=list)
    # Where the rows say how it ended. A life that is neither departed nor ended was cut off: nothing is known of it.
    departed: bool = False
    ended: bool = False
    delivered: int = 0

    def prefixes(self) -> Iterator[tuple[ClientDelivery, int]]:
        """Each delivery, with the set of messages this process had delivered before it."""
        before = 0
        for delivery in self.deliveries:
            yield delivery, before
            before |= delivery.message.bit

    def stays(self) -> Iterator[GroupStay]:
        return (stay for membership in self.memberships for stay in membership.stays)

    def membership_at(self, group: str, rank: tuple[int, ...]) -> Membership | None:
        """The membership of this group that a view of this rank falls into: the last that began at or before it."""
        begun = [one for one in self.memberships if one.group == group and one.stays[0].rank <= rank]
        return begun[-1] if begun else None


def place_of(row: Row) -> Place | None:
    """The place of a change, as its rows tell; None for network views."""
    if row.order_view is None or row.order_stamp is None or row.order_site is None:
        return None
    return Place(row.order_view, row.order_stamp, row.order_site)


@lru_cache(maxsize=4_096)
def life_number(process: str) -> tuple[str, tuple[int, ...]]:
    """The private name of a client, and which of its sessions this is.

    >>> life_number("alice@b:7.3")
    ('alice@b', (7, 3))
    >>> life_number("nameless")
    ('nameless', ())
    """
    name, _, number = process.rpartition(":")
    parts = number.split(".")
    known = bool(name) and all(part.isdecimal() for part in parts)
    return (name, tuple(int(part) for part in parts)) if known else (process, ())


def split_into_lives(rows: Iterable[Row]) -> dict[str, ClientLife]:
    """The lives of a run in the order of their names, each with its rows in the order of their index."""
    by_process: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.level == "C":
            by_process[row.process].append(row)
    return {process: _life_of(process, by_process[process]) for process in sorted(by_process)}


def _life_of(process: str, rows: list[Row]) -> ClientLife:
    rows.sort(key=lambda row: row.index)
    return ClientLife(process, rows[0].name, rows[0].daemon, rows)


def is_early(row: Row) -> bool:
    """Whether this delivery may have come ahead of its place in the order."""
    return row.event in DELIVERED and STRENGTH.get(row.service or "", UNRELIABLE) < CAUSAL


def was_refused(row: Row) -> bool:
    """A request or a send that the daemon did not accept says so in its cause: it has no effect."""
    return row.cause is not None


def collect_messages(lives: Iterable[ClientLife]) -> tuple[dict[str, ClientMessage], list[Row]]:
    """All messages by name, and the send rows whose message another send row had claimed before."""
    messages: dict[str, ClientMessage] = {}
    repeated_sends: list[Row] = []
    deliveries: list[Row] = []
    for life in lives:
        for row in life.rows:
            if row.event in DELIVERED:
                deliveries.append(row)
            elif row.event == "send" and not was_refused(row):
                if messages.setdefault(name_of(row), message := _message_of(row)) is not message:
                    repeated_sends.append(row)
    for row in deliveries:
        message = messages.get(name_of(row)) or messages.setdefault(name_of(row), _message_of(row))
        if message.key is None:
            message.order_view, message.key = row.order_view, key_of(row)
    return messages, repeated_sends


def name_of(row: Row) -> str:
    # A nameless delivery is kept, under the empty name: it has no send, and S7 shall say so.
    return row.message or ""


def _message_of(row: Row) -> ClientMessage:
    sent = row.event == "send"
    return ClientMessage(
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
