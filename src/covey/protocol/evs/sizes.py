"""How large the frames of a cluster can become: every one must fit a datagram, or it could never arrive.

In:        how many daemons and sites there are, and the settings that bound what a frame lists.
Out:       the largest encoding of each frame that grows with them.
Not here:  packets of data, and what is told in parts: those are cut to size as they are made.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from covey.cluster import Cluster
from covey.config import AROUND_BYTES, DATAGRAM_BYTES_MAX, Settings
from covey.errors import ConfigError
from covey.ids import INFINITE, Ballot, Life
from covey.protocol.groups.exchange import PART_OVERHEAD
from covey.protocol.values import (
    ANNOUNCEMENTS_MAX,
    EXTRAS_BYTES_MAX,
    Announcement,
    Declaration,
    Position,
    SiteDeclaration,
)
from covey.protocol.wire.bundles import BUNDLE_OVERHEAD, CONTENT_BYTES

from .codec import RESEND_OVERHEAD, Codec
from .frames import GROUP_PARTS_MAX, STATE_PARTS_MAX, Alive, Floor, Heard, Join, Stated, Token, Want
from .kit import EvsKit

_MOST: Final = INFINITE - 1
_BALLOT: Final = Ballot(_MOST, 1_023, _MOST)
PART_LEAST: Final = 64
_PASSED_HEAD: Final = 64
"""More than a frame that passes another on has besides that, and besides for whom it is."""


def check_sizes(cluster: Cluster, settings: Settings) -> None:
    """ConfigError: some frame of this cluster might not fit a datagram."""
    bounds = settings.retransmit_requests_max, settings.recovery_batch_bundles
    sizes = largest_frames(len(cluster.daemons), cluster.site_count, len(cluster.name.encode()), *bounds)
    sizes = sizes | {"WANT": sizes["WANT"] + passing_bytes(cluster)}  # It goes between sites.
    for name, size in sizes.items():
        if size > DATAGRAM_BYTES_MAX:
            raise ConfigError(
                f"with {len(cluster.daemons)} daemons and these settings a {name} may need {size} bytes, and a "
                f"datagram has {DATAGRAM_BYTES_MAX}: lower retransmit_requests_max or "
                "recovery_batch_bundles, or have fewer daemons"
            )

    room = settings.packet_bytes - codec_overhead(cluster) - PART_OVERHEAD - passing_bytes(cluster)
    if room < PART_LEAST:
        raise ConfigError(
            f"with {len(cluster.daemons)} daemons a packet of {settings.packet_bytes} bytes has hardly room for a part "
            "of what daemons declare: raise packet_bytes"
        )
    around = codec_overhead(cluster) + RESEND_OVERHEAD + BUNDLE_OVERHEAD + CONTENT_BYTES + passing_bytes(cluster)
    if around > AROUND_BYTES:
        raise ConfigError(
            f"with {len(cluster.daemons)} daemons in several sites the largest bundle would not fit a datagram that is "
            "passed on between them: give the cluster a shorter name"
        )


@lru_cache(1_024)
def largest_frames(daemons: int, sites: int, name_bytes: int, requests: int, batch: int) -> dict[str, int]:
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
        Want(_BALLOT, ((_MOST, _MOST, _MOST),) * batch),
    )
    codec = Codec("c" * name_bytes, 0, lives[0])
    sizes: dict[str, int] = {}
    for frame in frames:
        name = type(frame).__name__.upper()
        sizes[name] = max(sizes.get(name, 0), len(codec.encode(frame)))
    return sizes


def passing_bytes(cluster: Cluster) -> int:
    """What a frame takes more where it may have to be passed on between sites."""
    return _PASSED_HEAD + (len(cluster.daemons) + 7) // 8 if cluster.site_count > 1 else 0


def codec_overhead(cluster: Cluster) -> int:
    return Codec(cluster.name, 0, Life(0, 0)).overhead


def part_bytes(kit: EvsKit) -> int:
    """How much of what is told in parts fits one packet, wherever it goes."""
    return kit.settings.packet_bytes - kit.codec.overhead - PART_OVERHEAD - passing_bytes(kit.cluster)


def declaration_parts_max(kit: EvsKit) -> int:
    """In how many parts a member of an attempt may declare what it holds."""
    sites, room = kit.cluster.site_count, part_bytes(kit)
    size = largest_stated(len(kit.cluster.daemons), sites) + sites * EXTRAS_BYTES_MAX
    return min(STATE_PARTS_MAX, -(-size // room) + 1)  # One more for what sessions have joined.


@lru_cache(1_024)
def largest_stated(daemons: int, sites: int) -> int:
    """Of a view of so many sites, in bytes; without what is held beyond gaps, however far heads keep these open."""
    site = SiteDeclaration(_MOST, _MOST, _MOST, _MOST, b"", (Announcement(_MOST, _MOST),) * ANNOUNCEMENTS_MAX)
    commit = (Life(1_023, _MOST),) * daemons
    declaration = Declaration(_BALLOT, Position(_MOST, _MOST), _MOST, _MOST, commit, (site,) * sites)
    return len(msgspec.msgpack.encode(Stated(declaration, _MOST, GROUP_PARTS_MAX, b"")))
