"""A token that stays with the only sender: whether somebody else sends, and what others say of keeping it.

In:        packets of others, what they say when they want the token; the time.
Out:       whether we may keep it, and for how long; whether somebody else does, or may do.
Not here:  the token itself, and what waits for it (ring.py, stamping/token.py).
"""

from __future__ import annotations

from typing import Final

from covey.protocol.deadlines import DeadlineTable
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Data

ALONE_SHARE: Final = 10
"""Who has heard nobody else send for so many rests of the token is the only sender."""
WAITING_SHARE: Final = 2
"""A token that has come back to the only sender waits there for so small a part of a rest until it has more to send."""


class Resting:
    def __init__(self, rest_ms: int) -> None:
        self._rest_us = rest_ms * 1_000
        self._others_sent_us = -(1 << 60)
        self._kept_under = -1  # The token under which somebody else has said that it keeps it.
        self._waits = False  # The token is here, and nobody was told that it stays.
        self._kept_lately = False  # The last packet of somebody else has said so: it may keep it without a word.

    def heard(self, packet: Data, now_us: int) -> None:
        self._others_sent_us = now_us
        self._kept_lately = packet.kept_line > 0
        if self._kept_lately:
            self._kept_under = packet.turn

    def hurried(self, now_us: int) -> None:
        """Somebody else wants to send."""
        self._others_sent_us = now_us

    def hurry(self) -> None:
        """We have said that we want it: nobody keeps it any longer."""
        self._kept_under, self._kept_lately = -1, False

    def is_only_sender(self, now_us: int) -> bool:
        return 0 < ALONE_SHARE * self._rest_us < now_us - self._others_sent_us

    def keep(self, deadlines: DeadlineTable, now_us: int, has_sent: bool) -> None:
        """The token stays, from the first thing that is sent meanwhile for a whole rest."""
        if not has_sent:
            deadlines.set(EvsDeadline.REST, now_us + self._rest_us // WAITING_SHARE)
        elif self._waits or not deadlines.is_set(EvsDeadline.REST):
            deadlines.set(EvsDeadline.REST, now_us + self._rest_us)
        self._waits = not has_sent

    def is_kept_since(self, number: int) -> bool:
        """Whether somebody else has said that it keeps the token, after it had this number."""
        return self._kept_under >= number

    @property
    def may_be_kept(self) -> bool:
        """Whether somebody else may keep the token, and not have said so."""
        return self._kept_lately
