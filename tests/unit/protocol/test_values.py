"""Values that layers share."""

from __future__ import annotations

from covey.protocol.values import START, Position, Service, SessionKey
from tests.unit.protocol.builders import A, B, bundle


def test_services_are_ordered_weakest_first() -> None:
    names = [service.name for service in sorted(Service)]
    assert names == ["UNRELIABLE", "RELIABLE", "FIFO", "CAUSAL", "AGREED", "SAFE"]


def test_positions_compare_by_stamp_and_then_by_site() -> None:
    assert sorted([Position(2, 0), Position(1, 1), Position(1, 0)]) == [(1, 0), (1, 1), (2, 0)]


def test_the_start_is_before_every_bundle() -> None:
    assert bundle(1, 1, site=0).position > START


def test_a_session_of_another_daemon_is_another_session() -> None:
    assert bundle(1, origin=A).key == SessionKey(A, 1)
    assert bundle(1, origin=A).key != bundle(1, origin=B).key


def test_the_last_fragment_is_known() -> None:
    assert bundle(1).is_last_fragment
    assert [bundle(1, fragment=at, fragments=3).is_last_fragment for at in range(3)] == [False, False, True]
