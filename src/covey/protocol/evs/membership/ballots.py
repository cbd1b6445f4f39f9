"""What a proposal or a counter may look like: anything else is damaged or forged."""

from __future__ import annotations

from typing import Final

from covey.cluster import Cluster
from covey.ids import Life

COUNTER_AHEAD_MAX: Final = 1 << 32
"""Counters start at the seconds of the clock and grow by one with each attempt: none is further ahead than this."""


def is_far(counter: int, ours: int) -> bool:
    """A counter that no number of changes explains: following it would use up all counters."""
    return counter > ours + COUNTER_AHEAD_MAX


def is_for(me: Life, members: tuple[Life, ...], cluster: Cluster) -> bool:
    """With us, sorted, each rank once, all configured: what a proposer always sends."""
    ranks = [life.rank for life in members]
    return me in members and ranks == sorted(set(ranks)) and ranks[-1] < len(cluster.daemons)
