"""Chance that can be repeated: the same seed gives the same numbers."""

from __future__ import annotations

import pytest

from covey.protocol.evs.membership.jitter import Jitter


def draw(seed: int, count: int = 50, bound: int = 1_000) -> list[int]:
    jitter = Jitter(seed)
    return [jitter.below(bound) for _ in range(count)]


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 + 1, -1])
def test_the_same_seed_gives_the_same_numbers(seed: int) -> None:
    assert draw(seed) == draw(seed)


def test_another_seed_gives_other_numbers() -> None:
    assert draw(1) != draw(2)


def test_the_numbers_are_below_the_bound_and_differ() -> None:
    numbers = draw(7, count=200, bound=10)
    assert set(numbers) == set(range(10))


def test_the_numbers_are_fixed() -> None:
    assert draw(1, count=3) == [465, 519, 590]
