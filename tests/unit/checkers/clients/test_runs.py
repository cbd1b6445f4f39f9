"""Whole runs with clients: good ones pass everything, damaged ones are noticed, and what is owed is what was told."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import pytest

from covey.guarantees.checkers import CHECKERS, clients
from covey.guarantees.checkers.clients.history import ClientHistory
from covey.guarantees.checkers.common.lives import CAUSAL
from covey.guarantees.checkers.history import History
from covey.trace.record import Row
from tests.unit.checkers.builder import renumbered, verdicts, violated
from tests.unit.checkers.clients.damage import violations
from tests.unit.checkers.clients.ideal import IdealClients
from tests.unit.checkers.clients.world import World

SEEDS = range(60)
STAMPED = ("reliable", "fifo", "causal", "agreed", "safe")


@cache
def run(seed: int) -> World:
    return IdealClients(seed, daemons=2 + seed % 4).world


def history_of(world: World) -> ClientHistory:
    return ClientHistory("run", world.rows, History("run", world.rows))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_good_run_passes(seed: int) -> None:
    assert violations(run(seed).rows) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_good_run_passes_without_the_rows_of_daemons(seed: int) -> None:
    assert violations(run(seed).client_rows) == []


def test_good_runs_test_every_guarantee() -> None:
    rows = [row for seed in SEEDS for row in run(seed).client_rows + run(seed).daemons.rows]
    by_daemons = verdicts([row for row in rows if row.level == "S"])
    found = verdicts(rows)
    assert [one for one in CHECKERS if found[one].premises == 0] == []
    assert [one for one in clients.CHECKERS if found[one].premises == by_daemons[one].premises] == []


def test_a_long_good_run_passes() -> None:
    world = IdealClients(seed=7, daemons=5, steps=1_500).world
    assert len(world.rows) > 4_000
    assert violated(world.rows) == set()


def test_a_good_run_of_one_large_group_passes() -> None:
    world = World("a b c d")
    for number in range(16):
        world.connect(f"n{number}", "abcd"[number % 4])
        world.join(f"n{number}", "g")
    world.flow()
    for number in range(250):
        world.send(f"n{number % 16}", STAMPED[number % 5], "g")
        world.flow("a")
    world.become("a b", "c d").become("a b c d").settle()
    assert len(world.client_rows) > 4_000
    assert violated(world.rows) == set()


def test_the_order_of_rows_between_processes_does_not_matter() -> None:
    rows = run(3).rows
    expected = verdicts(rows)
    random.Random(0).shuffle(rows)
    assert verdicts(rows) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_owed_is_what_was_told(seed: int) -> None:
    """For clients at rest, of the agreed class; others may have been gone before they were told."""
    history = history_of(run(seed))
    agreed = history.at_least(CAUSAL)
    private = sum(message.bit for message in history.by_bit if not message.groups)
    for life in history.lives.values():
        owed = history.owed[life.process] & history.passed_by(life.daemon) & agreed
        delivered = life.delivered & agreed & ~private
        assert delivered & ~owed == 0
        if life.ended:
            assert delivered == owed


# ------------------------------------------------------------------------------------------------------------- damage


def pick(rows: list[Row], seed: int, event: str, services: tuple[str, ...] = ()) -> Row:
    mine = [row for row in rows if row.level == "C" and row.event == event]
    return random.Random(seed).choice([row for row in mine if not services or row.service in services])


def client_violations(rows: list[Row]) -> set[str]:
    return {violation.guarantee for violation in violations(rows) if "@" in violation.process}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_send_is_noticed(seed: int) -> None:
    rows = run(seed).rows
    sent = pick(rows, seed, "deliver").message
    damaged = [row for row in rows if row.level == "S" or row.event != "send" or row.message != sent]
    assert "S7" in client_violations(renumbered(damaged))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_repeated_delivery_is_noticed(seed: int) -> None:
    rows = run(seed).rows
    assert "S6" in client_violations(renumbered([*rows, pick(rows, seed, "deliver", STAMPED)]))


def deliveries_to_those_at_rest(world: World) -> list[Row]:
    """To groups that the receiver has not left since, of messages that others delivered too."""
    at_rest = history_of(world).at_rest.values()
    told = {(one.process, one.group, one.view) for stays in at_rest for stay in stays for one in stay.membership.stays}
    delivered = [row for row in world.client_rows if row.event == "deliver" and row.service in STAMPED]
    common = {message for message, count in Counter(row.message for row in delivered).items() if count > 1}
    return [
        row
        for row in delivered
        if row.message in common
        and any((row.process, *where) in told for where in zip(row.groups, row.views, strict=True))
    ]


def test_a_lost_delivery_to_one_at_rest_is_noticed_if_others_have_it() -> None:
    worlds = [(seed, run(seed)) for seed in SEEDS]
    fitting = [(seed, world, rows) for seed, world in worlds if (rows := deliveries_to_those_at_rest(world))]
    assert len(fitting) > len(SEEDS) / 2
    for seed, world, rows in fitting:
        lost = pick(rows, seed, "deliver")
        assert client_violations(renumbered([row for row in world.rows if row is not lost])), (seed, lost)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_view_of_one_who_goes_on_is_noticed(seed: int) -> None:
    world = run(seed)
    later = {(row.process, row.group): row for row in world.client_rows if row.event in ("view", "self_leave")}
    shown = [row for row in world.client_rows if row.event == "view" and later[row.process, row.group] is not row]
    lost = pick(shown, seed, "view")
    assert "S1" in client_violations(renumbered([row for row in world.rows if row is not lost]))
