"""What comes and goes is damped: with each loss soon after another, the next one is made rarer.

The rules: docs/protocol/membership.md, "What comes and goes is damped".

In:        how each view of ours ended.
Out:       `token`, how much longer than usual a ring waits for it; who is not to be merged yet, and for how long.
Not here:  patience with a silent peer (hearing.py), back-off of failed attempts (machine.py).

Invariants: G1 of each growth; D1 nobody is held down for longer than `hold_down_ms` × `hold_down_growth_max`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from covey.config import Settings
from covey.ids import Life
from covey.protocol.evs.growth import Growth
from covey.protocol.evs.states import Reason

_IN_ORDER = (Reason.STARTED, Reason.PEER_GOODBYE, Reason.PEER_RESTARTED, Reason.PEER_REFUSED)
"""Who is gone is gone: no patience would have kept the view."""

_TO_MERGE = (Reason.STRANGERS, Reason.PROMISED)


@dataclass(slots=True)
class Parted:
    """A life that was in an earlier view of ours and not in the one after it."""

    life: Life
    growth: Growth
    since_us: int = 0
    until_us: int = 0
    """Not merged again before this."""


@dataclass(slots=True)
class Damping:
    settings: Settings
    token: Growth = field(init=False)
    _parted: dict[int, Parted] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.token = self._growth(self.settings.token_lost_growth_max)

    def view_ended(self, old: tuple[Life, ...], new: tuple[Life, ...], reason: Reason, now_us: int) -> None:
        """A view has followed ours. Whoever is not in it was lost, whatever the reason was that we noticed."""
        if not (reason in _IN_ORDER or (reason in _TO_MERGE and set(old) < set(new))):
            self.token.trouble(now_us)
        for life in old:
            if life not in new:
                self._part(life, now_us)

    def _part(self, life: Life, now_us: int) -> None:
        parted = self._parted.get(life.rank)
        if parted is None or parted.life != life:
            parted = self._parted[life.rank] = Parted(life, self._growth(self.settings.hold_down_growth_max))
        parted.growth.trouble(now_us)
        parted.since_us = now_us
        parted.until_us = now_us + self.settings.hold_down_ms * 1_000 * parted.growth.at(now_us)

    def _growth(self, most: int) -> Growth:
        return Growth(most, self.settings.suspicion_decay_ms * 1_000)

    def held_down_us(self, life: Life, now_us: int) -> int:
        """How long this stranger is not to be merged yet. A new life was never here: it need not wait."""
        parted = self._parted.get(life.rank)
        return max(0, parted.until_us - now_us) if parted is not None and parted.life == life else 0

    def comes_and_goes(self, life: Life, now_us: int) -> bool:
        """Whether it has parted from us more than once of late."""
        parted = self._parted.get(life.rank)
        return parted is not None and parted.life == life and parted.growth.at(now_us) > 1

    def check(self) -> None:
        longest_us = self.settings.hold_down_ms * self.settings.hold_down_growth_max * 1_000
        self.token.check()
        for parted in self._parted.values():
            parted.growth.check()
            assert 0 <= parted.until_us - parted.since_us <= longest_us, "D1"
