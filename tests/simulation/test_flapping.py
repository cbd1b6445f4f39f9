"""Links that come and go cost few views, and fewer with time; a single trouble is healed as fast as ever."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest
from msgspec.structs import replace

from covey.cluster import Cluster, one_daemon_sites, one_site
from covey.config import Settings, lan, wan
from covey.drivers.simulation.network import NetworkOptions
from covey.drivers.simulation.node import Clocks
from covey.drivers.simulation.world import Script, World
from covey.protocol.inputs import Submit
from covey.protocol.values import Service
from covey.trace.record import Row

MS = 1_000
SECOND = 1_000_000
FROM_US = 2 * SECOND
FLAPPING_US = 100 * SECOND
QUIET_US = 45 * SECOND
VIEWS_MAX = 50
"""One every 2 s. A view that is lost and the one that merges again count both."""

Links = list[tuple[int, int]]


class Flapping:
    """Daemons with steady traffic, so that the token never rests for long, among links that come and go."""

    def __init__(self, cluster: Cluster, settings: Settings, delay_us: int = MS) -> None:
        self.rows: list[Row] = []
        self.daemons = len(cluster.daemons)
        self.loaded = True
        options = NetworkOptions(delay_min_us=delay_us, delay_mean_us=100)
        self.world = World(cluster, settings, options, Random(1), "flapping", self.rows.append)
        for rank in range(self.daemons):
            self.world.start(rank, Clocks(0, 0, 100 * SECOND))
            self.world.play(self._traffic(rank))
        self.world.run_until(FROM_US)
        assert self.is_one_view()

    def flap(self, links: Links, down_us: int, up_us: int) -> None:
        self.world.play(self._coming_and_going(links, down_us, up_us))
        self.world.run_until(FROM_US + FLAPPING_US)

    def cut(self, links: Links) -> None:
        for one, other in links:
            self.world.network.cut(one, other)
            self.world.network.cut(other, one)

    def mend(self, links: Links) -> None:
        for one, other in links:
            self.world.network.mend(self.world.now, one, other)
            self.world.network.mend(self.world.now, other, one)

    def views(self) -> list[list[int]]:
        """When each daemon installed a view, in microseconds since the first trouble."""
        found: dict[str, list[int]] = {name.name: [] for name in self.world.cluster.daemons}
        for row in self.rows:
            if row.event == "view" and row.time_ns > FROM_US * 1_000:
                found[row.process.split(":")[0]].append(row.time_ns // 1_000 - FROM_US)
        return list(found.values())

    def is_one_view(self) -> bool:
        reports = [node.core.engine.report(0) for node in self.world.living()]
        return all(one.working and one.view == reports[0].view and len(one.members) == self.daemons for one in reports)

    def _traffic(self, rank: int) -> Script:
        for seq in count(1):
            if not self.loaded:
                return
            self.world.give(rank, Submit(1, seq, Service.AGREED, b"x"))
            yield 100 * MS

    def _coming_and_going(self, links: Links, down_us: int, up_us: int) -> Script:
        while self.world.now < FROM_US + FLAPPING_US:
            self.cut(links)
            yield down_us
            self.mend(links)
            yield up_us


def ring(daemons: int = 3) -> Flapping:
    return Flapping(one_site(daemons), lan(daemons))


def undamped() -> Flapping:
    """Daemons that wait no longer for a token, or with a merge, whatever happened before, in the same virtual world."""
    settings = replace(lan(3), token_lost_growth_max=1, hold_down_ms=1, hold_down_growth_max=1)
    return Flapping(one_site(3), settings)


PAIR, HIGHER_PAIR = [(0, 1)], [(1, 2)]
LOWEST, HIGHEST = [(0, 1), (0, 2)], [(0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("links", "down_ms", "up_ms"),
    [
        pytest.param(PAIR, 500, 500, id="a pair, once a second"),
        pytest.param(HIGHER_PAIR, 500, 500, id="a pair without the lowest"),
        pytest.param(LOWEST, 500, 500, id="all of the lowest daemon"),
        pytest.param(HIGHEST, 500, 500, id="all of the highest daemon"),
        pytest.param(PAIR, 300, 100, id="mostly down"),
        pytest.param(PAIR, 1_000, 1_000, id="longer than a peer may be silent"),
        pytest.param(HIGHEST, 2_500, 500, id="longer than any patience with a token"),
    ],
)
def test_a_link_that_flaps_costs_few_views_and_fewer_with_time(links: Links, down_ms: int, up_ms: int) -> None:
    flapping = ring()
    flapping.flap(links, down_ms * MS, up_ms * MS)
    third = FLAPPING_US // 3
    assert all(0 < len(views) <= VIEWS_MAX for views in flapping.views())
    together = [at for views in flapping.views() for at in views]
    assert len([at for at in together if at >= 2 * third]) < len([at for at in together if at < third])
    assert_all_are_together_soon(flapping)


def assert_all_are_together_soon(flapping: Flapping) -> None:
    """After the longest hold-down and the longest patience with a peer, at most; and then there is no other view."""
    flapping.loaded = False
    settings = flapping.world.settings
    longest_ms = settings.hold_down_ms * settings.hold_down_growth_max
    patience_ms = settings.peer_timeout_ms * settings.peer_timeout_growth_max
    flapping.world.run_until(flapping.world.now + (longest_ms + patience_ms + 1_000) * MS)
    assert flapping.is_one_view()
    views = flapping.views()
    flapping.world.run_until(flapping.world.now + 20 * SECOND)
    assert flapping.views() == views


def test_one_of_five_that_comes_and_goes_is_damped_as_a_whole() -> None:
    """One view every 3 s at most. It relapses, so the last third need not be better than the first."""
    flapping = ring(5)
    flapping.flap([(2, other) for other in (0, 1, 3, 4)], 500 * MS, 500 * MS)
    assert max(map(len, flapping.views())) <= FLAPPING_US // (3 * SECOND)


def test_a_link_that_is_down_for_less_than_the_patience_with_a_token_costs_nothing() -> None:
    flapping = ring()
    flapping.flap(PAIR, 200 * MS, 200 * MS)
    assert flapping.views() == [[], [], []]


def test_sites_are_damped_too() -> None:
    flapping = Flapping(one_daemon_sites(3), wan(3), 20 * MS)
    flapping.flap(PAIR, 2 * SECOND, 2 * SECOND)
    assert all(len(views) <= VIEWS_MAX for views in flapping.views())


def test_one_partition_and_its_end_take_as_long_as_without_damping() -> None:
    assert part_and_meet(ring()) == part_and_meet(undamped())


def test_one_crash_takes_as_long_as_without_damping() -> None:
    views = []
    for flapping in (ring(), undamped()):
        flapping.world.crash(2)
        flapping.world.run_until(FROM_US + 3 * SECOND)
        views.append(flapping.views())
    assert views[0] == views[1]
    assert [len(one) for one in views[0]] == [1, 1, 0]


def test_what_was_damped_is_forgotten_after_a_while() -> None:
    """Some quiet time after the flapping, a trouble is noticed and healed as fast as by who never knew any."""
    flapping = ring()
    flapping.flap(PAIR, 500 * MS, 500 * MS)
    flapping.loaded = False
    flapping.world.run_until(FROM_US + FLAPPING_US + QUIET_US)
    settings = flapping.world.settings
    parted, met = part_and_meet(flapping)
    forming_ms = settings.segment_ms + settings.gather_ms + 2 * settings.alive_interval_ms
    assert max(parted) < (settings.peer_timeout_ms + forming_ms) * MS
    assert max(met) < (settings.hold_down_ms + forming_ms) * MS


def part_and_meet(flapping: Flapping) -> list[list[int]]:
    """How long it takes until each daemon has a view without the highest, and one with it again."""
    since, taken = flapping.world.now - FROM_US, []
    for change in (flapping.cut, flapping.mend):
        change(HIGHEST)
        now = flapping.world.now - FROM_US
        flapping.world.run_until(flapping.world.now + 3 * SECOND)
        taken.append([views[-1] - now for views in flapping.views()])
    assert flapping.is_one_view()
    assert [len([at for at in views if at >= since]) for views in flapping.views()] == [2, 2, 2]
    return taken
