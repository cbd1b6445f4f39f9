"""Repeatable chance for back-off: the seed is an argument, so a run can be played again."""

from __future__ import annotations

_MASK = (1 << 64) - 1


class Jitter:
    """A small splitmix generator.

    >>> Jitter(1).below(1000) == Jitter(1).below(1000)
    True
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def below(self, bound: int) -> int:
        """A number from 0 to bound - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return (z ^ (z >> 31)) % bound
