"""What this engine waits for."""

from __future__ import annotations

from enum import Enum
from typing import Final


class EvsDeadline(Enum):
    ALIVE = "send the next ALIVE, and look whom we still hear"
    SEGMENT = "enough time to hear who is around"
    GATHER = "the gatherer proposes now"
    FOLLOW = "the representative we follow should have proposed by now"
    ATTEMPT = "the attempt makes no progress"
    EXCHANGE = "send again what the attempt still lacks"
    TOKEN_RESEND = "the successor has not shown that it has the token"
    TOKEN_LOST = "the token did not come back"
    HURRY = "ask again for a parked token"
    REST = "the token has been kept here for long enough"
    ANNOUNCE = "tell the other sites how far we are"
    LINK = "a link to another site wants to be looked at"
    INTEREST = "nobody here has been in some group for a while: give its messages up"

    __hash__ = object.__hash__
    """Each is one object: Enum computes a hash of the name."""


WORKING: Final = (
    EvsDeadline.TOKEN_RESEND,
    EvsDeadline.TOKEN_LOST,
    EvsDeadline.HURRY,
    EvsDeadline.REST,
    EvsDeadline.ANNOUNCE,
    EvsDeadline.LINK,
    EvsDeadline.INTEREST,
)
"""What only a working view waits for."""
