"""Which deadline ends each state if nothing else does, and which are over when it is entered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.states import State

WAITS: Final[Mapping[State, EvsDeadline]] = {
    State.OP: EvsDeadline.ALIVE,
    State.SEG: EvsDeadline.SEGMENT,
    State.REP: EvsDeadline.FOLLOW,
    State.GATHER: EvsDeadline.GATHER,
    State.MERGE: EvsDeadline.GATHER,
    State.STATETRANS: EvsDeadline.ATTEMPT,
    State.EVS: EvsDeadline.ATTEMPT,
}

_FORMING = (EvsDeadline.SEGMENT, EvsDeadline.GATHER, EvsDeadline.FOLLOW)
_ATTEMPT = (EvsDeadline.ATTEMPT, EvsDeadline.EXCHANGE)

OVER: Final[Mapping[State, tuple[EvsDeadline, ...]]] = {
    State.OP: (*_FORMING, *_ATTEMPT),
    State.SEG: (EvsDeadline.GATHER, EvsDeadline.FOLLOW, *_ATTEMPT),
    State.REP: (EvsDeadline.SEGMENT, EvsDeadline.GATHER),
    State.GATHER: (),
    State.MERGE: (),
    State.STATETRANS: _FORMING,
    State.EVS: (),
}
