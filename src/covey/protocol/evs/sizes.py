"""How large the frames of a cluster can become: every one must fit a datagram, or it could never arrive.

In:        how many daemons and sites there are, and the settings that bound what a frame lists.
Out:       the largest encoding of each frame that grows with them.
Not here:  packets of data and parts, which are cut to size as they are made.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from covey.cluster import Cluster
from covey.config import DATAGRAM_BYTES_MAX, Settings
from covey.errors import ConfigError
from covey.ids import INFINITE, Ballot, Life
from covey.protocol.values import Announcement, Declaration, Position, SiteDeclaration

from .codec import Codec
from .frames import Alive, Floor, Heard, Join, StateTrans, Token, Want

_MOST: Final = INFINITE - 1
_BALLOT: Final = Ballot(_MOST, 1_023, _MOST)
_ANNOUNCEMENTS: Final = 2
"""Of one site, kept at a time."""


def check_sizes(cluster: Cluster, settings: Settings) -> None:
    """ConfigError: some frame of this cluster might not fit a datagram."""
    bounds = (settings.ring_bundles_unstable, settings.source_bundles_unstable, settings.retransmit_requests_max)
    sizes = largest_frames(
        len(cluster.daemons), cluster.site_count, len(cluster.name.encode()), *bounds, settings.recovery_batch_bundles
    )
    for name, size in sizes.items():
        if size > DATAGRAM_BYTES_MAX:
            raise ConfigError(
                f"with {len(cluster.daemons)} daemons and these settings a {name} may need {size} bytes, and a "
                f"datagram has {DATAGRAM_BYTES_MAX}: lower ring_bundles_unstable, source_bundles_unstable, "
                "retransmit_requests_max or recovery_batch_bundles, or have fewer daemons"
            )


@lru_cache(1_024)
def largest_frames(
    daemons: int, sites: int, name_bytes: int, ring: int, source: int, requests: int, batch: int
) -> dict[str, int]:
    """By name, in bytes."""
    lives = (Life(1_023, _MOST),) * daemons
    heard = (Heard(1_023, _MOST, _MOST, True),) * daemons
    alive = Alive(_MOST, 5, 1_023, _BALLOT, lives, _BALLOT, _MOST, heard, _MOST)
    floor = Floor(_MOST, 1_023)
    floors = ((_MOST, floor),) * sites
    token = Token(_BALLOT, _MOST, _MOST, floor, floor, floors, _MOST, _MOST, _MOST, _MOST, (_MOST,) * requests)
    frames = (
        Join(alive, _MOST, lives),
        token,
        StateTrans(_BALLOT, _declaration(lives, sites, source), lives, _MOST, 1 << 24, b"", progress=True),
        StateTrans(_BALLOT, _declaration(lives, 1, ring), lives, _MOST, 1 << 24, b"", progress=True),
        Want(_BALLOT, ((_MOST, _MOST, _MOST),) * batch),
    )
    codec = Codec("c" * name_bytes, 0, lives[0])
    sizes: dict[str, int] = {}
    for frame in frames:
        name = type(frame).__name__.upper()
        sizes[name] = max(sizes.get(name, 0), len(codec.encode(frame)))
    return sizes


def _declaration(lives: tuple[Life, ...], sites: int, window: int) -> Declaration:
    """Of a view of so many sites, each of which may have so many bundles under way."""
    extras = ((_MOST, _MOST),) * window
    site = SiteDeclaration(_MOST, _MOST, _MOST, _MOST, extras, (Announcement(_MOST, _MOST),) * _ANNOUNCEMENTS)
    return Declaration(_BALLOT, Position(_MOST, _MOST), _MOST, _MOST, lives, (site,) * sites)
