"""When this daemon says that it is alive, and to whom: to all that are configured, more often while views
change or a member's word is overdue.
"""

from __future__ import annotations

from typing import Final

from covey.protocol.effects import Send
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Alive, Join
from covey.protocol.evs.kit import EvsKit
from covey.protocol.evs.states import State

HURRIED: Final = 4
"""So many words follow one another fast where one was overdue: the answer to it may be lost too."""

TOGETHER_SHARE: Final = 2
"""Who hears another when so small a part of its own interval is left speaks too: together, all wake less often."""


class Heartbeat:
    def __init__(self, kit: EvsKit) -> None:
        self._kit = kit
        self.everyone = tuple(rank for rank in range(len(kit.cluster.daemons)) if rank != kit.me.rank)
        self._hurried = 0

    def soon(self, now_us: int) -> None:
        """Something changed that others wait to hear of. A little later: more may change at once."""
        at = now_us + self._kit.settings.alive_fast_ms * 250
        if at < (self._kit.deadlines.at(EvsDeadline.ALIVE) or at + 1):
            self._kit.deadlines.set(EvsDeadline.ALIVE, at)

    def join_in(self, now_us: int) -> None:
        """Somebody speaks: if our own next word is due before long, it is said in the same step."""
        due_us, interval_us = self._kit.deadlines.at(EvsDeadline.ALIVE), self._kit.settings.alive_interval_ms * 1_000
        if due_us is not None and now_us < due_us <= now_us + interval_us // TOGETHER_SHARE:
            self._kit.deadlines.set(EvsDeadline.ALIVE, now_us)

    def say(self, frame: Alive | Join) -> list[Send]:
        return [self._kit.send(self.everyone, frame)] if self.everyone else []

    def next(self, state: State, is_overdue: bool, now_us: int) -> None:
        """Soon, if views change or a word of a member is overdue: some of ours or of its words were lost."""
        settings = self._kit.settings
        self._hurried = HURRIED if is_overdue else max(0, self._hurried - 1)
        is_slow = state is State.OP and not self._hurried
        interval_ms = settings.alive_interval_ms if is_slow else settings.alive_fast_ms
        self._kit.deadlines.set(EvsDeadline.ALIVE, now_us + interval_ms * 1_000)
