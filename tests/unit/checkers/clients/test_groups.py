"""C1 to C8: for each a good trace, and a bad one for each clause."""

from __future__ import annotations

import msgspec
import pytest

from covey.trace.record import Row
from tests.unit.checkers.builder import renumbered, verdicts
from tests.unit.checkers.clients.damage import (
    assert_good,
    broken,
    changed,
    moved,
    repeated,
    row_of,
    rows_of,
    trio,
    violations,
    without,
)
from tests.unit.checkers.clients.world import World

# ------------------------------------------------------------------------------------------------------------------ C1


def every_cause() -> World:
    """z leaves, y crashes, w joins, and the daemons split."""
    world = trio("g", "h")
    world.connect("w", "a")
    world.join("w", "g")
    world.leave("z", "g")
    world.flow()
    world.crash("y")
    world.flow().become("a c", "b")
    return world


def test_c1_holds() -> None:
    assert_good(every_cause().settle(), "C1", "C3", "C5", "C6", "C7")


def test_c1_one_place_for_two_changes() -> None:
    """The leaves of z from both groups, shown as one."""
    world = trio("g", "h")
    leaves = [world.leave("z", "g"), world.leave("z", "h")]
    world.flow()
    (_, first, _), (_, second, _) = leaves[0].place, leaves[1].place

    def merged(row: Row) -> Row:
        if row.level == "S" or row.order_stamp != second:
            return row
        if row.event == "self_leave":
            return msgspec.structs.replace(row, order_stamp=first)
        return msgspec.structs.replace(row, order_stamp=first, view_new=f"v1/{first}.1", view_rank=(1, 0, 1, first, 1))

    assert broken([merged(row) for row in world.rows]) == {"C1"}


def test_c1_a_disconnect_changes_all_groups_at_one_place() -> None:
    world = trio("g", "h")
    world.crash("z")
    world.flow()
    shown = [rows_of(world, "x", event="view", group=group)[-1].order_stamp for group in ("g", "h")]
    assert shown[0] == shown[1]
    assert_good(world, "C1")


def test_c1_more_than_one_change_in_a_light_view() -> None:
    world = trio()
    world.leave("z", "g")
    world.leave("y", "g")
    world.flow()
    row = rows_of(world, "x", event="view")[-2]
    last = rows_of(world, "x", event="view")[-1]
    rows = [row if row is not last else msgspec.structs.replace(row, view=last.view) for row in without(world, row)]
    assert broken(rows) >= {"C1"}


def test_c1_the_place_of_a_message() -> None:
    world = trio()
    message = world.multicast("x", "fifo", "h")
    world.connect("w", "a")
    world.join("w", "h")
    message = world.multicast("x", "fifo", "h")
    view, stamp, _ = world.items[message].place
    row = row_of(world, "w", event="view")
    bad = changed(
        world, row, order_view=view, order_stamp=stamp, view_new=f"v1/{stamp}.1", view_rank=(1, 0, 1, stamp, 1)
    )
    assert "C1" in broken(bad)


def test_c1_a_light_view_after_a_signal() -> None:
    world = trio()
    world.leave("z", "g")
    world.flow()
    signal = repeated(
        world,
        row_of(world, "x", event="connect"),
        rows_of(world, "x", event="view")[-1],
        event="transitional",
        group="g",
        view=rows_of(world, "x", event="view")[-1].view,
    )
    assert broken(signal) == {"C1", "C3"}


def test_c1_a_join_that_never_takes_effect() -> None:
    world = trio()
    world.connect("w", "a")
    world.write(world.clients["w"], "join", group="g")
    world.settle()
    assert broken(world.rows) == {"C1"}


def test_c1_a_join_that_was_refused() -> None:
    world = trio()
    world.connect("w", "a")
    world.write(world.clients["w"], "join", group="g", cause="too many groups")
    assert_good(world.settle(), "C1")


# ------------------------------------------------------------------------------------------------------------------ C2


def test_c2_holds() -> None:
    world = trio()
    for service in ("reliable", "fifo", "causal", "agreed", "safe"):
        world.multicast("x", service, "g")
    assert_good(world.become("a b", "c"), "C2")


def test_c2_another_view_at_two_members() -> None:
    world = trio()
    message = world.multicast("x", "agreed", "g")
    world.connect("w", "a")
    world.join("w", "g")
    world.flow()
    view = world.clients["z"].views["g"]
    row = row_of(world, "z", event="deliver", message=message)
    assert broken(moved(world, row, None, view=view, views=(view,))) >= {"C2", "S9"}


def test_c2_an_early_message_missing_between_network_views() -> None:
    world = trio()
    message = world.multicast("x", "fifo", "g")
    world.become("a b", "c")
    assert broken(without(world, row_of(world, "y", event="deliver", message=message))) == {"C2", "S8"}


def test_c2_a_group_that_goes_on_though_the_daemons_had_their_signal() -> None:
    """x and y come along with a message after the signal, but are shown neither signal nor view."""
    world = untouched()
    world.send("x", "agreed", "g")
    world.become("a b", "c").settle()
    hidden = [row for name in "xy" for row in rows_of(world, name, group="g") if "v2" in (row.view_new or "")]
    signals = [row_of(world, name, event="transitional") for name in "xy"]
    assert broken(without(world, *hidden, *signals)) == {"C2"}


# ------------------------------------------------------------------------------------------------------------------ C3


def test_c3_other_members() -> None:
    world = trio()
    world.become("a b", "c")
    row = rows_of(world, "x", event="view")[-1]
    assert broken(changed(world, row, members=("x@a:1.1",), transitional=("x@a:1.1",))) >= {"C3", "S4"}


@pytest.mark.parametrize("id_and_rank", [("v1/3.2", (1, 0, 1, 3, 2)), ("v1/net", (1, 0, 1, 0, 0))])
def test_c3_an_id_that_is_not_that_of_the_cause(id_and_rank: tuple[str, tuple[int, ...]]) -> None:
    world = trio()
    row = row_of(world, "z", event="view")
    assert row.view_new == "v1/3.1"
    view, rank = id_and_rank
    assert "C3" in broken(changed(world, row, view_new=view, view_rank=rank))


def test_c3_a_light_view_of_another_group_after_a_signal() -> None:
    world = trio("g", "h")
    world.leave("z", "h")
    world.flow().become("a b", "c")
    signal, light = (
        row_of(world, "x", event="transitional", group="g"),
        rows_of(world, "x", event="view", group="h")[-1],
    )
    assert broken(moved(world, light, rows_of(world, "x", event="view", view_new="v2/net")[0])) >= {"C3"}
    assert signal.group == "g"


def test_c3_a_light_view_for_a_change_after_the_daemons_signal() -> None:
    """It is shown before the signal of the group, but the daemon had its signal before it passed the change."""
    world = trio()
    world.leave("z", "g")
    world.flow("c")
    world.multicast("x", "agreed", "h")
    rows = world.become("a b", "c").rows
    assert broken(rows) == set()
    signal = next(row for row in rows if row.process == "a:1" and row.event == "transitional")
    passed = next(row for row in rows if row.process == "a:1" and row.order_stamp == 4 and row.event == "deliver")
    rows.remove(signal)
    rows.insert(rows.index(passed), signal)
    assert "C3" in {violation.guarantee for violation in violations(renumbered(rows)) if "@" in violation.process}


def test_c3_a_daemon_view_that_the_daemon_never_installed() -> None:
    world = trio()
    world.become("a b", "c")
    rows = [
        msgspec.structs.replace(row, view_new="v9/net", view_rank=(2, 0, 1, 0, 0)) if row.view_new == "v2/net" else row
        for row in world.rows
    ]
    assert "C3" in broken(rows)


def test_c3_members_at_daemons_that_are_not_in_the_daemon_view() -> None:
    world = trio()
    world.become("a b", "c")
    rows = [
        msgspec.structs.replace(row, members=("x@a:1.1", "y@b:1.1", "z@c:1.1")) if row.view_new == "v2/net" else row
        for row in world.rows
    ]
    assert "C3" in broken(rows)


def test_c3_members_that_rest_elsewhere() -> None:
    world = trio()
    world.leave("z", "g")
    world.settle()
    assert broken(without(world, rows_of(world, "y", event="view")[-1])) == {"C3"}


# ------------------------------------------------------------------------------------------------------------------ C4


def untouched() -> World:
    """x and y are in g, z alone is in h: the loss of c is nothing to g."""
    world = World("a b c")
    for name, daemon, group in (("x", "a", "g"), ("y", "b", "g"), ("z", "c", "h")):
        world.connect(name, daemon)
        world.join(name, group)
        world.flow()
    return world


def test_c4_holds_also_for_early_messages_after_the_signal() -> None:
    world = untouched()
    world.send("x", "reliable", "g")
    world.become("a b", "c")
    assert rows_of(world, "x", event="transitional") == []
    world.multicast("x", "agreed", "g")
    world.become("a b c").leave("y", "g")
    assert_good(world.settle(), "C4")


def with_network_views(world: World) -> World:
    """As if the group had been touched."""
    members = [world.clients["x"], world.clients["y"]]
    for client in members:
        world.write(client, "transitional", group="g", view=client.views["g"])
        world.show(client, "g", ("v2/net", (2, 0, 1, 0, 0)), members, members, cause="network")
    return world


def test_c4_a_view_for_a_group_that_nothing_touched() -> None:
    world = untouched()
    world.become("a b", "c")
    with_network_views(world)
    assert broken(world.rows) == {"C4"}


def test_c4_is_not_decided_without_the_daemons() -> None:
    world = untouched()
    world.become("a b", "c")
    with_network_views(world)
    assert broken(world.client_rows) == set()


def test_c4_is_not_decided_where_a_daemon_passed_something_unknown_after_the_signal() -> None:
    world = untouched()
    world.daemons.signal("a b")
    unknown = world.daemons.send("a", "agreed", order_view="v1")
    world.daemons.deliver(unknown, "a b")
    world.daemons.install("v2", "a b")
    with_network_views(world)
    assert "C4" not in broken(world.rows)


def test_c4_an_agreed_message_after_the_signal_touches_its_group() -> None:
    world = untouched()
    world.send("x", "agreed", "g")
    world.become("a b", "c")
    assert len(rows_of(world, "x", event="transitional")) == 1
    world.flow().become("a b c")
    assert_good(world.settle(), "C4")


def test_c4_no_view_when_members_are_lost() -> None:
    world = trio()
    world.become("a b", "c")
    world.multicast("x", "agreed", "g")
    world.settle()
    victims = [row for name in "xy" for row in rows_of(world, name, group="g") if row.event in ("view", "transitional")]
    lost = [row for row in victims if row.view_new == "v2/net" or row.event == "transitional"]
    rows = [
        msgspec.structs.replace(row, views=("v1/3.1",), view="v1/3.1") if row.view == "v2/net" else row
        for row in without(world, *lost)
    ]
    assert "C4" in broken(rows)


def test_c4_a_network_view_without_a_signal() -> None:
    world = trio()
    world.become("a b", "c")
    assert broken(without(world, row_of(world, "x", event="transitional"))) == {"C4"}


# ------------------------------------------------------------------------------------------------------------------ C5


@pytest.mark.parametrize("cause", ["leave", "disconnect", "network", None, "whim"])
def test_c5_another_cause_at_one_member(cause: str | None) -> None:
    world = trio()
    row = rows_of(world, "x", event="view")[-1]
    assert "C5" in broken(changed(world, row, cause=cause))


@pytest.mark.parametrize(("claimed", "true"), [("disconnect", "leave"), ("leave", "disconnect")])
def test_c5_a_cause_that_is_not_true(claimed: str, true: str) -> None:
    world = trio()
    if true == "leave":
        world.leave("z", "g")
    else:
        world.crash("z")
    world.settle()
    rows = [msgspec.structs.replace(row, cause=claimed) if row.cause == true else row for row in world.rows]
    assert "C5" in broken(rows)


def test_c5_a_join_that_nobody_asked_for() -> None:
    world = trio()
    assert broken(without(world, row_of(world, "z", event="join"))) == {"C5"}


def test_c5_who_moved_with_whom() -> None:
    world = trio()
    world.leave("z", "g")
    world.flow()
    rows = [
        msgspec.structs.replace(row, transitional=(row.process,)) if row.cause == "leave" else row for row in world.rows
    ]
    assert "C5" in broken(rows)


# ------------------------------------------------------------------------------------------------------------------ C6


def test_c6_a_leave_without_a_place() -> None:
    world = trio()
    world.leave("z", "g")
    world.flow()
    row = row_of(world, "z", event="self_leave")
    assert broken(changed(world, row, order_view=None, order_stamp=None, order_site=None)) == {"C6"}


def test_c6_another_place_than_the_others_saw() -> None:
    world = trio()
    world.leave("z", "g")
    world.settle()
    row = row_of(world, "z", event="self_leave")
    assert broken(changed(world, row, order_stamp=9)) == {"C6"}


def test_c6_a_leaver_that_lacks_what_came_before_its_leave() -> None:
    world = trio()
    message = world.multicast("x", "agreed", "g")
    world.leave("z", "g")
    world.flow()
    assert broken(without(world, row_of(world, "z", event="deliver", message=message))) == {"C6"}


def test_c6_a_leave_that_never_takes_effect() -> None:
    world = trio()
    world.write(world.clients["z"], "leave", group="g")
    world.settle()
    assert broken(world.rows) == {"C6"}


def test_c6_a_leaver_that_was_not_told() -> None:
    world = trio("g", "h")
    world.leave("z", "g")
    world.flow().multicast("x", "agreed", "h")
    world.crash("z")
    assert "C6" in broken(without(world, row_of(world, "z", event="self_leave")))


# ------------------------------------------------------------------------------------------------------------------ C7


def test_c7_one_departure_takes_two_away() -> None:
    world = trio()
    world.crash("z")
    world.settle()
    rows = [
        msgspec.structs.replace(row, members=("x@a:1.1",), transitional=("x@a:1.1",))
        if row.cause == "disconnect" and row.process == "x@a:1.1"
        else row
        for row in world.rows
    ]
    assert "C7" in broken(rows)


def test_c7_somebody_who_lives_on() -> None:
    world = trio()
    world.leave("z", "g")
    world.settle()
    rows = [msgspec.structs.replace(row, cause="disconnect") if row.cause == "leave" else row for row in world.rows]
    assert "C7" in broken(rows)


@pytest.mark.parametrize("departure", ["crash", "disconnect"])
def test_c7_one_who_departed_and_stays_a_member(departure: str) -> None:
    world = trio()
    world.depart("z", departure)
    world.settle()
    lost = [rows_of(world, name, event="view")[-1] for name in ("x", "y")]
    assert broken(without(world, *lost)) == {"C7"}


# ------------------------------------------------------------------------------------------------------------------ C8


def test_c8_holds_for_a_name_that_is_used_again() -> None:
    world = trio()
    world.crash("z")
    world.refuse("z", "c")
    world.flow()
    world.connect("z", "c")
    world.join("z", "g")
    assert_good(world.settle(), "C8")


def test_c8_refused_without_a_reason() -> None:
    world = trio()
    world.refuse("z", "c")
    row = next(row for row in world.client_rows if row.event == "refused")
    assert broken(changed(world, row, cause=None)) == {"C8"}


def test_c8_two_sessions_of_one_name_at_rest() -> None:
    world = trio()
    world.connect("z", "c")
    rows = [*world.settle().rows]
    earlier = next(client for client in world.all_clients if client.process == "z@c:1.1")
    world.write(earlier, "end")
    assert broken([*rows, world.client_rows[-1]]) == {"C8"}


def test_c8_two_sessions_of_one_name_in_a_view() -> None:
    world = trio()
    world.connect("z", "c")
    world.join("z", "g")
    assert broken(world.flow().rows) == {"C8"}


def test_c8_an_earlier_session_after_a_later_one() -> None:
    world = trio("h")
    world.crash("z")
    world.flow()
    world.connect("z", "c")
    world.join("z", "g")
    world.join("x", "g")
    world.flow()
    assert verdicts(world.rows)["C8"].holds
    row = row_of(world, "x", event="view", group="g")
    again = repeated(world, rows_of(world, "x", event="view", group="h")[2], group="i", view=None)
    assert "z@c:1.2" in row.members
    assert "C8" in broken(again)
