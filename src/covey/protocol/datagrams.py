"""What becomes of each datagram: understood and handed to the engine, or dropped for a reason; each is counted once.

In:        datagrams, as they arrive.
Out:       what the engine makes of them; notices of senders that do not belong here.
Not here:  what frames mean (the engine), who the outsiders are (outsiders.py).

Some frames wait until all others of the step were taken: the engine says which.
"""

from __future__ import annotations

from typing import Any, Final

from covey.errors import FrameError, OutsiderError
from covey.ids import Life

from .boundary import OrderingEngine
from .counters import Count, Counted, Counter, Dropped, Family
from .effects import Effect
from .inputs import Datagram
from .kit import Kit
from .outsiders import UNLISTED, Outsiders

ACCEPTED: Final[Counted] = Counter.ACCEPTED

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
        try:
            sender, frame = self._engine.decode(one.data)
            if sender.rank >= len(self._kit.cluster.daemons):
                outcomes = self._reject(FrameError("unknown daemon", f"number {sender.rank}"), one, now_us)
            elif sender.rank == self._kit.me.rank:
                outcomes = [Dropped(Counter.FRAME_OUR_OWN)]
            elif self._engine.comes_last(frame):
                self._late.append((one, sender, frame))  # Its outcome is noted when its turn has come.
                return []
            else:
                outcomes = self._engine.on_frame(sender, frame, one.data, now_us)
        except FrameError as error:
            outcomes = self._reject(error, one, now_us)
        return self._note_outcome(one, outcomes, now_us)

    def take_late(self) -> list[Late]:
        """Those that waited for the others."""
        late = self._late
        if late:
            self._late = []
        return late

    def on_late(self, late: Late, now_us: int) -> list[Effect]:
        one, sender, frame = late
        return self._note_outcome(one, self._engine.on_frame(sender, frame, b"", now_us), now_us)

    def _note_outcome(self, one: Datagram, outcomes: list[Effect | Dropped], now_us: int) -> list[Effect]:
        """All that was dropped of it is counted, and taken out of what is to be done; the first is its outcome."""
        if not outcomes and not one.unlisted:
            self.outcomes.add(ACCEPTED)
            return []  # Most of them: data that only takes its place.
        dropped = [what for what in outcomes if type(what) is Dropped]
        effects: list[Effect] = outcomes  # type: ignore[assignment]  # Mostly there is nothing else among them.
        if dropped:
            effects = [what for what in outcomes if type(what) is not Dropped]  # type: ignore[misc]
        for what in dropped:
            self._kit.count.add(what.counter)
        outcome = dropped[0].counter if dropped else ACCEPTED
        if not one.unlisted:
            self.outcomes.add(outcome)
            return effects
        self.outcomes_unlisted.add(outcome)
        return effects + (self.outsiders.see(UNLISTED, one.source, now_us) if outcome is ACCEPTED else [])

    def _reject(self, error: FrameError, one: Datagram, now_us: int) -> list[Effect | Dropped]:
        """A peer's bad frame is data: counted, and its sender is named to the operator if it does not belong here."""
        told = self.outsiders.see(error, one.source, now_us) if isinstance(error, OutsiderError) else []
        return [Dropped(Family.FRAME_REJECTED.of(error.reason)), *told]
