"""The table of deadlines: what has run out comes earliest first, and acting on one may clear or move another."""

from __future__ import annotations

import pytest

from covey.protocol.deadlines import DeadlineTable
from covey.protocol.evs.deadlines import EvsDeadline


@pytest.fixture
def table() -> DeadlineTable:
    table = DeadlineTable()
    table.set(EvsDeadline.ALIVE, 30)
    table.set(EvsDeadline.GATHER, 20)
    table.set(EvsDeadline.FOLLOW, 40)
    return table


def test_an_empty_table_waits_for_nothing() -> None:
    assert DeadlineTable().next_us() is None
    assert DeadlineTable().due(10**9) == []


def test_the_next_deadline_is_the_earliest(table: DeadlineTable) -> None:
    assert table.next_us() == 20


def test_what_has_run_out_comes_earliest_first(table: DeadlineTable) -> None:
    assert table.due(30) == [EvsDeadline.GATHER, EvsDeadline.ALIVE]


def test_equal_deadlines_come_in_the_order_they_were_first_set() -> None:
    table = DeadlineTable()
    for deadline in (EvsDeadline.HURRY, EvsDeadline.ALIVE, EvsDeadline.TOKEN_LOST):
        table.set(deadline, 5)
    assert table.due(5) == [EvsDeadline.HURRY, EvsDeadline.ALIVE, EvsDeadline.TOKEN_LOST]


def test_asking_what_is_due_clears_nothing(table: DeadlineTable) -> None:
    assert table.due(30) == table.due(30)


def test_setting_again_moves_a_deadline(table: DeadlineTable) -> None:
    table.set(EvsDeadline.GATHER, 50)
    assert table.at(EvsDeadline.GATHER) == 50
    assert table.next_us() == 30


def test_set_if_clear_keeps_what_is_set(table: DeadlineTable) -> None:
    table.set_if_clear(EvsDeadline.GATHER, 10)
    table.set_if_clear(EvsDeadline.HURRY, 10)
    assert (table.at(EvsDeadline.GATHER), table.at(EvsDeadline.HURRY)) == (20, 10)


def test_several_are_cleared_at_once_set_or_not(table: DeadlineTable) -> None:
    table.clear(EvsDeadline.GATHER, EvsDeadline.ALIVE, EvsDeadline.ANNOUNCE)
    assert [deadline for deadline in EvsDeadline if table.is_set(deadline)] == [EvsDeadline.FOLLOW]


def test_a_deadline_is_taken_once(table: DeadlineTable) -> None:
    assert table.take(EvsDeadline.GATHER, 20)
    assert not table.take(EvsDeadline.GATHER, 20)
    assert table.at(EvsDeadline.GATHER) is None


def test_a_deadline_that_was_moved_meanwhile_is_not_taken(table: DeadlineTable) -> None:
    due = table.due(30)
    table.set(EvsDeadline.ALIVE, 31)
    assert [deadline for deadline in due if table.take(deadline, 30)] == [EvsDeadline.GATHER]
    assert table.is_set(EvsDeadline.ALIVE)


def test_every_deadline_says_what_happens() -> None:
    assert all(len(deadline.value.split()) >= 4 for deadline in EvsDeadline)
