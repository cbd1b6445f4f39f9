"""What all sites are known to have: the lowest line and the lowest received number, which never fall."""

from __future__ import annotations

from covey.protocol.evs.ordering.stability import Stability


def test_nothing_is_safe_until_every_site_has_spoken() -> None:
    stability = Stability((0, 4))
    stability.raise_line(0, 50)
    assert stability.safe_line() == 0
    stability.raise_line(4, 30)
    assert stability.safe_line() == 30


def test_a_late_word_lowers_nothing() -> None:
    stability = Stability((0,))
    stability.raise_line(0, 50)
    stability.raise_line(0, 20)
    stability.raise_received(0, 0, 9)
    stability.raise_received(0, 0, 3)
    assert (stability.safe_line(), stability.received_by_all(0)) == (50, 9)


def test_received_numbers_are_kept_for_each_source() -> None:
    stability = Stability((0, 1))
    for site, numbers in ((0, (5, 7)), (1, (6, 2))):
        for source, number in enumerate(numbers):
            stability.raise_received(site, source, number)
    assert [stability.received_by_all(source) for source in (0, 1)] == [5, 2]


def test_a_line_says_nothing_about_what_may_be_discarded() -> None:
    stability = Stability((0,))
    stability.raise_line(0, 50)
    assert stability.received_by_all(0) == 0
