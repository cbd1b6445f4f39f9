"""Whom to form a view with: a set in which everyone hears everyone both ways. Pure functions.

The rules: docs/protocol/membership.md, "Gathering: with whom".

Daemons without a working view are taken one by one, in rank order. Views that work join whole or not at all. Nobody is
taken out of another attempt, and nobody who waits for another representative.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from covey.cluster import Cluster
from covey.ids import Ballot, Life
from covey.protocol.evs.overlay import joined_with
from covey.protocol.evs.states import STATES, State

from .hearing import Hearing, Peer

_FREE = (State.SEG, State.REP, State.GATHER)


def free_clique(hearing: Hearing, cluster: Cluster, excluded: Collection[int], now_us: int) -> list[int]:
    """The lowest-ranked set around us of daemons that have no working view; it always holds ourselves."""
    me, near = hearing.me.rank, hearing.neighbours(now_us)
    chosen = [me]
    for rank in sorted(hearing.peers):
        if rank not in excluded and _is_free(hearing.peers[rank]):
            _add_if_mutual(near, chosen, [rank])
    lives = [hearing.me if rank == me else hearing.peers[rank].life for rank in sorted(chosen)]
    joined = [life.rank for life in joined_with(cluster, lives, hearing.me)]
    apart = set(chosen) - set(joined)  # They have kept out others, perhaps: choose again without them.
    return free_clique(hearing, cluster, {*excluded, *apart}, now_us) if apart else joined


def to_propose(
    hearing: Hearing, cluster: Cluster, base: Sequence[Life], excluded: Collection[int], now_us: int
) -> list[Life]:
    """Everyone a gatherer may propose to: its base, then free daemons that wait for it, then whole working views.

    Only daemons of higher rank: the lowest of a union proposes it. Sites that no links join with ours stay outside.
    """
    me, near = hearing.me.rank, hearing.neighbours(now_us)
    chosen = [life.rank for life in base]
    for rank in sorted(hearing.peers):
        peer = hearing.peers[rank]
        if rank > me and rank not in excluded and _is_free(peer) and _waits_for(hearing, peer, me):
            _add_if_mutual(near, chosen, [rank])
    for ring in _working_views(hearing):
        if min(ring) > me and not set(ring) & set(excluded):
            _add_if_mutual(near, chosen, ring)
    lives = {life.rank: life for life in base} | {rank: peer.life for rank, peer in hearing.peers.items()}
    lives[me] = hearing.me
    joined = joined_with(cluster, [lives[rank] for rank in sorted(chosen)], hearing.me)
    apart = set(chosen) - {life.rank for life in joined}
    return to_propose(hearing, cluster, base, {*excluded, *apart}, now_us) if apart else joined


def _is_free(peer: Peer) -> bool:
    return STATES[peer.alive.state] in _FREE


def _waits_for(hearing: Hearing, peer: Peer, me: int) -> bool:
    """It waits for nobody else; or for one who waits for us, and will not propose."""
    leader = peer.alive.leader
    if leader in (-1, me, peer.life.rank):
        return True
    other = hearing.peers.get(leader)
    return other is not None and other.alive.leader == me


def _add_if_mutual(near: Mapping[int, frozenset[int]], chosen: list[int], more: list[int]) -> None:
    """Both must say so, of every pair: what others say of us counts as well as what we say of them."""
    if not set(more).isdisjoint(chosen):
        return
    union = frozenset(chosen).union(more)
    for rank in more:
        rest = union - {rank}
        if not rest <= near.get(rank, frozenset()) or not all(rank in near.get(one, ()) for one in rest):
            return
    chosen.extend(more)


def _working_views(hearing: Hearing) -> list[list[int]]:
    """Views that all their members say are working, by their lowest rank."""
    views: dict[Ballot, tuple[Life, ...]] = {}
    for rank in sorted(hearing.peers):
        peer, alive = hearing.peers[rank], hearing.peers[rank].alive
        if peer.life in alive.members:
            views.setdefault(alive.view, alive.members)
    whole = []
    for view, members in views.items():
        peers = [hearing.peers.get(life.rank) for life in members]
        if all(
            peer is not None and peer.life == life and peer.alive.is_working and peer.alive.view == view
            for peer, life in zip(peers, members, strict=True)
        ):
            whole.append(sorted(life.rank for life in members))
    return sorted(whole)


def everyone_is_heard(hearing: Hearing, everyone: Iterable[int], now_us: int) -> bool:
    """Cheap, and necessary for `is_everyone`: each is two-way with us, or known to be gone."""
    peers = hearing.peers
    return all(rank in peers and (peers[rank].gone is not None or hearing.two_way(rank, now_us)) for rank in everyone)


def is_everyone(hearing: Hearing, everyone: Iterable[int], ranks: Collection[int]) -> bool:
    """Whether these are all, but for those who are known to be gone."""
    peers = hearing.peers
    return all(rank in ranks or (rank in peers and peers[rank].gone is not None) for rank in everyone)
