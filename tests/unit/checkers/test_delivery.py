"""S6 to S13: for each a good trace, and a bad one for each clause that no other checker flags.

Where one fault breaks two promises by their very wording (M2 repeats S6, S8 and S12), the test names both.
"""

from __future__ import annotations

import pytest

from covey.trace.record import SERVICES
from tests.unit.checkers.builder import Trace, assert_good, details, renumbered, verdicts, violated


def pair() -> Trace:
    return Trace("a b").install("v1", "a b")


def one_view_later(trace: Trace, daemons: str = "a b") -> Trace:
    return trace.signal(daemons).install("v2", daemons)


# ------------------------------------------------------------------------------------------------------------------ S6


@pytest.mark.parametrize("service", SERVICES[1:])
def test_s6_holds_for_every_service(service: str) -> None:
    trace = pair()
    trace.multicast("a", service, "a b")
    assert_good(trace, "S6")


def test_s6_a_fifo_message_twice() -> None:
    trace = pair()
    trace.deliver(trace.multicast("a", "fifo", "a b"), "b")
    assert violated(trace) == {"S6"}
    assert details(trace, "S6") == ["b:1 delivered a:1#1 twice"]


def test_s6_an_agreed_message_once_before_and_once_after_the_signal() -> None:
    trace = pair()
    message = trace.multicast("a", "agreed", "a b")
    trace.signal("a b").deliver(message, "a b")
    assert violated(trace) == {"S6"}


def test_s6_leaves_unreliable_messages_to_m1() -> None:
    trace = pair()
    trace.multicast("a", "reliable", "a b")
    trace.deliver(trace.multicast("a", "unreliable", "a b"), "b")
    assert violated(trace) == {"M1"}


# ------------------------------------------------------------------------------------------------------------------ S7


def test_s7_holds_also_where_a_row_has_no_digest() -> None:
    trace = pair()
    trace.deliver(trace.send("a", "fifo"), "a b", digest=None)
    trace.deliver(trace.send("a", "fifo", digest=None), "a b", digest=5)
    assert_good(trace, "S7")


def test_s7_a_delivery_that_nobody_sent() -> None:
    trace = pair().deliver("a:1#1", "a b", service="reliable")
    assert violated(trace) == {"S7"}
    assert details(trace, "S7")[0] == "a:1 delivered a:1#1, which nobody sent"


def test_s7_a_delivery_without_a_name() -> None:
    assert violated(pair().event("a", "deliver", service="fifo")) == {"S7"}


@pytest.mark.parametrize(
    ("column", "wrong"),
    [("digest", 1), ("size", 1), ("service", "fifo"), ("order_view", "v0"), ("session_seq", 9), ("count", 2)],
)
def test_s7_content_that_was_not_sent(column: str, wrong: int | str) -> None:
    trace = pair()
    message = trace.send("a", "reliable")
    trace.deliver(message, "a").deliver(message, "b", **{column: wrong})
    assert violated(trace) == {"S7"}
    assert f"b:1 delivered a:1#1 with {column} {wrong}" in details(trace, "S7")[0]


def test_s7_a_sender_delivers_before_it_sends() -> None:
    trace = pair()
    message = trace.multicast("a", "reliable", "a b")
    send = next(row for row in trace.rows if row.event == "send" and row.message == message)
    trace.rows.remove(send)
    trace.rows = renumbered([*trace.rows, send])
    assert violated(trace) == {"S7"}
    assert details(trace, "S7") == ["a:1 delivered a:1#1 before a:1 can have sent it"]


def test_s7_two_daemons_that_each_deliver_before_the_other_sends() -> None:
    trace = pair()
    trace.deliver("b:1#1", "a", service="reliable", digest=None)
    first = trace.send("a", "reliable")
    trace.deliver(first, "a b")
    second = trace.send("b", "reliable")
    trace.deliver(second, "b")
    assert violated(trace) == {"S7"}
    assert len(details(trace, "S7")) == 1


def test_s7_blames_those_who_form_the_circle_and_not_those_who_wait_for_it() -> None:
    trace = Trace("a b c").install("v1", "a b c")
    trace.deliver("c:1#1", "b", service="reliable")
    first = trace.send("b", "reliable")
    trace.deliver(first, "a b c").deliver(trace.send("c", "reliable"), "a c")
    assert violated(trace) == {"S7"}
    assert details(trace, "S7") == ["b:1 delivered c:1#1 before c:1 can have sent it"]


def test_s7_a_message_sent_twice() -> None:
    trace = pair()
    message = trace.multicast("a", "fifo", "a b")
    trace.event("b", "send", message=message, service="fifo", order_view="v1")
    assert violated(trace) == {"S7"}


def test_s7_a_message_stamped_in_another_view_than_it_was_sent_in() -> None:
    trace = pair()
    trace.deliver(trace.send("a", "fifo", order_view="v0"), "a b")
    assert violated(trace) == {"S7"}


# ------------------------------------------------------------------------------------------------------------------ S8


def test_s8_holds_where_those_who_move_together_deliver_the_same() -> None:
    trace = Trace("a b c").install("v1", "a b c")
    message = trace.send("a", "fifo")
    trace.deliver(message, "a b").signal("a b c").install("v2", "a b").install("v3", "c")
    assert_good(trace, "S8")


def test_s8_is_not_tested_where_daemons_part() -> None:
    trace = pair()
    trace.deliver(trace.send("a", "fifo"), "a").signal("a b").install("v2", "a").install("v3", "b")
    assert violated(trace) == set()


def test_s8_equal_views_alone_are_no_virtual_synchrony() -> None:
    """b left v1 and came back through another view before it installed v3 with a."""
    trace = pair()
    trace.deliver(trace.send("a", "fifo"), "a").install("v2", "b").install("v3", "a b")
    assert violated(trace) == set()


def test_s8_one_misses_what_the_other_delivered() -> None:
    trace = pair()
    trace.deliver(trace.send("a", "fifo"), "a")
    one_view_later(trace)
    assert violated(trace) == {"S8"}
    assert details(trace, "S8") == ["b:1 and a:1 went together from v1 to v2, but only a:1 delivered a:1#1"]


def test_s8_each_misses_something() -> None:
    trace = Trace("a b c").install("v1", "a b c")
    trace.deliver(trace.send("c", "fifo", session="s1"), "a").deliver(trace.send("c", "fifo", session="s2"), "b")
    one_view_later(trace.crash("c"))
    assert violated(trace) == {"S8"}
    assert details(trace, "S8")[0].endswith("only b:1 delivered s2@c:1#1 and only a:1 delivered s1@c:1#1")


def test_s8_needs_only_one_of_two_transitional_sets() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a")
    trace.counter = 2
    trace.install_at("a", "v2", "a b", "a").install_at("b", "v2", "a b", "a b")
    assert violated(trace) == {"S5", "S8"}


def test_s8_is_not_tested_where_neither_is_in_the_set_of_the_other() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a")
    trace.counter = 2
    trace.install_at("a", "v2", "a b", "a").install_at("b", "v2", "a b", "b")
    assert violated(trace) == {"S5"}


def test_s8_one_delivers_past_a_hole_what_the_other_misses() -> None:
    trace = Trace("a b c").install("v1", "a b c")
    trace.deliver(trace.send("c", "fifo"), "a")
    trace.crash("c")
    one_view_later(trace)
    assert violated(trace) == {"S8"}


def test_s8_a_reliable_message_is_judged_by_m2_as_well() -> None:
    trace = pair()
    trace.deliver(trace.send("a", "reliable"), "a")
    assert violated(one_view_later(trace)) == {"S8", "M2"}


# ------------------------------------------------------------------------------------------------------------------ S9


def test_s9_holds_where_all_deliver_in_one_view() -> None:
    trace = pair()
    trace.multicast("a", "safe", "a b")
    assert_good(trace, "S9")


def test_s9_one_delivers_in_a_later_view() -> None:
    trace = Trace("a b").install("v1", "a b")
    message = trace.send("a", "fifo")
    trace.deliver(message, "a").install("v2", "a").install("v3", "b").deliver(message, "b")
    assert violated(trace) == {"S9"}
    assert details(trace, "S9") == ["b:1 delivered a:1#1 in v3, but a:1 in v1"]


def test_s9_two_components_deliver_a_message_of_a_crashed_daemon_in_their_own_views() -> None:
    trace = Trace("a b c").install("v1", "a b c")
    message = trace.send("c", "agreed")
    trace.crash("c").install("v2", "a").install("v3", "b").deliver(message, "a b")
    assert violated(trace) == {"S9"}


# ----------------------------------------------------------------------------------------------------------------- S10


def test_s10_holds_in_the_view_of_the_send_and_beside_an_earlier_life() -> None:
    trace = Trace("a b").install("v1", "a b").crash("a").restart("a").install("v2", "a b")
    trace.multicast("a", "fifo", "a b")
    assert_good(trace, "S10")


def test_s10_a_delivery_in_an_earlier_view() -> None:
    trace = pair().install("v2", "a")
    message = trace.send("a", "fifo")
    trace.deliver(message, "b")
    assert violated(trace) == {"S10"}
    assert details(trace, "S10") == ["b:1 delivered a:1#1 in v1, before the view v2 it was sent in"]


def test_s10_a_delivery_beside_a_later_life_of_the_sender() -> None:
    trace = pair()
    message = trace.send("a", "fifo")
    trace.crash("a").restart("a").install("v2", "a b").deliver(message, "b")
    assert violated(trace) == {"S10"}
    assert details(trace, "S10") == ["b:1 delivered a:1#1 of a:1 in v2, after a view with a:2"]


def test_s10_a_delivery_after_a_view_with_a_later_life() -> None:
    trace = pair()
    message = trace.send("a", "fifo")
    trace.crash("a").restart("a").install("v2", "a b").install("v3", "b").deliver(message, "b")
    assert violated(trace) == {"S10"}


def test_s10_orders_lives_as_numbers() -> None:
    trace = pair()
    trace.lives["a"] = 8
    trace.crash("a:1").restart("a").install("v2", "a b")
    message = trace.send("a", "fifo")
    trace.crash("a").restart("a").install("v3", "a b").deliver(message, "b")
    assert trace.process("a") == "a:10"
    assert violated(trace) == {"S10"}


# ----------------------------------------------------------------------------------------------------------------- S11


def test_s11_holds_where_the_signal_stands_at_one_position() -> None:
    trace = pair()
    trace.multicast("a", "agreed", "a b")
    second = trace.send("b", "safe")
    trace.signal("a b").deliver(second, "a b").install("v2", "a b")
    assert_good(trace, "S11")


def test_s11_lets_reliable_and_fifo_messages_stand_on_either_side() -> None:
    trace = pair()
    message = trace.send("a", "fifo")
    trace.deliver(message, "a").signal("a b").deliver(message, "b").install("v2", "a b")
    assert_good(trace, "S11")


def test_s11_two_signals_in_a_view() -> None:
    trace = pair().signal("a b").signal("b")
    assert violated(trace) == {"S11"}
    assert details(trace, "S11") == ["b:1 had 2 signals in v1"]


def test_s11_a_message_before_the_signal_here_and_after_it_there() -> None:
    trace = pair()
    message = trace.send("a", "agreed")
    trace.deliver(message, "a").signal("a b").deliver(message, "b").install("v2", "a b")
    assert violated(trace) == {"S11"}
    assert details(trace, "S11") == [
        "b:1 and a:1 went together from v1 to v2, but before the signal only a:1 delivered a:1#1",
        "b:1 and a:1 went together from v1 to v2, but after the signal only b:1 delivered a:1#1",
    ]


def test_s11_is_tested_without_signals_where_daemons_move_together() -> None:
    trace = pair()
    trace.multicast("a", "agreed", "a b")
    trace.install("v2", "a b")
    assert violated(trace) == set()
    assert verdicts(trace)["S11"].premises == 1


def test_s11_counts_all_as_before_where_there_is_no_signal() -> None:
    trace = pair()
    message = trace.send("a", "causal")
    trace.deliver(message, "a").signal("b").deliver(message, "b").install("v2", "a b")
    assert violated(trace) == {"S11"}


# ----------------------------------------------------------------------------------------------------------------- S12


def test_s12_holds_and_excuses_a_crash() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a b")
    trace.send("b", "fifo")
    trace.crash("b").signal("a").install("v2", "a").settle("a")
    assert_good(trace, "S12")


def test_s12_a_sender_moves_on_without_its_message() -> None:
    trace = pair()
    trace.send("a", "fifo")
    one_view_later(trace)
    assert violated(trace) == {"S12"}
    assert details(trace, "S12") == ["a:1 sent a:1#1 in v1 and never delivered it there"]


def test_s12_a_sender_delivers_its_message_one_view_late() -> None:
    trace = Trace("a").install("v1", "a")
    message = trace.send("a", "fifo")
    trace.install("v2", "a").deliver(message, "a")
    assert violated(trace) == {"S12"}


def test_s12_a_sender_comes_to_rest_without_its_message() -> None:
    trace = Trace("a").install("v1", "a")
    trace.send("a", "fifo")
    assert violated(trace.settle("a")) == {"S12", "S13"}


def test_s12_a_crash_after_leaving_the_view_is_no_excuse() -> None:
    trace = pair()
    trace.send("a", "fifo")
    assert violated(one_view_later(trace).crash("a")) == {"S12"}


# ----------------------------------------------------------------------------------------------------------------- S13


def test_s13_holds_and_excuses_crash_and_stop() -> None:
    trace = Trace("a b c d").install("v1", "a b c d").crash("c").stop("d")
    trace.multicast("a", "fifo", "a b")
    assert_good(trace.end("a b"), "S13")


def test_s13_is_silent_about_a_member_whose_history_breaks_off() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a")
    assert violated(trace.end("a")) == set()


def test_s13_is_silent_about_a_sender_whose_history_breaks_off() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a")
    assert violated(trace.end("b")) == set()


def test_s13_is_not_tested_where_the_sender_moves_on() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a")
    assert violated(trace.install("v2", "a").settle("a").install("v3", "b").settle("b")) == set()


def test_s13_a_member_never_delivers() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a")
    trace.settle("a b")
    assert violated(trace) == {"S13"}
    assert details(trace, "S13") == ["a:1 sent a:1#1 in v1 and rests there, but b:1 never delivered that"]


def test_s13_a_member_leaves_without_delivering_while_the_sender_stays() -> None:
    trace = Trace("a b").install("v1", "a b")
    trace.multicast("a", "fifo", "a")
    trace.install("v2", "b").calm("b").calm("a", "a b").end("a b")
    assert violated(trace) == {"S13"}
