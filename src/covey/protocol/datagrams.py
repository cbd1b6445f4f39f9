"""What becomes of each datagram: understood and handed to the engine, or dropped for a reason; each is counted once.

In:        datagrams, as they arrive.
Out:       what the engine makes of them; notices of senders that do not belong here.
Not here:  what frames mean (the engine), who the outsiders are (outsiders.py).

Some frames wait until all others of the step were taken: the engine says which.
"""

from __future__ import annotations

from typing import Any

from covey.errors import FrameError, OutsiderError
from covey.ids import Life

from .boundary import OrderingEngine
from .counters import Count, Counter, Family
from .effects import Effect
from .inputs import Datagram
from .kit import Kit
from .outsiders import UNLISTED, Outsiders

Late = tuple[Datagram, Life, Any]


class Datagrams:
    def __init__(self, kit: Kit, engine: OrderingEngine) -> None:
        self._kit = kit
        self._engine = engine
        self.outsiders = Outsiders(kit.cluster)
        self.outcomes = Count()
        """What became of each: accepted, or the reason for which it was dropped, whole or in part."""
        self.outcomes_unlisted = Count()
        """The same of those from addresses that no daemon of the cluster has."""
        self._late: list[Late] = []

    def take(self, one: Datagram, now_us: int) -> list[Effect]:
        self._kit.count.dropped = None
        try:
            sender, frame = self._engine.decode(one.data)
            if sender.rank >= len(self._kit.cluster.daemons):
                effects = self._reject(FrameError("unknown daemon", f"number {sender.rank}"), one, now_us)
            elif sender.rank == self._kit.me.rank:
                self._kit.count.drop(Counter.FRAME_OUR_OWN)
                effects = []
            elif self._engine.comes_last(frame):
                self._late.append((one, sender, frame))  # Its outcome is noted when its turn has come.
                return []
            else:
                effects = self._engine.on_frame(sender, frame, one.data, now_us)
        except FrameError as error:
            effects = self._reject(error, one, now_us)
        return effects + self._note_outcome(one, now_us)

    def take_late(self) -> list[Late]:
        """Those that waited for the others."""
        late, self._late = self._late, []
        return late

    def on_late(self, late: Late, now_us: int) -> list[Effect]:
        one, sender, frame = late
        self._kit.count.dropped = None
        effects = self._engine.on_frame(sender, frame, b"", now_us)
        return effects + self._note_outcome(one, now_us)

    def _note_outcome(self, one: Datagram, now_us: int) -> list[Effect]:
        outcome = self._kit.count.dropped or Counter.ACCEPTED
        if not one.unlisted:
            self.outcomes.add(outcome)
            return []
        self.outcomes_unlisted.add(outcome)
        return self.outsiders.see(UNLISTED, one.source, now_us) if outcome is Counter.ACCEPTED else []

    def _reject(self, error: FrameError, one: Datagram, now_us: int) -> list[Effect]:
        """A peer's bad frame is data: counted, and its sender is named to the operator if it does not belong here."""
        self._kit.count.drop(Family.FRAME_REJECTED.of(error.reason))
        return self.outsiders.see(error, one.source, now_us) if isinstance(error, OutsiderError) else []
