"""Frames to bytes and back. Bounded: every length is checked before it is used; a bad frame is a FrameError.

Layout: a prefix that all daemons of a cluster share (magic, version, configuration digest, cluster name), then code,
sender rank and boot id, then the body: msgpack arrays for control, fixed structs for data.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from covey.errors import FrameError, OutsiderError
from covey.ids import Ballot, Life
from covey.protocol.boundary import Header
from covey.protocol.values import Bundle, Payload
from covey.protocol.wire.bundles import bundle_parts, check_number, read_bundle, read_next_bundle

from .frames import (
    Ack,
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
    PassedOn,
    Proceeding,
    Refuse,
    Resend,
    Stated,
    StateTrans,
    Token,
    Unreliable,
    Want,
    WantGroups,
    WantState,
)

MAGIC: Final = b"Cv"
VERSION: Final = 8

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
    Ack,
    WantState,
    Proceeding,
    PassedOn,
)
_CODE: Final = {frame: code for code, frame in enumerate(_CONTROL, start=1)}
_DECODERS: Final = {code: msgspec.msgpack.Decoder(frame) for frame, code in _CODE.items()}
_DATA, _RESEND, _UNRELIABLE = 32, 33, 34
FRAME_NAMES: Final = {code: frame.__name__.lower() for frame, code in _CODE.items()} | {
    _DATA: "data",
    _RESEND: "resend",
    _UNRELIABLE: "unreliable",
}
"""What each frame is called in lower case, by its code. For tools that watch a network."""
_encode: Final = msgspec.msgpack.Encoder().encode
_decode_stated: Final = msgspec.msgpack.Decoder(Stated).decode

_SENDER = struct.Struct("<BHQ")
_BALLOT = struct.Struct("<QHQ")
_PACKET = struct.Struct("<QQH")
_KEPT: Final = 0x8000
"""In the count of chunks, of which no packet has that many: the line of who keeps the token follows."""
_LINE = struct.Struct("<Q")
_CHUNK = struct.Struct("<HQHHI")
_CONTENT = struct.Struct("<Q")
_PRUNED: Final = 0x8000
"""In the number of pieces, of which no bundle has that many: the sites that it is for follow."""
_COUNT = struct.Struct("<H")

PACKET_OVERHEAD: Final = _BALLOT.size + _PACKET.size + _LINE.size
CHUNK_OVERHEAD: Final = _CHUNK.size
PRUNED_OVERHEAD: Final = _CONTENT.size
"""Of a piece that is not for all sites, beyond that."""
RESEND_OVERHEAD: Final = _BALLOT.size + _COUNT.size


HEADS_MAX: Final = 64
"""So many heads of packets are remembered."""


class Codec:
    """Encodes as one daemon, decodes from any daemon of the same cluster and configuration."""

    def __init__(self, cluster: str, digest: int, me: Life) -> None:
        self._cluster = cluster
        name = cluster.encode()[:255]
        self._prefix = MAGIC + bytes([VERSION]) + digest.to_bytes(8, "little") + bytes([len(name)]) + name
        self._rank, self._boot = me
        # Packets come by the dozen from one sender in one view: their heads are alike, down to the view.
        self.overhead = len(self._prefix) + _SENDER.size
        """Bytes of a datagram before the body."""
        self._head_bytes = self.overhead + _BALLOT.size
        self._heads: dict[bytes, tuple[Life, Ballot]] = {}

    def encode(self, frame: Frame) -> bytes:
        if isinstance(frame, Data):
            return b"".join((self._head(_DATA), *_data_parts(frame)))
        if isinstance(frame, Control):
            return self._head(_CODE[type(frame)]) + _encode(frame)
        if isinstance(frame, Resend):
            parts = [part for bundle in frame.bundles for part in bundle_parts(bundle)]
            return b"".join(
                (self._head(_RESEND), _BALLOT.pack(*frame.attempt), _COUNT.pack(len(frame.bundles)), *parts)
            )
        return b"".join((self._head(_UNRELIABLE), _BALLOT.pack(*frame.view), *bundle_parts(frame.bundle)))

    def without_prefix(self, data: bytes) -> bytes:
        """What follows that with which all datagrams of a cluster begin."""
        return data[len(self._prefix) :]

    def with_prefix(self, data: bytes) -> bytes:
        return self._prefix + data

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
        code, rank, boot = _SENDER.unpack_from(data, len(self._prefix))
        check_number(boot)
        sender = Life(rank, boot)
        if code != _DATA:
            return Header(sender, _body(code, memoryview(data)[self.overhead :]))
        view = Ballot(*_BALLOT.unpack_from(data, self.overhead))
        frame = _read_data(view, data, self._head_bytes)
        if len(self._heads) == HEADS_MAX:
            self._heads.clear()
        self._heads[data[: self._head_bytes]] = sender, view
        return Header(sender, frame)

    def _head(self, code: int) -> bytes:
        return self._prefix + _SENDER.pack(code, self._rank, self._boot)

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


def encode_stated(stated: Stated) -> bytes:
    """What StateTrans carries in parts."""
    return _encode(stated)


def decode_stated(data: bytes) -> Stated:
    """FrameError: it is none."""
    try:
        return _decode_stated(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise FrameError("malformed declaration", str(error)) from None


def _body(code: int, body: memoryview) -> Frame:
    decoder = _DECODERS.get(code)
    if decoder is not None:
        return decoder.decode(body)  # type: ignore[return-value]
    view, at = Ballot(*_BALLOT.unpack_from(body)), _BALLOT.size
    if code == _RESEND:
        (count,) = _COUNT.unpack_from(body, at)
        return Resend(view, _read_bundles(body[at + _COUNT.size :], count))
    if code == _UNRELIABLE:
        return Unreliable(view, read_bundle(body[at:]))
    raise FrameError("unknown frame kind", str(code))


def _read_bundles(body: memoryview, count: int) -> tuple[Bundle, ...]:
    bundles = []
    for _ in range(count):
        bundle, size = read_next_bundle(body)
        bundles.append(bundle)
        body = body[size:]
    if body:
        raise FrameError("malformed frame", f"{len(body)} bytes too many")
    return tuple(bundles)


def _data_parts(frame: Data) -> list[Payload]:
    parts: list[Payload] = [
        _BALLOT.pack(*frame.view),
        _PACKET.pack(frame.turn, frame.packet_seq, len(frame.chunks) | (_KEPT if frame.kept_line else 0)),
    ]
    if frame.kept_line:
        parts.append(_LINE.pack(frame.kept_line))
    for chunk in frame.chunks:
        data = chunk.data if isinstance(chunk.data, tuple) else (chunk.data,)
        pruned = _PRUNED if chunk.content else 0
        parts.append(_CHUNK.pack(chunk.site, chunk.number, chunk.piece, chunk.pieces | pruned, sum(map(len, data))))
        if pruned:
            parts.append(_CONTENT.pack(chunk.content))
        parts += data
    return parts


def _read_data(view: Ballot, data: bytes, at: int) -> Data:
    turn, packet_seq, count = _PACKET.unpack_from(data, at)
    at += _PACKET.size
    kept_line = 0
    if count >= _KEPT:
        count &= ~_KEPT
        (kept_line,) = _LINE.unpack_from(data, at)
        at += _LINE.size
    whole, end = memoryview(data), len(data)
    chunks = []
    for _ in range(count):
        site, number, piece, pieces, length = _CHUNK.unpack_from(data, at)
        at += _CHUNK.size
        content = 0
        if pieces >= _PRUNED:
            pieces &= ~_PRUNED
            (content,) = _CONTENT.unpack_from(data, at)
            at += _CONTENT.size
        if at + length > end or not 0 <= piece < pieces:
            raise FrameError("malformed packet", f"chunk of bundle {number}")
        chunks.append(Chunk(site, number, piece, pieces, whole[at : at + length], content))
        at += length
    if at != end:
        raise FrameError("malformed packet", f"{end - at} bytes too many")
    return Data(view, turn, packet_seq, tuple(chunks), kept_line)


def frame_name(data: bytes) -> str:
    """The frame in a datagram, by its lower-case name; empty if it is none. For tools that watch a network."""
    if len(data) < 13 or not data.startswith(MAGIC):
        return ""
    at = 12 + data[11]
    return FRAME_NAMES.get(data[at], "") if at < len(data) else ""
