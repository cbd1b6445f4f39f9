"""What a live daemon tells of itself: what its core knows, and what only its process does."""

from __future__ import annotations

from typing import TypedDict, cast

from covey.protocol.status import DaemonStatus, LinkStatus


class ViewStatus(TypedDict):
    """A view of late: who is in it, who came along, and why it came about."""

    time_ns: int
    view: str
    members: list[str]
    transitional: list[str]
    cause: str
    reason: str
    detail: str


class TurnsStatus(TypedDict):
    longest_step_ms: float
    longest_step_recent_ms: float


class RingStatus(LinkStatus):
    """The links of a daemon in a ring: of what its engine tells, the keys that tools read."""

    token: int
    token_is_here: bool
    packets_received: int
    packets_kept: int
    packets_unstable_max: int
    rotations_per_s: float
    """Added by a live daemon."""


def ring_of(link: LinkStatus) -> RingStatus | None:
    """None if these are links of another kind.

    >>> ring_of({"kind": "alone"}) is None
    True
    """
    return cast("RingStatus", link) if link["kind"] == "ring" else None


class Misunderstood(TypedDict):
    """The answer to what is no question."""

    error: str


class LiveStatus(DaemonStatus, TurnsStatus):
    """Counts, and under `…_per_s` how fast each grows."""

    views: int
    delivered: int
    delivered_per_s: float
    messages: int
    messages_per_s: float
    datagrams_sent: int
    datagrams_sent_per_s: float
    bytes_sent: int
    bytes_sent_per_s: float
    datagrams_received: int
    datagrams_received_per_s: float
    bytes_received: int
    bytes_received_per_s: float
    config: str
    """Its configuration file."""
    daemons_here: list[str]
    """Those of the file on its host, running or not; itself included."""
    sending_problem: str | None
    process: str
    cluster: str
    recent_views: list[ViewStatus]
    uptime_s: float
    unsealed: list[str]
    multicast: str | None
