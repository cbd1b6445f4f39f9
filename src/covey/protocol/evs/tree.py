"""The overlay of a view and its trees: which way what a site sends takes to the others (rules W1, W2).

In:        the sites of a view, and the links between them with their costs.
Out:       for each source the tree of shortest paths: parents, children, who is below, paths.
Not here:  what travels along it (relay.py), which links a view has (overlay.py).

Pure, and a function of its arguments alone: every daemon of a view computes the same trees. Ties go to the path with
fewer links, then to the lower parent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from covey.cluster import SiteLink


class Tree(NamedTuple):
    """The shortest paths from one site to all others."""

    source: int
    parents: dict[int, int]
    """Of every site but the source, the one from which it gets what the source sends."""
    costs: dict[int, int]
    """Of the path to each site."""
    hops: dict[int, int]
    """Links on it."""

    def children(self, site: int) -> tuple[int, ...]:
        return tuple(sorted(child for child, parent in self.parents.items() if parent == site))

    def below(self, site: int) -> frozenset[int]:
        """The site, and all that get it through the site.

        >>> tree((0, 1, 2, 3), [SiteLink(0, 1), SiteLink(1, 2), SiteLink(1, 3)], 0).below(1) == {1, 2, 3}
        True
        """
        return self.all_below()[site]

    def all_below(self) -> dict[int, frozenset[int]]:
        """The same of every site, from the leaves up: the farthest first."""
        below = {site: {site} for site in self.costs}
        for site in sorted(self.costs, key=lambda one: (self.costs[one], self.hops[one]), reverse=True):
            if site != self.source:
                below[self.parents[site]] |= below[site]
        return {site: frozenset(sites) for site, sites in below.items()}

    def path(self, site: int) -> tuple[int, ...]:
        """From the source to the site, both included.

        >>> tree((0, 1, 2), [SiteLink(0, 1), SiteLink(1, 2)], 0).path(2)
        (0, 1, 2)
        """
        path = [site]
        while path[-1] != self.source:
            path.append(self.parents[path[-1]])
        return tuple(reversed(path))


def tree(sites: Collection[int], links: Iterable[SiteLink], source: int) -> Tree:
    """Sites that no link reaches are not in it.

    >>> tree((0, 1, 2), [SiteLink(0, 1, 1), SiteLink(1, 2, 1), SiteLink(0, 2, 2)], 0).parents
    {1: 0, 2: 0}
    """
    near = _neighbours(sites, links)
    parents, costs, hops_to = dict[int, int](), dict[int, int](), dict[int, int]()
    waiting = [(0, 0, -1, source)]
    while waiting:
        cost, hops, parent, site = heappop(waiting)
        if site in costs:
            continue
        costs[site], hops_to[site] = cost, hops
        if parent >= 0:
            parents[site] = parent
        for other, more in near.get(site, ()):
            if other not in costs:
                heappush(waiting, (cost + more, hops + 1, site, other))
    return Tree(source, parents, costs, hops_to)


def connected(sites: Collection[int], links: Iterable[SiteLink], source: int) -> frozenset[int]:
    """The sites that links join with this one.

    >>> sorted(connected((0, 1, 2, 3), [SiteLink(0, 1), SiteLink(2, 3)], 0))
    [0, 1]
    """
    return frozenset(tree(sites, links, source).costs)


def _neighbours(sites: Collection[int], links: Iterable[SiteLink]) -> dict[int, list[tuple[int, int]]]:
    """Each site's, with the cost of the link: only links between two of the sites count."""
    near: dict[int, list[tuple[int, int]]] = {}
    for one, other, cost in sorted(links):
        if one in sites and other in sites:
            near.setdefault(one, []).append((other, cost))
            near.setdefault(other, []).append((one, cost))
    return near
