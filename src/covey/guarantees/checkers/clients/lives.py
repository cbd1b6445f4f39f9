"""Clients, their stays in groups, and what they deliver: the rows of level C as the things the guarantees speak of.

In:        the trace rows of one run. Order between processes is never assumed: `step` and `time_ns` are not read.
Out:       messages by name, and lives by process, which walk.py fills with memberships, stays and deliveries.
Not here:  what daemons have too (common/lives.py), what spans several processes (history.py), judgement.

A *membership* is one process in one group, from its first view there to its leave or its departure; joining again
makes another. It is a chain of *stays*, one for every view of the group. A message to several groups is delivered once,
in the stays of all those groups that the receiver is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from covey.guarantees.checkers.common import lives as common
from covey.guarantees.checkers.common.lives import (
    CAUSAL,
    STRENGTH,
    UNRELIABLE,
    AnyDelivery,
    AnyStay,
    BaseLife,
    TracedMessage,
    key_of,
    name_of,
    rows_by_process,
)
from covey.trace.record import Row

DELIVERED: Final = ("deliver", "discard")
DEPARTED: Final = ("disconnect", "crash", "stop", "expelled")
REQUESTED: Final = ("join", "leave")


class TracedPlace(NamedTuple):
    """Where in the agreed order a change or a bundle stands, as the rows tell."""

    view: str
    stamp: int
    site: int


@dataclass(slots=True, eq=False)
class ClientMessage(TracedMessage):
    """One message of a client. Its view and key of order come from a delivery: a sender does not know them."""

    # The sender's stay in each destination group that it was a member of when it sent.
    sent_in_stays: dict[str, GroupStay] = field(default_factory=dict)
    sent_from_outside: frozenset[str] = frozenset()
    """The groups that its sender had asked to leave before."""

    @property
    def place(self) -> TracedPlace | None:
        if self.order_view is None or self.key is None:
            return None
        return TracedPlace(self.order_view, *self.key[:2])


@dataclass(slots=True, eq=False)
class ClientDelivery(AnyDelivery):
    """One delivery at one client: its stays in the groups of the message, each with "after the signal there"."""

    message: ClientMessage
    stays: tuple[tuple[GroupStay, bool], ...]


@dataclass(slots=True, eq=False, kw_only=True)
class GroupStay(AnyStay):
    """One process in one view of one group: up to the next view of the group, the leave, or the departure."""

    membership: Membership
    cause: str | None
    # The daemon view that the id of this view names.
    daemon_view: str
    # Of the join, leave or disconnect that made a light view; None for a network view.
    change: TracedPlace | None
    # The stay in the last network view of this membership, or the first stay of all.
    span_start: GroupStay = field(init=False)

    def __post_init__(self) -> None:
        self.span_start = self.previous.span_start if self.previous is not None and self.is_light else self

    @property
    def group(self) -> str:
        return self.membership.group

    @property
    def key(self) -> tuple[str, ...]:
        return self.group, self.view

    @property
    def where(self) -> str:
        return f"view {self.view} of {self.group}"

    @property
    def is_light(self) -> bool:
        return not self.view.endswith("/net")

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
    def left(self) -> TracedPlace | None:
        """Where its leave took effect; None if it did not leave, or if nobody told it where."""
        row = self.closed_by
        return place_of(row) if row is not None and row.event == "self_leave" else None


@dataclass(slots=True, eq=False, kw_only=True)
class ClientLife(BaseLife[ClientDelivery]):
    """One process: a client's session, from its connection to its departure, which excuses it."""

    name: str
    daemon: str
    memberships: list[Membership] = field(default_factory=list)

    def stays(self) -> Iterator[GroupStay]:
        return (stay for membership in self.memberships for stay in membership.stays)

    def membership_at(self, group: str, rank: tuple[int, ...]) -> Membership | None:
        """The membership of this group that a view of this rank falls into: the last that began at or before it."""
        begun = [one for one in self.memberships if one.group == group and one.stays[0].rank <= rank]
        return begun[-1] if begun else None


def place_of(row: Row) -> TracedPlace | None:
    """The place of a change, as its rows tell; None for network views."""
    if row.order_view is None or row.order_stamp is None or row.order_site is None:
        return None
    return TracedPlace(row.order_view, row.order_stamp, row.order_site)


def split_into_lives(rows: Iterable[Row]) -> dict[str, ClientLife]:
    return {
        process: ClientLife(process=process, name=own[0].name, daemon=own[0].daemon, rows=own)
        for process, own in rows_by_process(rows, "C").items()
    }


def is_early(row: Row) -> bool:
    """Whether this delivery may have come ahead of its place in the order."""
    return row.event in DELIVERED and STRENGTH.get(row.service or "", UNRELIABLE) < CAUSAL


def was_refused(row: Row) -> bool:
    """A request or a send that the daemon did not accept says so in its cause: it has no effect."""
    return row.cause is not None


def collect_messages(lives: Iterable[ClientLife]) -> tuple[dict[str, ClientMessage], list[Row]]:
    """All messages by name, each with its first known place, and the send rows that claim a message again."""
    rows = [row for life in lives for row in life.rows]
    sends = (row for row in rows if row.event == "send" and not was_refused(row))
    deliveries = [row for row in rows if row.event in DELIVERED]
    messages, repeated_sends = common.collect_messages(ClientMessage, sends, deliveries)
    for row in deliveries:
        message = messages[name_of(row)]
        if message.key is None:
            message.order_view, message.key = row.order_view, key_of(row)
    return messages, repeated_sends
