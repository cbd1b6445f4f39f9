"""The watch over views that nothing threatens: who gives one up is named, and who must is not."""

from __future__ import annotations

from random import Random

from covey.cluster import one_site
from covey.config import Settings
from covey.drivers.simulation.network import NetworkOptions
from covey.drivers.simulation.node import Clocks
from covey.drivers.simulation.steadiness import HELD, STEADINESS, Steadiness
from covey.drivers.simulation.world import World

SECOND = 1_000_000


def formed() -> tuple[World, Steadiness]:
    """Three daemons in one view."""
    world = World(one_site(3), Settings(), NetworkOptions(), Random(1), "run", lambda _row: None)
    watch = Steadiness(world, "run")
    for rank in range(3):
        world.start(rank, Clocks(0, 0, 100 * SECOND))
    world.run_until(SECOND)
    return world, watch


def test_a_view_that_lasts_is_a_case_and_no_violation() -> None:
    world, watch = formed()
    world.run_until(4 * SECOND)
    watch.over()
    assert (watch.verdict().guarantee, watch.verdict().premises, watch.verdict().violation_count) == (STEADINESS, 1, 0)
    assert watch.reactions == {HELD}


def test_who_gives_its_view_up_is_named_once() -> None:
    world, watch = formed()
    world.network.partition([[0, 1], [2]])
    world.run_until(4 * SECOND)
    verdict = watch.verdict()
    assert verdict.violation_count == 1
    assert "though only datagrams were lost, repeated or late, and clocks off" in verdict.violations[0].detail
    watch.over()
    assert watch.reactions == set()


def test_what_comes_later_does_not_count() -> None:
    world, watch = formed()
    watch.over()
    world.crash(2)
    world.run_until(4 * SECOND)
    assert watch.verdict().violation_count == 0


def test_before_all_are_together_there_is_nothing_to_keep() -> None:
    world = World(one_site(3), Settings(), NetworkOptions(), Random(1), "run", lambda _row: None)
    watch = Steadiness(world, "run")
    for rank in range(2):
        world.start(rank, Clocks(0, 0, 100 * SECOND))
    world.run_until(SECOND)
    assert watch.verdict().premises == 0
    world.start(2, Clocks(0, 0, 100 * SECOND))
    world.run_until(2 * SECOND)
    assert (watch.verdict().premises, watch.verdict().violation_count) == (1, 0)
