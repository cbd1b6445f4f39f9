"""Light-weight groups: the fold, light views, and what a daemon change shows to whom."""

from __future__ import annotations

from covey.protocol.effects import Deliver
from covey.protocol.notices import NET, OwnDiscarded, Views, WholeView
from covey.protocol.values import Kind, Service
from covey.protocol.wire.bodies import SELF_DISCARD
from tests.unit.protocol.builders import A, B, C
from tests.unit.protocol.grouphouse import NEW, OLD, House, Seen, stay

# --- light changes


def test_a_join_is_shown_to_all_and_the_joiner_moved_with_nobody() -> None:
    house = House()
    house.join(A, 1)
    assert house.join(A, 2) == [
        Seen(2, "join", "room", "a1 a2", "a2"),
        Seen(1, "join", "room", "a1 a2", "a1"),
    ]
    assert house.join(B, 3) == [
        Seen(1, "join", "room", "a1 a2 b3", "a1 a2"),
        Seen(2, "join", "room", "a1 a2 b3", "a1 a2"),
    ]


def test_a_light_view_is_called_after_the_place_of_its_cause() -> None:
    house = House()
    [(_, view)] = filter(None, house.groups.changed([house.effect(Kind.JOIN, A, 1, "room")]))
    assert isinstance(view, WholeView)
    assert (view.view, view.stamp, view.site) == (OLD, 1, 0)
    [_, (_, views)] = filter(None, house.groups.changed([house.effect(Kind.JOIN, A, 2, "room")]))
    assert isinstance(views, Views)
    assert [(one.view, one.stamp, one.site) for one in views.differences] == [(OLD, 2, 0)]


def test_joining_twice_is_nothing_new() -> None:
    house = House()
    house.join(A, 1)
    assert house.join(A, 1) == []


def test_a_leave_is_told_to_the_leaver_and_shown_to_the_rest() -> None:
    house = House()
    house.join(A, 1)
    house.join(A, 2)
    assert house.leave(A, 1) == [Seen(1, "LeftGroup", "room", "", ""), Seen(2, "leave", "room", "a2", "a2")]


def test_a_disconnect_leaves_every_group() -> None:
    house = House()
    for group in ("red", "blue"):
        house.join(A, 1, group)
        house.join(B, 2, group)
    assert house.change(house.effect(Kind.DISCONNECT, B, 2)) == [
        Seen(1, "disconnect", "red", "a1", "a1"),
        Seen(1, "disconnect", "blue", "a1", "a1"),
    ]
    assert house.groups.roster.largest(9) == {"blue": 1, "red": 1}


def test_a_message_reaches_each_session_once() -> None:
    house = House()
    house.join(A, 1, "red")
    house.join(A, 1, "blue")
    house.join(A, 2, "blue")
    told = house.message(house.effect(Kind.MESSAGES, B, 9, "red", "blue"))
    assert [one.session for one in told] == [1, 2]


def test_self_discard_spares_the_sender_who_learns_the_place() -> None:
    house = House()
    house.join(A, 1)
    house.join(A, 2)
    outs = house.groups.message(house.effect(Kind.MESSAGES, A, 1, "room", flags=SELF_DISCARD))
    assert [(out.sessions, type(out.what)) for out in outs] == [((2,), Deliver), ((1,), OwnDiscarded)]


def test_a_private_message_finds_its_session_wherever_it_is_a_member() -> None:
    house = House()
    house.groups.addresses["bob@a"] = 5
    assert [one.session for one in house.message(house.effect(Kind.MESSAGES, B, 1, "bob@a"))] == [5]
    assert house.message(house.effect(Kind.MESSAGES, B, 1, "bob@b")) == []


# --- daemon changes


def test_a_group_that_is_not_touched_hears_nothing() -> None:
    house = House()
    house.join(A, 1)
    house.join(B, 2)
    reliable = house.effect(Kind.MESSAGES, A, 1, "room", service=Service.RELIABLE)
    assert house.step([reliable], house.installed(A, B)) == [Seen(1, "data", "room", "", "")]


def test_an_agreed_message_after_the_signal_touches_its_group() -> None:
    house = House()
    house.join(A, 1)
    agreed = house.effect(Kind.MESSAGES, B, 2, "room")
    assert house.step([agreed], house.installed(A, B)) == [
        Seen(1, "GroupSignalled", "room", "", ""),
        Seen(1, "data", "room", "", ""),
        Seen(1, "network", "room", "a1", "a1"),
    ]


def test_a_lost_daemon_takes_its_members_along() -> None:
    house = House()
    house.join(A, 1)
    house.join(B, 2)
    house.join(C, 3)
    outs = house.outs([], house.installed(A, B))
    assert house.seen(outs) == [
        Seen(1, "GroupSignalled", "room", "", ""),
        Seen(1, "network", "room", "a1 b2", "a1 b2"),
    ]
    [*_, (_, views)] = outs
    assert isinstance(views, Views)
    assert [(one.view, (one.stamp, one.site)) for one in views.differences] == [(NEW, NET)]


def test_a_merge_brings_members_that_did_not_move_with_us() -> None:
    house = House()
    house.join(A, 1)
    theirs = (stay(C, 3), stay(C, 3, "other"))
    assert house.step([], house.installed(A, joined={C: theirs})) == [
        Seen(1, "GroupSignalled", "room", "", ""),
        Seen(1, "network", "room", "a1 c3", "a1"),
    ]
    assert house.groups.roster.largest(9) == {"room": 2, "other": 1}


def test_both_sides_lost_members_in_the_same_change() -> None:
    house = House()
    house.join(A, 1)
    house.join(B, 2)
    theirs = (stay(C, 3),)
    assert house.step([], house.installed(A, joined={C: theirs}))[-1] == Seen(1, "network", "room", "a1 c3", "a1")


def test_who_joins_after_the_signal_sees_nothing_before_the_view() -> None:
    house = House()
    house.join(A, 1)
    after = [house.effect(Kind.JOIN, A, 2, "room"), house.effect(Kind.MESSAGES, A, 1, "room")]
    assert house.step(after, house.installed(A)) == [
        Seen(1, "GroupSignalled", "room", "", ""),
        Seen(1, "data", "room", "", ""),
        Seen(1, "network", "room", "a1 a2", "a1"),
        Seen(2, "network", "room", "a1 a2", "a2"),
    ]


def test_who_leaves_after_the_signal_is_told_so_and_sees_no_view() -> None:
    house = House()
    house.join(A, 1)
    house.join(A, 2)
    after = [house.effect(Kind.LEAVE, A, 1, "room"), house.effect(Kind.MESSAGES, A, 2, "room")]
    assert house.step(after, house.installed(A)) == [
        Seen(1, "GroupSignalled", "room", "", ""),
        Seen(2, "GroupSignalled", "room", "", ""),
        Seen(1, "LeftGroup", "room", "", ""),
        Seen(2, "data", "room", "", ""),
        Seen(2, "network", "room", "a2", "a2"),
    ]


def test_joining_and_leaving_after_the_signal_gives_no_view_at_all() -> None:
    house = House()
    after = [house.effect(Kind.JOIN, A, 1, "room"), house.effect(Kind.LEAVE, A, 1, "room")]
    assert house.step(after, house.installed(A)) == [Seen(1, "LeftGroup", "room", "", "")]


def test_leaving_and_joining_again_after_the_signal_makes_a_joiner() -> None:
    house = House()
    house.join(A, 1)
    house.join(A, 2)
    after = [house.effect(Kind.LEAVE, A, 1, "room"), house.effect(Kind.JOIN, A, 1, "room")]
    assert house.step(after, house.installed(A))[-2:] == [
        Seen(2, "network", "room", "a1 a2", "a2"),
        Seen(1, "network", "room", "a1 a2", "a1"),
    ]


def test_a_disconnect_after_the_signal_shows_in_the_network_view() -> None:
    house = House()
    house.join(A, 1)
    house.join(B, 2)
    after = [house.effect(Kind.DISCONNECT, B, 2)]
    assert house.step(after, house.installed(A, B)) == [
        Seen(1, "GroupSignalled", "room", "", ""),
        Seen(1, "network", "room", "a1", "a1"),
    ]
