"""The states of membership, the reasons for entering them, and which reason may lead from where to where.

Everything that decides which transitions exist is in this file; `membership/machine.py` enters states through one door
that looks here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    """Where a daemon is in forming a view."""

    OP = "op"
    """In a view and working."""
    SEG = "seg"
    """The view is lost: listening for who is around."""
    REP = "rep"
    """Waiting for a representative to propose."""
    GATHER = "gather"
    """Representative without a view: collecting who will take part, then proposing."""
    STATETRANS = "statetrans"
    """An attempt is promised: members tell each other what they hold of their old views."""
    EVS = "evs"
    """Members resend what others miss, then tell each other that they are done."""
    MERGE = "merge"
    """In a view and working, and representative: collecting who can be merged, then proposing."""

    __hash__ = object.__hash__
    """Each is one object, and looked up in every step."""


STATES: Final = tuple(State)
"""The number of a state on the wire is its position here: new ones are appended."""

WORKING_STATES: Final = (State.OP, State.MERGE)
"""The view works: messages are ordered in it."""


class Reason(Enum):
    """Why a state was entered; shown in traces, logs and status."""

    STARTED = "the daemon has just started"
    PEER_SILENT = "a member was not heard in time"
    PEER_ONE_WAY = "a member no longer hears us"
    PEER_LEFT = "a member has left the view or attempt"
    PEER_RESTARTED = "a member has restarted"
    PEER_REFUSED = "a member's host says that nobody listens there"
    PEER_GOODBYE = "a member said goodbye"
    TOKEN_LOST = "the token did not come back in time"
    LINK_FAILED = "a link to another site failed"
    ATTEMPT_STUCK = "the attempt made no progress"
    ATTEMPT_REFUSED = "a member has promised a higher attempt"
    ALL_HEARD = "everyone around has been heard; we are the lowest"
    FOLLOW_LOWER = "a daemon of lower rank represents us"
    REPRESENTATIVE_SILENT = "the representative did not propose in time"
    STRANGERS = "daemons outside our view can be merged"
    NOTHING_FOUND = "nobody new could be merged"
    YIELDED = "a lower representative gathers for both views"
    PROPOSED = "we proposed a membership"
    PROMISED = "we accepted a proposal"
    EXCHANGED = "every member has declared what it holds"
    INSTALLED = "every member is done: the view is installed"


LOSSES: Final = (
    Reason.PEER_SILENT,
    Reason.PEER_ONE_WAY,
    Reason.PEER_LEFT,
    Reason.PEER_RESTARTED,
    Reason.PEER_REFUSED,
    Reason.PEER_GOODBYE,
)


def _table() -> dict[tuple[State, Reason], State]:
    table = {(State.SEG, Reason.STARTED): State.SEG}
    for state in State:
        table[state, Reason.PROMISED] = State.STATETRANS
    for state in (State.OP, State.MERGE, State.GATHER):
        table[state, Reason.PROPOSED] = State.STATETRANS
    for state in (State.OP, State.MERGE, State.STATETRANS, State.EVS):
        for reason in LOSSES:
            table[state, reason] = State.SEG
    for state in (State.OP, State.MERGE):
        table[state, Reason.TOKEN_LOST] = State.SEG
        table[state, Reason.LINK_FAILED] = State.SEG
    for state in (State.STATETRANS, State.EVS):
        table[state, Reason.ATTEMPT_STUCK] = State.SEG
        table[state, Reason.ATTEMPT_REFUSED] = State.SEG
    table[State.SEG, Reason.ALL_HEARD] = State.GATHER
    table[State.SEG, Reason.FOLLOW_LOWER] = State.REP
    table[State.GATHER, Reason.FOLLOW_LOWER] = State.REP
    table[State.REP, Reason.FOLLOW_LOWER] = State.REP
    table[State.REP, Reason.REPRESENTATIVE_SILENT] = State.SEG
    table[State.OP, Reason.STRANGERS] = State.MERGE
    table[State.MERGE, Reason.NOTHING_FOUND] = State.OP
    table[State.MERGE, Reason.YIELDED] = State.OP
    table[State.STATETRANS, Reason.EXCHANGED] = State.EVS
    table[State.EVS, Reason.INSTALLED] = State.OP
    return table


TRANSITIONS: Final[Mapping[tuple[State, Reason], State]] = _table()
"""A pair that is not here is a bug of ours: the machine's one door says so."""


def diagram() -> str:
    """The table as text, one line a pair: the documentation shows it, and a test compares them."""
    rows = sorted((source.name, target.name, reason.name) for (source, reason), target in TRANSITIONS.items())
    return "\n".join(f"{source:<10} -> {target:<10} {reason}" for source, target, reason in rows)
