"""Whom this daemon hears, and who hears it: two-way or not at all.

The rules: docs/protocol/membership.md, "Hearing: two-way or not at all".

In:        ALIVE frames; when we sent ours; hints that a life is over.
Out:       `two_way`, the list of whom we hear for our own ALIVE, each peer's last ALIVE.
Not here:  what to do about it (machine.py, gathering.py).

A link is two-way when a number that we sent within the timeout comes back in the peer's list. A peer that was suspected
and comes back in the same life was suspected falsely: its timeout doubles, and shrinks again slowly. The timeout also
follows how long numbers take to come back, within stated bounds.

Invariants: H1 a peer is somebody else, in the life of its last word; H2 an echo is of a number sent before it was
heard; H3 patience, and the timeout of each peer, stay within their bounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum

from covey.config import Settings
from covey.ids import Life
from covey.protocol.evs.frames import Alive, Heard
from covey.protocol.evs.states import Reason
from covey.protocol.status import PeerStatus

_NEVER = -(1 << 60)


class News(Enum):
    """What an ALIVE told us about its sender."""

    FRESH = "the next word of a life we know"
    NEW_LIFE = "the first word of a life"
    STALE = "older than what we have heard"
    UNPROVEN = "a new life of a daemon whose last life is well connected; it has not shown yet that it hears us"


@dataclass(slots=True)
class Peer:
    life: Life
    alive: Alive
    heard_us: int
    echoed_us: int = _NEVER  # When we sent the newest number of ours that came back.
    echo: int = 0  # The number of ours that its last word names.
    gone: Reason | None = None  # Why this life is thought to be over; void once a later word of it arrives.
    two_way_ranks: frozenset[int] = frozenset()
    # How old our numbers are when they come back: mean and mean deviation, smoothed. Includes the peer's own pace.
    age_us: int = 0
    age_deviation_us: int = 0
    age_least_us: int = 0  # Nearly a round trip: of a word of ours that found the peer about to speak. Rises slowly.
    # How long it may be silent. Asked for at every turn, and so kept.
    timeout_us: int = 0

    def note_age(self, age_us: int) -> None:
        if not self.age_us:
            self.age_us, self.age_deviation_us, self.age_least_us = age_us, age_us // 4, age_us
            return
        self.age_least_us = min(age_us, self.age_least_us + (age_us - self.age_least_us) // 64)
        self.age_deviation_us += (abs(age_us - self.age_us) - self.age_deviation_us) // 8
        self.age_us += (age_us - self.age_us) // 8


@dataclass(slots=True)
class Patience:
    """How much longer than the normal timeout we wait for a peer."""

    growth: int = 1
    grown_us: int = 0
    suspected: Life | None = None


@dataclass(slots=True)
class Hearing:
    me: Life
    settings: Settings
    peers: dict[int, Peer] = field(default_factory=dict)
    _patience: dict[int, Patience] = field(default_factory=dict)
    _number: int = 0
    _sent: deque[tuple[int, int]] = field(default_factory=deque)

    # --- our own ALIVEs

    def next_number(self, now_us: int) -> int:
        self._number += 1
        self._sent.append((self._number, now_us))
        oldest = now_us - self.settings.peer_timeout_ms * self.settings.peer_timeout_growth_max * 1_000
        while self._sent[0][1] < oldest:
            self._sent.popleft()
        return self._number

    def heard(self, now_us: int) -> tuple[Heard, ...]:
        return tuple(
            Heard(rank, peer.life.boot, peer.alive.number, self.two_way(rank, now_us))
            for rank, peer in sorted(self.peers.items())
            if now_us - peer.heard_us <= peer.timeout_us
        )

    # --- others' ALIVEs

    def on_alive(self, sender: Life, alive: Alive, now_us: int) -> News:
        peer = self.peers.get(sender.rank)
        if self.is_stale(sender, alive, now_us):
            return News.STALE
        if peer is not None and peer.life != sender and self._must_prove(sender, alive, now_us):
            return News.UNPROVEN
        if peer is not None and peer.life == sender:
            peer.alive, peer.heard_us, peer.gone = alive, now_us, None
            news = News.FRESH
        else:
            peer = self.peers[sender.rank] = Peer(sender, alive, now_us)
            news = News.NEW_LIFE
        peer.two_way_ranks = frozenset(entry.rank for entry in alive.heard if entry.two_way)
        self._note_echo(peer, alive, now_us)
        self._forgive(sender, now_us)
        self._set_timeout(peer)
        return news

    def is_stale(self, sender: Life, alive: Alive, now_us: int) -> bool:
        """A lower boot id or number is a delayed word, unless what came after it has long fallen silent.

        So a word that nobody said, with a number above all others, shuts its supposed sender out for one timeout only.
        """
        peer = self.peers.get(sender.rank)
        if peer is None or now_us - peer.heard_us > peer.timeout_us:
            return False
        if peer.life != sender:
            return sender.boot < peer.life.boot
        return alive.number <= peer.alive.number

    def _must_prove(self, sender: Life, alive: Alive, now_us: int) -> bool:
        """A stray or forged word must not displace a life that we hear both ways: the new one echoes a number first."""
        if not self.two_way(sender.rank, now_us):
            return False
        oldest = now_us - self.peers[sender.rank].timeout_us
        recent = [number for number, at in self._sent if at >= oldest]
        return not any(
            entry.rank == self.me.rank and entry.boot == self.me.boot and entry.number in recent
            for entry in alive.heard
        )

    def _note_echo(self, peer: Peer, alive: Alive, now_us: int) -> None:
        for entry in alive.heard:
            if entry.rank == self.me.rank and entry.boot == self.me.boot:
                peer.echo = entry.number
                sent = next((at for number, at in reversed(self._sent) if number == entry.number), _NEVER)
                if sent > peer.echoed_us:
                    peer.echoed_us = sent
                    peer.note_age(now_us - sent)

    # --- judgement

    def two_way(self, rank: int, now_us: int) -> bool:
        peer = self.peers.get(rank)
        if peer is None or peer.gone is not None:
            return False
        oldest = now_us - peer.timeout_us
        return peer.heard_us >= oldest and peer.echoed_us >= oldest

    def is_there(self, life: Life, now_us: int) -> bool:
        """Two-way, and in this life."""
        return self.two_way(life.rank, now_us) and self.peers[life.rank].life == life

    def why_gone(self, rank: int, now_us: int) -> Reason:
        """Of somebody who is not there both ways: what we know of it, or that it is heard one way, or not at all."""
        peer = self.peers.get(rank)
        if peer is not None and peer.gone is not None:
            return peer.gone
        return Reason.PEER_ONE_WAY if self.is_one_way(rank, now_us) else Reason.PEER_SILENT

    def is_one_way(self, rank: int, now_us: int) -> bool:
        """Whether we clearly hear a peer that does not hear us: it spoke within half the timeout."""
        peer = self.peers.get(rank)
        return peer is not None and now_us - peer.heard_us <= peer.timeout_us // 2

    def is_overdue(self, lives: Iterable[Life], now_us: int) -> bool:
        """Whether a word of one of these, or an echo, is overdue: older than usual, and half the timeout is over."""
        for life in lives:
            peer = self.peers.get(life.rank)
            if peer is not None:
                since_us = now_us - min(peer.heard_us, peer.echoed_us)
                if since_us > max(peer.timeout_us // 2, self._usual_us(peer, 1)):
                    return True
        return False

    def waits_for_us(self, life: Life, now_us: int) -> bool:
        """Whether who has just spoken is to be answered soon: an echo is overdue, or our last word was missed."""
        return self.is_overdue((life,), now_us) or self._misses_our_last(life, now_us)

    def _misses_our_last(self, life: Life, now_us: int) -> bool:
        """Whether its last word does not name our last one, which had the time to get there and back: it was lost."""
        peer = self.peers.get(life.rank)
        if peer is None or not self._sent or not peer.age_us:
            return False
        number, sent_us = self._sent[-1]
        on_its_way_us = max(self.settings.alive_fast_ms * 1_000, 2 * peer.age_least_us)
        return peer.echo < number and now_us - sent_us >= on_its_way_us

    def neighbours(self, now_us: int) -> dict[int, frozenset[int]]:
        """Whom each daemon says it hears both ways; of those we do not hear both ways ourselves, nobody."""
        near = {rank: peer.two_way_ranks for rank, peer in self.peers.items() if self.two_way(rank, now_us)}
        near[self.me.rank] = frozenset(near)
        return near

    def snapshot(self, now_us: int, name: Callable[[int], str]) -> list[PeerStatus]:
        """Each peer ever heard, for people."""
        return [
            {
                "name": name(rank),
                "boot": peer.life.boot,
                "two_way": self.two_way(rank, now_us),
                "silent_ms": (now_us - peer.heard_us) // 1_000,
                "timeout_ms": peer.timeout_us // 1_000,
                "gone": peer.gone.value if peer.gone else None,
            }
            for rank, peer in sorted(self.peers.items())
        ]

    # --- suspicion

    def hint_gone(self, life: Life, reason: Reason) -> bool:
        """A goodbye or a refused port. It binds to one life, and only shortens a wait."""
        peer = self.peers.get(life.rank)
        if peer is None or peer.life != life:
            return False
        peer.gone = peer.gone or reason
        return True

    def suspect(self, life: Life) -> None:
        self._patience.setdefault(life.rank, Patience()).suspected = life

    def _forgive(self, sender: Life, now_us: int) -> None:
        patience = self._patience.get(sender.rank)
        if patience is None:
            return
        if patience.suspected == sender:
            patience.growth = min(patience.growth * 2, self.settings.peer_timeout_growth_max)
            patience.grown_us = now_us
        patience.suspected = None

    def _set_timeout(self, peer: Peer) -> None:
        """At least the configured time; more on slow links and after false alarms; at most `growth_max` times it."""
        base = self.settings.peer_timeout_ms * 1_000
        patience = self._patience.get(peer.life.rank)
        wanted = max(base, self._usual_us(peer, 4)) if peer.age_us else base
        if patience is not None:
            wanted *= patience.growth
        peer.timeout_us = min(wanted, base * self.settings.peer_timeout_growth_max)

    def _usual_us(self, peer: Peer, deviations: int) -> int:
        """How old our newest number that came back is when the next one does, give or take."""
        return self.settings.alive_interval_ms * 1_000 + peer.age_us + deviations * peer.age_deviation_us

    def decay(self, together: Collection[int], now_us: int) -> None:
        """Patience shrinks again, one step for each quiet period together: who is away cannot be suspected falsely."""
        for rank, patience in self._patience.items():
            if rank not in together:
                patience.grown_us = now_us
            elif patience.growth > 1 and now_us - patience.grown_us >= self.settings.suspicion_decay_ms * 1_000:
                patience.growth //= 2
                patience.grown_us = now_us
                if rank in self.peers:
                    self._set_timeout(self.peers[rank])

    def check(self) -> None:
        settings = self.settings
        longest_us = settings.peer_timeout_ms * settings.peer_timeout_growth_max * 1_000
        for rank, peer in self.peers.items():
            assert rank == peer.life.rank != self.me.rank, "H1"
            assert peer.echoed_us <= peer.heard_us, "H2"
            assert settings.peer_timeout_ms * 1_000 <= peer.timeout_us <= longest_us, "H3"
        assert all(1 <= one.growth <= settings.peer_timeout_growth_max for one in self._patience.values()), "H3"
