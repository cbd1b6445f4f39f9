"""What happens to a session, as values: messages, views, signals, and what could not be.

In:        what the daemon said, as the protocol read it.
Out:       events; a `Batch` gives its messages when it is asked for them.
Not here:  views (view.py), the stream they come from (protocol.py), waiting for them (session.py, blocking.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from covey.errors import FrameError
from covey.protocol.values import Service
from covey.protocol.wire.bodies import SELF_DISCARD, SENDER_LENGTH_BYTES, read_sender
from covey.protocol.wire.words import Arrived, GroupLeft

from .records import Body, check_records, only_record, payloads_of, records_in
from .roll import name_of as name_of  # noqa: PLC0414 - exported
from .view import Order as Order  # noqa: PLC0414 - exported
from .view import View as View  # noqa: PLC0414 - exported
from .view import order_of


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message, as its sender sent it."""

    sender: str
    """`alice@a`: a private answer can be sent there."""
    groups: tuple[str, ...]
    """Every destination, also those that are not ours."""
    payload: bytes
    service: Service
    kind: int
    """The sender's own number for what this is, 0 to 65535."""
    session_seq: int
    """The sender's count of its messages: 1, 2, 3 …"""
    order: Order | None
    """None for unreliable messages: they have no place in the order."""
    process: str
    """The sender for ever: `alice@a:7.3`; another session of the same name has another one."""


class Batch(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A run of messages that travelled together: one sender, the same destinations and service.

    Its messages are made when they are asked for:

    >>> from covey.ids import Ballot
    >>> from covey.protocol.wire.bodies import record_parts, sender_prefix
    >>> body = b"".join([sender_prefix("alice@a:7.3"), *record_parts(0, b"one"), *record_parts(5, b"two")])
    >>> arrived = Arrived(Service.AGREED, 0, 2, 10, Ballot(7, 0, 3), 1200, 0, ("room",), memoryview(body))
    >>> batch = batch_of(arrived)
    >>> batch.sender, len(batch), batch.payloads()
    ('alice@a', 2, [b'one', b'two'])
    >>> [(message.session_seq, message.kind, message.order.index) for message in batch]
    [(10, 0, 0), (11, 5, 1)]
    """

    sender: str
    groups: tuple[str, ...]
    service: Service
    session_seq: int
    """Of the first message."""
    order: Order | None
    """Of the first message."""
    process: str
    flags: int
    count: int
    size: int
    """What all messages have, in bytes, or `records.MIXED`."""
    start: int
    """Where in `body` the messages begin."""
    body: Body

    def __len__(self) -> int:
        return self.count

    def __eq__(self, other: object) -> bool:
        """The same messages, however their bytes came in."""
        if not isinstance(other, Batch):
            return NotImplemented
        return self._head() == other._head() and self._messages() == other._messages()

    def __hash__(self) -> int:
        return hash(self._head())

    def _head(self) -> tuple[object, ...]:
        return self.process, self.session_seq, self.count, self.groups, self.service, self.order, self.flags

    def _messages(self) -> memoryview:
        return memoryview(self.body)[self.start :]

    def __iter__(self) -> Iterator[Message]:
        sender, groups, service, process, order = self.sender, self.groups, self.service, self.process, self.order
        seq = self.session_seq
        for index, (kind, payload) in enumerate(records_in(self.body, self.start, self.size)):
            place = None if order is None else Order(order.view, order.stamp, order.site, index)
            yield Message(sender, groups, payload, service, kind, seq + index, place, process)

    def __repr__(self) -> str:
        return f"Batch({self.count} messages from {self.sender!r} to {self.groups!r}, {self.service.name.lower()})"

    @property
    def self_discard(self) -> bool:
        return bool(self.flags & SELF_DISCARD)

    def payloads(self) -> list[bytes]:
        """The payloads alone: several times cheaper than the messages."""
        return payloads_of(self.body, self.start, self.size)


class Transitional(msgspec.Struct, frozen=True, gc=False):
    """From here to the next view of the group, guarantees hold among that view's transitional set only."""

    group: str


class SelfLeave(msgspec.Struct, frozen=True, gc=False):
    """Our leave took effect here in the stream."""

    group: str
    order: Order | None = None
    """None if a network view came with it."""


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Something cannot be, and the session goes on: what we asked for, or a message that is none."""

    asked: str
    reason: str


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """The session was ended by somebody else. What was sent last may not have been sent."""

    reason: str
    lag_bytes: int = 0
    """What the daemon still had for us, if we read too slowly."""
    lag_seconds: float = 0.0
    groups: tuple[str, ...] = ()
    """The groups we were in or had asked for: in none of them any more."""


class Reconnecting(msgspec.Struct, frozen=True, gc=False):
    """No daemon has let us in again yet, and the search goes on.

    The first comes when all addresses were tried once, then one every few seconds: `search.TELL_EVERY_S`.
    """

    attempt: int
    """How often all addresses were tried."""
    reason: str
    """Why none of them let us in, the last time."""
    seconds: float
    """How long the search has gone on."""


class Reconnected(msgspec.Struct, frozen=True, gc=False):
    """A new session, at another daemon or the same one: in no group, and counting its messages from 1."""

    process: str
    name: str


Control = View | Transitional | SelfLeave | Failure | Disconnected | Reconnecting | Reconnected
Single = Message | Control
"""What iterating over a session gives."""
Event = Batch | Message | Control


# --- from what the daemon said


def batch_or_failure(arrived: Arrived) -> Batch | Failure:
    """A malformed bundle is dropped whole, and its sender named."""
    try:
        return batch_of(arrived)
    except FrameError as error:
        return Failure(f"messages from {_sender_text(arrived)}", f"dropped: {error}")


def _sender_text(arrived: Arrived) -> str:
    try:
        return name_of(read_sender(arrived.body))
    except FrameError:
        return "a sender without a name"


def batch_of(arrived: Arrived) -> Batch:
    """FrameError: the body is not what its frame promised."""
    a, view = arrived, arrived.body
    whole, at = view.obj, 0
    if isinstance(whole, bytearray):
        # What a `Splitter` puts together is for this body alone, and ends with it: it is not copied once more.
        body: Body = whole
        at = len(whole) - len(view)
    else:
        body = bytes(view)  # The view would keep the whole read it came in.
    name_bytes = int.from_bytes(view[:SENDER_LENGTH_BYTES], "little")
    process, name, prefix_bytes = _sender(bytes(view[: SENDER_LENGTH_BYTES + name_bytes]))
    start = at + prefix_bytes
    size = check_records(body, start, a.messages)
    order = Order(a.view, a.stamp, a.site) if a.service is not Service.UNRELIABLE else None
    return Batch(name, a.groups, a.service, a.session_seq, order, process, a.flags, a.messages, size, start, body)


def only_message(batch: Batch) -> Message:
    """The message of a batch that has one."""
    b = batch
    kind, payload = only_record(b.body, b.start)
    return Message(b.sender, b.groups, payload, b.service, kind, b.session_seq, b.order, b.process)


@lru_cache(maxsize=1_024)
def _sender(prefix: bytes) -> tuple[str, str, int]:
    """Who writes bodies that begin so, its name, and where their messages begin."""
    process = read_sender(prefix)
    return process, name_of(process), len(prefix)


def self_leave_of(word: GroupLeft) -> SelfLeave:
    return SelfLeave(word.group, order_of(word.view, word.stamp, word.site))
