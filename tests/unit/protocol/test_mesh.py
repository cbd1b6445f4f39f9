"""Sites of one daemon each: stamps that grow, a window, and announcements that stop when all is quiet."""

from __future__ import annotations

import pytest

from covey.config import Settings
from covey.protocol.deadlines import DeadlineTable
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Announce
from covey.protocol.evs.links.mesh import Mesh
from tests.unit.protocol.builders import VIEW

SETTINGS = Settings(announce_interval_ms=10, announce_gap_ms=2, source_bundles_unstable=5)


@pytest.fixture
def deadlines() -> DeadlineTable:
    return DeadlineTable()


def make_mesh(*others: int, stamp: int = 100) -> Mesh:
    return Mesh(VIEW, 3, others, stamp, SETTINGS)


def test_numbers_count_from_one_and_stamps_follow_the_clock() -> None:
    mesh = make_mesh(1)
    assert [mesh.next_stamp(clock) for clock in (500, 600)] == [(1, 500), (2, 600)]


def test_stamps_grow_also_while_the_clock_stands() -> None:
    mesh = make_mesh(1)
    assert [mesh.next_stamp(0) for _ in range(3)] == [(1, 101), (2, 102), (3, 103)]


def test_no_stamp_is_at_or_below_a_promise() -> None:
    mesh = make_mesh(1)
    assert mesh.promise(500) == 500
    assert mesh.next_stamp(400) == (1, 501)


def test_a_promise_never_falls() -> None:
    mesh = make_mesh(1)
    mesh.next_stamp(500)
    assert mesh.promise(200) == 500


def test_the_window_is_what_is_not_yet_everywhere() -> None:
    mesh = make_mesh(1)
    for _ in range(3):
        mesh.next_stamp(0)
    assert (mesh.window(stable=0), mesh.window(stable=3)) == (2, 5)


def test_an_announcement_says_how_far_the_site_is() -> None:
    mesh = make_mesh(1)
    mesh.next_stamp(500)
    frame = mesh.announcement(line=450, received={7: 2, 3: 1}, quiet=True)
    assert frame == Announce(VIEW, 3, 1, 500, 450, ((3, 1), (7, 2)), True)


# --- when to announce


def test_news_is_announced_at_once_when_the_gap_has_passed(deadlines: DeadlineTable) -> None:
    make_mesh(1).want_announcement(50_000, deadlines)
    assert deadlines.at(EvsDeadline.ANNOUNCE) == 50_000


def test_announcements_keep_a_gap(deadlines: DeadlineTable) -> None:
    mesh = make_mesh(1)
    mesh.announced(50_000, True, deadlines)
    mesh.want_announcement(50_500, deadlines)
    assert deadlines.at(EvsDeadline.ANNOUNCE) == 52_000


def test_an_earlier_announcement_is_not_put_off(deadlines: DeadlineTable) -> None:
    deadlines.set(EvsDeadline.ANNOUNCE, 40_000)
    make_mesh(1).want_announcement(50_000, deadlines)
    assert deadlines.at(EvsDeadline.ANNOUNCE) == 40_000


def test_a_site_alone_announces_nothing(deadlines: DeadlineTable) -> None:
    make_mesh().want_announcement(50_000, deadlines)
    assert not deadlines.is_set(EvsDeadline.ANNOUNCE)


def test_announcing_goes_on_while_anything_is_unstable(deadlines: DeadlineTable) -> None:
    make_mesh(1).announced(900_000, False, deadlines)
    assert deadlines.at(EvsDeadline.ANNOUNCE) == 910_000


def test_announcing_goes_on_for_a_while_and_then_stops(deadlines: DeadlineTable) -> None:
    mesh = make_mesh(1)
    mesh.want_announcement(1_000_000, deadlines)
    deadlines.clear(EvsDeadline.ANNOUNCE)
    mesh.announced(1_040_000, True, deadlines)
    assert deadlines.at(EvsDeadline.ANNOUNCE) == 1_050_000
    deadlines.clear(EvsDeadline.ANNOUNCE)
    mesh.announced(1_050_000, True, deadlines)
    assert not deadlines.is_set(EvsDeadline.ANNOUNCE)
