"""What the members of an attempt declare, in parts that fit a packet each.

In:        what we declare; the parts that others send, in any order.
Out:       our parts, as frames; what somebody has declared, once all its parts are here; which are not.
Not here:  what follows from it (exchange.py, ordering/recovery.py), how it travels (ways.py).

The parts of one life are the same throughout an attempt. A part that contradicts another shows that two things were
said in one name: such an attempt cannot end well.

Bounded: in parts of a packet, as many as the daemons and sites of the cluster need where every site tells the most.
"""

from __future__ import annotations

from typing import Final

from covey.errors import FrameError
from covey.ids import Ballot, Life
from covey.protocol.counters import Counter, Dropped

from .codec import decode_stated, encode_stated
from .frames import Stated, StateTrans, WantState

ASKED_MAX: Final = 32
"""Parts that are asked for, and said again, at a time."""


class Declarations:
    def __init__(self, attempt: Ballot, mine: Stated, part_bytes: int, parts_max: int) -> None:
        data = encode_stated(mine)
        self._attempt = attempt
        self._mine = [data[at : at + part_bytes] for at in range(0, len(data), part_bytes)]
        self._part_bytes, self._parts_max = part_bytes, parts_max
        self._total: dict[Life, int] = {}
        self._parts: dict[Life, dict[int, bytes]] = {}

    # --- ours

    def mine(self, wanted: tuple[int, ...] = ()) -> list[StateTrans]:
        """These parts of ours, some at a time; or all."""
        named = [number for number in sorted(set(wanted)) if number < len(self._mine)][:ASKED_MAX]
        numbers = named if wanted else range(len(self._mine))
        return [StateTrans(self._attempt, number, len(self._mine), self._mine[number]) for number in numbers]

    # --- theirs

    def add(self, sender: Life, frame: StateTrans) -> Stated | Dropped | None:
        """What it has declared, if this part completes it."""
        if frame.parts > self._parts_max or frame.part >= frame.parts or len(frame.data) > self._part_bytes:
            return Dropped(Counter.DECLARATION_IMPOSSIBLE)
        parts = self._parts.setdefault(sender, {})
        if self._total.setdefault(sender, frame.parts) != frame.parts:
            return Dropped(Counter.DECLARATION_CONTRADICTS)
        if parts.setdefault(frame.part, frame.data) != frame.data:
            return Dropped(Counter.DECLARATION_CONTRADICTS)
        if len(parts) < frame.parts:
            return None
        try:
            return decode_stated(b"".join(parts[number] for number in range(frame.parts)))
        except FrameError:
            self.forget(sender)
            return Dropped(Counter.DECLARATION_IMPOSSIBLE)

    def forget(self, sender: Life) -> None:
        """What it has declared cannot be: it may say something better."""
        self._total.pop(sender, None)
        self._parts.pop(sender, None)

    def parts_of(self, sender: Life) -> int:
        return self._total.get(sender, 0)

    def ask(self, sender: Life) -> WantState:
        """For what is not here of somebody's declaration."""
        parts, total = self._parts.get(sender, {}), self._total.get(sender, 0)
        lacking = tuple(number for number in range(total) if number not in parts)
        return WantState(self._attempt, lacking[:ASKED_MAX])
