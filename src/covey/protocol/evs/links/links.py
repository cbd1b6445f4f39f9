"""All links of a daemon to other sites, in one view: what is sent goes along the trees, beside the ring of its site.

In:        packets of bundles, stamped here or on their way; packets that arrived; the deadline of the links.
Out:       effects; pieces of bundles; whether there is room; which link failed.
Not here:  which way it is (relay.py), how one link carries it (link.py), who stamps (stamping/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from covey.ids import Ballot
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Effect
from covey.protocol.evs.codec import PACKET_OVERHEAD
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Chunk, Data
from covey.protocol.evs.kit import EvsKit
from covey.protocol.evs.packing import Packer
from covey.protocol.values import Bundle
from covey.protocol.wire.bundles import bundle_parts, meta_of

from .link import Link, QueueClass
from .relay import Relay


class Carried:
    """What a link has carried in this view: pieces of bundles and bytes, whole ones and heads."""

    def __init__(self) -> None:
        self.pieces = self.bytes = self.head_pieces = self.head_bytes = 0

    def add(self, chunks: Sequence[Chunk], size: int) -> None:
        self.pieces += len(chunks)
        self.bytes += size

    def add_heads(self, chunks: Sequence[Chunk], size: int) -> None:
        self.head_pieces += len(chunks)
        self.head_bytes += size


class Links:
    def __init__(self, kit: EvsKit, view: Ballot, relay: Relay, make: Callable[[int], Link]) -> None:
        self._kit = kit
        self._view = view
        self._relay = relay
        self.by_peer = {peer: make(peer) for peer in relay.peers}
        self.carried = {peer: Carried() for peer in relay.peers}
        self._packet_bytes = kit.settings.packet_bytes - kit.codec.overhead - PACKET_OVERHEAD

    def has_room(self) -> bool:
        return not self.by_peer or all(link.room(QueueClass.DATA) > 0 for link in self.by_peer.values())

    def carry(self, packets: Sequence[Sequence[Chunk]], source: int, now_us: int) -> list[Effect]:
        """Send on what this site has sent, to our children in its tree."""
        effects: list[Effect] = []
        if not self._relay.children(source):
            return effects
        for chunks in packets:
            for to, some in self._by_way(source, chunks):
                data = self._kit.codec.encode(Data(self._view, 0, 0, tuple(some)))
                for peer in to:
                    self.carried[peer].add(some, len(data))
                    effects += self.by_peer[peer].send(QueueClass.DATA, data, now_us)
        self._note_due()
        return effects

    def _by_way(self, source: int, chunks: Sequence[Chunk]) -> list[tuple[tuple[int, ...], Sequence[Chunk]]]:
        """Who gets which of these pieces: one datagram for all, where all get the same."""
        if not any(chunk.content for chunk in chunks):
            return [(self._relay.children(source), chunks)]
        ways: dict[tuple[int, ...], tuple[int, ...]] = {}
        to = [self._relay.children_for(source, chunk.content) for chunk in chunks]
        for peer in self._relay.children(source):
            if some := tuple(at for at, peers in enumerate(to) if peer in peers):
                ways[some] = (*ways.get(some, ()), peer)
        return [(peers, [chunks[at] for at in some]) for some, peers in ways.items()]

    def carry_heads(self, bundles: Sequence[Bundle], source: int, now_us: int) -> list[Effect]:
        """Heads of what this site has sent, to our children below whom nobody needs the content (rule W9)."""
        packers: dict[int, Packer] = {}
        for bundle in bundles:
            without = self._relay.children_without(source, bundle.content)
            head = meta_of(bundle) if without else bundle
            for peer in without:
                packer = packers.setdefault(peer, Packer(self._packet_bytes))
                packer.add(source, bundle.number, tuple(bundle_parts(head)))
        effects: list[Effect] = []
        for peer, packer in packers.items():
            for chunks in packer.packets:
                data = self._kit.codec.encode(Data(self._view, 0, 0, tuple(chunks)))
                self.carried[peer].add_heads(chunks, len(data))
                effects += self.by_peer[peer].send(QueueClass.DATA, data, now_us)
        self._note_due()
        return effects

    def arrived(self, rank: int, frame: Data, datagram: bytes) -> tuple[Chunk, ...] | Dropped:
        """What a site sends is taken from our parent in its tree, and from nobody else."""
        link = self.by_peer.get(rank)
        if link is None or any(self._relay.comes_from(chunk.site) != rank for chunk in frame.chunks):
            return Dropped(Counter.FRAME_WRONG_WAY)
        return link.arrived(frame, datagram)

    def forward(self, chunks: Iterable[Chunk], now_us: int) -> list[Effect]:
        """Send on what has come from elsewhere, each piece at once."""
        effects: list[Effect] = []
        by_source: dict[int, list[Chunk]] = {}
        for chunk in chunks:
            by_source.setdefault(chunk.site, []).append(chunk)
        for source, mine in by_source.items():
            if self._relay.children(source):
                if source != self._relay.site:
                    self._kit.count.add(Counter.CHUNK_RELAYED, len(mine))
                effects += self.carry([mine], source, now_us)
        return effects

    def on_deadline(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        for link in self.by_peer.values():
            if link.due_us is not None and link.due_us <= now_us:
                effects += link.on_deadline(now_us)
        self._note_due()
        return effects

    def failed(self) -> Link | None:
        """One that carries nothing any more: the view cannot go on without it."""
        return next((link for link in self.by_peer.values() if link.failed), None)

    def _note_due(self) -> None:
        """The earliest of them stands in the one table."""
        due = min((link.due_us for link in self.by_peer.values() if link.due_us is not None), default=None)
        if due is None:
            self._kit.deadlines.clear(EvsDeadline.LINK)
        else:
            self._kit.deadlines.set(EvsDeadline.LINK, due)
