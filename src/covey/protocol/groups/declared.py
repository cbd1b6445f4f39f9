"""What the sessions of this daemon have joined, as far as it is fixed: what a view change declares of them.

In:        our own joins, leaves and disconnects, when they are stamped.
Out:       `frozen`, for the moment at which the view is frozen: the same stays in parts that fit datagrams.
Not here:  who is in which group by what was delivered (roster.py), how parts travel (exchange.py).

Once a change of ours is stamped, we shall deliver it in this view, whatever comes. Stays are kept in pages, so that
freezing a view costs little however many there are: a page is encoded when somebody asks for a part of it. A session
with many stays has pages of its own, so that its end costs little too.

Invariants: D1 `size` of a page is the length of its encoding, at most PAGE_BYTES; D2 a stay is in one page.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

import msgspec

from covey.protocol.effects import Stamped
from covey.protocol.values import Kind, Place, Stay

from .exchange import PAGE_BYTES
from .layer import process_of

_ARRAY_BYTES: Final = 5
"""The head of a page, which is a msgpack array with a count of four bytes."""

SHARED: Final = 0
"""No session has this number."""

FEW: Final = 16
"""Stays of a session that go to pages it shares."""

_encode = msgspec.msgpack.Encoder().encode


class Page:
    """Some stays, and how long their encoding is."""

    def __init__(self) -> None:
        self.stays: dict[tuple[int, str], Stay] = {}
        self.size = _ARRAY_BYTES

    def encode(self) -> bytes:
        head = b"\xdd" + len(self.stays).to_bytes(4, "big")
        return head + b"".join(map(_encode, self.stays.values()))


class Part(NamedTuple):
    """One part of the encoding of all pages."""

    data: bytes
    ends_page: bool


class Frozen:
    """The stays at one moment, in parts of at most `part_bytes`."""

    def __init__(self, version: int, pages: list[Page], part_bytes: int) -> None:
        self.version = version
        self._pages = pages
        self._part_bytes = part_bytes
        self._starts: list[int] = []
        """The number of the first part of each page."""
        self.count = 0
        for page in pages:
            self._starts.append(self.count)
            self.count += -(-page.size // part_bytes)
        self._encoded: tuple[int, bytes] = (-1, b"")

    def part(self, number: int) -> Part:
        at = bisect_right(self._starts, number) - 1
        if self._encoded[0] != at:
            self._encoded = at, self._pages[at].encode()
        data = self._encoded[1]
        start = (number - self._starts[at]) * self._part_bytes
        return Part(data[start : start + self._part_bytes], start + self._part_bytes >= len(data))


class Declared:
    def __init__(self) -> None:
        self.version = 0
        """Grows with each change."""
        self._pages: dict[int, Page] = {}
        self._numbers = 0
        self._open: dict[int, int] = {}
        """The page that the next stay of a session goes to; under SHARED, of those with few."""
        self._page_of: dict[int, dict[str, int]] = {}
        """By session and group."""
        self._pages_of: dict[int, dict[int, None]] = {}
        """Of each session, those that are its own."""

    def on_stamped(self, effect: Stamped) -> None:
        bundle = effect.bundle
        if bundle.kind is Kind.JOIN:
            place = Place(effect.view, bundle.stamp, bundle.site)
            self._add(Stay(bundle.session, process_of(bundle, effect.payloads[0]), bundle.groups[0], place))
        elif bundle.kind is Kind.LEAVE:
            self._remove(bundle.session, bundle.groups[0])
        elif bundle.kind is Kind.DISCONNECT:
            self._end(bundle.session)

    def _end(self, session: int) -> None:
        """All stays of a session: whole pages where it has its own."""
        if session not in self._page_of:
            return
        own = self._pages_of.pop(session, {})
        for group in [group for group, number in self._page_of[session].items() if number not in own]:
            self._remove(session, group)
        for number in own:
            del self._pages[number]
        self._open.pop(session, None)
        self._page_of.pop(session, None)
        self.version += 1

    def _add(self, stay: Stay) -> None:
        pages = self._page_of.setdefault(stay.session, {})
        if stay.group in pages:
            return
        size, whose = len(_encode(stay)), SHARED if len(pages) < FEW else stay.session
        number = self._open.get(whose, 0)
        page = self._pages.get(number)
        if page is None or page.size + size > PAGE_BYTES:
            number, page = self._new_page(whose)
        page.stays[stay.session, stay.group] = stay
        page.size += size
        pages[stay.group] = number
        self.version += 1

    def _new_page(self, whose: int) -> tuple[int, Page]:
        self._numbers += 1
        page = self._pages[self._numbers] = Page()
        self._open[whose] = self._numbers
        if whose != SHARED:
            self._pages_of.setdefault(whose, {})[self._numbers] = None
        return self._numbers, page

    def _remove(self, session: int, group: str) -> None:
        pages = self._page_of.get(session, {})
        number = pages.pop(group, None)
        if number is None:
            return
        if not pages:
            del self._page_of[session]
        page, own = self._pages[number], self._pages_of.get(session, {})
        page.size -= len(_encode(page.stays.pop((session, group))))
        if not page.stays:
            del self._pages[number]
            own.pop(number, None)
        elif page.size <= PAGE_BYTES // 2:
            # It has room: many leaves and joins do not leave many pages that are almost empty.
            self._open[session if number in own else SHARED] = number
        self.version += 1

    def __len__(self) -> int:
        return sum(len(page.stays) for page in self._pages.values())

    def frozen(self, part_bytes: int) -> Frozen:
        return Frozen(self.version, list(self._pages.values()), part_bytes)

    def check(self) -> None:
        for page in self._pages.values():
            assert page.stays, "D1"
            assert page.size == len(page.encode()) <= PAGE_BYTES, "D1"
        assert sum(map(len, self._page_of.values())) == len(self), "D2"
