"""A bundle to bytes and back: what daemons order, store and recover looks the same in every frame."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

import msgspec

from covey.config import COUNT_MAX
from covey.errors import FrameError
from covey.ids import INFINITE, Life
from covey.protocol.values import Bundle, Kind, Payload, Service

from .bodies import SENDER_LENGTH_BYTES, read_sender
from .group_names import pack_groups, read_groups

_SERVICES: Final = tuple(Service)
_KINDS: Final = tuple(Kind)
_life: Final = lru_cache(1_024)(Life)
"""Only a few distinct lives occur."""

_BUNDLE = struct.Struct("<HQQHQIQIQBIIBBBI")

_CONTENT = struct.Struct("<Q")

BUNDLE_OVERHEAD: Final = _BUNDLE.size
"""Of a bundle's encoding, without the names of its groups and its payload."""
CONTENT_BYTES: Final = _CONTENT.size
"""What it takes more where the payload does not go everywhere."""
CONTENT_SITES_MAX: Final = 8 * CONTENT_BYTES
"""Views of more sites are not pruned."""

_PRUNED: Final = 0x80
_META: Final = 0x40
"""In the flags of a bundle's encoding: the content sites follow the names; the payload is left out."""
_CLIENT_FLAGS: Final = 0x3F


def bundle_parts(bundle: Bundle) -> list[Payload]:
    """A bundle's encoding in parts, the payload not copied."""
    b = bundle
    head = _BUNDLE.pack(
        b.site, b.number, b.stamp, b.origin.rank, b.origin.boot, b.session, b.session_seq, b.count, b.fifo_number,
        b.service, b.fragment, b.fragments, b.kind, b.flags | _wire_flags(b), len(b.groups), len(b.payload),
    )  # fmt: skip
    if b.content:
        return [head, pack_groups(b.groups), _CONTENT.pack(b.content), b.payload]
    return [head, pack_groups(b.groups), b.payload]


def _wire_flags(bundle: Bundle) -> int:
    return (_PRUNED if bundle.content else 0) | (_META if bundle.is_meta else 0)


def meta_of(bundle: Bundle) -> Bundle:
    """The same without its payload: the head, and of a program's messages the name of who sent them (rule W9)."""
    is_first = bundle.kind is Kind.MESSAGES and bundle.fragment == 0
    size = sender_bytes(bundle.payload) if is_first else 0
    return msgspec.structs.replace(bundle, payload=bundle.payload[:size], is_meta=True, passed=False)


def sender_bytes(body: Payload) -> int:
    """How much of a body is the name of its sender; nothing, if it has none."""
    try:
        return SENDER_LENGTH_BYTES + len(read_sender(body).encode())
    except FrameError:
        return 0


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
    content, is_meta = 0, bool(flags & _META)
    if flags & _PRUNED:
        (content,) = _CONTENT.unpack_from(body, at)
        at += CONTENT_BYTES
    if at + length > len(body) or not 0 <= fragment < fragments or not 1 <= count <= COUNT_MAX:
        raise FrameError("malformed bundle", f"number {number} of site {site}")
    check_number(session_seq + count)
    if service >= len(_SERVICES) or kind >= len(_KINDS) or not _fits(kind, service, fragments, groups):
        raise FrameError("malformed bundle", f"service {service}, kind {kind}, {groups} groups")
    if (content or is_meta) and not _may_be_pruned(kind, content, is_meta, fragment, body[at : at + length]):
        raise FrameError("malformed bundle", f"kind {kind} in part, for the sites {content:x}")
    return Bundle(
        site, number, stamp, _life(rank, boot), session, session_seq, count, fifo_number, _SERVICES[service], fragment,
        fragments, names, body[at : at + length], _KINDS[kind], flags & _CLIENT_FLAGS, content, is_meta,
    ), at + length  # fmt: skip


def check_number(number: int) -> None:
    """The same bound as in control frames: whatever is taken can be sent on, and written down."""
    if number >= INFINITE:
        raise ValueError(f"{number} is more than any number")


def _may_be_pruned(kind: int, content: int, is_meta: bool, fragment: int, payload: memoryview) -> bool:
    """Messages of programs are, for sites that are named; a head has no more than the name of who sent it."""
    if kind != Kind.MESSAGES or not content:
        return False
    return not is_meta or len(payload) == (sender_bytes(payload) if fragment == 0 else 0)


def _fits(kind: int, service: int, fragments: int, groups: int) -> bool:
    """What a daemon says of its sessions is agreed and in one piece; a join or leave is about one group."""
    if kind <= Kind.MESSAGES:
        return True
    if kind >= Kind.INTEREST:
        return service == Service.RELIABLE and fragments == 1 and groups > 0
    one_group = groups == 1 or kind not in (Kind.JOIN, Kind.LEAVE)
    return service == Service.AGREED and fragments == 1 and one_group
