"""S1 to S5, S14 and S15: for each a good trace, and a bad one for each clause that no other checker flags."""

from __future__ import annotations

from tests.unit.checkers.builder import Trace, assert_good, details, violated


def partition_and_merge() -> Trace:
    """Three daemons, split into {a, b} and {c}, one view again."""
    trace = Trace("a b c").install("v1", "a b c")
    trace.multicast("a", "agreed", "a b c")
    trace.signal("a b c").install("v2", "a b").install("v3", "c")
    trace.multicast("b", "safe", "a b")
    return trace.signal("a b c").install("v4", "a b c").settle("a b c")


# ------------------------------------------------------------------------------------------------------------------ S1


def test_s1_holds_where_everything_happens_in_a_view() -> None:
    assert_good(partition_and_merge(), "S1")


def test_s1_a_delivery_before_the_first_view() -> None:
    trace = Trace("a b").install("v1", "a")
    message = trace.send("a", "unreliable")
    trace.deliver(message, "b")
    assert violated(trace) == {"S1"}
    assert details(trace, "S1") == ["deliver of a:1#1 at b:1 names view None, but happened before its first view"]


def test_s1_a_signal_before_the_first_view() -> None:
    assert violated(Trace("a").signal("a").install("v1", "a")) == {"S1"}


def test_s1_a_signal_that_names_another_view() -> None:
    trace = Trace("a").install("v1", "a").event("a", "transitional", view="v0")
    assert violated(trace) == {"S1"}


def test_s1_a_delivery_that_names_another_view() -> None:
    trace = Trace("a").install("v1", "a")
    trace.deliver(trace.send("a", "agreed"), "a", view="v2")
    assert violated(trace) == {"S1"}


def test_s1_a_view_that_names_another_previous_view() -> None:
    trace = Trace("a").install("v1", "a").install("v2", "a", view="v0")
    assert violated(trace) == {"S1"}


def test_s1_a_delivery_before_the_first_view_of_what_others_deliver_in_theirs() -> None:
    trace = Trace("a b").install("v1", "a")
    trace.multicast("a", "fifo", "a b")
    assert violated(trace) == {"S1"}


# ------------------------------------------------------------------------------------------------------------------ S2


def test_s2_holds_where_everybody_is_a_member() -> None:
    assert_good(partition_and_merge(), "S2")


def test_s2_a_view_without_the_one_who_installs_it() -> None:
    trace = Trace("a b").install("v1", "a", members=("b:1",))
    assert violated(trace) == {"S2"}
    assert details(trace, "S2") == ["a:1 installed v1 of {b:1} without itself"]


def test_s2_a_view_without_members() -> None:
    assert violated(Trace("a").install("v1", "a", members=())) == {"S2"}


def test_s2_a_view_with_an_earlier_life_only() -> None:
    trace = Trace("a").install("v1", "a").crash("a").restart("a")
    trace.install("v2", "a", members=("a:1",))
    assert violated(trace) == {"S2"}


# ------------------------------------------------------------------------------------------------------------------ S3


def test_s3_holds_where_ranks_grow() -> None:
    assert_good(partition_and_merge(), "S3")


def test_s3_is_not_tested_by_first_views() -> None:
    trace = Trace("a").install("v1", "a").crash("a").restart("a")
    trace.install("v0", "a", view_rank=(0, 0, 1))
    assert violated(trace) == set()


def test_s3_a_smaller_counter() -> None:
    trace = Trace("a").install("v5", "a", view_rank=(5, 0, 1)).install("v4", "a", view_rank=(4, 9, 9))
    assert violated(trace) == {"S3"}
    assert details(trace, "S3") == ["a:1 installed v4 of rank (4, 9, 9) after v5 of rank (5, 0, 1)"]


def test_s3_an_equal_rank() -> None:
    trace = Trace("a").install("v5", "a", view_rank=(5, 0, 1)).install("w5", "a", view_rank=(5, 0, 1))
    assert violated(trace) == {"S3"}


def test_s3_compares_the_proposer_where_counters_are_equal() -> None:
    trace = Trace("a").install("v5", "a", view_rank=(5, 1, 1)).install("w5", "a", view_rank=(5, 2, 1))
    assert_good(trace, "S3")
    trace.install("x5", "a", view_rank=(5, 1, 7))
    assert violated(trace) == {"S3"}


# ------------------------------------------------------------------------------------------------------------------ S4


def test_s4_holds_where_equal_ids_have_equal_members() -> None:
    assert_good(partition_and_merge(), "S4")


def test_s4_equal_ids_with_different_members() -> None:
    trace = Trace("a b c").install_at("a", "v1", "a b", "a").install_at("b", "v1", "a b c", "b")
    assert violated(trace) == {"S4"}
    assert details(trace, "S4") == ["view v1 has members {a:1, b:1, c:1} at b:1, but {a:1, b:1} at a:1"]


def test_s4_equal_ids_with_different_ranks() -> None:
    trace = Trace("a b").install_at("a", "v1", "a b", "a").install_at("b", "v1", "a b", "b", view_rank=(7, 0, 1))
    assert violated(trace) == {"S4"}


# ------------------------------------------------------------------------------------------------------------------ S5


def test_s5_holds_through_partition_and_merge() -> None:
    assert_good(partition_and_merge(), "S5")


def test_s5_holds_for_one_who_came_along_but_crashed() -> None:
    trace = Trace("a b c").install("v1", "a b c")
    trace.install_at("a", "v2", "a b c", "a b c", view_rank=(2, 0, 1))
    trace.install_at("b", "v2", "a b c", "a b c", view_rank=(2, 0, 1)).crash("c")
    assert_good(trace, "S5")


def test_s5_a_first_view_with_company() -> None:
    trace = Trace("a b").install_at("a", "v1", "a b", "a b")
    assert violated(trace) == {"S5"}


def test_s5_a_first_view_without_self() -> None:
    assert violated(Trace("a b").install_at("a", "v1", "a b", "")) == {"S5"}


def test_s5_one_who_is_not_in_the_new_view() -> None:
    trace = Trace("a b").install("v1", "a b")
    trace.install_at("a", "v2", "a", "a b", view_rank=(2, 0, 1))
    assert violated(trace) == {"S5"}
    assert "holds {b:1}, not in the members of both views" in details(trace, "S5")[0]


def test_s5_one_who_was_not_in_the_old_view() -> None:
    trace = Trace("a b").install("v1", "a")
    trace.install_at("a", "v2", "a b", "a b", view_rank=(2, 0, 1))
    assert violated(trace) == {"S5"}


def test_s5_one_who_came_from_another_view() -> None:
    trace = Trace("a b").install("v1", "a b").install("v2", "a").install("v3", "b")
    trace.counter = 4
    trace.install_at("a", "v4", "a b", "a b").install_at("b", "v4", "a b", "b")
    assert violated(trace) == {"S5"}


def test_s5_one_is_left_out_who_came_along() -> None:
    trace = Trace("a b").install("v1", "a b")
    trace.counter = 2
    trace.install_at("a", "v2", "a b", "a").install_at("b", "v2", "a b", "a b")
    assert violated(trace) == {"S5"}
    assert "is wrong about {b:1}" in details(trace, "S5")[0]


def test_s5_different_sets_for_those_who_came_together() -> None:
    trace = Trace("a b c").install("v1", "a b c")
    trace.counter = 2
    # c never installs v2, so only the comparison of the two sets can tell.
    trace.install_at("a", "v2", "a b c", "a b c").install_at("b", "v2", "a b c", "a b")
    assert violated(trace) == {"S5"}


# ----------------------------------------------------------------------------------------------------------------- S14


def test_s14_holds_where_each_component_has_its_view() -> None:
    assert_good(partition_and_merge(), "S14")
    trace = Trace("a b c").install("v1", "a b").install("v2", "c").settle("a b")
    assert_good(trace.settle("c"), "S14")


def test_s14_is_silent_where_connectivity_is_not_transitive() -> None:
    trace = Trace("a b c").install("v1", "a b").install("v2", "c")
    trace.calm("a", "a b").calm("b", "a b c").calm("c", "b c").end("a b c")
    assert violated(trace) == set()


def test_s14_a_connected_daemon_is_left_out() -> None:
    trace = Trace("a b c").install("v1", "a b").install("v2", "c").settle("a b c")
    assert violated(trace) == {"S14"}
    assert "a:1 ended in v1 of {a:1, b:1}, connected {a:1, b:1, c:1}" in details(trace, "S14")


def test_s14_equal_members_but_two_views() -> None:
    trace = Trace("a b").install_at("a", "v1", "a b", "a").install_at("b", "w1", "a b", "b").settle("a b")
    assert violated(trace) == {"S14"}
    assert details(trace, "S14") == ["b:1 ended in w1, but a:1, connected with it, in v1"]


def test_s14_is_silent_where_somebody_crashes_after_calm() -> None:
    trace = Trace("a b").install("v1", "a b").calm("a b").crash("b").install("v2", "a").end("a")
    assert violated(trace) == set()


def test_s14_a_daemon_without_any_view() -> None:
    trace = Trace("a b").install("v1", "a").settle("a b")
    assert violated(trace) == {"S14", "S15"}
    assert "b:1 ended without any view, connected {a:1, b:1}" in details(trace, "S14")


# ----------------------------------------------------------------------------------------------------------------- S15


def test_s15_holds_where_a_view_is_smaller_than_the_connected_set() -> None:
    trace = Trace("a b c").install("v1", "a b").install("v2", "c")
    trace.calm("a", "a b").calm("b", "a b c").calm("c", "b c").end("a b c")
    assert_good(trace, "S15")


def test_s15_excuses_a_crash_after_calm() -> None:
    assert violated(Trace("a b").install("v1", "a b").calm("a b").crash("b").end("a")) == set()


def test_s15_a_daemon_that_never_comes_to_rest() -> None:
    trace = Trace("a b").install("v1", "a b").calm("a b").end("a")
    assert violated(trace) == {"S15"}
    assert details(trace, "S15") == ["b:1 never came to rest after the faults stopped"]


def test_s15_a_view_with_a_daemon_not_connected_both_ways() -> None:
    trace = Trace("a b c").install("v1", "a b c")
    trace.calm("a", "a b").calm("b", "a b c").calm("c", "b c").end("a b c")
    assert violated(trace) == {"S15"}
    assert details(trace, "S15")[0] == ("a:1 ended in v1 with {c:1}, but is connected both ways only with {a:1, b:1}")


def test_s15_a_daemon_without_any_view() -> None:
    trace = Trace("a b").install("v1", "a").calm("a").calm("b", "a b").end("a b")
    assert violated(trace) == {"S15"}
    assert details(trace, "S15") == ["b:1 ended without any view"]
