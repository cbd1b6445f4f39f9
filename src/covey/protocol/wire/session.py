"""The bytes of the native dialect: what a client and its daemon say to each other over a stream.

A frame is a length, a code and a body. Control bodies are msgpack arrays; SEND and DATA are many, and have fixed heads.
The bytes after the head of a SEND are the payload of the bundle that daemons order, and come out of every DATA
unchanged (bodies.py).

Bounded: a length is checked before anything of that length is kept.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from covey.errors import FrameError
from covey.ids import Ballot
from covey.protocol.asked import Sending
from covey.protocol.notices import Difference
from covey.protocol.values import Bundle, Payload, Service

from .group_names import pack_groups, read_groups
from .words import (
    Arrived,
    Bye,
    ClientAlive,
    DaemonAlive,
    Discarded,
    Ended,
    Failed,
    FromClient,
    FromDaemon,
    GroupDifferences,
    GroupLeft,
    GroupSignal,
    GroupView,
    Hello,
    JoinGroup,
    LeaveGroup,
    Rejected,
    Welcome,
    Word,
)

HEAD_BYTES: Final = 5
HELLO_BYTES_MAX: Final = 4_096
"""Before its HELLO a stranger can make us keep no more than this."""

_CLIENT_WORDS: Final[tuple[type[Word], ...]] = (Hello, JoinGroup, LeaveGroup, Bye, ClientAlive)
_DAEMON_WORDS: Final[tuple[type[Word], ...]] = (
    Welcome,
    Rejected,
    GroupView,
    GroupSignal,
    GroupLeft,
    Failed,
    Ended,
    Discarded,
    GroupDifferences,
    DaemonAlive,
)
_CODE: Final[dict[type[Word], int]] = {word: code for code, word in enumerate(_CLIENT_WORDS, start=1)} | {
    word: code for code, word in enumerate(_DAEMON_WORDS, start=33)
}
_DECODERS: Final = {code: msgspec.msgpack.Decoder(word) for word, code in _CODE.items()}
SENDING: Final = 32
ARRIVED: Final = 64
_SERVICES: Final = tuple(Service)
_encode: Final = msgspec.msgpack.Encoder().encode
_ballot: Final = lru_cache(maxsize=64)(Ballot)
"""Messages of one view name the same one."""

_HEAD = struct.Struct("<IB")
_SEND = struct.Struct("<BBIQB")
_SEND_WITH_HEAD = struct.Struct("<IBBBIQB")
_DATA = struct.Struct("<BBIQQHQQHB")


# --- to bytes


def encode_word(word: Word) -> bytes:
    body = _encode(word)
    return _HEAD.pack(len(body), _CODE[type(word)]) + body


def sending_head(
    service: Service, flags: int, messages: int, session_seq: int, groups: tuple[str, ...], body_bytes: int
) -> bytes:
    """Everything of the SEND frame but its body."""
    names = pack_groups(groups)
    size = _SEND.size + len(names) + body_bytes
    return _SEND_WITH_HEAD.pack(size, SENDING, service, flags, messages, session_seq, len(groups)) + names


def sending_parts(sending: Sending) -> list[Payload]:
    return [sending_head(*sending[:-1], len(sending.body)), sending.body]


def arrived_head(bundle: Bundle, view: Ballot, body_bytes: int) -> bytes:
    """Everything of the DATA frame for a delivered bundle but its body, which follows as it is."""
    b = bundle
    groups = pack_groups(b.groups)
    length = _DATA.size + len(groups) + body_bytes
    return b"".join(
        (
            _HEAD.pack(length, ARRIVED),
            _DATA.pack(b.service, b.flags, b.count, b.session_seq, *view, b.stamp, b.site, len(b.groups)),
            groups,
        )
    )


def difference_piece(difference: Difference) -> bytes:
    """One view of a run of them, for `differences_frame`: made once, however many sessions are told."""
    return _encode(difference)


def differences_frame(group: str, pieces: Sequence[bytes]) -> bytes:
    """A whole `GroupDifferences` frame from the pieces of its differences."""
    head = _differences_head(group, len(pieces))
    size = len(head) + sum(map(len, pieces))
    return b"".join((_HEAD.pack(size, _CODE[GroupDifferences]), head, *pieces))


def differences_bytes(group: str, pieces: Sequence[bytes]) -> int:
    """How long that frame is."""
    return HEAD_BYTES + len(_differences_head(group, len(pieces))) + sum(map(len, pieces))


def _differences_head(group: str, count: int) -> bytes:
    """An array of two, the group, and the head of an array of so many differences."""
    return b"\x92" + _encode(group) + (bytes((0x90 | count,)) if count < 16 else b"\xdd" + count.to_bytes(4, "big"))


def text_piece(text: str) -> bytes:
    """One name of a list of them, for `view_frame`."""
    return _encode(text)


def view_around(view: GroupView) -> tuple[bytes, bytes]:
    """What stands in the body of a view before and after the list of its members, which is not looked at."""
    before = _encode((view.group, view.view, view.stamp, view.site))[1:]
    after = _encode((view.transitional, view.cause, view.detail))[1:]
    return b"\x98" + before, after


def view_frame(around: tuple[bytes, bytes], count: int, names: Sequence[Payload], names_bytes: int) -> bytes:
    """A whole `GroupView` frame, from the encodings of its members' names in any number of pieces."""
    before, after = around
    size = view_bytes(around, names_bytes) - HEAD_BYTES
    head = _HEAD.pack(size, _CODE[GroupView])
    return b"".join((head, before, b"\xdd", count.to_bytes(4, "big"), *names, after))


def view_bytes(around: tuple[bytes, bytes], names_bytes: int) -> int:
    """How long that frame is."""
    return HEAD_BYTES + len(around[0]) + 5 + names_bytes + len(around[1])


def arrived_bytes(bundle: Bundle) -> int:
    """How long the head of its DATA frame is."""
    return HEAD_BYTES + _DATA.size + len(pack_groups(bundle.groups))


# --- from bytes


class Splitter:
    """Cuts a stream into frames. Feed it what arrives; it keeps at most one unfinished frame."""

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.problem: FrameError | None = None
        """Why nothing more can be read from this stream."""
        self.kept = bytearray()
        """The unfinished frame."""

    def feed(self, data: bytes) -> list[tuple[int, memoryview]]:
        """(code, body) of every frame completed. If one is too large, `problem` says so, and nothing follows it."""
        if len(data) >= HEAD_BYTES and not self.kept:
            size, code = _HEAD.unpack_from(data)
            if size == len(data) - HEAD_BYTES and size <= self.frame_bytes_max and self.problem is None:
                return [(code, memoryview(data)[HEAD_BYTES:])]  # It came alone and whole, as single messages do.
        return list(self.frames(data))

    def frames(self, data: bytes) -> Iterator[tuple[int, memoryview]]:
        """The same, each when it is asked for. What arrives later is fed when these have been taken."""
        at, view = 0, memoryview(data)
        if self.kept:
            finished: list[tuple[int, memoryview]] = []
            at = self._complete(view, finished)
            yield from finished
        while len(data) - at >= HEAD_BYTES and self.problem is None:
            size, code = _HEAD.unpack_from(data, at)
            if size > self.frame_bytes_max:
                self._refuse(size)
                break
            if len(data) - at - HEAD_BYTES < size:
                break
            yield code, view[at + HEAD_BYTES : at + HEAD_BYTES + size]
            at += HEAD_BYTES + size
        if at < len(data) and self.problem is None:
            self.kept += view[at:]

    def _complete(self, view: memoryview, frames: list[tuple[int, memoryview]]) -> int:
        """Finish the frame that was begun, with as much as it needs and no more: the rest need not be copied."""
        at = max(0, min(HEAD_BYTES - len(self.kept), len(view)))
        self.kept += view[:at]
        if len(self.kept) < HEAD_BYTES:
            return at
        size: int
        code: int
        size, code = _HEAD.unpack_from(self.kept)
        if size > self.frame_bytes_max:
            self._refuse(size)
            return len(view)
        end = at + HEAD_BYTES + size - len(self.kept)
        self.kept += view[at:end]
        if end > len(view):
            return len(view)
        frames.append((code, memoryview(self.kept)[HEAD_BYTES:]))
        self.kept = bytearray()
        return end

    def _refuse(self, size: int) -> None:
        self.problem = FrameError("frame too large", f"{size} bytes, at most {self.frame_bytes_max}")


def read_from_client(code: int, body: memoryview) -> FromClient:
    if code == SENDING:
        return _read_sending(body)
    if not 1 <= code <= len(_CLIENT_WORDS):
        raise FrameError("unknown frame kind", str(code))
    return _word(code, body)  # type: ignore[return-value]


def read_from_daemon(code: int, body: memoryview) -> FromDaemon:
    if code == ARRIVED:
        return read_arrived(body)
    if not 33 <= code < 33 + len(_DAEMON_WORDS):
        raise FrameError("unknown frame kind", str(code))
    return _word(code, body)  # type: ignore[return-value]


def _word(code: int, body: memoryview) -> Word:
    try:
        return _DECODERS[code].decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise FrameError("malformed frame", str(error)) from None


def _read_sending(body: memoryview) -> Sending:
    try:
        service, flags, count, session_seq, groups = _SEND.unpack_from(body)
        names, at = read_groups(body, _SEND.size, groups)
        return Sending(_SERVICES[service], flags, count, session_seq, names, body[at:])
    except (struct.error, ValueError, IndexError) as error:
        raise FrameError("malformed frame", str(error)) from None


def read_arrived(body: memoryview) -> Arrived:
    """The body of a frame whose code is ARRIVED."""
    try:
        service, flags, count, session_seq, counter, proposer, boot, stamp, site, groups = _DATA.unpack_from(body)
        names, at = read_groups(body, _DATA.size, groups)
        view = _ballot(counter, proposer, boot)
        return Arrived(_SERVICES[service], flags, count, session_seq, view, stamp, site, names, body[at:])
    except (struct.error, ValueError, IndexError) as error:
        raise FrameError("malformed frame", str(error)) from None
