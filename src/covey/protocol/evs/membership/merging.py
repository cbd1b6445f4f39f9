"""Whom a working view could be merged with, and who is kept waiting for that.

In:        whom we hear, who came and went, the members of our view.  Out: whether to gather; for how long to wait.
Not here:  with whom exactly a view is formed (gathering.py), when (machine.py).
"""

from __future__ import annotations

from covey.ids import Life
from covey.protocol.evs.kit import EvsKit
from covey.protocol.evs.overlay import joined_with

from .damping import Damping
from .gathering import to_propose
from .hearing import Hearing

Members = tuple[Life, ...]


class Merging:
    def __init__(self, kit: EvsKit, hearing: Hearing, damping: Damping) -> None:
        self._kit = kit
        self._hearing = hearing
        self._damping = damping

    def is_possible(self, members: Members, installed_us: int, now_us: int) -> bool:
        """Whether somebody can be merged with this view now."""
        if now_us - installed_us < self._kit.settings.hold_down_ms * 1_000 or not self._has_strangers(members, now_us):
            return False
        return len(
            to_propose(self._hearing, self._kit.cluster, members, self.held_down(members, now_us), now_us)
        ) > len(members)

    def held_down(self, members: Members, now_us: int) -> tuple[int, ...]:
        """Strangers whom we would gather, but who came and went: not yet. Lower ones gather us, when they think fit."""
        ranks = {life.rank for life in members}
        return tuple(
            rank
            for rank, peer in sorted(self._hearing.peers.items())
            if rank > self._kit.me.rank and rank not in ranks and self._damping.held_down_us(peer.life, now_us)
        )

    def held_down_us(self, members: Members, now_us: int) -> int:
        """How long until nobody around is kept waiting to be merged with us, the lowest of a working view."""
        lives = [self._hearing.peers[rank].life for rank in self.kept_waiting(members, now_us)]
        return max((self._damping.held_down_us(life, now_us) for life in lives), default=0)

    def kept_waiting(self, members: Members, now_us: int) -> list[int]:
        """Those held down who are there: but for that, we would gather them."""
        if members[0] != self._kit.me:
            return []
        peers, me = self._hearing.peers, self._kit.me
        held = [rank for rank in self.held_down(members, now_us) if self._hearing.two_way(rank, now_us)]
        return [rank for rank in held if all(life > me for life in peers[rank].alive.members)]

    def told(self, members: Members, now_us: int) -> list[str]:
        """Why those who are there cannot be merged with a working view, or not yet."""
        told, ranks, name = list[str](), {life.rank for life in members}, self._kit.name
        for rank, peer in sorted(self._hearing.peers.items()):
            apart = sorted(ranks - peer.two_way_ranks - {self._kit.me.rank})
            if rank not in ranks and self._hearing.two_way(rank, now_us) and apart:
                told.append(f"{name(rank)}: it is not connected both ways with {' '.join(map(name, apart))}")
            elif rank not in ranks and self._hearing.two_way(rank, now_us) and self._is_unlinked(members, peer.life):
                told.append(f"{name(rank)}: no links join its site with ours")
        for rank in self.kept_waiting(members, now_us):
            seconds = -(-self._damping.held_down_us(self._hearing.peers[rank].life, now_us) // 1_000_000)
            told.append(f"{name(rank)}: it came and went; merged again in {seconds} s")
        return told

    def _is_unlinked(self, members: Members, life: Life) -> bool:
        return life not in joined_with(self._kit.cluster, [*members, life], self._kit.me)

    def _has_strangers(self, members: Members, now_us: int) -> bool:
        """Cheap, and necessary for a merge: somebody is two-way with us who is no member."""
        peers = self._hearing.peers
        if len(peers) < len(members):
            return False
        ranks = {life.rank for life in members}
        return any(rank not in ranks and self._hearing.two_way(rank, now_us) for rank in peers)
