"""The native dialect: what sessions are told, as bytes that are made once for all of them.

In:        notices.  Out: entries; those of messages and views make their bytes when they are first written.
Not here:  the bytes themselves (wire/session.py), reading, and what is said of mistakes in it (native_reader.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from covey.protocol.effects import Deliver
from covey.protocol.notices import (
    DaemonSpoke,
    GroupSignalled,
    GrowingRoll,
    LeftGroup,
    Listed,
    OwnDiscarded,
    RequestFailed,
    Run,
    SessionEnded,
    SessionOpened,
    SessionRejected,
    Views,
    WholeView,
)
from covey.protocol.values import Payload
from covey.protocol.wire.session import (
    arrived_bytes,
    arrived_head,
    difference_piece,
    differences_bytes,
    differences_frame,
    encode_word,
    text_piece,
    view_around,
    view_bytes,
    view_frame,
)
from covey.protocol.wire.words import (
    VERSION,
    DaemonAlive,
    Discarded,
    Ended,
    Failed,
    GroupLeft,
    GroupSignal,
    GroupView,
    Rejected,
    Welcome,
    Word,
)

from .entries import ENTRY_BYTES, ClientNotice, Entry
from .native_reader import WORDING, NativeReader

PINNED_SHARE: Final = 2
"""A slice below one part in so many of what it was cut from is copied: kept as it is, it would keep all of it."""

MADE: Final = -1
"""In place of the bytes of a body whose head was made."""

BLOCK: Final = 256
"""So many names of a roll are put together with the others once; the rest for each frame."""


class Native:
    wording: Final = WORDING

    def reader(self) -> NativeReader:
        return NativeReader()

    def entry(self, notice: ClientNotice) -> Entry:
        if isinstance(notice, Deliver):
            return DataEntry(notice)
        if isinstance(notice, Views):
            return ViewsEntry(notice)
        if isinstance(notice, WholeView) and isinstance(notice.members, Listed):
            return ListedEntry(notice, notice.members)
        return WordEntry(notice, _word(notice))


NATIVE: Final = Native()


def _word(notice: ClientNotice) -> Word:
    if isinstance(notice, WholeView):
        return GroupView(*notice[:4], notice.names(), *notice[5:])
    if isinstance(notice, SessionOpened):
        return Welcome(VERSION, *notice)
    assert not isinstance(notice, Deliver | Views)
    return _WORDS[type(notice)](*notice)


_WORDS: Final[dict[type, type[Word]]] = {
    GroupSignalled: GroupSignal,
    LeftGroup: GroupLeft,
    OwnDiscarded: Discarded,
    SessionRejected: Rejected,
    RequestFailed: Failed,
    SessionEnded: Ended,
    DaemonSpoke: DaemonAlive,
}


class WordEntry(Entry):
    """A word. It is encoded at once: nothing else tells how long it is."""

    __slots__ = ()

    def __init__(self, notice: ClientNotice, word: Word) -> None:
        data = encode_word(word)
        super().__init__(notice, len(data), (data,))


class DataEntry(Entry):
    """Messages."""

    __slots__ = ("_body_bytes",)

    def __init__(self, effect: Deliver) -> None:
        if len(effect.payloads) == 1 and (copied := _unpinned(effect.payloads[0])) is not effect.payloads[0]:
            # The entry keeps what it tells: that must not hold on to the whole either.
            effect = Deliver(effect.view, msgspec.structs.replace(effect.bundle, payload=copied), (copied,))
        self._body_bytes = sum(map(len, effect.payloads))
        super().__init__(effect, arrived_bytes(effect.bundle) + self._body_bytes, effect.payloads)

    def parts(self) -> tuple[Payload, ...]:
        effect = self.notice
        if self._body_bytes >= 0 and isinstance(effect, Deliver):
            self._parts = (arrived_head(effect.bundle, effect.view, self._body_bytes), *self._parts)
            self._body_bytes = MADE
        return self._parts


class ViewsEntry(Entry):
    """Views of a group, one after the other, as differences."""

    __slots__ = ()

    def __init__(self, views: Views) -> None:
        super().__init__(views, differences_bytes(views.run.group, _pieces(views.run)[views.start : views.stop]))

    def parts(self) -> tuple[Payload, ...]:
        """Made once for all who are told the same, since they are told one after the other."""
        views = self.notice
        assert isinstance(views, Views)
        run, start, stop = views
        made = run.kept.get(_FRAME)
        if made is None or made[:2] != (start, stop):
            made = run.kept[_FRAME] = (start, stop, differences_frame(run.group, _pieces(run)[start:stop]))
        return (made[2],)


_PIECES: Final = "native pieces"
_FRAME: Final = "native frame"


def _pieces(run: Run) -> list[bytes]:
    """The encoding of each view of a run."""
    pieces: list[bytes] = run.kept.setdefault(_PIECES, [])
    pieces += map(difference_piece, run.differences[len(pieces) :])
    return pieces


class ListedEntry(Entry):
    """A view with many members. Its bytes are not kept: few are told the same."""

    __slots__ = ("_around",)

    def __init__(self, notice: WholeView, listed: Listed) -> None:
        self._around = view_around(GroupView(*notice[:4], (), *notice[5:]))
        size = view_bytes(self._around, _names(listed.roll).sizes[listed.upto])
        super().__init__(notice, size, weight=ENTRY_BYTES)

    def parts(self) -> tuple[Payload, ...]:
        notice = self.notice
        assert isinstance(notice, WholeView)
        assert isinstance(notice.members, Listed)
        roll, count = notice.members
        names = _names(roll)
        return (view_frame(self._around, count, names.pieces(count), names.sizes[count]),)


class _Names:
    """The encodings of the names of a roll: most of them put together, so that a frame is made of few pieces."""

    def __init__(self) -> None:
        self.sizes = [0]
        """Of the first so many, together."""
        self._together = b""
        self._folded = 0
        self._rest: list[bytes] = []

    def add(self, names: list[str]) -> None:
        for piece in map(text_piece, names):
            self._rest.append(piece)
            self.sizes.append(self.sizes[-1] + len(piece))
        if len(self._rest) >= BLOCK:
            self._together = b"".join((self._together, *self._rest))
            self._folded += len(self._rest)
            self._rest = []

    def pieces(self, count: int) -> Sequence[Payload]:
        if count <= self._folded:
            return (memoryview(self._together)[: self.sizes[count]],)
        return (self._together, *self._rest[: count - self._folded])


def _names(roll: GrowingRoll) -> _Names:
    names: _Names | None = roll.kept.get(_PIECES)
    if names is None:
        names = roll.kept[_PIECES] = _Names()
    names.add(roll.names[len(names.sizes) - 1 :])
    return names


def _unpinned(payload: Payload) -> Payload:
    """A slice of something much larger is copied."""
    whole = payload.obj if isinstance(payload, memoryview) else payload
    is_small = isinstance(whole, bytes | bytearray) and len(payload) * PINNED_SHARE < len(whole)
    return bytes(payload) if is_small else payload
