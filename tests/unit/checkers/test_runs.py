"""Whole runs: good ones pass everything, damaged ones are noticed, and the fast checkers agree with a slow oracle."""

from __future__ import annotations

import random

import pytest

from covey.guarantees.checkers import DAEMON_CHECKERS
from covey.trace.record import Row
from tests.unit.checkers.builder import renumbered, verdicts, violated
from tests.unit.checkers.ideal import IdealRun
from tests.unit.checkers.oracle import ORACLES, Oracle

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_good_run_passes(seed: int) -> None:
    rows = IdealRun(seed).trace.rows
    assert [violation for verdict in verdicts(rows).values() for violation in verdict.violations] == []


def test_good_runs_test_every_guarantee() -> None:
    rows = [row for seed in SEEDS for row in IdealRun(seed).trace.rows]
    found = verdicts(rows)
    assert [guarantee for guarantee in DAEMON_CHECKERS if found[guarantee].premises == 0] == []


def test_a_long_good_run_passes() -> None:
    rows = IdealRun(seed=1, daemons=7, steps=60, batch=20).trace.rows
    assert len(rows) > 5_000
    assert violated(rows) == set()


def test_a_good_run_of_many_daemons_passes() -> None:
    rows = IdealRun(seed=2, daemons=60, steps=6).trace.rows
    assert violated(rows) == set()


def test_the_order_of_rows_between_processes_does_not_matter() -> None:
    rows = IdealRun(seed=3).trace.rows
    expected = verdicts(rows)
    random.Random(0).shuffle(rows)
    assert verdicts(rows) == expected


# ------------------------------------------------------------------------------------------------------------- damage


def pick(rows: list[Row], seed: int, event: str, services: tuple[str, ...] = ()) -> Row:
    fitting = [row for row in rows if row.event == event and (not services or row.service in services)]
    return random.Random(seed).choice(fitting)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_send_is_noticed(seed: int) -> None:
    rows = IdealRun(seed).trace.rows
    sent = pick(rows, seed, "deliver").message
    damaged = [row for row in rows if row.event != "send" or row.message != sent]
    assert "S7" in violated(renumbered(damaged))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_repeated_delivery_is_noticed(seed: int) -> None:
    rows = IdealRun(seed).trace.rows
    repeated = pick(rows, seed, "deliver", ("reliable", "fifo", "causal", "agreed", "safe"))
    assert "S6" in violated(renumbered([*rows, repeated]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_delivery_of_an_agreed_message_by_its_sender_is_noticed(seed: int) -> None:
    rows = IdealRun(seed).trace.rows
    ended = {row.process for row in rows if row.event == "end"}
    origins = {row.message: row.process for row in rows if row.event == "send"}
    own = [row for row in rows if row.event == "deliver" and row.process in ended & {origins[row.message]}]
    lost = pick(own, seed, "deliver", ("agreed", "safe", "causal"))
    assert "S12" in violated(renumbered([row for row in rows if row is not lost]))


# ------------------------------------------------------------------------------------------------------------- oracle


def damaged_run(seed: int) -> list[Row]:
    """A small run with a few rows removed or moved; views and their rows stay as they are."""
    chance = random.Random(seed)
    rows = list(IdealRun(seed, daemons=4, steps=4, batch=5).trace.rows)
    for _ in range(chance.randint(1, 4)):
        spot = chance.choice([i for i, row in enumerate(rows) if row.event in ("deliver", "transitional")])
        if chance.random() < 0.4:
            del rows[spot]
        else:
            swap_with_next_of_same_view(rows, spot)
    return renumbered(rows)


def swap_with_next_of_same_view(rows: list[Row], spot: int) -> None:
    row = rows[spot]
    for later in range(spot + 1, len(rows)):
        other = rows[later]
        if other.process == row.process:
            if other.event in ("deliver", "transitional") and other.view == row.view:
                rows[spot], rows[later] = other, row
            return


@pytest.mark.parametrize("seed", range(150))
def test_the_checkers_agree_with_the_oracle(seed: int) -> None:
    rows = damaged_run(seed)
    oracle, found = Oracle(rows), verdicts(rows)
    for guarantee, slow in ORACLES.items():
        violations = found[guarantee].violations
        if guarantee.startswith("M"):
            assert {violation.process for violation in violations} == slow(oracle), guarantee
        else:
            assert bool(violations) == bool(slow(oracle)), guarantee


def test_the_damaged_runs_break_every_promise_of_order() -> None:
    broken = {guarantee for seed in range(150) for guarantee in violated(damaged_run(seed))}
    assert broken >= set(ORACLES)


def test_the_oracle_knows_only_guarantees_that_have_checkers() -> None:
    assert set(ORACLES) <= set(DAEMON_CHECKERS)
