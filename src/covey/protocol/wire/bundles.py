"""A bundle to bytes and back: what daemons order, store and recover looks the same in every frame."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from covey.config import COUNT_MAX
from covey.errors import FrameError
from covey.ids import INFINITE, Life
from covey.protocol.values import Bundle, Kind, Payload, Service

from .group_names import pack_groups, read_groups

_SERVICES: Final = tuple(Service)
_KINDS: Final = tuple(Kind)
_life: Final = lru_cache(1_024)(Life)
"""Only a few distinct lives occur."""

_BUNDLE = struct.Struct("<HQQHQIQIQBIIBBBI")

BUNDLE_OVERHEAD: Final = _BUNDLE.size
"""Of a bundle's encoding, without the names of its groups and its payload."""


def bundle_parts(bundle: Bundle) -> list[Payload]:
    """A bundle's encoding in parts, the payload not copied."""
    b = bundle
    head = _BUNDLE.pack(
        b.site, b.number, b.stamp, b.origin.rank, b.origin.boot, b.session, b.session_seq, b.count, b.fifo_number,
        b.service, b.fragment, b.fragments, b.kind, b.flags, len(b.groups), len(b.payload),
    )  # fmt: skip
    return [head, pack_groups(b.groups), b.payload]


def encode_bundle(bundle: Bundle) -> bytes:
    return b"".join(bundle_parts(bundle))


def read_bundle(body: memoryview) -> Bundle:
    """A whole bundle and nothing else; FrameError if it is none."""
    try:
        bundle, size = read_next_bundle(body)
    except (struct.error, ValueError) as error:
        raise FrameError("malformed bundle", str(error)) from None
    if size != len(body):
        raise FrameError("malformed bundle", f"{len(body) - size} bytes too many")
    return bundle


def read_next_bundle(body: memoryview) -> tuple[Bundle, int]:
    (
        site, number, stamp, rank, boot, session, session_seq, count, fifo_number, service, fragment, fragments,
        kind, flags, groups, length,
    ) = _BUNDLE.unpack_from(body)  # fmt: skip
    names, at = read_groups(body, _BUNDLE.size, groups)
    if at + length > len(body) or not 0 <= fragment < fragments or not 1 <= count <= COUNT_MAX:
        raise FrameError("malformed bundle", f"number {number} of site {site}")
    check_number(session_seq + count)
    if service >= len(_SERVICES) or kind >= len(_KINDS) or not _fits(kind, service, fragments, groups):
        raise FrameError("malformed bundle", f"service {service}, kind {kind}, {groups} groups")
    return Bundle(
        site, number, stamp, _life(rank, boot), session, session_seq, count, fifo_number, _SERVICES[service], fragment,
        fragments, names, body[at : at + length], _KINDS[kind], flags,
    ), at + length  # fmt: skip


def check_number(number: int) -> None:
    """The same bound as in control frames: whatever is taken can be sent on, and written down."""
    if number >= INFINITE:
        raise ValueError(f"{number} is more than any number")


def _fits(kind: int, service: int, fragments: int, groups: int) -> bool:
    """What a daemon says of its sessions is agreed and in one piece; a join or leave is about one group."""
    if kind <= Kind.MESSAGES:
        return True
    one_group = groups == 1 or kind not in (Kind.JOIN, Kind.LEAVE)
    return service == Service.AGREED and fragments == 1 and one_group
