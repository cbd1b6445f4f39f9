"""A factor that grows with trouble and shrinks in quiet."""

from __future__ import annotations

import pytest

from covey.protocol.evs.growth import Growth

QUIET = 100


def grown(*at: int) -> Growth:
    growth = Growth(8, QUIET)
    for one in at:
        growth.trouble(one)
        growth.check()
    return growth


def test_without_trouble_nothing_grows() -> None:
    assert grown().at(10**9) == 1


def test_one_trouble_changes_nothing() -> None:
    assert grown(0).at(0) == 1


def test_each_trouble_soon_after_another_doubles_up_to_the_bound() -> None:
    assert [grown(*range(troubles)).at(10) for troubles in (2, 3, 4, 5, 9)] == [2, 4, 8, 8, 8]


def test_each_quiet_period_halves() -> None:
    growth = grown(0, 0, 0, 0)
    assert [growth.at(period * QUIET) for period in range(5)] == [8, 4, 2, 1, 1]


@pytest.mark.parametrize(("after", "factor"), [(QUIET - 1, 4), (2 * QUIET - 1, 4), (2 * QUIET, 2), (3 * QUIET, 1)])
def test_trouble_that_returns_soon_finds_what_was_there(after: int, factor: int) -> None:
    """Else a link that flaps would cost a view each time its factor has shrunk a little."""
    assert grown(0, 0, after).at(after) == factor


def test_trouble_after_a_long_time_is_like_a_first() -> None:
    assert grown(0, 0, 0, 0, 10**9).at(10**9) == 1
