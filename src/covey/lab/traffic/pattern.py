"""What messages of a measurement hold: each another content than those around it, which the receiver knows.

In:        the size of a payload.
Out:       the payloads of a run of messages, by the number of the first.
Not here:  who sends and who compares (program.py, seen.py).

Contents return after PATTERN_BYTES, so that nobody's time goes into making them. That exactly so much is lost, or comes
again, the numbers of the messages tell.
"""

from __future__ import annotations

from typing import Final

PATTERN_BYTES: Final = 1_000_000
NUMBER_BYTES: Final = 8
PAYLOADS_MAX: Final = 5_000


class Pattern:
    """
    >>> one, two = Pattern(4, together=3).payloads(1, 2)
    >>> one.hex(), two.hex()
    ('01000000', '02000000')
    """

    def __init__(self, size: int, together: int) -> None:
        """`together`: how many are asked for at a time at most."""
        # An odd number, which no number of messages in a bundle divides for long.
        self._count = min(PAYLOADS_MAX, max(2, PATTERN_BYTES // max(1, size))) | 1
        contents = [number.to_bytes(NUMBER_BYTES, "little").ljust(size, b".")[:size] for number in range(self._count)]
        self._table = contents * (2 + together // self._count)

    def payloads(self, first: int, count: int) -> list[bytes]:
        """Of the messages from number `first` on."""
        at = first % self._count
        if at + count > len(self._table):
            return [self._table[number % self._count] for number in range(at, at + count)]
        return self._table[at : at + count]
