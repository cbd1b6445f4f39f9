"""What may wait for clients: its size is known at once, and its bytes come when it is written.

A dialect makes them when they are first asked for, or at once where nothing else tells how many they are.

One entry may wait for many sessions of a dialect. It counts once in what waits at this daemon, and whole in what waits
for each. What it tells can still be looked at while it waits.
"""

from __future__ import annotations

from covey.protocol.effects import Deliver
from covey.protocol.notices import GroupNotice, SessionNotice
from covey.protocol.values import Payload

ClientNotice = Deliver | GroupNotice | SessionNotice

ENTRY_BYTES = 600
"""What an entry takes in memory beside its bytes, about."""


class Entry:
    __slots__ = ("_parts", "notice", "size", "users", "weight")

    def __init__(
        self, notice: ClientNotice, size: int, parts: tuple[Payload, ...] = (), weight: int | None = None
    ) -> None:
        self.notice = notice
        """What it tells."""
        self.size = size
        """Bytes when it is written."""
        self.weight = size + ENTRY_BYTES if weight is None else weight
        """Bytes of memory while it waits."""
        self.users = 0
        self._parts = parts

    def parts(self) -> tuple[Payload, ...]:
        return self._parts
