"""S1 to S5 at level C: for each a good trace, and a bad one for each clause."""

from __future__ import annotations

import pytest

from covey.guarantees.checkers import clients
from covey.guarantees.checkers.history import History
from tests.unit.checkers.clients.damage import (
    assert_good,
    broken,
    changed,
    moved,
    repeated,
    row_of,
    rows_of,
    trio,
    without,
)
from tests.unit.checkers.clients.world import World

# ------------------------------------------------------------------------------------------------------------------ S1


def test_s1_holds_for_members_outsiders_and_private_messages() -> None:
    world = trio()
    world.connect("w", "a")
    world.multicast("w", "agreed", "g")
    world.multicast("x", "agreed", "", to="w")
    world.leave("x", "g")
    world.flow().become("a b", "c").multicast("y", "safe", "g")
    assert_good(world.settle(), "S1")


def test_s1_another_view_than_the_current_one() -> None:
    world = trio()
    message = world.multicast("x", "agreed", "g")
    row = row_of(world, "y", event="deliver", message=message)
    assert broken(changed(world, row, view="v1/1.1", views=("v1/1.1",))) == {"S1"}


def test_s1_a_delivery_to_somebody_who_is_no_member() -> None:
    world = trio()
    world.connect("w", "a")
    message = world.multicast("x", "agreed", "g")
    row = row_of(world, "x", event="deliver", message=message)
    stranger = world.clients["w"]
    strange = repeated(world, row, process=stranger.process, name=stranger.name, views=("",), view=None)
    assert broken(strange) == {"S1"}


def test_s1_a_view_that_does_not_follow() -> None:
    world = trio()
    assert broken(without(world, rows_of(world, "x", event="view")[1])) >= {"S1"}


@pytest.mark.parametrize("event", ["transitional", "self_leave"])
def test_s1_a_signal_or_leave_in_another_view(event: str) -> None:
    world = trio()
    world.leave("x", "g")
    world.flow().become("a b", "c")
    row = row_of(world, "x" if event == "self_leave" else "y", event=event)
    assert broken(changed(world, row, view="v1/1.1")) == {"S1"}


def test_s1_a_signal_in_no_view() -> None:
    world = trio()
    world.become("a b", "c")
    row = row_of(world, "y", event="transitional")
    assert "S1" in broken(moved(world, row, rows_of(world, "y", event="view")[0], view=None))


@pytest.mark.parametrize("departure", ["crash", "disconnect"])
def test_s1_a_delivery_after_the_departure(departure: str) -> None:
    world = trio()
    message = world.multicast("x", "agreed", "g")
    world.depart("y", departure)
    row = next(row for row in world.client_rows if row.process.startswith("y") and row.message == message)
    assert "S1" in broken(moved(world, row, None))


def test_s1_a_leave_before_the_join_was_shown_has_no_view() -> None:
    world = trio()
    world.connect("w", "a")
    world.flow()
    world.join("w", "g")
    world.leave("w", "g")
    world.become("a b", "c")
    assert row_of(world, "w", event="self_leave").view is None
    assert rows_of(world, "w", event="view") == []
    assert_good(world.settle(), "S1")


# ------------------------------------------------------------------------------------------------------------- S2, S3


def test_s2_holds() -> None:
    assert_good(trio(), "S2")


def test_s2_a_view_without_its_receiver() -> None:
    world = World("a b")
    world.connect("x", "a")
    world.join("x", "g")
    world.flow()
    row = row_of(world, "x", event="view")
    assert broken(changed(world, row, members=("y@b:1.1",), transitional=("x@a:1.1",))) == {"S2", "C5"}


def test_s3_holds_for_who_comes_back() -> None:
    world = trio()
    world.leave("x", "g")
    world.join("x", "g")
    assert_good(world.flow(), "S3")


def test_s3_a_rank_that_does_not_grow() -> None:
    world = trio()
    world.leave("x", "g")
    world.flow()
    world.join("x", "g")
    world.flow()
    row = rows_of(world, "x", event="view")[-1]
    assert broken(changed(world, row, view_rank=(1, 0, 1, 3, 1))) >= {"S3"}


# ------------------------------------------------------------------------------------------------------------------ S4


def test_s4_holds_while_a_partition_is_in_progress() -> None:
    world = trio()
    world.become("a b", "c").become("a b c")
    assert_good(world, "S4")


@pytest.mark.parametrize("members", [("x@a:1.1", "y@b:1.1"), ("w@c:1.9", "x@a:1.1", "y@b:1.1", "z@c:1.1")])
def test_s4_other_members_for_the_same_id(members: tuple[str, ...]) -> None:
    world = trio()
    row = rows_of(world, "x", event="view")[-1]
    assert broken(changed(world, row, members=members)) >= {"S4", "C3"}


def test_s4_another_rank_for_the_same_id() -> None:
    world = trio()
    row = rows_of(world, "x", event="view")[-1]
    assert broken(changed(world, row, view_rank=(2, 0, 1, 3, 1))) == {"S4", "C3"}


# ------------------------------------------------------------------------------------------------------------------ S5


def test_s5_holds_where_components_meet_and_members_join_silently() -> None:
    world = trio()
    world.become("a b", "c")
    world.connect("w", "a")
    world.join("w", "g")
    world.become("a b c")
    assert row_of(world, "w", event="view").transitional == ("w@a:1.2",)
    assert_good(world.settle(), "S5")


def test_s5_a_joiner_with_others_in_its_set() -> None:
    world = trio()
    row = row_of(world, "z", event="view")
    assert broken(changed(world, row, transitional=row.members)) == {"S5"}


def test_s5_one_who_came_along_is_missing() -> None:
    world = trio()
    world.become("a b", "c")
    row = rows_of(world, "x", event="view")[-1]
    assert broken(changed(world, row, transitional=("x@a:1.1",))) == {"S5"}


def test_s5_one_who_came_along_through_a_light_change_is_missing() -> None:
    world = trio()
    row = rows_of(world, "x", event="view")[-1]
    assert broken(changed(world, row, transitional=("x@a:1.1",))) == {"S5", "C5"}


def test_s5_one_who_came_from_elsewhere_is_there() -> None:
    world = trio()
    world.become("a b", "c").become("a b c")
    row = rows_of(world, "x", event="view")[-1]
    assert broken(changed(world, row, transitional=row.members)) >= {"S5"}


def test_s5_not_the_same_set_at_two_who_moved_together() -> None:
    """z departs on the way: whether it is in the sets cannot be told from its own rows, but the sets must be equal."""
    world = trio()
    world.crash_daemon("c")
    world.become("a b")
    row = rows_of(world, "x", event="view")[-1]
    others = {"members": (*row.members, "z@c:1.1"), "transitional": (*row.transitional, "z@c:1.1")}
    assert broken(changed(world, row, **others)) >= {"S5"}


def daemons_from_different_views() -> World:
    """b missed v2, which a installed without a view for the group; both come to v3 from the same view of it."""
    world = World("a b")
    for name, daemon in (("x", "a"), ("y", "b")):
        world.connect(name, daemon)
        world.join(name, "g")
        world.flow()
    members = [world.clients["x"], world.clients["y"]]
    daemons = world.daemons
    daemons.signal("a")
    daemons.counter = 2
    daemons.install_at("a", "v2", "a b", "a b")
    daemons.signal("a b")
    daemons.counter = 3
    daemons.install_at("a", "v3", "a b", "a").install_at("b", "v3", "a b", "b")
    for client in members:
        world.write(client, "transitional", group="g", view=client.views["g"])
        world.show(client, "g", ("v3/net", (3, 0, 1, 0, 0)), members, [client], cause="network")
    return world


def test_s5_no_common_set_where_the_daemons_came_from_different_views() -> None:
    world = daemons_from_different_views()
    history = clients.ClientHistory("run", world.rows, History("run", world.rows))
    assert clients.CHECKERS["S5"](history).violations == []
    assert clients.CHECKERS["S5"](history).premises == 5


def test_s5_network_views_need_the_rows_of_the_daemons() -> None:
    world = daemons_from_different_views()
    history = clients.ClientHistory("run", world.client_rows, History("run", []))
    assert clients.CHECKERS["S5"](history).violations == []
