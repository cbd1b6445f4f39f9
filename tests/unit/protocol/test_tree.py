"""Trees and overlays: which way what a site sends takes, and which sites a view can have."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from covey.cluster import Cluster, SiteLink, many_sites
from covey.ids import Life
from covey.protocol.evs.links.relay import Relay
from covey.protocol.evs.overlay import is_overlay, joined_with, overlay, representatives
from covey.protocol.evs.tree import tree

CHAIN = (SiteLink(0, 1), SiteLink(1, 2))


def lives(cluster: Cluster, *ranks: int) -> list[Life]:
    return [Life(rank, 1) for rank in (ranks or range(len(cluster.daemons)))]


def without_gateway(cluster: Cluster, *names: str) -> Cluster:
    daemons = tuple(type(one)(one.name, one.site, gateway=one.name not in names) for one in cluster.daemons)
    return Cluster(cluster.name, daemons, links=cluster.links)


# --- trees


def test_the_shortest_path_wins_then_the_one_with_fewer_links_then_the_lower_parent() -> None:
    cheap = (SiteLink(0, 1, 1), SiteLink(1, 3, 1), SiteLink(0, 3, 3))
    assert tree(range(4), cheap, 0).path(3) == (0, 1, 3)
    fewer = (SiteLink(0, 1, 1), SiteLink(1, 3, 1), SiteLink(0, 3, 2))
    assert tree(range(4), fewer, 0).path(3) == (0, 3)
    lower = (SiteLink(0, 1), SiteLink(0, 2), SiteLink(1, 3), SiteLink(2, 3))
    assert tree(range(4), lower, 0).path(3) == (0, 1, 3)


@pytest.mark.parametrize("seed", range(30))
def test_a_tree_reaches_every_site_once_at_the_least_cost(seed: int) -> None:
    """Compared with all simple paths."""
    random = Random(seed)
    sites = range(random.randint(2, 5))
    links = {SiteLink(random.randrange(site), site, random.randint(1, 4)) for site in sites[1:]}
    links |= {SiteLink(*pair, random.randint(1, 4)) for pair in combinations(sites, 2) if random.random() < 0.4}
    once = {link[:2]: link for link in sorted(links)}.values()
    for source in sites:
        found = tree(sites, once, source)
        assert found.costs == {site: min(_costs(once, (source,), site)) for site in sites}
        assert sorted(site for one in sites for site in found.children(one)) == sorted(set(sites) - {source})
        assert found.below(source) == set(sites)


def _costs(links: object, path: tuple[int, ...], to: int) -> list[int]:
    """Of every path without a circle."""
    if path[-1] == to:
        return [0]
    found = []
    for one, other, cost in links:  # type: ignore[attr-defined]
        for here, there in ((one, other), (other, one)):
            if here == path[-1] and there not in path:
                found += [cost + rest for rest in _costs(links, (*path, there), to)]
    return found


# --- overlays


def test_the_lowest_gateway_of_a_site_speaks_for_it() -> None:
    cluster = without_gateway(many_sites([2, 2]), "a")
    assert representatives(cluster, lives(cluster)) == {0: Life(1, 1), 1: Life(2, 1)}


def test_a_view_has_the_links_between_its_sites() -> None:
    cluster = many_sites([1, 1, 1], CHAIN)
    assert overlay(cluster, lives(cluster, 0, 1)) == (SiteLink(0, 1),)
    assert overlay(many_sites([1, 2]), lives(cluster)) == (SiteLink(0, 1),)


def test_sites_that_no_links_join_do_not_meet() -> None:
    cluster = many_sites([2, 1, 1], CHAIN)
    everybody = lives(cluster)
    assert joined_with(cluster, everybody, everybody[0]) == everybody
    ends = lives(cluster, 0, 1, 3)
    assert joined_with(cluster, ends, ends[0]) == ends[:2]
    assert joined_with(cluster, ends, ends[2]) == ends[2:]


def test_a_site_without_a_gateway_meets_nobody() -> None:
    cluster = without_gateway(many_sites([2, 2]), "b", "d")
    some = lives(cluster, 0, 1, 3)
    assert joined_with(cluster, some, some[0]) == some[:2]
    assert joined_with(cluster, some, some[2]) == some[2:]


def test_a_proposal_names_the_links_that_join_it() -> None:
    cluster = many_sites([1, 1, 1], CHAIN)
    assert is_overlay(cluster, lives(cluster), CHAIN)
    assert not is_overlay(cluster, lives(cluster), (*CHAIN, SiteLink(0, 2)))
    assert not is_overlay(cluster, lives(cluster), CHAIN[:1])
    assert not is_overlay(cluster, lives(cluster, 0, 2), ())


# --- who passes on what


def relay(cluster: Cluster, me: int) -> Relay:
    return Relay(cluster, Life(me, 1), lives(cluster), cluster.all_links)


def test_representatives_pass_on_along_the_tree_of_the_source() -> None:
    cluster = many_sites([2, 2, 2], CHAIN)  # a b | c d | e f
    middle = relay(cluster, 2)
    assert middle.speaks
    assert (middle.children(0), middle.children(1), middle.children(2)) == ((4,), (0, 4), (0,))
    assert (middle.comes_from(0), middle.comes_from(2)) == (0, 4)
    assert middle.peers == (0, 4)
    end = relay(cluster, 4)
    assert (end.children(0), end.children(2), end.comes_from(0)) == ((), (2,), 2)


def test_the_others_take_everything_from_who_speaks_for_them() -> None:
    cluster = many_sites([2, 2, 2], CHAIN)
    mate = relay(cluster, 3)
    assert not mate.speaks
    assert mate.peers == mate.children(0) == mate.children(1) == ()
    assert (mate.comes_from(0), mate.comes_from(2)) == (2, 2)
    assert mate.mates == (2,)


def test_in_one_site_nobody_speaks() -> None:
    alone = relay(many_sites([3]), 0)
    assert not alone.speaks
    assert not alone.has_other_sites
    assert alone.children(0) == alone.peers == ()
