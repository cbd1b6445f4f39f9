"""A daemon with the ordering engine that its cluster uses."""

from __future__ import annotations

from covey.config import Cluster, Settings
from covey.ids import Instant, Life
from covey.protocol.evs.engine import EvsEngine

from .boundary import OrderingEngine
from .daemon import Daemon
from .portions import PORTIONS, Portions


def build_daemon(
    cluster: Cluster,
    me: Life,
    settings: Settings,
    start: Instant,
    seed: int,
    budget_bytes: int = 0,
    portions: Portions = PORTIONS,
) -> Daemon[OrderingEngine]:
    return Daemon(
        cluster,
        me,
        settings,
        start,
        lambda kit, queue, declared: EvsEngine(kit, queue, declared, start, seed),
        budget_bytes,
        portions,
    )
