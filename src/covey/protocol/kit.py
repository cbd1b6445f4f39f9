"""What every part of one daemon shares: who it is, its settings, its counters and its deadlines."""

from __future__ import annotations

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
