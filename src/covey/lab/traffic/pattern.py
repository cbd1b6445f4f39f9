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
SENDER_SHIFT: Final = 56
"""The highest byte of the number names the sender, where a receiver has several and nothing else tells."""
PAYLOADS_MAX: Final = 5_000


class Pattern:
    """
    >>> one, two = Pattern(4, together=3).payloads(1, 2)
    >>> one.hex(), two.hex()
    ('01000000', '02000000')
    >>> Pattern(8, together=3, sender=2).payload(1).hex()
    '0100000000000002'
    """

    def __init__(self, size: int, together: int, sender: int = 0) -> None:
        """`together`: how many are asked for at a time at most. `sender`: below 128; whose messages these are."""
        # An odd number, which no number of messages in a bundle divides for long.
        self._count = min(PAYLOADS_MAX, max(2, PATTERN_BYTES // max(1, size))) | 1
        heads = [(number | sender << SENDER_SHIFT).to_bytes(NUMBER_BYTES, "little") for number in range(self._count)]
        contents = [head.ljust(size, b".")[:size] for head in heads]
        self._table = contents * (2 + together // self._count)

    @property
    def cycle(self) -> int:
        """After so many messages the contents return."""
        return self._count

    def payload(self, number: int) -> bytes:
        """Of one message."""
        return self._table[number % self._count]

    def payloads(self, first: int, count: int) -> list[bytes]:
        """Of the messages from number `first` on."""
        at = first % self._count
        if at + count > len(self._table):
            return [self._table[number % self._count] for number in range(at, at + count)]
        return self._table[at : at + count]
