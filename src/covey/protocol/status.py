"""What a daemon tells of itself: the keys of its status, and their types. As JSON it is the same, key by key."""

from __future__ import annotations

from typing import TypedDict


class PeerStatus(TypedDict):
    """A daemon that was ever heard."""

    name: str
    boot: int
    two_way: bool
    silent_ms: int
    timeout_ms: int
    gone: str | None
    """Why it is known to be gone."""


class LinkStatus(TypedDict):
    """How the links of a daemon are: its engine says of which kind, and adds keys of its own."""

    kind: str


class SessionStatus(TypedDict):
    name: str
    process: str
    policy: str
    phase: str
    groups: int
    backlog_bytes: int
    lag_ms: int
    delivered: int
    blocking: bool
    reading: bool


class ClientsStatus(TypedDict):
    sessions: list[SessionStatus]
    """Those for which most waits, and some others."""
    session_count: int
    connection_count: int
    backlog_bytes: int
    telling_bytes: int
    late_views: int
    behind: bool
    groups: dict[str, int]
    """The largest, with their sizes."""
    group_count: int
    memberships: int
    blocked: list[str]


class OutsiderStatus(TypedDict):
    """Somebody who sends datagrams and does not belong here."""

    source: str
    daemon: str
    reason: str
    detail: str
    remedy: str
    heard_us: int
    datagrams: int
    silent_ms: int
    text: str


class DaemonStatus(TypedDict):
    name: str
    boot: int
    state: str
    reason: str
    view: str
    members: list[str]
    working: bool
    waiting_bytes: int
    link: LinkStatus
    peers: list[PeerStatus]
    clients: ClientsStatus
    strangers: list[str]
    outsiders: list[OutsiderStatus]
    count: dict[str, int]
    outcomes: dict[str, int]
    outcomes_unlisted: dict[str, int]


class GroupStatus(TypedDict):
    group: str
    size: int
    members: list[str]


class GroupsListing(TypedDict):
    """Some groups, and how many there are."""

    groups: list[GroupStatus]
    group_count: int


class GroupsStatus(GroupsListing):
    """Who is in which group, as a daemon's view has it."""

    name: str
    view: str
    working: bool
    daemons: list[str]
