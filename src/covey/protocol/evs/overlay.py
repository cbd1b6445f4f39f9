"""The overlay of a view: who speaks for each site, and over which links sites meet (rules W1, W2).

In:        the cluster, and the members of a view, or of one that could be.
Out:       representatives; links; which members the links join with one another.
Not here:  the ways through it (tree.py), what travels (relay.py).

The representative of a site is the lowest of its gateways. A site without a gateway meets no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from covey.cluster import Cluster, SiteLink
from covey.ids import Life

from .tree import connected


def representatives(cluster: Cluster, members: Iterable[Life]) -> dict[int, Life]:
    """By site."""
    chosen: dict[int, Life] = {}
    for life in sorted(members):
        daemon = cluster.daemons[life.rank]
        if daemon.gateway:
            chosen.setdefault(daemon.site, life)
    return chosen


def overlay(cluster: Cluster, members: Iterable[Life]) -> tuple[SiteLink, ...]:
    """The links between sites that have a representative among these."""
    sites = representatives(cluster, members)
    return tuple(sorted(link for link in cluster.all_links if link.one in sites and link.other in sites))


def joined_with(cluster: Cluster, members: Sequence[Life], me: Life) -> list[Life]:
    """Those of these that are in our site, or in one that links join with it."""
    site = cluster.daemons[me.rank].site
    if all(cluster.daemons[life.rank].site == site for life in members):
        return list(members)
    reached = connected(representatives(cluster, members), overlay(cluster, members), site)
    return [life for life in members if cluster.daemons[life.rank].site in reached]


def is_overlay(cluster: Cluster, members: Sequence[Life], links: tuple[SiteLink, ...]) -> bool:
    """Whether these are the links of such a view, and join all of it."""
    return links == overlay(cluster, members) and joined_with(cluster, members, members[0]) == list(members)
