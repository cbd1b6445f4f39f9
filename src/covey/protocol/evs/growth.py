"""A factor that grows with trouble and shrinks in quiet: how much longer than usual to wait.

In:   when there was trouble.  Out: the factor at a given time.  Not here: what is waited for.

Invariant: G1 the factor stays between 1 and its bound.
"""

from __future__ import annotations

from dataclasses import dataclass

_PERIODS_MAX = 64
"""After so many quiet periods nothing is left of any factor."""


@dataclass(slots=True)
class Growth:
    """Doubled by each trouble but the first, halved by each quiet period.

    Trouble in the second quiet period still doubles what was there before the first: it had been forgotten too soon.

    >>> growth = Growth(most=8, quiet_us=100)
    >>> [(growth.trouble(at), growth.at(at))[1] for at in (0, 10, 20, 30, 40)]
    [1, 2, 4, 8, 8]
    >>> [growth.at(at) for at in (139, 140, 240, 340, 440)]
    [8, 4, 2, 1, 1]
    >>> growth = Growth(most=8, quiet_us=100)
    >>> [(growth.trouble(at), growth.at(at))[1] for at in (0, 10, 150, 390, 780)]
    [1, 2, 4, 4, 2]
    """

    most: int
    quiet_us: int
    _factor: int = 1
    _trouble_us: int | None = None  # The last one, from which on `_factor` counts.

    def at(self, now_us: int) -> int:
        return max(1, self._factor >> self._periods(now_us))

    def trouble(self, now_us: int) -> None:
        """Long after the last trouble this one is like a first: it changes nothing."""
        if self._trouble_us is not None:
            self._factor = min(self.most, max(1, 2 * self._factor >> max(0, self._periods(now_us) - 1)))
        self._trouble_us = now_us

    def _periods(self, now_us: int) -> int:
        return 0 if self._trouble_us is None else min((now_us - self._trouble_us) // self.quiet_us, _PERIODS_MAX)

    def check(self) -> None:
        assert 1 <= self._factor <= self.most, "G1"
