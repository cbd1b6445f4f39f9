"""S6 to S13 at level C: for each a good trace, and a bad one for each clause.

Some faults break two promises by their very wording: the test names both.
"""

from __future__ import annotations

import pytest

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

# ------------------------------------------------------------------------------------------------------------- S6, S7


def test_s6_and_s7_hold() -> None:
    world = trio()
    for service in (*EARLY, *AGREED_CLASS):
        world.multicast("x", service, "g")
    assert_good(world.settle(), "S6", "S7")


@pytest.mark.parametrize("service", AGREED_CLASS)
def test_s6_twice(service: str) -> None:
    world = trio()
    message = world.multicast("x", service, "g")
    assert "S6" in broken(repeated(world, row_of(world, "y", event="deliver", message=message)))


def test_s6_a_fifo_message_twice() -> None:
    world = trio()
    message = world.multicast("x", "fifo", "g")
    assert broken(repeated(world, row_of(world, "y", event="deliver", message=message))) == {"S6"}


def test_s7_a_message_that_nobody_sent() -> None:
    world = trio()
    message = world.multicast("x", "agreed", "g")
    assert broken(without(world, row_of(world, "x", event="send", message=message))) == {"S7"}


@pytest.mark.parametrize(
    ("column", "value"), [("digest", 1), ("size", 99), ("service", "safe"), ("session_seq", 7), ("sender", "y@b:1.1")]
)
def test_s7_other_content(column: str, value: object) -> None:
    world = trio()
    row = row_of(world, "y", event="deliver", message=world.multicast("x", "agreed", "g"))
    assert broken(changed(world, row, **{column: value})) == {"S7"}


def test_s7_other_groups() -> None:
    world = trio("g", "h")
    row = row_of(world, "y", event="deliver", message=world.multicast("x", "agreed", "g"))
    view = world.clients["y"].views["h"]
    assert "S7" in broken(changed(world, row, groups=("h",), group="h", view=view, views=(view,)))


def test_s7_before_it_can_have_been_sent() -> None:
    world = trio()
    first = world.multicast("x", "reliable", "g")
    second = world.multicast("y", "reliable", "g")
    received = row_of(world, "x", event="deliver", message=second)
    # Now x has y's answer before it sends what is answered.
    assert broken(moved(world, received, row_of(world, "x", event="send", message=first))) == {"S7"}


def test_s7_sent_twice() -> None:
    world = trio()
    message = world.multicast("x", "agreed", "g")
    assert "S7" in broken(repeated(world, row_of(world, "x", event="send", message=message)))


# ------------------------------------------------------------------------------------------------------------------ S8


def test_s8_holds_through_light_and_network_views() -> None:
    world = trio()
    for service in (*EARLY, *AGREED_CLASS):
        world.multicast("x", service, "g")
    world.connect("w", "b")
    world.join("w", "g")
    world.flow().multicast("w", "fifo", "g")
    assert_good(world.become("a b", "c"), "S8")


@pytest.mark.parametrize("service", AGREED_CLASS)
def test_s8_not_the_same_before_a_light_view(service: str) -> None:
    world = trio()
    message = world.multicast("x", service, "g")
    world.leave("z", "g")
    world.flow()
    assert broken(without(world, row_of(world, "y", event="deliver", message=message))) == {"S8", "S11"}


@pytest.mark.parametrize("service", AGREED_CLASS)
def test_s8_not_the_same_after_the_signal(service: str) -> None:
    world = trio()
    message = world.send("x", service, "g")
    world.become("a b", "c")
    assert broken(without(world, row_of(world, "y", event="deliver", message=message))) == {"S8", "S11"}


@pytest.mark.parametrize("service", EARLY)
def test_s8_early_messages_may_fall_into_different_light_views(service: str) -> None:
    world = trio()
    world.connect("w", "a")
    world.join("w", "g")
    message = world.send("x", service, "g")
    world.early(message, "b").flow().become("a b", "c")
    seen = [row_of(world, name, event="deliver", message=message).view for name in ("x", "y")]
    assert seen[0] != seen[1]
    assert_good(world, "S8", "C2")


@pytest.mark.parametrize("service", EARLY)
def test_s8_early_messages_missing_between_two_network_views(service: str) -> None:
    world = trio()
    world.become("a b", "c")
    message = world.multicast("x", service, "g")
    world.connect("w", "a")
    world.join("w", "g")
    world.flow().become("a", "b", "c").become("a b", "c")
    lacking = without(world, row_of(world, "y", event="deliver", message=message))
    assert broken(lacking) == set(), "y did not move on with x"
    world = trio()
    message = world.multicast("x", service, "g")
    world.connect("w", "a")
    world.join("w", "g")
    world.flow().become("a b", "c")
    lacking = without(world, row_of(world, "y", event="deliver", message=message))
    assert broken(lacking) == {"S8", "C2"} | ({"M2"} if service == "reliable" else set())


def passed_before_the_join(*, settled: bool = False) -> tuple[World, str]:
    """w's join is ordered before a reliable message, but its daemon passes the message first."""
    world = trio()
    world.connect("w", "b")
    world.join("w", "g")
    message = world.send("x", "reliable", "g")
    world.early(message, "b")
    world.flow()
    if settled:
        world.settle()
    return world, message


def test_s8_an_early_message_is_not_owed_to_one_whose_join_took_effect_later() -> None:
    world, message = passed_before_the_join()
    world.become("a b c")
    world.multicast("x", "agreed", "g")
    assert rows_of(world, "w", message=message) == []
    assert_good(world.become("a b", "c"), "S8")


def test_s8_an_early_message_is_owed_to_one_whose_join_took_effect_before() -> None:
    world = trio()
    world.connect("w", "b")
    world.join("w", "g")
    message = world.multicast("x", "reliable", "g")
    world.become("a b", "c")
    lacking = without(world, row_of(world, "w", event="deliver", message=message))
    assert broken(lacking) == {"S8", "C2", "M2"}


# ------------------------------------------------------------------------------------------------------------------ S9


def test_s9_holds_and_views_may_differ_after_a_signal() -> None:
    """z's daemon got the signal before w's join, x's after it: they deliver the same message in different views."""
    world = trio()
    world.connect("w", "a")
    world.join("w", "g")
    world.flow("a b")
    message = world.send("x", "agreed", "g")
    world.become("a b", "c")
    seen = [row_of(world, name, event="deliver", message=message).view for name in ("x", "z")]
    assert seen[0] != seen[1]
    world.multicast("x", "agreed", "g")
    assert_good(world, "S9", "C2", "S10")


@pytest.mark.parametrize("service", AGREED_CLASS)
def test_s9_in_another_view(service: str) -> None:
    world = trio()
    message = world.multicast("x", service, "g")
    world.leave("z", "g")
    world.flow()
    later = world.clients["y"].views["g"]
    row = row_of(world, "y", event="deliver", message=message)
    late = moved(world, row, None, view=later, views=(later,))
    assert broken(late) >= {"S9", "C2", "S8"}


def test_s9_vsync_members_deliver_in_one_view_also_after_the_signal() -> None:
    world = trio()
    message = world.send("x", "agreed", "g")
    world.become("a b", "c")
    row = row_of(world, "y", event="deliver", message=message)
    late = moved(world, row, None, view="v2/net", views=("v2/net",))
    assert broken(late) >= {"S9", "C2", "S8"}


# ----------------------------------------------------------------------------------------------------------------- S10


def test_s10_holds_for_what_waits_across_a_view() -> None:
    world = trio()
    world.multicast("x", "agreed", "g")
    world.become("a b", "c")
    world.multicast("x", "reliable", "g")
    assert_good(world, "S10")


def test_s10_before_the_view_it_was_sent_in() -> None:
    """y delivers x's message before it is shown the view in which x sent it."""
    world = trio()
    world.leave("z", "g")
    world.flow()
    message = world.multicast("x", "agreed", "g")
    row, shown = row_of(world, "y", event="deliver", message=message), rows_of(world, "y", event="view")[-1]
    assert broken(moved(world, row, shown, view=shown.view, views=(shown.view,))) >= {"S10", "S9"}


def test_s10_a_reliable_message_before_its_network_view() -> None:
    world = trio()
    world.become("a b", "c")
    message = world.multicast("x", "reliable", "g")
    row, shown = row_of(world, "y", event="deliver", message=message), rows_of(world, "y", event="view")[-1]
    assert "S10" in broken(moved(world, row, shown, view=shown.view, views=(shown.view,)))


def test_s10_a_reliable_message_before_a_light_view_is_fine() -> None:
    world = trio()
    world.become("a b c").become("a b", "c").become("a b c")
    world.leave("z", "g")
    world.flow("a")
    message = world.send("x", "reliable", "g")
    world.early(message, "b").flow()
    sent, seen = row_of(world, "x", event="send", message=message), row_of(world, "y", event="deliver", message=message)
    assert seen.view != sent.view
    assert_good(world, "S10")


def test_s10_after_a_view_with_a_later_session_of_the_sender() -> None:
    world = trio()
    message = world.multicast("x", "reliable", "g")
    world.crash("x")
    world.flow()
    world.connect("x", "a")
    world.join("x", "g")
    world.flow().multicast("x", "reliable", "g")
    assert_good(world, "S10", "C8")
    row = row_of(world, "y", event="deliver", message=message)
    view = world.clients["y"].views["g"]
    assert broken(moved(world, row, None, view=view, views=(view,))) == {"S10"}


# ----------------------------------------------------------------------------------------------------------------- S11


def test_s11_holds() -> None:
    world = trio()
    world.multicast("x", "safe", "g")
    world.send("x", "agreed", "g")
    assert_good(world.become("a b", "c"), "S11")


def test_s11_two_signals_in_one_view() -> None:
    world = trio()
    world.become("a b", "c")
    row = row_of(world, "x", event="transitional")
    assert broken(repeated(world, row, row)) == {"S11"}


@pytest.mark.parametrize("service", AGREED_CLASS)
def test_s11_not_on_the_same_side_of_the_signal(service: str) -> None:
    world = trio()
    message = world.send("x", service, "g")
    world.become("a b", "c")
    row, signal = (row_of(world, "y", event=event) for event in ("deliver", "transitional"))
    assert row.message == message
    assert broken(moved(world, row, signal)) == {"S11", "C2"}


# ----------------------------------------------------------------------------------------------------------------- S12


@pytest.mark.parametrize("service", [*EARLY, *AGREED_CLASS])
def test_s12_not_at_its_sender(service: str) -> None:
    world = trio()
    message = world.multicast("x", service, "g")
    assert_good(world.settle(), "S12")
    assert "S12" in broken(without(world, row_of(world, "x", event="deliver", message=message)))


def test_s12_self_discard_counts_as_delivered() -> None:
    world = trio()
    message = world.multicast("x", "agreed", "g", discard=True)
    assert row_of(world, "x", message=message, event="discard").order_stamp
    assert_good(world.settle(), "S12")


def test_s12_excuses_outsiders_and_those_who_leave_or_depart() -> None:
    world = trio()
    world.connect("w", "a")
    world.send("w", "agreed", "g")
    messages = [world.send(name, "agreed", "g") for name in ("x", "y")]
    world.leave("x", "g")
    world.disconnect("y")
    world.settle()
    own = [row_of(world, "x", event="deliver", message=messages[0])]
    assert "S12" not in broken(without(world, *own))


# ----------------------------------------------------------------------------------------------------------------- S13


@pytest.mark.parametrize("service", [*EARLY, *AGREED_CLASS])
def test_s13_a_member_that_rests_without_a_message(service: str) -> None:
    world = trio()
    message = world.multicast("x", service, "g")
    assert_good(world.settle(), "S13")
    assert "S13" in broken(without(world, row_of(world, "y", event="deliver", message=message)))


def test_s13_excuses_those_who_left() -> None:
    world = trio()
    message = world.multicast("x", "reliable", "g")
    world.leave("y", "g")
    world.settle()
    assert broken(without(world, row_of(world, "y", event="deliver", message=message))) == set()


def test_s13_a_reliable_message_is_not_owed_to_one_whose_join_took_effect_later() -> None:
    """x sends it in a view with w, which is not shown to w until the message has passed."""
    world = trio()
    world.connect("w", "b")
    world.join("w", "g")
    world.flow("a")
    message = world.send("x", "reliable", "g")
    world.early(message, "b")
    assert_good(world.settle(), "S13")
    assert "w@b:1.2" in row_of(world, "x", event="view", view_new=world.clients["x"].views["g"]).members
    assert rows_of(world, "w", message=message) == []


def test_s13_rows_of_clients_alone_suffice_for_those_who_rest_together() -> None:
    world = trio()
    world.connect("w", "a")
    message = world.multicast("w", "agreed", "g")
    world.settle()
    world.daemons.rows = []
    assert broken(without(world, row_of(world, "y", event="deliver", message=message))) == {"S13", "M8"}
