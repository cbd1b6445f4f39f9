"""Who is in a group: the same whether it was told whole or as differences, and cheap where nobody looks."""

from __future__ import annotations

import gc
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from covey.client.roll import ROOM_MIN, Roll, Step, name_of, roll_of

PROCESS = st.sampled_from([f"p{number}@{daemon}:1.{number}" for number in range(8) for daemon in ("a", "b.c")])
CHANGES = st.lists(st.tuples(st.lists(PROCESS, max_size=4), st.lists(PROCESS, max_size=4), st.booleans()), max_size=60)


@given(st.lists(PROCESS, unique=True), CHANGES)
def test_a_chain_tells_what_a_plain_set_tells(
    first: list[str], changes: list[tuple[list[str], list[str], bool]]
) -> None:
    plain, roll = set(first), roll_of(first)
    chain: list[tuple[Roll, set[str]]] = []
    for came, gone, is_looked_at in changes:
        plain = (plain - set(gone)) | set(came)
        roll = roll.then(tuple(came), tuple(gone))
        chain.append((roll, plain))
        if is_looked_at:
            assert roll.processes == tuple(sorted(plain))
    for one, expected in reversed(chain):
        assert one.processes == tuple(sorted(expected))
        assert one.names == tuple(sorted(map(name_of, expected)))
        assert one.is_made


@given(st.lists(PROCESS, unique=True), st.lists(PROCESS, max_size=4))
def test_without_takes_away(first: list[str], others: list[str]) -> None:
    assert roll_of(first).without(tuple(others)).processes == tuple(sorted(set(first) - set(others)))


def grown(count: int, look: Callable[[int], bool]) -> list[Roll]:
    rolls = [roll_of([])]
    for number in range(count):
        rolls.append(rolls[-1].then((f"p{number:05d}@a:1.{number}",), ()))
        if look(number):
            assert len(rolls[-1].processes) == number + 1
    return rolls


def steps_to_a_list(roll: Roll) -> int:
    steps, known = 0, roll._known
    while isinstance(known, Step):
        steps, known = steps + 1, known.before._known
    return steps


def test_a_storm_that_nobody_looks_at_makes_a_list_only_when_there_are_twice_as_many() -> None:
    rolls = grown(4_000, lambda _: False)
    made = [number for number, roll in enumerate(rolls) if roll.is_made]
    assert made == [0, *(ROOM_MIN * 2**power for power in range(8))]
    assert all(steps_to_a_list(roll) <= max(number, ROOM_MIN) for number, roll in enumerate(rolls))


def test_a_look_drops_what_was_before() -> None:
    rolls = grown(100, lambda number: number == 90)
    assert steps_to_a_list(rolls[91]) == 0
    assert steps_to_a_list(rolls[100]) == 9


def test_a_large_group_that_comes_and_goes_makes_a_list_once_in_a_while() -> None:
    roll, made = roll_of(f"p{number}@a:1.{number}" for number in range(1_000)), 0
    for number in range(10_000):
        who = (f"q{number // 2}@b:1.1",)
        roll = roll.then(who, ()) if number % 2 == 0 else roll.then((), who)
        made += roll.is_made
    assert made == 10


def test_a_long_chain_is_freed_without_a_deep_fall() -> None:
    roll = roll_of(f"p{number}@a:1.{number}" for number in range(200_000))
    for number in range(150_000):
        roll = roll.then((f"q{number}@b:1.1",), ())
    assert not roll.is_made
    del roll
    gc.collect()
