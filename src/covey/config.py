"""Settings: how long, how much, how often.

In:   values from a caller or a file, checked once here.
Out:  `Settings`, frozen; every daemon of a cluster must have the same (a digest of cluster and settings is in every
      datagram, and a mismatch is reported by name).
Not here:  who exists (cluster.py), the file (config_file.py).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .cluster import Cluster, digest_of
from .errors import ConfigError

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


HEADS_BYTES_MAX = 348
"""Of a packet with one piece of a bundle: all but the piece, where the cluster has the longest name."""


def part_bytes(bundle_bytes: int, names_bytes: int) -> int:
    """How much of a message one bundle takes: less beside long names, since a bundle must fit one datagram.

    >>> part_bytes(8_192, 20), part_bytes(64_500, 20), part_bytes(64_500, 8_000)
    (8192, 64500, 57007)
    """
    return min(bundle_bytes, DATAGRAM_BYTES_MAX - AROUND_BYTES - names_bytes)


SETTING_MAX = 1 << 31
"""More than any setting can mean, and within what every computation with it holds."""

BYTES_MAX = 1 << 40
WAITING_BYTES = frozenset({"submit_queue_bytes", "session_send_bytes", "session_receive_bytes", "clients_bytes_max"})
"""Settings that bound memory, and so may be as large as memory is; no datagram carries them."""

MAY_BE_ZERO = frozenset(
    {"block_percent", "session_silence_max_ms", "session_lag_max_ms", "clients_bytes_max", "token_rest_ms"}
)
"""Settings that 0 switches off, or leaves to the machine."""

SWITCHES = frozenset({"prune"})
"""Settings that are true or false."""

FRAME_ITEMS_MAX = 4_096
"""What fits one frame: more is refused here, before a peer would have to."""


def bounds(setting: str) -> tuple[int, int]:
    """The least and the most that a setting may be, whatever the others are.

    >>> bounds("peer_timeout_ms"), bounds("clients_bytes_max")
    ((1, 2147483648), (0, 1099511627776))
    """
    return int(setting not in MAY_BE_ZERO), BYTES_MAX if setting in WAITING_BYTES else SETTING_MAX


def digest(cluster: Cluster, settings: Settings) -> int:
    """64 bits over everything that all daemons must agree on: who exists, how long, how much and how often."""
    return digest_of(repr((cluster.digest(), msgspec.structs.astuple(settings))))


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How long, how much, how often.

    The tables of docs/configuration.md are made of what stands here (`python -m docs.configuration_tables`): a section
    for each comment of dashes, a row for each field. *Checked* is what `__post_init__` requires, *Advice* what is wise.
    The order of the fields is part of `digest`.
    """

    # --- Hearing one another

    alive_interval_ms: int = 100
    """Time between two ALIVEs of a daemon in OP. Shorter: losses and newcomers are noticed sooner, and each daemon
    sends more and reads more, also when idle.
    """
    alive_fast_ms: int = 20
    """The same in every other state: shorter makes a new view sooner. A quarter of it is the delay of an extra ALIVE
    when somebody new is heard or a link becomes or ceases to be two-way.

    Checked: ≤ `alive_interval_ms`
    """
    peer_timeout_ms: int = 450
    """A peer is there if an ALIVE of its came within this time, and a number that I sent within this time came back.
    The timeout of a peer is at least this; longer where numbers take long to come back, and after false suspicions.
    Shorter: a silent peer is noticed sooner, and one that was only slow costs a view more often.

    Checked: ≥ 3 × `alive_interval_ms`, so that two lost ALIVEs do no harm
    Advice: well above a round trip
    """
    peer_timeout_growth_max: int = 8
    """A false suspicion doubles the timeout of that peer. This factor bounds that doubling, and the timeout as a whole.
    Larger: a slow peer costs fewer views, and its real loss is noticed later.
    """
    suspicion_decay_ms: int = 10_000
    """After so long together without another false suspicion the factor is halved. So are, after so long without
    another loss, the factors of `token_lost_ms` and `hold_down_ms`. Longer: trouble is remembered longer, and waits
    stay long.

    Advice: much longer than `peer_timeout_ms` × `peer_timeout_growth_max`
    """

    # --- Forming a view

    segment_ms: int = 60
    """How long a daemon that lost its view listens before it gathers or follows. Longer: every loss takes longer to
    heal. Shorter: not everybody is heard by then, and a second change must bring in the rest.

    Advice: a few `alive_fast_ms` plus a round trip
    """
    gather_ms: int = 60
    """How long a gatherer collects before it proposes. Doubled with each failed attempt, plus a random part of up to
    half. Longer and shorter cost what they do for `segment_ms`.

    Advice: a few `alive_fast_ms` plus a round trip
    """
    gather_growth_max: int = 8
    """Bound of that doubling; back to 1 when a view is installed."""
    follow_slack_ms: int = 120
    """A follower waits for the proposal until the deadline that the gatherer's JOIN names, and this much longer. Before
    the first JOIN: `segment_ms` + `gather_ms` + this. Longer: it takes longer to go on without a gatherer that died.

    Advice: more than a one-way delay plus `alive_fast_ms`
    """
    attempt_timeout_ms: int = 600
    """An attempt that makes no progress for so long is given up. Entering STATETRANS, entering EVS and each RESEND
    received count as progress. Longer: a member that dies on the way holds up the others. Shorter: a slow exchange
    begins again.

    Checked: ≥ 5 × `exchange_resend_ms`
    """
    exchange_resend_ms: int = 25
    """How often what an attempt still lacks is sent again: NEWMEMB, STATETRANS, WANT, DONE. Shorter: a lost datagram
    holds up a change less, and more is sent twice for nothing.

    Advice: about a round trip, or more
    """
    hold_down_ms: int = 150
    """A view must be this old before it gathers for a merge. Who was lost waits this long before it is merged again;
    twice as long each time it is lost soon after. Longer: merges are later. Shorter: links that come and go cost more
    views.
    """
    hold_down_growth_max: int = 64
    """Bound of that doubling. Daemons on a link that came and went stay apart for so many times `hold_down_ms` at most.

    Advice: `hold_down_ms` times this: at most `suspicion_decay_ms`
    """
    goodbye_wait_ms: int = 300
    """A stopping daemon waits at most this long for its own messages to become stable, then says goodbye anyway."""

    # --- The token

    token_resend_ms: int = 12
    """A passed token is repeated after so long without a sign that the successor has it. Longer: a lost token stops the
    ring for longer.

    Advice: more than a rotation of a busy ring, else copies are sent for nothing
    """
    token_lost_ms: int = 250
    """If the token does not come back in this time, the view ends. Where rotations take long it is eight times a
    rotation, at most four times the setting. After a third of it the daemon asks whether the token is parked. Longer: a
    crash is noticed later where nothing else tells it. Shorter: a ring that only stalled loses its view.

    Checked: ≥ 5 × `token_resend_ms`
    """
    token_lost_growth_max: int = 8
    """Each view that is lost soon after another doubles the time in which the token must come back. Bound of that
    doubling.
    """
    hurry_ms: int = 6
    """How often a daemon with something to send asks for a parked token. Shorter: the first message after a rest waits
    less where the first question was lost.
    """
    token_rest_ms: int = 16
    """For how long the token stays where the only sender is, while nothing but stability waits. Longer: fewer steps for
    each message, and a lost packet that no other follows is asked for later. 0: it never stays.

    Checked: ≤ `token_lost_ms` / 5
    """

    # --- Between sites

    announce_interval_ms: int = 10
    """While anything is unstable, and for five such intervals after, a site announces how far it is. It adds about this
    much to the latency of agreed messages, and twice to that of safe ones; shorter means more announcements.
    """
    announce_gap_ms: int = 2
    """The shortest time between two announcements.

    Advice: at most `announce_interval_ms`
    """
    skew_max_ms: int = 60_000
    """A daemon whose clock is further ahead of ours than this stays outside our views, and is named in log and status.
    Less skew costs latency, never correctness.
    """

    # --- Sizes

    packet_bytes: int = 1_400
    """Size of a data datagram, headers included. Larger bundles are cut into pieces. Smaller: more datagrams for the
    same messages. Larger than the network carries: it is cut on the way, and one lost part loses all.

    Checked: 512 to 65,007
    Advice: what the network carries unfragmented
    """
    bundle_bytes: int = 8_192
    """Payload of a bundle. Larger messages are cut into fragments; an unreliable message must fit one. A recovered
    bundle is resent whole, in one datagram, so beside long names of groups less fits.

    Checked: 512 to 65,007
    """
    message_bytes_max: int = 16 * 1024 * 1024
    """A larger message is refused. Larger: whoever receives one needs the memory for it."""

    # --- What may be under way

    ring_packets_per_visit: int = 20
    """How many new packets a daemon may send in one visit of the token. The first bundle of a visit always goes, even
    if it needs more. More: higher throughput of one sender, and longer rotations, which all others wait for.

    Checked: ≤ `ring_packets_unstable`
    """
    ring_packets_per_rotation: int = 60
    """How many packets, repeated ones included, the whole ring sends in a rotation. More than receivers can take in:
    losses, and packets sent again.
    """
    ring_packets_unstable: int = 400
    """How many packets may be under way that are not known to be everywhere. A packet more than twice this ahead is
    dropped; so is a token that claims such a number. Bounds the store of sent packets to three times this.

    Checked: at least the packets of the largest bundle with the longest names: (`bundle_bytes` + 8,692) /
    (`packet_bytes` - 348), rounded up
    """
    ring_packets_after_token: int = 6
    """How many packets of a visit follow the token instead of preceding it. More: the successor starts sooner, and
    receivers must have room for the packets of two daemons at once.
    """
    ring_bundles_unstable: int = 2_000
    """Bundles that may be under way in a view of one site, so that a declaration of what is held fits one datagram.

    Checked: at most 2,500
    """
    retransmit_requests_max: int = 60
    """How many missing packets a token can name. More: many losses are mended in fewer rotations, by a larger token.

    Checked: at most 4,096, and what it asks for must fit a datagram
    """
    source_bundles_unstable: int = 200
    """In a view of several sites: how many bundles of one site may be under way that are not known to be received
    everywhere. Fewer: a far receiver holds up the senders sooner.
    """
    submit_queue_bytes: int = 16 * 1024 * 1024
    """Payload that may wait to be stamped. A submission that does not fit is refused; an empty queue takes any one
    message. More: memory, and messages wait longer before they are sent.
    """
    prune: bool = True
    """In a view of several sites: messages go where somebody is in their groups, and elsewhere only their heads do.
    False: everything goes everywhere.
    """
    interest_linger_ms: int = 10_000
    """How long a site goes on getting the messages of a group after its last member there has left. Shorter than a
    round trip: who comes and goes waits for interest each time.
    """
    interests_max: int = 100_000
    """Groups that one site may ask for and others remember. Beyond it, everything goes to that site, and the status
    says so.
    """
    recovery_batch_bundles: int = 64
    """How many missing bundles a daemon asks for at a time in recovery. More: fewer round trips, and larger bursts.

    Checked: at most 4,096, and what it asks for must fit a datagram
    """

    # --- Sessions

    sessions_max: int = 10_000
    """Programs connected to one daemon at a time; one more is refused with the reason."""
    session_groups_max: int = 10_000
    """Groups one session may be in; one more is refused and the session goes on."""
    session_send_bytes: int = 2 * 1024 * 1024
    """What of one session may wait at its daemon to be ordered. Beyond it the daemon stops reading the session's stream
    until there is room. More: memory for each session that sends faster than the ring takes it.
    """
    session_receive_bytes: int = 64 * 1024 * 1024
    """What may wait for one session that reads slowly. Beyond it the session is ended, with the reason and its lag. A
    session with the policy `block` makes the senders of its groups wait from a quarter of it on, until an eighth: the
    rest is room for what daemons hold already (`submit_queue_bytes` each). More: slow programs live longer, and cost
    more memory.

    Checked: more than the largest message: `message_bytes_max` + 16,384
    """
    hello_timeout_ms: int = 5_000
    """A program that connects and says nothing for so long is closed."""
    block_max_ms: int = 10_000
    """How long a session with the policy `block` may make others wait; then it is ended."""
    block_percent: int = 25
    """For which share of the time the senders of one group may be made to wait, by all its receivers together, over
    spans of some `block_max_ms`. When it is used up they go on, and who cannot follow is ended at
    `session_receive_bytes`. 0: the policy `block` is refused.

    Checked: at most 100
    """
    session_alive_ms: int = 2_400
    """A daemon says something to each session at least this often, or twice within the `daemon_timeout` that a program
    asks for. Shorter: many idle sessions cost their daemon more.
    """
    session_silence_max_ms: int = 0
    """A program that has said nothing for so long, though its daemon read from it, is given up: an ordered disconnect.
    Programs may ask for less (`alive_timeout`); less than half a second counts as half a second. 0: only those that
    ask.
    """
    session_lag_max_ms: int = 0
    """A session is ended when the oldest of what waits for it has waited so long. Programs may ask for less
    (`lag_max`). 0: only those that ask.
    """
    clients_bytes_max: int = 0
    """What may wait for all sessions of a daemon together, and of them, about, in memory; what waits for several is
    counted once. Beyond it the session with the longest backlog is ended first. 0: an eighth of the machine's memory,
    at least 128 MiB and at most 4 GiB.

    Checked: 0, or at least `session_receive_bytes`
    """
    memberships_max: int = 250_000
    """Stays of sessions in groups at one daemon, all together: one more join is refused and the session goes on."""

    def __post_init__(self) -> None:
        self._require(self.peer_timeout_ms >= 3 * self.alive_interval_ms, "peer_timeout_ms >= 3 * alive_interval_ms")
        self._require(self.token_lost_ms >= 5 * self.token_resend_ms, "token_lost_ms >= 5 * token_resend_ms")
        self._require(
            self.attempt_timeout_ms >= 5 * self.exchange_resend_ms, "attempt_timeout_ms >= 5 * exchange_resend_ms"
        )
        self._require(self.token_rest_ms <= self.token_lost_ms // 5, "token_rest_ms <= token_lost_ms / 5")
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
            if field in SWITCHES:
                continue
            least, most = bounds(field)
            self._require(least <= getattr(self, field) <= most, f"{least} <= {field} <= {most}")

    @property
    def pieces_max(self) -> int:
        """Packets that the largest bundle needs, with the longest names that its groups can have."""
        around = AROUND_BYTES + GROUPS_BYTES_MAX
        return -(-(self.bundle_bytes + around) // (self.packet_bytes - HEADS_BYTES_MAX))

    def _require(self, holds: bool, rule: str) -> None:
        if not holds:
            raise ConfigError(f"settings must satisfy {rule}")


def lan(daemons: int = 5) -> Settings:
    """For one site. Up to ten daemons these are the defaults. Beyond, heartbeats are rarer, since each tells everyone
    whom it hears, and what waits for them waits longer: `n` / 10, rounded up, times as long (11 to 20 daemons: twice).
    """
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
    """For one-way delays of up to some 50 ms. The token needs that long from each daemon to the next, so
    `token_lost_ms` is 200 times `n` where that is more.
    """
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
    """For daemons on one machine: as `lan(n)`, with large datagrams."""
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
