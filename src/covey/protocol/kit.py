"""What every part of one daemon shares: who it is, its settings, its counters and its deadlines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from covey.cluster import Cluster
from covey.config import Settings
from covey.ids import Life

from .counters import Count
from .deadlines import DeadlineTable


@dataclass(slots=True)
class Kit:
    me: Life
    cluster: Cluster
    settings: Settings
    count: Count
    deadlines: DeadlineTable

    def name(self, rank: int) -> str:
        return self.cluster.daemons[rank].name


def site_bits(cluster: Cluster, members: Iterable[Life]) -> dict[Life, int]:
    """Of each member the bit of its site: the sites of a view, in the order of their numbers."""
    site_of = {life: cluster.daemons[life.rank].site for life in members}
    bits = {site: 1 << at for at, site in enumerate(sorted(set(site_of.values())))}
    return {life: bits[site] for life, site in site_of.items()}
