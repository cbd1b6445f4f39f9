"""M1 to M9 at level C: for each a good trace, and a bad one for each clause.

The services include one another, so some faults break two promises by their very wording: the test names both.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.checkers.builder import verdicts
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

AGREED_CLASS = ("causal", "agreed", "safe")
EARLY = ("reliable", "fifo")

# ------------------------------------------------------------------------------------------------------------- M1, M2


def test_m1_holds_where_messages_are_lost() -> None:
    world = trio()
    message = world.send("x", "unreliable", "g")
    assert_good(world.unreliable(message, "a c").settle(), "M1")


def test_m1_twice() -> None:
    world = trio()
    message = world.send("x", "unreliable", "g")
    world.unreliable(message, "a c")
    assert broken(repeated(world, row_of(world, "z", event="deliver", message=message))) == {"M1"}


def test_m2_holds_where_reliable_messages_overtake() -> None:
    world = trio()
    world.send("x", "agreed", "g")
    message = world.send("x", "reliable", "g")
    world.early(message, "b c").become("a b", "c")
    assert_good(world.settle(), "M2")


def test_m2_twice_not_the_same_and_not_at_the_sender() -> None:
    world = trio()
    message = world.multicast("x", "reliable", "g")
    world.become("a b", "c").become("a b c").settle()
    rows = {name: row_of(world, name, event="deliver", message=message) for name in ("x", "y")}
    assert broken(repeated(world, rows["y"], rows["y"])) == {"S6", "M2"}
    assert broken(without(world, rows["y"])) == {"S8", "C2", "M2", "S13"}
    assert broken(without(world, rows["x"])) == {"S8", "C2", "M2", "S12", "S13"}


# ------------------------------------------------------------------------------------------------------------- M3, M7


def test_m3_holds_across_groups_services_and_views() -> None:
    world = trio("g", "h")
    for service, groups in (("reliable", "g"), ("agreed", "h"), ("fifo", "g h")):
        world.multicast("x", service, groups)
    world.multicast("x", "fifo", "", to="y")
    world.become("a b", "c")
    world.multicast("x", "safe", "h")
    assert_good(world, "M3", "M7")


@pytest.mark.parametrize("earlier", EARLY)
def test_m3_a_fifo_message_overtakes_one_to_another_group(earlier: str) -> None:
    world = trio("g", "h")
    first = world.multicast("x", earlier, "g")
    second = world.multicast("x", "fifo", "h")
    row = row_of(world, "y", event="deliver", message=first)
    bad = moved(world, row, None)
    assert broken(bad) == {"M3"}
    assert verdicts(bad)["M3"].violations[0].detail == f"y@b:1.1 delivered {second} before {first}"


@pytest.mark.parametrize("earlier", EARLY)
def test_m3_a_fifo_message_without_an_earlier_one(earlier: str) -> None:
    world = trio("g", "h")
    first = world.multicast("x", earlier, "g")
    second = world.multicast("x", "fifo", "h")
    bad = without(world, row_of(world, "y", event="deliver", message=first))
    assert broken(bad) == {"M3"}
    assert verdicts(bad)["M3"].violations[0].detail == f"y@b:1.1 delivered {second} without {first}"


def test_m3_a_hole_across_daemon_views() -> None:
    world = trio()
    first = world.multicast("x", "fifo", "g")
    world.become("a b", "c")
    world.multicast("x", "fifo", "g")
    bad = without(world, row_of(world, "y", event="deliver", message=first))
    assert broken(bad) == {"M3", "S8", "C2"}


def test_m3_no_hole_for_one_who_was_elsewhere() -> None:
    world = trio()
    world.become("a b", "c")
    world.multicast("x", "fifo", "g")
    world.become("a b c")
    world.multicast("x", "fifo", "g")
    assert_good(world.settle(), "M3")


def test_m3_nothing_is_owed_that_passed_before_the_join() -> None:
    world = trio()
    world.connect("w", "b")
    world.join("w", "g")
    first = world.send("x", "reliable", "g")
    world.early(first, "b").flow()
    world.multicast("x", "agreed", "g")
    assert rows_of(world, "w", message=first) == []
    assert_good(world.settle(), "M3", "M4", "M5")


def test_m3_what_passed_after_the_join_is_owed() -> None:
    world = trio()
    world.connect("w", "b")
    world.join("w", "g")
    first = world.multicast("x", "reliable", "g")
    world.multicast("x", "fifo", "g")
    bad = without(world, row_of(world, "w", event="deliver", message=first))
    assert broken(bad) == {"M3"}
    daemonless = [row for row in bad if row.level == "C"]
    assert broken(daemonless) == set(), "without the daemon's rows nobody knows what passed first"


def test_m7_a_fifo_message_overtakes_an_agreed_one() -> None:
    world = trio("g", "h")
    first = world.multicast("x", "agreed", "h")
    world.multicast("x", "fifo", "g")
    assert broken(moved(world, row_of(world, "y", event="deliver", message=first), None)) == {"M3", "M7"}


def test_m7_says_nothing_to_those_who_were_not_in_the_group() -> None:
    world = trio()
    world.connect("w", "b")
    world.join("w", "h")
    world.multicast("x", "agreed", "g")
    world.multicast("x", "fifo", "h")
    assert_good(world.settle(), "M3")


# ------------------------------------------------------------------------------------------------------------------ M4


def answered(service: str) -> tuple[World, str, str]:
    """y answers to h what x said to g; z is in both."""
    world = trio("g", "h")
    question = world.multicast("x", service, "g")
    return world, question, world.multicast("y", "causal", "h")


@pytest.mark.parametrize("service", [*EARLY, *AGREED_CLASS])
def test_m4_an_answer_without_its_question(service: str) -> None:
    world, question, answer = answered(service)
    assert_good(world, "M4")
    bad = without(world, row_of(world, "z", event="deliver", message=question))
    assert broken(bad) == {"M4"}
    assert verdicts(bad)["M4"].violations[0].detail == f"z@c:1.1 delivered {answer} without {question}"


@pytest.mark.parametrize("service", EARLY)
def test_m4_an_answer_before_its_question(service: str) -> None:
    world, question, _ = answered(service)
    assert broken(moved(world, row_of(world, "z", event="deliver", message=question), None)) == {"M4"}


def test_m4_owes_nothing_to_those_who_were_not_in_the_group() -> None:
    world = trio("g")
    world.connect("w", "c")
    world.join("w", "h")
    world.multicast("x", "agreed", "g")
    world.multicast("y", "causal", "h")
    world.leave("z", "g")
    world.multicast("x", "agreed", "g")
    world.multicast("y", "causal", "h")
    world.join("z", "h")
    world.multicast("y", "causal", "h")
    assert_good(world.settle(), "M4")


# ------------------------------------------------------------------------------------------------------------------ M5


def test_m5_holds_across_groups_views_and_signals() -> None:
    world = trio("g", "h")
    for name in ("x", "y", "z"):
        world.send(name, "agreed", "g h")
        world.send(name, "safe", "h", count=3)
        world.send(name, "reliable", "g")
    world.flow("a").become("a b", "c")
    world.multicast("x", "agreed", "g")
    assert_good(world.settle(), "M5")


@pytest.mark.parametrize("service", AGREED_CLASS)
def test_m5_another_order_across_groups(service: str) -> None:
    world = trio("g", "h")
    first = world.send("x", service, "g")
    world.send("y", service, "h")
    world.flow()
    assert broken(moved(world, row_of(world, "z", event="deliver", message=first), None)) == {"M5"}


def test_m5_the_same_key_twice() -> None:
    world = trio()
    message = world.multicast("x", "agreed", "g", count=2)
    world.client_rows = [
        msgspec.structs.replace(row, order_index=0) if row.message == message and row.event == "deliver" else row
        for row in world.client_rows
    ]
    assert broken(world.rows) == {"M5"}


def test_m5_another_key_at_one_receiver() -> None:
    world = trio()
    row = row_of(world, "y", event="deliver", message=world.multicast("x", "agreed", "g"))
    assert broken(changed(world, row, order_stamp=77)) == {"M5"}


def test_m5_a_hole_before_the_signal() -> None:
    world = trio()
    first = world.multicast("x", "reliable", "g")
    world.multicast("z", "agreed", "g")
    bad = without(world, row_of(world, "y", event="deliver", message=first))
    assert "M5" in broken(bad)


def test_m5_a_hole_after_the_signal_from_one_who_moves_along() -> None:
    world = trio()
    first = world.send("x", "reliable", "g")
    world.send("y", "agreed", "g")
    world.become("a b", "c")
    bad = without(world, row_of(world, "y", event="deliver", message=first))
    assert broken(bad) == {"M5", "S8", "C2", "M2"}


def test_m5_no_hole_after_the_signal_from_one_who_does_not() -> None:
    world = trio()
    first = world.send("z", "agreed", "g")
    world.send("y", "agreed", "g")
    world.become("a b", "c", lost=[world.items[first]])
    assert rows_of(world, "y", event="deliver", message=first) == []
    assert_good(world.settle(), "M5")


def test_m5_a_light_view_out_of_order() -> None:
    world = trio()
    world.leave("z", "g")
    world.flow()
    world.multicast("x", "agreed", "g")
    shown, row = rows_of(world, "y", event="view")[-1], row_of(world, "y", event="deliver")
    assert "M5" in broken(moved(world, row, shown, view=shown.view, views=(shown.view,)))


def test_m5_a_message_of_a_daemon_view_that_is_over() -> None:
    world = trio()
    message = world.multicast("x", "reliable", "g")
    world.become("a b", "c")
    row = row_of(world, "y", event="deliver", message=message)
    assert "M5" in broken(moved(world, row, None, view="v2/net", views=("v2/net",)))


# ------------------------------------------------------------------------------------------------------------------ M6


def test_m6_holds_before_and_after_the_signal() -> None:
    world = trio()
    world.multicast("x", "safe", "g")
    world.send("x", "safe", "g")
    world.become("a b", "c")
    assert_good(world.settle(), "M6")


def test_m6_a_member_that_never_delivers() -> None:
    world = trio()
    message = world.multicast("x", "safe", "g")
    world.become("a b", "c").settle()
    assert "M6" in broken(without(world, row_of(world, "z", event="deliver", message=message)))


def test_m6_one_of_the_transitional_set_that_never_delivers() -> None:
    world = trio()
    message = world.send("x", "safe", "g")
    world.become("a b", "c").settle()
    assert "M6" in broken(without(world, row_of(world, "y", event="deliver", message=message)))


def test_m6_says_nothing_of_those_who_are_left_behind_after_the_signal() -> None:
    world = trio()
    message = world.send("x", "safe", "g")
    world.become("a b", "c", lost=[world.items[message]]).settle()
    assert rows_of(world, "z", event="deliver", message=message) == []
    assert_good(world, "M6")


@pytest.mark.parametrize("excuse", ["leave", "crash", "disconnect", "unread"])
def test_m6_excuses(excuse: str) -> None:
    world = trio()
    message = world.multicast("x", "safe", "g")
    if excuse == "leave":
        world.leave("y", "g")
    elif excuse != "unread":
        world.depart("y", excuse)
    world.flow().settle()
    gone = rows_of(world, "y", event="deliver", message=message)
    unread = rows_of(world, "y", event="end") if excuse == "unread" else []
    assert "M6" not in broken(without(world, *gone, *unread))


def test_m6_excuses_a_member_whose_daemon_had_not_passed_its_join_and_counts_it() -> None:
    world = trio()
    world.connect("w", "c")
    world.join("w", "g")
    message = world.send("x", "safe", "g")
    world.flow("a")
    world.become("a b", "c").settle()
    assert rows_of(world, "x", event="deliver", message=message)
    assert rows_of(world, "w", event="deliver", message=message) == []
    assert_good(world, "M6")
    assert verdicts(world.rows)["M6"].excused == 2, "what x delivered, and what y did"


# ------------------------------------------------------------------------------------------------------------- M8, M9


def outsider() -> World:
    world = trio()
    world.connect("w", "a")
    return world


def test_m8_holds() -> None:
    world = outsider()
    for service in (*EARLY, *AGREED_CLASS):
        world.multicast("w", service, "g")
    world.become("a b", "c")
    assert_good(world.settle(), "M8")


def test_m8_says_nothing_of_members() -> None:
    world = trio()
    world.multicast("x", "agreed", "g")
    assert verdicts(world.settle().rows)["M8"].premises == 0


@pytest.mark.parametrize("service", [*EARLY, *AGREED_CLASS])
def test_m8_not_the_same_at_those_who_move_on_together(service: str) -> None:
    world = outsider()
    message = world.multicast("w", service, "g")
    world.become("a b", "c")
    bad = without(world, row_of(world, "y", event="deliver", message=message))
    assert broken(bad) >= {"M8", "S8"}


def test_m8_twice_at_another_place_and_not_safe() -> None:
    world = outsider()
    message = world.multicast("w", "safe", "g")
    world.multicast("x", "agreed", "g")
    row = row_of(world, "y", event="deliver", message=message)
    assert broken(repeated(world, row)) >= {"M8", "S6"}
    assert broken(without(world, row)) >= {"M8", "M5"}
    world.settle()
    assert broken(without(world, row)) >= {"M8", "M6"}


def test_m9_holds() -> None:
    world = trio("g", "h")
    world.connect("w", "a")
    world.join("w", "h")
    for service in (*EARLY, *AGREED_CLASS, "unreliable"):
        world.send("x", service, "g h")
    assert_good(world.settle(), "M9")


@pytest.mark.parametrize("service", [*EARLY, *AGREED_CLASS])
def test_m9_once_for_each_group(service: str) -> None:
    world = trio("g", "h")
    message = world.multicast("x", service, "g h")
    row = row_of(world, "y", event="deliver", message=message)
    assert broken(repeated(world, row, row)) >= {"M9", "S6"}


def test_m9_at_another_place() -> None:
    world = trio("g", "h")
    row = row_of(world, "y", event="deliver", message=world.multicast("x", "reliable", "g h"))
    assert broken(changed(world, row, order_stamp=99)) == {"M9", "M5"}


def test_m9_only_for_one_of_the_groups() -> None:
    """w alone is in h."""
    world = trio()
    world.connect("w", "b")
    world.join("w", "h")
    message = world.multicast("x", "fifo", "g h")
    world.settle()
    assert broken(without(world, row_of(world, "w", event="deliver", message=message))) == {"M9", "M8", "S13"}
