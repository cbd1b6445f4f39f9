"""The hybrid clock that stamps (rules R1, R7).

Monotonic time plus an offset fixed at start, so that a step of the wall clock cannot hurt; always strictly above every
stamp seen or made. Skew between daemons costs latency, never correctness.
"""

from __future__ import annotations

from typing import Final

from covey.ids import Instant

AGE_US: Final = 1 << 44
"""About half a year. No clock is so far ahead of one that is right: a stamp that is, was damaged or forged, and who
followed it would be left with stamps that nobody takes."""


class StampClock:
    def __init__(self, start: Instant, ahead_max_us: int) -> None:
        self._offset_us = start.wall_us - start.mono_us
        self._floor = 1
        self._ahead_max_us = ahead_max_us

    def now(self, now_us: int) -> int:
        return max(now_us + self._offset_us, self._floor)

    def see(self, stamp: int) -> None:
        """From now on every stamp of ours is strictly above this one."""
        if stamp >= self._floor:
            self._floor = stamp + 1

    def follow(self, stamp: int, now_us: int) -> bool:
        """See it; whether it is far ahead of our time."""
        is_ahead = stamp - self._ahead_max_us > self._floor and self.is_far_ahead(stamp, now_us)
        if stamp >= self._floor:
            self._floor = stamp + 1
        return is_ahead

    def is_far_ahead(self, stamp: int, now_us: int) -> bool:
        """Whether a stamp is so far ahead of our time that its maker's clock, or ours, must be wrong."""
        limit = stamp - self._ahead_max_us
        return limit > self._floor and limit > now_us + self._offset_us

    def is_of_another_age(self, stamp: int, now_us: int) -> bool:
        limit = stamp - AGE_US
        return limit > self._floor and limit > now_us + self._offset_us

    @property
    def high(self) -> int:
        """The highest stamp seen or made."""
        return self._floor - 1
