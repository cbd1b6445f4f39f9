"""Verdicts: order and names of the checkers, several runs, other levels, and the bound on evidence."""

from __future__ import annotations

import msgspec

from covey.guarantees.checkers import CHECKERS, DAEMON_CHECKERS, VIOLATIONS_KEPT, History, Verdict, check
from tests.unit.checkers.builder import Trace, verdicts, violated


def bad_trace(run: str, repetitions: int = 1) -> Trace:
    trace = Trace("a b", run).install("v1", "a b")
    message = trace.multicast("a", "fifo", "a b")
    for _ in range(repetitions):
        trace.deliver(message, "b")
    return trace


def test_the_checkers_come_in_the_order_of_the_guarantees() -> None:
    numbers = {"S": 15, "M": 9, "C": 8}
    expected = [f"{letter}{number}" for letter, last in numbers.items() for number in range(1, last + 1)]
    assert list(CHECKERS) == expected
    assert [verdict.guarantee for verdict in check([])] == expected


def test_each_checker_signs_its_own_verdicts() -> None:
    history = History("run", bad_trace("run").rows)
    assert [checker(history).guarantee for checker in DAEMON_CHECKERS.values()] == list(DAEMON_CHECKERS)


def test_no_rows_mean_no_premises() -> None:
    assert all(verdict.premises == 0 and verdict.holds for verdict in check([]))


def test_runs_are_judged_apart_and_added_up() -> None:
    """Two runs have the same names of daemons, views and messages, and nothing to do with each other."""
    good = Trace("a b", "good").install("v1", "a")
    good.multicast("a", "agreed", "a")
    rows = bad_trace("bad").rows + good.rows
    found = verdicts(rows)
    assert violated(rows) == {"S6"}
    assert [violation.run for violation in found["S6"].violations] == ["bad"]
    assert found["S6"].premises == 4


def test_rows_of_other_levels_are_passed_over() -> None:
    trace = bad_trace("run")
    assert violated([msgspec.structs.replace(row, level="V") for row in trace.rows]) == set()


def test_neither_steps_nor_times_matter() -> None:
    rows = bad_trace("run").rows
    changed = [msgspec.structs.replace(row, step=-row.index, time_ns=-row.index) for row in rows]
    assert verdicts(changed) == verdicts(rows)


def test_evidence_is_bounded_and_counted() -> None:
    verdict = verdicts(bad_trace("run", repetitions=VIOLATIONS_KEPT + 5))["S6"]
    assert len(verdict.violations) == VIOLATIONS_KEPT
    assert verdict.violation_count == VIOLATIONS_KEPT + 5


def test_a_verdict_survives_json() -> None:
    verdict = verdicts(bad_trace("run"))["S6"]
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict) == verdict
