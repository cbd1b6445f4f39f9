"""What may wait for clients: its size is known at once, its bytes are made when the first of them is written.

One entry may wait for many sessions. It counts once in what waits at this daemon, and whole in what waits for each.
"""

from __future__ import annotations

from collections.abc import Sized

from covey.protocol.effects import Deliver
from covey.protocol.values import Payload
from covey.protocol.wire.rolls import Whole
from covey.protocol.wire.runs import Views
from covey.protocol.wire.session import arrived_bytes, arrived_head, encode_word
from covey.protocol.wire.words import DaemonAlive, Word

PINNED_SHARE = 2
"""A slice below one part in so many of what it was cut from is copied: kept as it is, it would keep all of it."""


ENTRY_BYTES = 600
"""What an entry takes in memory beside its bytes, about."""


class Entry:
    __slots__ = ("_parts", "size", "users", "weight")

    def __init__(self, size: int, parts: tuple[Payload, ...] = (), weight: int | None = None) -> None:
        self.size = size
        """Bytes when it is written."""
        self.weight = size + ENTRY_BYTES if weight is None else weight
        """Bytes of memory while it waits."""
        self.users = 0
        self._parts = parts

    def parts(self) -> tuple[Payload, ...]:
        return self._parts


class WordEntry(Entry):
    """A word. It is encoded at once: nothing else tells how long it is."""

    __slots__ = ()

    def __init__(self, word: Word) -> None:
        data = encode_word(word)
        super().__init__(len(data), (data,))


class DataEntry(Entry):
    """Messages."""

    __slots__ = ("_effect",)

    def __init__(self, effect: Deliver) -> None:
        payloads = effect.payloads
        if len(payloads) == 1:
            payload = _unpinned(payloads[0])
            super().__init__(arrived_bytes(effect.bundle) + len(payload), (payload,))
        else:
            super().__init__(arrived_bytes(effect.bundle) + sum(map(len, payloads)), payloads)
        self._effect: Deliver | None = effect

    def parts(self) -> tuple[Payload, ...]:
        effect = self._effect
        if effect is not None:
            body_bytes = self.size - arrived_bytes(effect.bundle)
            self._parts = (arrived_head(effect.bundle, effect.view, body_bytes), *self._parts)
            self._effect = None
        return self._parts


class ViewsEntry(Entry):
    """Views of a group, one after the other."""

    __slots__ = ("_views",)

    def __init__(self, views: Views) -> None:
        super().__init__(views.run.size(views.start, views.stop))
        self._views = views

    def parts(self) -> tuple[Payload, ...]:
        return (self._views.run.frame(self._views.start, self._views.stop),)


class WholeEntry(Entry):
    """A view with many members. Its bytes are not kept: few are told the same."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Whole) -> None:
        super().__init__(whole.roll.size(whole), weight=ENTRY_BYTES)
        self._whole = whole

    def parts(self) -> tuple[Payload, ...]:
        return (self._whole.roll.frame(self._whole),)


ALIVE = encode_word(DaemonAlive())


def entry_of(what: Word | Deliver | Views | Whole) -> Entry:
    if isinstance(what, Deliver):
        return DataEntry(what)
    if isinstance(what, Views):
        return ViewsEntry(what)
    return WholeEntry(what) if isinstance(what, Whole) else WordEntry(what)


def _unpinned(payload: Payload) -> Payload:
    """A slice of something much larger is copied."""
    whole = payload.obj if isinstance(payload, memoryview) else payload
    return bytes(payload) if isinstance(whole, Sized) and len(payload) * PINNED_SHARE < len(whole) else payload
