"""The event trace: one row is one externally visible event at one process.

This is the only definition of the schema. The simulator's checkers, the segment files, `covey trace cat` and the
analysis jobs all take their columns, in this order, from `Row`.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

import msgspec

SCHEMA: Final = 1

EVENTS: Final = (
    "recover",
    "crash",
    "stop",
    "connect",
    "disconnect",
    "refused",
    "expelled",
    "join",
    "leave",
    "send",
    "deliver",
    "discard",
    "view",
    "transitional",
    "self_leave",
    "flush_request",
    "flush",
    "handled",
    "purge",
    "interest",
    "link_up",
    "link_down",
    "state",
    "calm",
    "gap",
    "end",
)

LEVELS: Final = ("S", "C", "V")

SERVICES: Final = ("unreliable", "reliable", "fifo", "causal", "agreed", "safe")

REPLAY: Final = "covey sim run "
"""In a simulated run the `detail` of a `recover` row begins with this: it is the command that plays the run again."""

PRIVATE: Final = "private, to "
"""The `detail` of a client's message begins with this if it is for programs, alone or beside groups; names follow."""

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Row(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """One logical row. Columns that do not apply are None, or empty where the column is a list."""

    schema: Int32 = SCHEMA
    run: str
    level: str
    process: str
    name: str
    daemon: str
    index: Int64
    step: Int64 | None = None
    time_ns: Int64
    event: str
    group: str | None = None
    groups: tuple[str, ...] = ()
    view: str | None = None
    views: tuple[str, ...] = ()
    view_new: str | None = None
    view_rank: tuple[Int64, ...] = ()
    members: tuple[str, ...] = ()
    transitional: tuple[str, ...] = ()
    cause: str | None = None
    message: str | None = None
    count: Int32 | None = None
    sender: str | None = None
    session_seq: Int64 | None = None
    service: str | None = None
    order_view: str | None = None
    order_stamp: Int64 | None = None
    order_site: Int32 | None = None
    order_index: Int32 | None = None
    size: Int32 | None = None
    digest: Int64 | None = None
    item: str | None = None
    obsoletes: tuple[str, ...] = ()
    by: str | None = None
    variant: str | None = None
    links: tuple[str, ...] = ()
    sites: tuple[Int32, ...] = ()
    content_sites: tuple[Int32, ...] = ()
    detail: str | None = None


ADDED: Final = frozenset({"links", "sites", "content_sites"})
"""Columns that traces of earlier versions lack: they are empty there."""

COLUMNS: Final = Row.__struct_fields__


def payload_digest(payload: bytes | memoryview) -> int:
    """A 64-bit digest of a payload, signed so that it fits an int64 column.

    >>> payload_digest(b"hello") == payload_digest(b"hello") != payload_digest(b"hallo")
    True
    """
    return int.from_bytes(hashlib.blake2b(payload, digest_size=8).digest(), "big", signed=True)
