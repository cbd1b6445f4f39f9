"""Sets of numbers as bits: of members by their place, of bundles by how far they are beyond a number."""

from __future__ import annotations

from collections.abc import Iterable


def to_bits(numbers: Iterable[int], base: int = 0) -> bytes:
    """Bit 0 stands for the base; the lowest bits come first.

    >>> to_bits([7, 10, 15], base=7).hex()
    '0901'
    """
    bits = 0
    for number in numbers:
        bits |= 1 << (number - base)
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def from_bits(data: bytes, base: int = 0) -> list[int]:
    """
    >>> from_bits(bytes.fromhex("0901"), base=7)
    [7, 10, 15]
    """
    return [base + 8 * at + bit for at, byte in enumerate(data) if byte for bit in range(8) if byte >> bit & 1]
