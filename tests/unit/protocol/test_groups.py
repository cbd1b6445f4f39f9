"""Light-weight groups: the fold, light views, and what a daemon change shows to whom."""

from __future__ import annotations

from typing import NamedTuple

from covey.ids import Ballot, Life
from covey.protocol.effects import Deliver, Installed
from covey.protocol.groups.exchange import Collected, cut
from covey.protocol.groups.layer import Groups, Out
from covey.protocol.states import Reason
from covey.protocol.values import Bundle, Count, Kind, Place, Service, SessionGroups
from covey.protocol.wire.session import (
    NET,
    SELF_DISCARD,
    Discarded,
    GroupLeft,
    GroupSignal,
    GroupView,
    sender_prefix,
)
from tests.unit.protocol.builders import A, B, C

OLD, NEW = Ballot(7, 0, 1), Ballot(8, 0, 1)


class House:
    """The groups at one daemon, and a stamp that grows."""

    def __init__(self, me: Life = A) -> None:
        self.groups = Groups(me, Count())
        self.stamp = 0

    def effect(
        self, kind: Kind, life: Life, session: int, *groups: str, service: Service = Service.AGREED, flags: int = 0
    ) -> Deliver:
        self.stamp += 1
        name = sender_prefix(process(life, session))
        bundle = Bundle(
            0, self.stamp, self.stamp, life, session, 1, 1, self.stamp, service, 0, 1, groups, name, kind, flags
        )
        return Deliver(OLD, bundle, (name,))

    def join(self, life: Life, session: int, group: str = "room") -> list[Out]:
        return self.groups.deliver(self.effect(Kind.JOIN, life, session, group))

    def installed(self, *movers: Life, joined: dict[Life, tuple[SessionGroups, ...]] | None = None) -> Installed:
        joined = joined or {}
        members = tuple(sorted([*movers, *joined]))
        return Installed(OLD, NEW, members, movers, "loss", Reason.TOKEN_LOST, "", tuple(joined.items()))


class Seen(NamedTuple):
    session: int
    what: str
    group: str
    members: str
    transitional: str


def process(life: Life, session: int) -> str:
    return f"{'abc'[life.rank]}{session}"


def seen(outs: list[Out]) -> list[Seen]:
    """Each thing told, session by session, in few words."""
    told = []
    for sessions, what in outs:
        for session in sessions:
            if isinstance(what, GroupView):
                told.append(Seen(session, what.cause, what.group, " ".join(what.members), " ".join(what.transitional)))
            elif isinstance(what, GroupSignal | GroupLeft):
                told.append(Seen(session, type(what).__name__, what.group, "", ""))
            else:
                assert isinstance(what, Deliver)
                told.append(Seen(session, "data", " ".join(what.bundle.groups), "", ""))
    return told


# --- light changes


def test_a_join_is_shown_to_all_and_the_joiner_moved_with_nobody() -> None:
    house = House()
    house.join(A, 1)
    assert seen(house.join(A, 2)) == [
        Seen(1, "join", "room", "a1 a2", "a1"),
        Seen(2, "join", "room", "a1 a2", "a2"),
    ]
    assert seen(house.join(B, 3)) == [
        Seen(1, "join", "room", "a1 a2 b3", "a1 a2"),
        Seen(2, "join", "room", "a1 a2 b3", "a1 a2"),
    ]


def test_a_light_view_is_called_after_the_place_of_its_cause() -> None:
    house = House()
    [(_, view)] = house.join(A, 1)
    assert isinstance(view, GroupView)
    assert (view.view, view.stamp, view.site) == (OLD, 1, 0)


def test_joining_twice_is_nothing_new() -> None:
    house = House()
    house.join(A, 1)
    assert house.join(A, 1) == []


def test_a_leave_is_told_to_the_leaver_and_shown_to_the_rest() -> None:
    house = House()
    house.join(A, 1)
    house.join(A, 2)
    outs = house.groups.deliver(house.effect(Kind.LEAVE, A, 1, "room"))
    assert seen(outs) == [Seen(1, "GroupLeft", "room", "", ""), Seen(2, "leave", "room", "a2", "a2")]


def test_a_disconnect_leaves_every_group() -> None:
    house = House()
    for group in ("red", "blue"):
        house.join(A, 1, group)
        house.join(B, 2, group)
    outs = house.groups.deliver(house.effect(Kind.DISCONNECT, B, 2))
    assert seen(outs) == [
        Seen(1, "disconnect", "red", "a1", "a1"),
        Seen(1, "disconnect", "blue", "a1", "a1"),
    ]
    assert house.groups.roster.sizes() == {"blue": 1, "red": 1}


def test_a_message_reaches_each_session_once() -> None:
    house = House()
    house.join(A, 1, "red")
    house.join(A, 1, "blue")
    house.join(A, 2, "blue")
    outs = house.groups.deliver(house.effect(Kind.MESSAGES, B, 9, "red", "blue"))
    assert [one.session for one in seen(outs)] == [1, 2]


def test_self_discard_spares_the_sender_who_learns_the_place() -> None:
    house = House()
    house.join(A, 1)
    house.join(A, 2)
    outs = house.groups.deliver(house.effect(Kind.MESSAGES, A, 1, "room", flags=SELF_DISCARD))
    assert [(out.sessions, type(out.what)) for out in outs] == [((2,), Deliver), ((1,), Discarded)]


def test_a_private_message_finds_its_session_wherever_it_is_a_member() -> None:
    house = House()
    house.groups.addresses["bob@a"] = 5
    assert [one.session for one in seen(house.groups.deliver(house.effect(Kind.MESSAGES, B, 1, "bob@a")))] == [5]
    assert house.groups.deliver(house.effect(Kind.MESSAGES, B, 1, "bob@b")) == []


# --- daemon changes


def test_a_group_that_is_not_touched_hears_nothing() -> None:
    house = House()
    house.join(A, 1)
    house.join(B, 2)
    reliable = house.effect(Kind.MESSAGES, A, 1, "room", service=Service.RELIABLE)
    assert seen(house.groups.change([reliable], house.installed(A, B))) == [Seen(1, "data", "room", "", "")]


def test_an_agreed_message_after_the_signal_touches_its_group() -> None:
    house = House()
    house.join(A, 1)
    agreed = house.effect(Kind.MESSAGES, B, 2, "room")
    assert seen(house.groups.change([agreed], house.installed(A, B))) == [
        Seen(1, "GroupSignal", "room", "", ""),
        Seen(1, "data", "room", "", ""),
        Seen(1, "network", "room", "a1", "a1"),
    ]


def test_a_lost_daemon_takes_its_members_along() -> None:
    house = House()
    house.join(A, 1)
    house.join(B, 2)
    house.join(C, 3)
    outs = house.groups.change([], house.installed(A, B))
    assert seen(outs) == [
        Seen(1, "GroupSignal", "room", "", ""),
        Seen(1, "network", "room", "a1 b2", "a1 b2"),
    ]
    [*_, (_, view)] = outs
    assert isinstance(view, GroupView)
    assert (view.view, (view.stamp, view.site)) == (NEW, NET)


def test_a_merge_brings_members_that_did_not_move_with_us() -> None:
    house = House()
    house.join(A, 1)
    theirs = (SessionGroups(3, "c3", (("room", Place(OLD, 5, 0)), ("other", Place(OLD, 6, 0)))),)
    assert seen(house.groups.change([], house.installed(A, joined={C: theirs}))) == [
        Seen(1, "GroupSignal", "room", "", ""),
        Seen(1, "network", "room", "a1 c3", "a1"),
    ]
    assert house.groups.roster.sizes() == {"other": 1, "room": 2}


def test_both_sides_lost_members_in_the_same_change() -> None:
    house = House()
    house.join(A, 1)
    house.join(B, 2)
    theirs = (SessionGroups(3, "c3", (("room", Place(OLD, 5, 0)),)),)
    assert seen(house.groups.change([], house.installed(A, joined={C: theirs})))[-1] == Seen(
        1, "network", "room", "a1 c3", "a1"
    )


def test_who_joins_after_the_signal_sees_nothing_before_the_view() -> None:
    house = House()
    house.join(A, 1)
    after = [house.effect(Kind.JOIN, A, 2, "room"), house.effect(Kind.MESSAGES, A, 1, "room")]
    assert seen(house.groups.change(after, house.installed(A))) == [
        Seen(1, "GroupSignal", "room", "", ""),
        Seen(1, "data", "room", "", ""),
        Seen(1, "network", "room", "a1 a2", "a1"),
        Seen(2, "network", "room", "a1 a2", "a2"),
    ]


def test_who_leaves_after_the_signal_is_told_so_and_sees_no_view() -> None:
    house = House()
    house.join(A, 1)
    house.join(A, 2)
    after = [house.effect(Kind.LEAVE, A, 1, "room"), house.effect(Kind.MESSAGES, A, 2, "room")]
    assert seen(house.groups.change(after, house.installed(A))) == [
        Seen(1, "GroupSignal", "room", "", ""),
        Seen(2, "GroupSignal", "room", "", ""),
        Seen(1, "GroupLeft", "room", "", ""),
        Seen(2, "data", "room", "", ""),
        Seen(2, "network", "room", "a2", "a2"),
    ]


def test_joining_and_leaving_after_the_signal_gives_no_view_at_all() -> None:
    house = House()
    after = [house.effect(Kind.JOIN, A, 1, "room"), house.effect(Kind.LEAVE, A, 1, "room")]
    assert seen(house.groups.change(after, house.installed(A))) == [Seen(1, "GroupLeft", "room", "", "")]


def test_leaving_and_joining_again_after_the_signal_makes_a_joiner() -> None:
    house = House()
    house.join(A, 1)
    house.join(A, 2)
    after = [house.effect(Kind.LEAVE, A, 1, "room"), house.effect(Kind.JOIN, A, 1, "room")]
    assert seen(house.groups.change(after, house.installed(A)))[-2:] == [
        Seen(2, "network", "room", "a1 a2", "a2"),
        Seen(1, "network", "room", "a1 a2", "a1"),
    ]


def test_a_disconnect_after_the_signal_shows_in_the_network_view() -> None:
    house = House()
    house.join(A, 1)
    house.join(B, 2)
    after = [house.effect(Kind.DISCONNECT, B, 2)]
    assert seen(house.groups.change(after, house.installed(A, B))) == [
        Seen(1, "GroupSignal", "room", "", ""),
        Seen(1, "network", "room", "a1", "a1"),
    ]


# --- what daemons tell one another


def test_what_was_joined_travels_in_parts() -> None:
    joined = tuple(SessionGroups(n, f"p{n}@a:1.{n}", (("room", Place(OLD, n, 0)),)) for n in range(50))
    parts = cut(joined, 100)
    collected = Collected(len(parts), parts[0])
    while wanted := collected.ask():
        for part in wanted:
            assert collected.add(part, parts[part])
            assert not collected.add(part, parts[part])
    assert collected.is_answered()
    assert collected.read() == joined


def test_nothing_joined_needs_no_part() -> None:
    assert Collected(0, b"").read() == ()
    assert Collected(0, b"").ask() == ()
