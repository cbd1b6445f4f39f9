"""A daemon with the ordering engine that its cluster uses."""

from __future__ import annotations

from collections.abc import Mapping

from covey.cluster import Cluster
from covey.config import Settings
from covey.ids import Instant, Life
from covey.protocol.dialects.dialect import Dialect
from covey.protocol.dialects.known import DIALECTS
from covey.protocol.evs.engine import EvsEngine

from .boundary import OrderingEngine
from .daemon import Daemon
from .driven import check_life
from .portions import PORTIONS, Portions


def build_daemon(
    cluster: Cluster,
    me: Life,
    settings: Settings,
    start: Instant,
    seed: int,
    budget_bytes: int = 0,
    portions: Portions = PORTIONS,
    dialects: Mapping[str, Dialect] = DIALECTS,
) -> Daemon[OrderingEngine]:
    check_life(cluster, me)
    return Daemon(
        cluster,
        me,
        settings,
        start,
        lambda kit, queue, declared: EvsEngine(kit, queue, declared, start, seed),
        budget_bytes,
        portions,
        dialects,
    )
