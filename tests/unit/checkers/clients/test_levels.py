"""Two levels, one verdict a guarantee: premises are added, violations joined, and each level is judged by itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from covey.guarantees.checkers import CHECKERS, DAEMON_CHECKERS, History, check, clients
from covey.guarantees.checkers.clients.history import ClientHistory
from covey.trace.record import SERVICES
from tests.unit.checkers.builder import Trace, verdicts
from tests.unit.checkers.clients.damage import repeated, row_of, trio
from tests.unit.checkers.ideal import IdealRun


def test_premises_are_added_and_violations_joined() -> None:
    world = trio()
    message = world.multicast("x", "fifo", "g")
    world.daemons.deliver(world.items[message].bundle, "b")
    rows = repeated(world, row_of(world, "y", event="deliver", message=message))
    both, daemons = verdicts(rows)["S6"], verdicts([row for row in rows if row.level == "S"])["S6"]
    alone = verdicts([row for row in rows if row.level == "C"])["S6"]
    assert both.premises == daemons.premises + alone.premises
    assert [violation.process for violation in both.violations] == ["b:1", "y@b:1.1"]
    assert both.violation_count == 2


def test_without_clients_nothing_changes() -> None:
    rows = IdealRun(seed=5).trace.rows
    history = History("seed 5", rows)
    found = check(rows)
    assert [verdict for verdict in found if verdict.guarantee in DAEMON_CHECKERS] == [
        checker(history) for checker in DAEMON_CHECKERS.values()
    ]
    assert [verdict.premises for verdict in found if verdict.guarantee not in DAEMON_CHECKERS] == [0] * 10


def test_each_checker_signs_its_own_verdicts() -> None:
    world = trio()
    history = ClientHistory("run", world.rows, History("run", world.rows))
    assert [checker(history).guarantee for checker in clients.CHECKERS.values()] == list(clients.CHECKERS)


def test_all_guarantees_of_daemons_and_clients_have_checkers() -> None:
    assert set(CHECKERS) == set(DAEMON_CHECKERS) | set(clients.CHECKERS)
    assert [one for one in CHECKERS if one not in clients.CHECKERS] == ["S14", "S15"]


def test_runs_are_judged_apart() -> None:
    one = trio()
    others = [msgspec.structs.replace(row, run="other") for row in trio().rows]
    found = verdicts(one.rows + others)
    assert all(verdict.holds for verdict in found.values())
    assert found["C1"].premises == 2 * verdicts(one.rows)["C1"].premises


def test_rows_of_level_v_are_passed_over() -> None:
    trace = Trace("a b").install("v1", "a b")
    rows = [msgspec.structs.replace(row, level="V") for row in trio().rows]
    assert verdicts([*trace.rows, *rows]) == verdicts(trace.rows)


@pytest.mark.parametrize(
    "nothing",
    [
        {"group": None, "groups": (), "views": ()},
        {"view_new": None, "view_rank": (), "members": (), "transitional": ()},
        {"order_view": None, "order_stamp": None, "order_site": None, "order_index": None},
        {"message": None, "sender": None, "session_seq": None, "service": None, "digest": None},
        {"daemon": "nobody", "name": "nobody", "cause": None},
        {"event": "deliver"},
        {"process": "nobody"},
    ],
)
def test_a_trace_that_makes_no_sense_is_judged_all_the_same(nothing: dict[str, Any]) -> None:
    world = trio("g", "h")
    for service in SERVICES:
        world.multicast("x", service, "g h")
    world.leave("z", "g")
    world.become("a b", "c").settle()
    rows = [msgspec.structs.replace(row, **nothing) if row.level == "C" else row for row in world.rows]
    assert [verdict.guarantee for verdict in check(rows)] == list(CHECKERS)
