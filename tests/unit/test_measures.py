"""What a daemon process tells of its work: counts, and how fast they grow."""

from __future__ import annotations

from covey.cluster import one_site
from covey.drivers.live.endpoint import Traffic
from covey.drivers.live.measures import RECENT_US, RECENT_VIEWS_MAX, Measures, Rate, Turns
from covey.drivers.live.told import RingStatus
from covey.ids import Ballot, Life
from covey.protocol.effects import Installed, Signal
from covey.protocol.evs.link_status import EvsLinkStatus
from covey.protocol.evs.states import Reason

SECOND = 1_000_000
VIEW = Ballot(1, 0, 1)


def test_a_rate_is_taken_over_a_second_or_more_and_kept_until_the_next() -> None:
    rate = Rate(0)
    assert rate.per_second(10, SECOND // 2) == 0, "too early to tell"
    assert rate.per_second(30, 2 * SECOND) == 15
    assert rate.per_second(99, 2 * SECOND + 1) == 15, "too early again"
    assert rate.per_second(30, 4 * SECOND) == 0


def test_effects_are_counted_by_what_they_are() -> None:
    measures = Measures(0)
    for effect in (Signal(VIEW), Installed(None, VIEW, (), (), "start", Reason.STARTED, "")):
        measures.observe(effect)
    told = measures.snapshot(Traffic(), SECOND)
    assert (measures.changes, told["views"], told["delivered"]) == (2, 1, 0)


def test_the_last_views_are_told_with_who_came_along_and_why() -> None:
    measures = Measures(0)
    a, b = Life(0, 7), Life(1, 7)
    for number in range(RECENT_VIEWS_MAX + 3):
        view = Ballot(number, 0, 1)
        measures.observe(Installed(None, view, (a, b), (a,), "merge", Reason.STRANGERS, "b"), number)
    told = measures.recent_views(one_site(2))
    assert [one["time_ns"] for one in told] == list(range(RECENT_VIEWS_MAX + 2, 2, -1))
    assert told[0] == {
        "time_ns": RECENT_VIEWS_MAX + 2,
        "view": str(Ballot(RECENT_VIEWS_MAX + 2, 0, 1)),
        "members": ["a", "b"],
        "transitional": ["a"],
        "cause": "merge",
        "reason": Reason.STRANGERS.value,
        "detail": "b",
    }


def test_all_traffic_is_told_with_its_rate() -> None:
    told = Measures(0).snapshot(Traffic(4, 400, 6, 600), 2 * SECOND)
    assert told["datagrams_sent"] == 4
    assert told["datagrams_sent_per_s"] == 2
    assert told["bytes_sent_per_s"] == 200
    assert told["datagrams_received_per_s"] == 3
    assert told["bytes_received_per_s"] == 300


def test_what_tools_read_of_a_ring_is_what_its_engine_tells() -> None:
    assert RingStatus.__annotations__.keys() - {"rotations_per_s"} <= EvsLinkStatus.__annotations__.keys()


def test_rotations_are_counted_anew_in_each_view() -> None:
    measures = Measures(0)
    assert measures.rotations_per_s("one", 300, 3, SECOND) == 0
    assert measures.rotations_per_s("one", 600, 3, 2 * SECOND) == 100
    assert measures.rotations_per_s("two", 10, 2, 3 * SECOND) == 0, "the view has just begun"
    assert measures.rotations_per_s("two", 50, 2, 4 * SECOND) == 20


def test_the_longest_turn_is_told_of_all_time_and_of_late() -> None:
    turns = Turns()
    turns.add(0, 70_000)
    turns.add(100_000, 101_500)
    assert turns.snapshot(SECOND) == {"longest_step_ms": 70, "longest_step_recent_ms": 70}
    turns.add(RECENT_US, RECENT_US + 70_000 + 2_000)
    assert turns.snapshot(RECENT_US + SECOND)["longest_step_recent_ms"] == 72, "ten to twenty seconds"
    turns.add(2 * RECENT_US + SECOND, 2 * RECENT_US + SECOND + 3_000)
    turns.add(3 * RECENT_US + 2 * SECOND, 3 * RECENT_US + 2 * SECOND + 1_000)
    assert turns.snapshot(3 * RECENT_US + 3 * SECOND) == {"longest_step_ms": 72, "longest_step_recent_ms": 3}


def test_a_long_turn_is_forgotten_though_nothing_happened_since() -> None:
    turns = Turns()
    turns.add(0, 70_000)
    assert turns.snapshot(9 * RECENT_US) == {"longest_step_ms": 70, "longest_step_recent_ms": 0}
