"""Frames to bytes and back. Bounded: every length is checked before it is used; a bad frame is a FrameError.

Layout: a prefix that all daemons of a cluster share (magic, version, configuration digest, cluster name), then kind,
sender rank and boot id, then the body: msgpack arrays for control, fixed structs for data.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from covey.config import COUNT_MAX
from covey.errors import FrameError, OutsiderError
from covey.ids import INFINITE, Ballot, Life
from covey.protocol.values import Bundle, Kind, Payload, Service

from .frames import (
    Alive,
    Announce,
    Chunk,
    Control,
    Data,
    Done,
    Frame,
    Goodbye,
    GroupPart,
    Hurry,
    Join,
    NewMemb,
    Parked,
    Refuse,
    Resend,
    StateTrans,
    Token,
    Unreliable,
    Want,
    WantGroups,
)
from .group_names import pack_groups, read_groups

MAGIC: Final = b"Cv"
VERSION: Final = 2

_CONTROL: Final[tuple[type[Control], ...]] = (
    Alive,
    Join,
    NewMemb,
    Refuse,
    StateTrans,
    Want,
    Done,
    Goodbye,
    Token,
    Parked,
    Hurry,
    Announce,
    WantGroups,
    GroupPart,
)
_KIND: Final = {frame: kind for kind, frame in enumerate(_CONTROL, start=1)}
_DECODERS: Final = {kind: msgspec.msgpack.Decoder(frame) for frame, kind in _KIND.items()}
_DATA, _RESEND, _UNRELIABLE = 32, 33, 34
_SERVICES: Final = tuple(Service)
_KINDS: Final = tuple(Kind)
_encode: Final = msgspec.msgpack.Encoder().encode
_life: Final = lru_cache(1_024)(Life)
"""The same few over and over."""

_SENDER = struct.Struct("<BHQ")
_BALLOT = struct.Struct("<QHQ")
_PACKET = struct.Struct("<QQH")
_CHUNK = struct.Struct("<HQHHI")
_BUNDLE = struct.Struct("<HQQHQIQIQBIIBBBI")
_COUNT = struct.Struct("<H")

PACKET_OVERHEAD: Final = _BALLOT.size + _PACKET.size
CHUNK_OVERHEAD: Final = _CHUNK.size
BUNDLE_OVERHEAD: Final = _BUNDLE.size
"""Of a bundle's encoding, without the names of its groups and its payload."""
RESEND_OVERHEAD: Final = _BALLOT.size + _COUNT.size


HEADS_MAX: Final = 64
"""So many heads of packets are remembered."""


class Header(NamedTuple):
    """Who sent a frame."""

    sender: Life
    frame: Frame


class Codec:
    """Encodes as one daemon, decodes from any daemon of the same cluster and configuration."""

    def __init__(self, cluster: str, digest: int, me: Life) -> None:
        self._cluster = cluster
        name = cluster.encode()[:255]
        self._prefix = MAGIC + bytes([VERSION]) + digest.to_bytes(8, "little") + bytes([len(name)]) + name
        self._rank, self._boot = me
        # Packets come by the dozen from one sender in one view: their heads are alike, down to the view.
        self._head_bytes = self.overhead + _BALLOT.size
        self._heads: dict[bytes, tuple[Life, Ballot]] = {}

    @property
    def overhead(self) -> int:
        """Bytes of a datagram before the body."""
        return len(self._prefix) + _SENDER.size

    def encode(self, frame: Frame) -> bytes:
        if isinstance(frame, Data):
            return b"".join((self._head(_DATA), *_data_parts(frame)))
        if isinstance(frame, Control):
            return self._head(_KIND[type(frame)]) + _encode(frame)
        if isinstance(frame, Resend):
            parts = [part for bundle in frame.bundles for part in bundle_parts(bundle)]
            return b"".join(
                (self._head(_RESEND), _BALLOT.pack(*frame.attempt), _COUNT.pack(len(frame.bundles)), *parts)
            )
        return b"".join((self._head(_UNRELIABLE), _BALLOT.pack(*frame.view), *bundle_parts(frame.bundle)))

    def decode(self, data: bytes) -> Header:
        known = self._heads.get(data[: self._head_bytes])
        try:
            if known is not None:
                return Header(known[0], _read_data(known[1], data, self._head_bytes))
            return self._decode(data)
        except (struct.error, msgspec.DecodeError, ValueError, RecursionError) as error:
            raise FrameError("malformed frame", str(error)) from None

    def _decode(self, data: bytes) -> Header:
        if not data.startswith(self._prefix):
            raise self._stranger(data)
        kind, rank, boot = _SENDER.unpack_from(data, len(self._prefix))
        _check_number(boot)
        sender = Life(rank, boot)
        if kind != _DATA:
            return Header(sender, _body(kind, memoryview(data)[self.overhead :]))
        view = Ballot(*_BALLOT.unpack_from(data, self.overhead))
        frame = _read_data(view, data, self._head_bytes)
        if len(self._heads) == HEADS_MAX:
            self._heads.clear()
        self._heads[data[: self._head_bytes]] = sender, view
        return Header(sender, frame)

    def _head(self, kind: int) -> bytes:
        return self._prefix + _SENDER.pack(kind, self._rank, self._boot)

    def _stranger(self, data: bytes) -> FrameError:
        """Name what differs, for the operator: not ours at all, another version, cluster or configuration."""
        if not data.startswith(MAGIC) or len(data) < 12:
            return FrameError("not a covey datagram")
        if data[2] != VERSION:
            remedy = "run the same version of Covey on every host"
            return OutsiderError("another version", f"it has {data[2]}, we have {VERSION}", remedy)
        length = data[11]
        name = data[12 : 12 + length].decode(errors="replace")
        rank = int.from_bytes(data[13 + length : 15 + length], "little")
        if name != self._cluster:
            remedy = "two clusters share a port: give each daemon a port of its own"
            return OutsiderError("another cluster", f"daemon number {rank} of {name[:40]!r}", remedy)
        detail = f"daemon number {rank} of its list, which differs from ours or has other settings"
        return OutsiderError("another configuration", detail, "give it the same covey.toml, and restart it", rank)


def _body(kind: int, body: memoryview) -> Frame:
    decoder = _DECODERS.get(kind)
    if decoder is not None:
        return decoder.decode(body)  # type: ignore[return-value]
    view, at = Ballot(*_BALLOT.unpack_from(body)), _BALLOT.size
    if kind == _RESEND:
        (count,) = _COUNT.unpack_from(body, at)
        return Resend(view, _read_bundles(body[at + _COUNT.size :], count))
    if kind == _UNRELIABLE:
        return Unreliable(view, read_bundle(body[at:]))
    raise FrameError("unknown frame kind", str(kind))


def bundle_parts(bundle: Bundle) -> list[Payload]:
    """A bundle's encoding in parts, the payload not copied."""
    b = bundle
    head = _BUNDLE.pack(
        b.site, b.number, b.stamp, b.origin.rank, b.origin.boot, b.session, b.session_seq, b.count, b.place, b.service,
        b.fragment, b.fragments, b.kind, b.flags, len(b.groups), len(b.payload),
    )  # fmt: skip
    return [head, pack_groups(b.groups), b.payload]


def encode_bundle(bundle: Bundle) -> bytes:
    return b"".join(bundle_parts(bundle))


def read_bundle(body: memoryview) -> Bundle:
    """A whole bundle and nothing else; FrameError if it is none."""
    try:
        bundle, size = _read_bundle(body)
    except (struct.error, ValueError) as error:
        raise FrameError("malformed bundle", str(error)) from None
    if size != len(body):
        raise FrameError("malformed bundle", f"{len(body) - size} bytes too many")
    return bundle


def _read_bundle(body: memoryview) -> tuple[Bundle, int]:
    (
        site, number, stamp, rank, boot, session, session_seq, count, place, service, fragment, fragments,
        kind, flags, groups, length,
    ) = _BUNDLE.unpack_from(body)  # fmt: skip
    names, at = read_groups(body, _BUNDLE.size, groups)
    if at + length > len(body) or not 0 <= fragment < fragments or not 1 <= count <= COUNT_MAX:
        raise FrameError("malformed bundle", f"number {number} of site {site}")
    _check_number(session_seq + count)
    if service >= len(_SERVICES) or kind >= len(_KINDS) or not _fits(kind, service, fragments, groups):
        raise FrameError("malformed bundle", f"service {service}, kind {kind}, {groups} groups")
    return Bundle(
        site, number, stamp, _life(rank, boot), session, session_seq, count, place, _SERVICES[service], fragment,
        fragments, names, body[at : at + length], _KINDS[kind], flags,
    ), at + length  # fmt: skip


def _check_number(number: int) -> None:
    """The same bound as in control frames: whatever is taken can be sent on, and written down."""
    if number >= INFINITE:
        raise ValueError(f"{number} is more than any number")


def _fits(kind: int, service: int, fragments: int, groups: int) -> bool:
    """What a daemon says of its sessions is agreed and in one piece; a join or leave is about one group."""
    if kind <= Kind.MESSAGES:
        return True
    one_group = groups == 1 or kind not in (Kind.JOIN, Kind.LEAVE)
    return service == Service.AGREED and fragments == 1 and one_group


def _read_bundles(body: memoryview, count: int) -> tuple[Bundle, ...]:
    bundles = []
    for _ in range(count):
        bundle, size = _read_bundle(body)
        bundles.append(bundle)
        body = body[size:]
    if body:
        raise FrameError("malformed frame", f"{len(body)} bytes too many")
    return tuple(bundles)


def _data_parts(frame: Data) -> list[Payload]:
    parts: list[Payload] = [_BALLOT.pack(*frame.view), _PACKET.pack(frame.turn, frame.packet_seq, len(frame.chunks))]
    for chunk in frame.chunks:
        data = chunk.data if isinstance(chunk.data, tuple) else (chunk.data,)
        parts.append(_CHUNK.pack(chunk.site, chunk.number, chunk.piece, chunk.pieces, sum(map(len, data))))
        parts += data
    return parts


def _read_data(view: Ballot, data: bytes, at: int) -> Data:
    turn, packet_seq, count = _PACKET.unpack_from(data, at)
    at += _PACKET.size
    whole, end = memoryview(data), len(data)
    chunks = []
    for _ in range(count):
        site, number, piece, pieces, length = _CHUNK.unpack_from(data, at)
        at += _CHUNK.size
        if at + length > end or not 0 <= piece < pieces:
            raise FrameError("malformed packet", f"chunk of bundle {number}")
        chunks.append(Chunk(site, number, piece, pieces, whole[at : at + length]))
        at += length
    if at != end:
        raise FrameError("malformed packet", f"{end - at} bytes too many")
    return Data(view, turn, packet_seq, tuple(chunks))


def frame_name(data: bytes) -> str:
    """The kind of frame in a datagram, by its lower-case name; empty if it is none. For tools that watch a network."""
    if len(data) < 13 or not data.startswith(MAGIC):
        return ""
    at = 12 + data[11]
    kind = data[at] if at < len(data) else 0
    if 0 < kind <= len(_CONTROL):
        return _CONTROL[kind - 1].__name__.lower()
    return {_DATA: "data", _RESEND: "resend", _UNRELIABLE: "unreliable"}.get(kind, "")
