"""What a seed draws: the shape of the cluster, the network, the settings, and which kinds of fault exist at all.

Swarm testing: each seed switches a random subset of the fault kinds on, so that rare combinations are reached that
"everything at once" would hide. A partition and a merge are in every run.
"""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import NamedTuple

import msgspec

from covey.cluster import Cluster, SiteLink, many_sites, one_site
from covey.config import FRAME_SLACK, Settings, lan, wan
from covey.protocol.portions import PORTIONS, Portions
from covey.trace.record import REPLAY

from .network import NetworkOptions

FAULT_KINDS = (
    "loss",
    "duplication",
    "late",
    "tail",
    "bandwidth",
    "one_way",
    "flap",
    "crash",
    "refused",
    "stop",
    "pause",
    "clock",
    "ambush",
)

DEAF = "deaf"
"""A fault kind that is drawn with the shape of a run: data is kept from a daemon, then it is cut off."""

_STEADY_KINDS = frozenset({"loss", "duplication", "late", "clock"})
"""What a view must bear: datagrams lost, repeated and late, and clocks that are off and drift. Loss is always there."""

_BUSY = 16
"""Programs, where they are asked for, that may all be busy: more do less, since each also hears what the others say."""

_LARGEST = 24_000
"""Bytes of the largest message where bounds are narrow: a little more than any program sends."""


DAEMONS_DRAWN_MAX = 9
"""Of a cluster of several sites that is drawn."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller fixes; None is drawn from the seed."""

    sites: int | None = None
    daemons: int | None = None
    seconds: float | None = None
    clients: int | None = None

    def command(self, seed: int) -> str:
        """What plays this seed again, with these options.

        >>> Asked(clients=4, seconds=0.5).command(5)
        'covey sim run --seed 5 --clients 4 --seconds 0.5'
        """
        names = ("sites", "daemons", "clients", "seconds")
        flags = (f" --{name} {value}" for name in names if (value := getattr(self, name)) is not None)
        return f"{REPLAY}--seed {seed}{''.join(flags)}"


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One run, completely."""

    seed: int
    cluster: Cluster
    settings: Settings
    network: NetworkOptions
    kinds: frozenset[str]
    seconds: float
    rate_per_second: float
    """Submissions a second at each daemon."""
    final: str
    """How connectivity ends: whole, split, one_way, or graph."""
    steady: bool
    """At first only those kinds strike that a view must bear: one must last until the others begin."""
    clients: int
    """Programs that use the daemons."""
    pause_ms: float
    """Of each program between two things that it does, on average."""
    portions: Portions
    """How much a daemon does for clients in one step."""


def draw(seed: int, asked: Asked, random: Random) -> RunOptions:
    """A default run costs much the same, whatever its shape: n daemons deliver n times what each of n submits."""
    cluster, shape = _called(seed, _cluster(seed, asked, random)), _shape(seed)
    kinds = shape.kinds(frozenset(kind for kind in FAULT_KINDS if random.random() < 0.55))
    far = cluster.site_count > 1
    sites = tuple(daemon.site for daemon in cluster.daemons) if far else ()
    weight = len(cluster.daemons) * (1.5 if far else 1.0)
    room = min(1.0, 16 / weight**2)
    clients = asked.clients if asked.clients is not None else random.choice((0, 0, 3))
    shared = asked.clients is None and clients > 0
    return RunOptions(
        seed=seed,
        cluster=cluster,
        settings=_interest(
            seed,
            _small_packets(
                cluster,
                _visits(seed, _limits(seed, _bounds(seed, _large_packets(seed, far, _settings(cluster, far, random))))),
            ),
        ),
        network=_network(kinds, sites, random),
        kinds=kinds,
        seconds=asked.seconds if asked.seconds is not None else random.uniform(5.0, 8.0) * min(1.0, 4.0 / weight),
        rate_per_second=random.choice((6.0, 12.0, 20.0)) * room * (0.4 if shared else 1.0),
        final=shape.final(random.choice(("whole", "whole", "whole", "split", "one_way"))),
        steady=shape.steady,
        clients=clients,
        pause_ms=60.0 / room if shared else 60.0 * max(1.0, clients / _BUSY) ** 1.5,
        portions=_portions(seed),
    )


def is_steady(seed: int) -> bool:
    """Whether its run has a steady time, whatever the caller fixes."""
    return _shape(seed).steady


class _Shape(NamedTuple):
    """What kind of run this is, drawn by a generator of its own."""

    steady: bool
    deaf: bool
    graph: bool

    def kinds(self, drawn: frozenset[str]) -> frozenset[str]:
        if self.steady:
            return drawn & _STEADY_KINDS | {"loss"}
        return drawn | {DEAF} if self.deaf else drawn

    def final(self, drawn: str) -> str:
        return "graph" if self.graph and drawn == "one_way" else drawn


def _shape(seed: int) -> _Shape:
    random = Random(f"covey {seed} shape")
    return _Shape(steady=random.random() < 0.12, deaf=random.random() < 0.5, graph=random.random() < 0.5)


def _cluster(seed: int, asked: Asked, random: Random) -> Cluster:
    sites = asked.sites
    if sites is None:
        several = asked.daemons is None and random.random() < 0.2
        sites = random.choice((2, 3, 4)) if several else 1
    if asked.sites is None and asked.daemons is None and (drawn := _sites_of_several(seed)) is not None:
        return drawn
    if sites > 1:
        return spread(sites, asked.daemons or sites, seed)
    return one_site(asked.daemons if asked.daemons is not None else random.randint(3, 7))


LONG_NAME = "c" * 255


def _called(seed: int, cluster: Cluster) -> Cluster:
    """In one of twenty runs with several sites packets have little room: small ones, a long name of the cluster."""
    if cluster.site_count < 2 or Random(f"covey {seed} name").random() < 0.95:
        return cluster
    return msgspec.structs.replace(cluster, name=LONG_NAME)


def _small_packets(cluster: Cluster, settings: Settings) -> Settings:
    if cluster.name != LONG_NAME:
        return settings
    smaller = {"packet_bytes": 512, "bundle_bytes": 700, "ring_packets_unstable": 1_000}
    least = msgspec.structs.replace(settings, **smaller).pieces_max
    return msgspec.structs.replace(settings, **smaller | {"ring_packets_unstable": max(least, 60)})


def _sites_of_several(seed: int) -> Cluster | None:
    """Sites with several daemons each, in some seeds; what a run costs grows with the square of their number.

    They are drawn by a generator of their own: the other seeds stay what they were.
    """
    random = Random(f"covey {seed} sites")
    if random.random() < 0.6:
        return None
    daemons = [random.choice((1, 1, 2, 2, 3, 4)) for _ in range(random.choice((2, 2, 3, 3, 4, 5)))]
    while sum(daemons) > DAEMONS_DRAWN_MAX:
        daemons[daemons.index(max(daemons))] -= 1
    return _linked(daemons, random)


def spread(sites: int, daemons: int, seed: int) -> Cluster:
    """So many daemons over so many sites, evenly, the lower sites first."""
    each, more = divmod(daemons, sites)
    return _linked([each + (site < more) for site in range(sites)], Random(f"covey {seed} links"))


def _linked(daemons: list[int], random: Random) -> Cluster:
    """Each site with every other, or a tree and some links more; costs that differ, or not; gateways: all, or some."""
    sites, links = range(len(daemons)), set[tuple[int, int]]()
    if random.random() < 0.7:
        links |= {(random.randrange(site), site) for site in sites[1:]}
        links |= {pair for pair in combinations(sites, 2) if random.random() < 0.3}
    costs = (1,) if random.random() < 0.5 else (1, 2, 5)
    cluster = many_sites(daemons, tuple(SiteLink(*pair, random.choice(costs)) for pair in sorted(links)))
    if random.random() < 0.5:
        return cluster
    sure = {site: random.choice([one.name for one in cluster.daemons if one.site == site]) for site in sites}
    chosen = tuple(
        msgspec.structs.replace(one, gateway=random.random() < 0.5 or sure[one.site] == one.name)
        for one in cluster.daemons
    )
    return msgspec.structs.replace(cluster, daemons=chosen)


def _settings(cluster: Cluster, far: bool, random: Random) -> Settings:
    base = wan() if far else lan(len(cluster.daemons))
    return msgspec.structs.replace(
        base,
        packet_bytes=random.choice((600, 1_400, 9_000)),
        bundle_bytes=random.choice((700, 2_000, 8_192)),
        ring_packets_per_visit=random.choice((3, 20)),
        ring_packets_after_token=random.choice((1, 6)),
        token_rest_ms=random.choice((0, 3, 8, 8)),
        recovery_batch_bundles=random.choice((2, 64)),
    )


def _large_packets(seed: int, far: bool, settings: Settings) -> Settings:
    """In some seeds packets are as large as on one machine, where the limit of a datagram is near.

    They are drawn by a generator of their own: the other seeds stay what they were.
    """
    if far or Random(f"covey {seed} packets").random() < 0.8:
        return settings
    return msgspec.structs.replace(settings, packet_bytes=65_000, bundle_bytes=64_500)


def _bounds(seed: int, settings: Settings) -> Settings:
    """Some seeds have narrow windows and small queues, and so reach their ends.

    They are drawn by a generator of their own: the other seeds stay what they were.
    """
    random = Random(f"covey {seed} bounds")
    if random.random() < 0.5:
        return settings
    return msgspec.structs.replace(
        settings,
        ring_packets_unstable=max(random.choice((30, 60)), settings.pieces_max),
        ring_bundles_unstable=random.choice((6, 30)),
        source_bundles_unstable=random.choice((3, 10)),
        submit_queue_bytes=random.choice((3_000, 10_000)),
        message_bytes_max=_LARGEST,
        session_send_bytes=random.choice((4_000, 40_000)),
        session_receive_bytes=_LARGEST + FRAME_SLACK + random.choice((1_000, 20_000)),
        block_max_ms=random.choice((300, 2_000)),
    )


def _portions(seed: int) -> Portions:
    """Half of the seeds do little in a step, so that work is cut wherever it can be."""
    random = Random(f"covey {seed} portions")
    if random.random() < 0.5:
        return PORTIONS._replace(words=100, turn=20)
    return Portions(
        words=random.choice((1, 5)),
        turn=random.choice((1, 3)),
        told=random.choice((1, 4, 20)),
        at_once=random.choice((1, 2)),
        run=random.choice((1, 3, 10)),
        behind=random.choice((3, 20)),
        behind_bytes=random.choice((2_000, 100_000)),
        late=random.choice((0, 1)),
        behind_late=random.choice((5, 50)),
    )


def _visits(seed: int, settings: Settings) -> Settings:
    """In one seed of ten a visit of the token sends one packet, by a generator of its own."""
    if Random(f"covey {seed} visits").random() < 0.9:
        return settings
    return msgspec.structs.replace(settings, ring_packets_per_visit=1)


def _interest(seed: int, settings: Settings) -> Settings:
    """How long a site keeps up interest that nobody has, and whether there is any, by a generator of its own."""
    random = Random(f"covey {seed} interest")
    return msgspec.structs.replace(
        settings,
        prune=random.random() < 0.9,
        interest_linger_ms=random.choice((1, 30, 150, 600)),
        interests_max=random.choice((1, 3, 100_000, 100_000, 100_000)),
    )


def _limits(seed: int, settings: Settings) -> Settings:
    """What clients may ask of a daemon in all, by a generator of its own; small where bounds are narrow."""
    random = Random(f"covey {seed} limits")
    small = max(150_000, settings.session_receive_bytes + 1)
    narrow = settings.message_bytes_max == _LARGEST and random.random() < 0.5
    return msgspec.structs.replace(
        settings,
        block_percent=random.choice((0, 25, 25, 100)),
        clients_bytes_max=small if narrow else 0,
        memberships_max=random.choice((40, 400)) if random.random() < 0.1 else settings.memberships_max,
    )


def _network(kinds: frozenset[str], sites: tuple[int, ...], random: Random) -> NetworkOptions:
    return NetworkOptions(
        sites=sites,
        delay_min_us=random.choice((100, 300)),
        delay_mean_us=random.choice((50, 300, 900)),
        delay_tail=random.choice((0.002, 0.02)) if "tail" in kinds else 0.0,
        loss=random.choice((0.01, 0.05, 0.15)) if "loss" in kinds else 0.0,
        late=random.choice((0.01, 0.05)) if "late" in kinds else 0.0,
        duplication=random.choice((0.01, 0.1)) if "duplication" in kinds else 0.0,
        bytes_per_second=random.choice((500_000, 2_000_000)) if "bandwidth" in kinds else 0,
    )
