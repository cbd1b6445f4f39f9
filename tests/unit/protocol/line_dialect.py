"""A dialect of a page: requests and notices are lines of text. It shows that a second dialect needs nothing of ours.

A program says `hello NAME`, `join GROUP`, `leave GROUP`, `send GROUP TEXT` and `bye`. It is told views as whole lists.
"""

from __future__ import annotations

from typing import Final

from covey.client.records import check_records, payloads_of
from covey.errors import FrameError
from covey.protocol.asked import CannotOpen, Depart, JoinRequest, LeaveRequest, Open, Request, Sending
from covey.protocol.dialects.dialect import Wording
from covey.protocol.dialects.entries import ClientNotice, Entry
from covey.protocol.effects import Deliver
from covey.protocol.notices import (
    GroupSignalled,
    LeftGroup,
    RequestFailed,
    SessionEnded,
    SessionOpened,
    SessionRejected,
    Views,
    WholeView,
)
from covey.protocol.values import Service
from covey.protocol.wire.bodies import read_sender, record_parts, sender_prefix

HELLO_BYTES_MAX: Final = 200


class LineReader:
    def __init__(self) -> None:
        self._data = b""
        self._waits: Request | None = None
        self._line_bytes_max = HELLO_BYTES_MAX
        self._prefix = b""
        self._seq = 0
        self.joined = 0

    def __bool__(self) -> bool:
        return self._waits is not None or b"\n" in self._data

    @property
    def size(self) -> int:
        return len(self._data)

    @property
    def problem(self) -> FrameError | None:
        is_long = b"\n" not in self._data and len(self._data) > self._line_bytes_max
        return FrameError("line too long") if is_long else None

    def open(self, process: str, message_bytes_max: int, bundle_bytes: int) -> None:
        self._prefix = sender_prefix(process)
        self._line_bytes_max = message_bytes_max

    def put(self, data: bytes) -> None:
        self._data += data

    def next(self) -> Request | None:
        if self._waits is not None:
            request, self._waits = self._waits, None
            return request
        if b"\n" not in self._data:
            return None
        line, _, self._data = self._data.partition(b"\n")
        return self._request(*line.decode().split(" ", 2))

    def _request(self, verb: str, name: str = "", text: str = "") -> Request:
        match verb:
            case "hello":
                return Open(name) if name else CannotOpen("say hello, and your name")
            case "join":
                return JoinRequest(name)
            case "leave":
                return LeaveRequest(name)
            case "send":
                return self._sending(name, text.encode())
            case "bye":
                return Depart()
        raise FrameError("unknown verb", verb)

    def _sending(self, group: str, payload: bytes) -> Sending:
        self._seq += 1
        body = b"".join([self._prefix, *record_parts(0, payload)])
        return Sending(Service.AGREED, 0, 1, self._seq, (group,), body)

    def put_back(self, request: Request) -> None:
        self._waits = request

    def clear(self) -> None:
        self._data, self._waits = b"", None


class Lines:
    wording: Final = Wording(
        silent="say hello within a while",
        not_open="say hello first",
        open_twice="one hello is enough",
        unreadable="nobody here knows what that means",
    )

    def reader(self) -> LineReader:
        return LineReader()

    def entry(self, notice: ClientNotice) -> Entry:
        data = "".join(f"{line}\n" for line in lines_of(notice)).encode()
        return Entry(notice, len(data), (data,))


LINES: Final = Lines()


def lines_of(notice: ClientNotice) -> list[str]:
    match notice:
        case Deliver():
            return _messages(notice)
        case Views():
            return [_view(notice.run.group, names) for names in notice.lists()]
        case WholeView():
            return [_view(notice.group, notice.names())]
        case GroupSignalled() | LeftGroup():
            return [f"{'signal' if isinstance(notice, GroupSignalled) else 'left'} {notice.group}"]
        case SessionOpened():
            return [f"welcome {notice.process}"]
        case RequestFailed():
            return [f"failed {notice.asked}: {notice.reason}"]
        case SessionRejected() | SessionEnded():
            return [f"over: {notice.reason}"]
    return []


def _view(group: str, names: tuple[str, ...]) -> str:
    return f"view {group}: {' '.join(sorted(names))}"


def _messages(delivered: Deliver) -> list[str]:
    body = b"".join(delivered.payloads)
    sender = read_sender(body)
    start = len(sender_prefix(sender))
    payloads = payloads_of(body, start, check_records(body, start, delivered.bundle.count))
    return [f"{sender} to {' '.join(delivered.bundle.groups)}: {payload.decode()}" for payload in payloads]
