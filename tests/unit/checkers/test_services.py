"""M1 to M7: for each a good trace, and a bad one for each clause that no other checker flags.

The services include one another, so some faults break two promises by their very wording: the test names both.
"""

from __future__ import annotations

import pytest

from tests.unit.checkers.builder import Trace, assert_good, details, verdicts, violated

AGREED_CLASS = ("causal", "agreed", "safe")


def pair() -> Trace:
    return Trace("a b").install("v1", "a b")


def three() -> Trace:
    return Trace("a b c").install("v1", "a b c")


# ------------------------------------------------------------------------------------------------------------------ M1


def test_m1_holds_where_messages_are_lost() -> None:
    trace = three()
    trace.multicast("a", "unreliable", "a c")
    trace.deliver(trace.send("a", "unreliable", order_view=None), "b")
    assert_good(trace.settle("a b c"), "M1")


def test_m1_twice_at_one_daemon() -> None:
    trace = pair()
    trace.deliver(trace.multicast("a", "unreliable", "a b"), "a")
    assert violated(trace) == {"M1"}
    assert details(trace, "M1") == ["a:1 delivered a:1#1 twice"]


def test_m1_in_another_view_than_it_was_sent_in() -> None:
    trace = pair()
    message = trace.send("a", "unreliable")
    trace.signal("a b").install("v2", "a b").deliver(message, "b")
    assert violated(trace) == {"M1"}
    assert details(trace, "M1") == ["b:1 delivered unreliable a:1#1 in v2, sent in v1"]


# ------------------------------------------------------------------------------------------------------------------ M2


def test_m2_holds_where_reliable_messages_overtake() -> None:
    trace = pair()
    first = trace.send("a", "fifo")
    second = trace.send("a", "reliable")
    trace.deliver(second, "a b").deliver(first, "a b").signal("a b").install("v2", "a b").settle("a b")
    assert_good(trace, "M2")


def test_m2_says_nothing_about_other_services() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a b")
    trace.signal("a b").install("v2", "a b")
    assert verdicts(trace)["M2"].premises == 0


def test_m2_twice() -> None:
    trace = pair()
    trace.deliver(trace.multicast("a", "reliable", "a b"), "a")
    assert violated(trace) == {"S6", "M2"}


def test_m2_not_the_same_at_vsync_daemons() -> None:
    trace = pair()
    trace.multicast("a", "reliable", "a")
    assert violated(trace.signal("a b").install("v2", "a b")) == {"S8", "M2"}


def test_m2_not_at_its_sender() -> None:
    trace = pair()
    trace.send("a", "reliable")
    assert violated(trace.signal("a b").install("v2", "a b")) == {"S12", "M2"}


# ------------------------------------------------------------------------------------------------------------------ M3


def test_m3_holds_across_services_and_views() -> None:
    trace = pair()
    trace.multicast("a", "reliable", "a b")
    trace.multicast("a", "fifo", "a b")
    trace.signal("a b").install("v2", "a b")
    trace.multicast("a", "agreed", "a b")
    assert_good(trace, "M3")


def test_m3_lets_sessions_of_one_daemon_overtake_one_another() -> None:
    trace = pair()
    first = trace.send("a", "fifo", session="s1")
    trace.multicast("a", "fifo", "a b", session="s2")
    trace.multicast("a", "fifo", "a b", session="s2")
    trace.deliver(first, "a b")
    assert_good(trace, "M3")


@pytest.mark.parametrize("earlier", ["reliable", "fifo"])
def test_m3_a_fifo_message_overtakes(earlier: str) -> None:
    trace = pair()
    first = trace.send("a", earlier)
    second = trace.send("a", "fifo")
    trace.deliver(first, "a").deliver(second, "a b").deliver(first, "b")
    assert violated(trace) == {"M3"}
    assert details(trace, "M3") == ["b:1 delivered a:1#2 before a:1#1"]


@pytest.mark.parametrize("earlier", ["reliable", "fifo"])
def test_m3_a_fifo_message_without_an_earlier_one(earlier: str) -> None:
    trace = three()
    trace.deliver(trace.send("a", earlier), "a")
    trace.multicast("a", "fifo", "a b")
    assert violated(trace) == {"M3"}
    assert details(trace, "M3") == ["b:1 delivered a:1#2 without a:1#1"]


def test_m3_a_hole_across_views_for_one_who_moved_along() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a")
    trace.signal("a b").install("v2", "a b").signal("a b").install("v3", "a b")
    trace.multicast("a", "fifo", "a b")
    assert violated(trace) == {"S8", "M3"}
    assert details(trace, "M3") == ["b:1 delivered a:1#2 without a:1#1"]


def test_m3_no_hole_across_views_for_one_who_did_not_move_along() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a")
    trace.signal("a b").install("v2", "a").install("v3", "b").signal("a b").install("v4", "a b")
    trace.multicast("a", "fifo", "a b")
    assert_good(trace, "M3")


def test_m3_no_hole_across_views_where_the_transitional_sets_deny_it() -> None:
    trace = pair()
    trace.multicast("a", "fifo", "a")
    trace.counter = 2
    trace.install_at("a", "v2", "a b", "a").install_at("b", "v2", "a b", "b")
    trace.multicast("a", "fifo", "a b")
    assert violated(trace) == {"S5"}


def test_m3_no_hole_across_views_for_one_who_joins_later() -> None:
    trace = Trace("a b").install("v1", "a")
    trace.multicast("a", "fifo", "a")
    trace.signal("a").install("v2", "a b")
    trace.multicast("a", "fifo", "a b")
    assert_good(trace, "M3")


def test_m3_an_earlier_message_of_another_view_comes_too_late() -> None:
    trace = three()
    first = trace.send("a", "fifo")
    trace.deliver(first, "a").signal("a b").install("v2", "a").install("v3", "b").install("v4", "a b")
    trace.multicast("a", "fifo", "a b")
    trace.deliver(first, "b")
    assert violated(trace) == {"S9", "M3"}
    assert details(trace, "M3") == ["b:1 delivered a:1#2 before a:1#1"]


# ------------------------------------------------------------------------------------------------------------------ M4


def test_m4_holds_where_an_answer_follows_its_question() -> None:
    trace = three()
    trace.multicast("a", "reliable", "a b c")
    trace.multicast("b", "causal", "a b c")
    assert_good(trace, "M4")


def test_m4_lets_concurrent_messages_come_in_any_order() -> None:
    trace = three()
    first = trace.send("a", "reliable")
    second = trace.send("b", "causal", order_stamp=1, order_site=0)
    trace.deliver(second, "a b c").deliver(first, "a b c")
    assert violated(trace) == set()
    assert verdicts(trace)["M4"].premises == 0


def test_m4_does_not_follow_unreliable_messages() -> None:
    """An unreliable message has no stamp: it cannot raise the clock of its receiver."""
    trace = three()
    first = trace.send("a", "reliable")
    trace.multicast("a", "unreliable", "b")
    answer = trace.send("b", "causal", order_stamp=0)
    trace.deliver(answer, "a b c").deliver(first, "a b c")
    assert violated(trace) == set()


@pytest.mark.parametrize("service", AGREED_CLASS)
def test_m4_an_answer_before_its_question(service: str) -> None:
    trace = three()
    question = trace.send("a", "reliable", order_stamp=9)
    trace.deliver(question, "a b")
    # The key of the answer lies below that of the question, so M5 has nothing to say.
    answer = trace.send("b", service, order_stamp=8)
    trace.deliver(answer, "a b c").deliver(question, "c")
    assert violated(trace) == {"M4"}
    assert details(trace, "M4") == ["c:1 delivered b:1#1 before a:1#1"]


def test_m4_an_answer_without_its_question() -> None:
    trace = three()
    trace.deliver(trace.send("a", "reliable", order_stamp=9), "a b")
    trace.deliver(trace.send("b", "causal", order_stamp=8), "a b c")
    assert violated(trace) == {"M4"}
    assert details(trace, "M4") == ["c:1 delivered b:1#1 without a:1#1"]


def test_m4_an_answer_to_an_answer() -> None:
    trace = Trace("a b c d").install("v1", "a b c d")
    trace.deliver(trace.send("a", "reliable", order_stamp=9), "a b")
    trace.deliver(trace.send("b", "reliable", order_stamp=8), "b c d")
    trace.deliver(trace.send("c", "agreed", order_stamp=7), "d")
    assert violated(trace) == {"M4"}
    assert details(trace, "M4") == ["d:1 delivered c:1#1 without a:1#1"]


def test_m4_a_question_of_another_view_comes_too_late() -> None:
    trace = three()
    question = trace.send("a", "reliable")
    trace.deliver(question, "a b").install("v2", "a b").install("v3", "c").install("v4", "a b c")
    trace.multicast("b", "agreed", "a b c")
    trace.deliver(question, "c")
    assert violated(trace) == {"S9", "M4"}
    assert details(trace, "M4") == ["c:1 delivered b:1#1 before a:1#1"]


# ------------------------------------------------------------------------------------------------------------------ M5


def test_m5_holds_with_early_reliable_messages() -> None:
    trace = three()
    first = trace.send("a", "agreed")
    early = trace.send("b", "reliable")
    third = trace.send("c", "safe")
    trace.deliver(early, "a b c").deliver(first, "a b c").deliver(third, "a b c")
    assert_good(trace.settle("a b c"), "M5")


def test_m5_holds_after_the_signal_without_messages_of_those_who_part() -> None:
    trace = three()
    trace.deliver(trace.send("c", "agreed"), "c")
    later = trace.send("a", "agreed")
    trace.signal("a b c").deliver(later, "a b").install("v2", "a b").install("v3", "c")
    assert_good(trace, "M5")


def test_m5_two_messages_with_one_key() -> None:
    trace = pair()
    first = trace.send("a", "agreed", order_stamp=5)
    second = trace.send("b", "agreed", order_stamp=5)
    trace.deliver(first, "a b").deliver(second, "a b")
    assert violated(trace) == {"M5"}
    assert details(trace, "M5") == ["a:1#1 and b:1#1 have the same key (5, 1, 0) in v1"]


def test_m5_equal_keys_in_different_views_are_no_conflict() -> None:
    trace = Trace("a b").install("v1", "a").install("v2", "b")
    trace.deliver(trace.send("a", "agreed", order_stamp=5), "a")
    trace.deliver(trace.send("b", "agreed", order_stamp=5), "b")
    assert violated(trace) == set()


def test_m5_one_message_with_two_keys() -> None:
    trace = pair()
    message = trace.send("a", "agreed")
    trace.deliver(message, "a").deliver(message, "b", order_stamp=7)
    assert violated(trace) == {"S7", "M5"}


def test_m5_a_message_without_a_key() -> None:
    trace = pair()
    trace.deliver(trace.send("a", "agreed", order_stamp=None), "a b")
    assert violated(trace) == {"M5"}


def test_m5_against_the_order() -> None:
    trace = pair()
    first, second = trace.send("a", "agreed"), trace.send("b", "agreed")
    trace.deliver(first, "a").deliver(second, "a b").deliver(first, "b")
    assert violated(trace) == {"M5"}
    assert details(trace, "M5") == [
        "b:1 delivered b:1#1 before its signal in v1 without, before it, a:1#1, ordered earlier",
        "b:1 delivered a:1#1 of key (1, 1, 0) in v1 after b:1#1, ordered later",
    ]


def test_m5_against_the_order_after_the_signal() -> None:
    """Nobody else delivers them, and their sender does not move along: only the order itself is broken."""
    trace = three()
    first, second = trace.send("c", "agreed", session="s1"), trace.send("c", "agreed", session="s2")
    trace.crash("c").signal("a").deliver(second, "a").deliver(first, "a").install("v2", "a")
    found = violated(trace)
    assert "M5" in found
    assert details(trace, "M5") == ["a:1 delivered s1@c:1#1 of key (1, 1, 0) in v1 after s2@c:1#1, ordered later"]
    # What one daemon sends in two sessions is causally ordered as well.
    assert found == {"M4", "M5"}


@pytest.mark.parametrize("service", AGREED_CLASS)
def test_m5_a_hole_before_the_signal(service: str) -> None:
    trace = three()
    trace.deliver(trace.send("a", "reliable"), "a c")
    trace.deliver(trace.send("b", service), "b")
    assert violated(trace) == {"M5"}
    assert details(trace, "M5") == [
        "b:1 delivered b:1#1 before its signal in v1 without, before it, a:1#1, ordered earlier"
    ]


def test_m5_a_hole_before_the_signal_that_only_another_component_fills() -> None:
    trace = three()
    hole = trace.send("c", "agreed")
    trace.multicast("a", "agreed", "a b")
    trace.signal("a b c").deliver(hole, "c").install("v2", "a b").install("v3", "c")
    assert violated(trace) == {"M5"}


def test_m5_no_hole_where_nobody_delivered() -> None:
    trace = three()
    trace.send("c", "agreed")
    trace.crash("c")
    trace.multicast("a", "agreed", "a b")
    assert violated(trace) == set()


def test_m5_a_hole_after_the_signal_of_one_who_moves_along() -> None:
    trace = three()
    early = trace.send("a", "reliable")
    later = trace.send("b", "agreed")
    trace.signal("a b c").deliver(early, "a").deliver(later, "a b").deliver(early, "b").install("v2", "a b")
    assert violated(trace) == {"M5"}
    assert details(trace, "M5") == [
        "b:1 delivered b:1#1 after its signal in v1 without, before it, a:1#1, ordered earlier"
    ]


# ------------------------------------------------------------------------------------------------------------------ M6


def test_m6_holds_and_excuses_crash_and_stop() -> None:
    trace = Trace("a b c d").install("v1", "a b c d").crash("c").stop("d")
    trace.multicast("a", "safe", "a b")
    assert_good(trace.end("a b"), "M6")


def test_m6_holds_after_the_signal_among_those_who_move_along() -> None:
    trace = three()
    message = trace.send("a", "safe")
    trace.signal("a b c").deliver(message, "a b").install("v2", "a b").install("v3", "c").settle("a b").settle("c")
    assert_good(trace, "M6")


def test_m6_is_silent_about_a_history_that_breaks_off() -> None:
    trace = pair()
    trace.multicast("a", "safe", "a")
    assert violated(trace) == set()
    assert verdicts(trace)["M6"].premises == 0


def test_m6_a_member_of_the_view_never_delivers() -> None:
    trace = three()
    trace.multicast("a", "safe", "a b")
    trace.signal("a b c").install("v2", "a b").install("v3", "c").settle("a b").settle("c")
    assert violated(trace) == {"M6"}
    assert details(trace, "M6")[0] == "a:1 delivered safe a:1#1 in v1, but c:1 never did"


def test_m6_one_who_moves_along_never_delivers() -> None:
    trace = three()
    message = trace.send("c", "safe")
    trace.crash("c").signal("a b").deliver(message, "a")
    # b is in the transitional set of a, but installs another view: no vsync, and still a broken promise.
    trace.counter = 2
    trace.install_at("a", "v2", "a b", "a b").install("v3", "b").end("a b")
    assert violated(trace) == {"M6"}


# ------------------------------------------------------------------------------------------------------------------ M7


def test_m7_holds_where_a_fifo_message_waits_for_an_agreed_one() -> None:
    trace = pair()
    trace.multicast("a", "agreed", "a b")
    trace.multicast("a", "fifo", "a b")
    assert_good(trace, "M7")


def test_m7_lets_reliable_messages_overtake() -> None:
    trace = pair()
    first, second = trace.send("a", "agreed"), trace.send("a", "reliable")
    trace.deliver(second, "a b").deliver(first, "a b")
    assert violated(trace) == set()
    assert verdicts(trace)["M7"].premises == 0


@pytest.mark.parametrize("service", AGREED_CLASS)
def test_m7_a_fifo_message_overtakes(service: str) -> None:
    trace = pair()
    first, second = trace.send("a", service), trace.send("a", "fifo")
    trace.deliver(second, "a b").deliver(first, "a b")
    assert violated(trace) == {"M3", "M7"}
    assert details(trace, "M7")[0] == "a:1 delivered fifo a:1#2 without, before it, a:1#1"


def test_m7_a_fifo_message_without_an_agreed_one() -> None:
    trace = three()
    trace.multicast("a", "agreed", "a c")
    trace.multicast("a", "fifo", "a b")
    assert violated(trace) == {"M3", "M7"}


def test_m7_is_not_concerned_where_a_fifo_message_overtakes_a_fifo_one() -> None:
    trace = pair()
    first, second = trace.send("a", "fifo"), trace.send("a", "fifo")
    trace.deliver(second, "a b").deliver(first, "a b")
    assert violated(trace) == {"M3"}
