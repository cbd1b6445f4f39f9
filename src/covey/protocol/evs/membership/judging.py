"""What an ALIVE says about our view or attempt: its sender is with us, is not there yet, or has left."""

from __future__ import annotations

from enum import Enum, auto

from covey.ids import Life
from covey.protocol.evs.decisions import Attempt
from covey.protocol.evs.frames import Alive
from covey.protocol.evs.states import Reason


class AliveVerdict(Enum):
    IN_ORDER = auto()
    TOO_EARLY = auto()
    """It was sent before its sender joined the attempt."""


def judge(current: Attempt, sender: Life, alive: Alive) -> AliveVerdict | Reason:
    """Of a sender in our view or attempt; a reason if that cannot go on."""
    if sender not in current.members:
        restarted = any(life.rank == sender.rank for life in current.members)
        return Reason.PEER_RESTARTED if restarted else AliveVerdict.IN_ORDER
    if alive.promised < current.ballot:
        return AliveVerdict.TOO_EARLY
    if alive.promised == current.ballot and (alive.is_working or alive.is_arriving):
        return AliveVerdict.IN_ORDER
    return Reason.PEER_LEFT
