"""What one daemon passes on of what sites send: from whom it comes, and to whom it goes (rules W1 to W3).

In:        the members of a view and its links.
Out:       for each source, from whom this daemon takes it and to whom it sends it on.
Not here:  how it travels (link.py, ring.py), when a ring takes it (stamping/token.py).

What a site sends goes from its stamper around its ring, from its representative along the tree of that site to the
other representatives, and from each of them around its own ring. Nobody but representatives speaks to other sites.
"""

from __future__ import annotations

from collections.abc import Sequence

from covey.cluster import Cluster, SiteLink
from covey.ids import Life
from covey.protocol.evs.overlay import representatives
from covey.protocol.evs.tree import tree

NOBODY = -1


class Relay:
    def __init__(self, cluster: Cluster, me: Life, members: Sequence[Life], links: Sequence[SiteLink]) -> None:
        site_of = {life: cluster.daemons[life.rank].site for life in members}
        self.site = cluster.daemons[me.rank].site
        self.sites = tuple(sorted(set(site_of.values())))
        self.has_other_sites = len(self.sites) > 1
        speaks = self._speaks = {site: life.rank for site, life in representatives(cluster, members).items()}
        self.representative = speaks.get(self.site, NOBODY)
        """Of our site."""
        self.speaks = self.has_other_sites and self.representative == me.rank
        """Whether that is us, and there is somebody to speak to."""
        self.mates = tuple(life.rank for life in members if site_of[life] == self.site and life != me)
        self._bits = {site: 1 << at for at, site in enumerate(self.sites)}
        self.bit = self._bits[self.site]
        """Of our site, where the sites of a view are bits."""
        self._children: dict[int, tuple[int, ...]] = dict.fromkeys(self.sites, ())
        self._below: dict[tuple[int, int], int] = {}
        """By source and child: the sites that get it through that child."""
        self._parents = dict.fromkeys(self.sites, self.representative)
        if self.speaks:
            self._take_trees(links, speaks)
        ends = {*self._parents.values(), *(peer for peers in self._children.values() for peer in peers)}
        self.peers = tuple(sorted(ends - {self.representative})) if self.speaks else ()
        """Daemons of other sites that we have a link with: those next to us in some tree."""

    def _take_trees(self, links: Sequence[SiteLink], speaks: dict[int, int]) -> None:
        for source in self.sites:
            way = tree(self.sites, links, source)
            below = way.all_below()
            self._children[source] = tuple(speaks[child] for child in way.children(self.site))
            for child in way.children(self.site):
                self._below[source, speaks[child]] = sum(self._bits[site] for site in below[child])
            if source != self.site:
                self._parents[source] = speaks[way.parents[self.site]]

    def bit_of(self, site: int) -> int:
        return self._bits[site]

    def speaks_for(self, site: int) -> int:
        """Who represents this site, of those in the view; nobody, if it has no gateway there."""
        return self._speaks.get(site, NOBODY)

    def children(self, source: int) -> tuple[int, ...]:
        """To whom we send on what this site sends; nobody, if we do not speak for ours."""
        return self._children.get(source, ())

    def children_for(self, source: int, content: int) -> tuple[int, ...]:
        """To which of them the content for these sites goes; 0: to all."""
        children = self.children(source)
        return tuple([one for one in children if self._below[source, one] & content]) if content else children

    def children_without(self, source: int, content: int) -> tuple[int, ...]:
        """To which of them only its head goes."""
        return tuple([one for one in self.children(source) if not self._below[source, one] & content])

    def is_below(self, source: int, child: int, site: int) -> bool:
        """Whether this site gets what the source sends through that child."""
        return bool(self._below[source, child] & self._bits[site])

    def comes_from(self, source: int) -> int:
        """From whom we take what another site sends: our parent in its tree, or who speaks for our site."""
        return self._parents.get(source, NOBODY)
