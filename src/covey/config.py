"""Configuration: which daemons exist, and how long, how much, how often.

In:   values from a caller or a file, checked once here.
Out:  `Cluster` and `Settings`, frozen; every daemon of a cluster must have the same `Cluster` (its digest is in every
      datagram, and a mismatch is reported by name).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from .errors import ConfigError
from .names import daemon_problem

DATAGRAM_BYTES_MAX = 65_507
COUNT_MAX = 1_000_000
GROUPS_MAX = 100
"""Bounds on one submission: messages in it, groups it is for."""

FRAME_SLACK = 16 * 1024
"""What a submission may hold besides the largest message: the name of its sender, the names of its groups."""

GROUPS_BYTES_MAX = 8_192
"""Bytes of all group names of one message, with their lengths."""

AROUND_BYTES = 500
"""More than all that stands in a datagram beside the payload of a bundle and the names of its groups."""


HEADS_BYTES_MAX = 332
"""Of a packet with one piece of a bundle: all but the piece, where the cluster has the longest name."""


def part_bytes(bundle_bytes: int, names_bytes: int) -> int:
    """How much of a message one bundle takes: less beside long names, since a bundle must fit one datagram.

    >>> part_bytes(8_192, 20), part_bytes(64_500, 20), part_bytes(64_500, 8_000)
    (8192, 64500, 57007)
    """
    return min(bundle_bytes, DATAGRAM_BYTES_MAX - AROUND_BYTES - names_bytes)


_BYTES = frozenset(map(str, range(256)))

Address = tuple[str, int]
"""An IPv4 address and a port."""

SETTING_MAX = 1 << 31
"""More than any setting can mean, and within what every computation with it holds."""

MAY_BE_ZERO = frozenset({"block_percent", "session_silence_max_ms", "session_lag_max_ms", "clients_bytes_max"})
"""Settings that 0 switches off, or leaves to the machine."""

DAEMONS_MAX = 1_024
FRAME_ITEMS_MAX = 4_096
"""What fits one frame: more is refused here, before a peer would have to."""


class DaemonConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One configured daemon. Its rank is its place in the cluster's list: lower ranks represent and propose."""

    name: str
    site: int
    host: str = "127.0.0.1"
    port: int = 0
    clients: str | None = None
    """HOST:PORT where programs may connect over TCP; on its own machine they always can, over a Unix socket."""

    @property
    def address(self) -> Address:
        """Where its datagrams come from."""
        return "127.0.0.1" if self.host == "localhost" else self.host, self.port


class Cluster(msgspec.Struct, frozen=True):
    """All daemons that may ever take part, in rank order."""

    name: str
    daemons: tuple[DaemonConfig, ...]
    multicast: str | None = None
    """`address:port` to which a datagram for several daemons goes once; None: one goes to each."""

    def __post_init__(self) -> None:
        names = [daemon.name for daemon in self.daemons]
        if not names:
            raise ConfigError(f"cluster {self.name!r} has no daemons: list at least one")
        if len(set(names)) != len(names):
            raise ConfigError(f"cluster {self.name!r} names a daemon twice: {sorted(names)}; give each its own name")
        for problem in filter(None, map(daemon_problem, names)):
            raise ConfigError(f"cluster {self.name!r}: {problem}")
        if not self.name or not self.name.isprintable():
            raise ConfigError(f"a cluster cannot be called {self.name!r}: write a name of printable characters")
        if len(names) > DAEMONS_MAX:
            raise ConfigError(f"cluster {self.name!r} has {len(names)} daemons: at most {DAEMONS_MAX} are supported")
        sites = sorted({daemon.site for daemon in self.daemons})
        if len(sites) > 1 and len(sites) != len(names):
            raise ConfigError("several sites with several daemons each are not supported yet: one daemon a site")
        if self.multicast is not None:
            multicast_address(self.multicast)

    @property
    def site_count(self) -> int:
        return len({daemon.site for daemon in self.daemons})

    def rank_of(self, name: str) -> int:
        for rank, daemon in enumerate(self.daemons):
            if daemon.name == name:
                return rank
        raise ConfigError(f"no daemon {name!r} in cluster {self.name!r}: it has {[d.name for d in self.daemons]}")

    def digest(self) -> int:
        """64 bits over who exists and where: the same for everyone who names the same cluster."""
        daemons = [(d.name, d.site, d.host, d.port) for d in self.daemons]
        return _digest(repr((self.name, daemons) if self.multicast is None else (self.name, daemons, self.multicast)))


def digest(cluster: Cluster, settings: Settings) -> int:
    """64 bits over everything that all daemons must agree on: who exists, how long, how much and how often."""
    return _digest(repr((cluster.digest(), msgspec.structs.astuple(settings))))


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def one_site(count: int, name: str = "covey") -> Cluster:
    """A cluster of `count` daemons a, b, c … in one site."""
    return Cluster(name, tuple(DaemonConfig(daemon_name(rank), 0) for rank in range(count)))


def one_daemon_sites(count: int, name: str = "covey") -> Cluster:
    """A cluster of `count` sites with one daemon each."""
    return Cluster(name, tuple(DaemonConfig(daemon_name(rank), rank) for rank in range(count)))


def ipv4(text: str) -> tuple[int, int, int, int] | None:
    """The four numbers of an IPv4 address; None if it is something else.

    >>> ipv4("127.0.0.1"), ipv4("127.1"), ipv4("127.0.0.01"), ipv4("::1")
    ((127, 0, 0, 1), None, None, None)
    """
    parts = text.split(".")
    if len(parts) != 4 or not all(part in _BYTES for part in parts):
        return None
    one, two, three, four = map(int, parts)
    return one, two, three, four


def is_loopback(host: str) -> bool:
    return host == "localhost" or (ipv4(host) or (0,))[0] == 127


def multicast_address(text: str) -> Address:
    """
    >>> multicast_address("239.192.77.1:4800")
    ('239.192.77.1', 4800)
    """
    host, _, port = text.rpartition(":")
    numbers = ipv4(host)
    if numbers is None or not 224 <= numbers[0] < 240 or not (port.isdecimal() and 0 < int(port) < 65_536):
        raise ConfigError(
            f"multicast is {text!r}: write an IPv4 multicast address and a port, for example 239.192.77.1:4800"
        )
    return host, int(port)


def daemon_name(rank: int) -> str:
    """a, b, … z, then a1, b1 …

    >>> [daemon_name(rank) for rank in (0, 1, 25, 26, 53)]
    ['a', 'b', 'z', 'a1', 'b2']
    """
    letter = chr(ord("a") + rank % 26)
    return letter if rank < 26 else f"{letter}{rank // 26}"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How long, how much, how often. Every field is explained in docs/configuration.md."""

    alive_interval_ms: int = 100
    alive_fast_ms: int = 20
    peer_timeout_ms: int = 450
    peer_timeout_growth_max: int = 8
    suspicion_decay_ms: int = 10_000
    segment_ms: int = 60
    gather_ms: int = 60
    gather_growth_max: int = 8
    follow_slack_ms: int = 120
    attempt_timeout_ms: int = 600
    exchange_resend_ms: int = 25
    hold_down_ms: int = 150
    hold_down_growth_max: int = 64
    goodbye_wait_ms: int = 300
    token_resend_ms: int = 12
    token_lost_ms: int = 250
    token_lost_growth_max: int = 8
    hurry_ms: int = 6
    announce_interval_ms: int = 10
    announce_gap_ms: int = 2
    skew_max_ms: int = 60_000
    packet_bytes: int = 1_400
    bundle_bytes: int = 8_192
    message_bytes_max: int = 16 * 1024 * 1024
    ring_packets_per_visit: int = 20
    ring_packets_per_rotation: int = 60
    ring_packets_unstable: int = 400
    ring_packets_after_token: int = 6
    ring_bundles_unstable: int = 2_000
    retransmit_requests_max: int = 60
    source_bundles_unstable: int = 200
    submit_queue_bytes: int = 16 * 1024 * 1024
    recovery_batch_bundles: int = 64
    sessions_max: int = 10_000
    session_groups_max: int = 10_000
    session_send_bytes: int = 2 * 1024 * 1024
    session_receive_bytes: int = 64 * 1024 * 1024
    hello_timeout_ms: int = 5_000
    block_max_ms: int = 10_000
    block_percent: int = 25
    session_alive_ms: int = 2_400
    session_silence_max_ms: int = 0
    session_lag_max_ms: int = 0
    clients_bytes_max: int = 0
    memberships_max: int = 250_000

    def __post_init__(self) -> None:
        self._require(self.peer_timeout_ms >= 3 * self.alive_interval_ms, "peer_timeout_ms >= 3 * alive_interval_ms")
        self._require(self.token_lost_ms >= 5 * self.token_resend_ms, "token_lost_ms >= 5 * token_resend_ms")
        self._require(
            self.attempt_timeout_ms >= 5 * self.exchange_resend_ms, "attempt_timeout_ms >= 5 * exchange_resend_ms"
        )
        self._require(self.alive_fast_ms <= self.alive_interval_ms, "alive_fast_ms <= alive_interval_ms")
        self._require(self.packet_bytes >= 512, "packet_bytes >= 512")
        self._require(
            self.ring_packets_per_visit <= self.ring_packets_unstable, "ring_packets_per_visit <= ring_packets_unstable"
        )
        self._require(
            self.ring_packets_unstable >= self.pieces_max,
            f"ring_packets_unstable >= {self.pieces_max}: the packets of one bundle with the longest names",
        )
        largest = DATAGRAM_BYTES_MAX - AROUND_BYTES
        self._require(self.packet_bytes <= largest, f"packet_bytes <= {largest}")
        self._require(self.bundle_bytes <= largest, f"bundle_bytes <= {largest}")
        self._require(
            self.session_receive_bytes > self.message_bytes_max + FRAME_SLACK,
            f"session_receive_bytes > message_bytes_max + {FRAME_SLACK}",
        )
        self._require(self.ring_bundles_unstable <= 2_500, "ring_bundles_unstable <= 2500: a declaration names each")
        self._require(self.retransmit_requests_max <= FRAME_ITEMS_MAX, f"retransmit_requests_max <= {FRAME_ITEMS_MAX}")
        self._require(self.recovery_batch_bundles <= FRAME_ITEMS_MAX, f"recovery_batch_bundles <= {FRAME_ITEMS_MAX}")
        self._require(self.bundle_bytes >= 512, "bundle_bytes >= 512: what a daemon says of a session is in one piece")
        self._require(
            not self.clients_bytes_max or self.clients_bytes_max >= self.session_receive_bytes,
            "clients_bytes_max >= session_receive_bytes, or 0",
        )
        self._require(self.block_percent <= 100, "block_percent <= 100")
        for field in self.__struct_fields__:
            least = 0 if field in MAY_BE_ZERO else 1
            self._require(least <= getattr(self, field) <= SETTING_MAX, f"{least} <= {field} <= {SETTING_MAX}")

    @property
    def pieces_max(self) -> int:
        """Packets that the largest bundle needs, with the longest names that its groups can have."""
        around = AROUND_BYTES + GROUPS_BYTES_MAX
        return -(-(self.bundle_bytes + around) // (self.packet_bytes - HEADS_BYTES_MAX))

    def _require(self, holds: bool, rule: str) -> None:
        if not holds:
            raise ConfigError(f"settings must satisfy {rule}")


def lan(daemons: int = 5) -> Settings:
    """Settings for one site. Heartbeats grow rarer with the number of daemons: each tells everyone whom it hears."""
    stretch = max(1, -(-daemons // 10))
    base = Settings()
    return msgspec.structs.replace(
        base,
        alive_interval_ms=base.alive_interval_ms * stretch,
        alive_fast_ms=base.alive_fast_ms * stretch,
        peer_timeout_ms=base.peer_timeout_ms * stretch,
        segment_ms=base.segment_ms * stretch,
        gather_ms=base.gather_ms * stretch,
        follow_slack_ms=base.follow_slack_ms * stretch,
        attempt_timeout_ms=base.attempt_timeout_ms * stretch,
        exchange_resend_ms=base.exchange_resend_ms * stretch,
        token_resend_ms=base.token_resend_ms * stretch,
        token_lost_ms=base.token_lost_ms * stretch,
    )


def wan(daemons: int = 5) -> Settings:
    """Settings for one-way delays of up to some 50 ms: the token needs that long from each daemon to the next."""
    return Settings(
        token_resend_ms=120,
        token_lost_ms=max(1_500, 4 * 50 * daemons),
        hurry_ms=60,
        alive_interval_ms=150,
        alive_fast_ms=40,
        peer_timeout_ms=900,
        segment_ms=180,
        gather_ms=180,
        follow_slack_ms=300,
        attempt_timeout_ms=1_500,
        exchange_resend_ms=120,
        hold_down_ms=300,
        hold_down_growth_max=32,
        goodbye_wait_ms=600,
        announce_interval_ms=20,
        announce_gap_ms=5,
    )


def loopback(daemons: int = 5) -> Settings:
    """Settings for daemons on one machine: large datagrams, short waits."""
    return msgspec.structs.replace(
        lan(daemons),
        packet_bytes=65_000,
        bundle_bytes=64_500,
        ring_packets_per_visit=20,
        ring_packets_per_rotation=48,
        ring_packets_unstable=120,
        ring_packets_after_token=2,
    )


PRESETS: dict[str, Callable[[int], Settings]] = {"loopback": loopback, "lan": lan, "wan": wan}
"""By name, for the number of daemons."""
