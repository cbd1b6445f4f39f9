"""All links of a daemon to other sites, in one view: what is stamped goes over each, beside the ring of the own site.

In:        packets of stamped bundles; packets that arrived; the deadline of the links.
Out:       effects; pieces of bundles; whether there is room; which link failed.
Not here:  how one link does it (link.py), who stamps (stamping/).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from covey.ids import Ballot
from covey.protocol.counters import Dropped
from covey.protocol.effects import Effect
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Chunk, Data
from covey.protocol.evs.kit import EvsKit

from .link import Link, QueueClass


class Links:
    def __init__(self, kit: EvsKit, view: Ballot, links: Iterable[Link]) -> None:
        self._kit = kit
        self._view = view
        self.by_peer = {link.peer: link for link in links}

    def has_room(self) -> bool:
        return not self.by_peer or all(link.room(QueueClass.DATA) > 0 for link in self.by_peer.values())

    def carry(self, packets: Sequence[Sequence[Chunk]], now_us: int) -> list[Effect]:
        """Send these over every link."""
        effects: list[Effect] = []
        if not self.by_peer:
            return effects
        for chunks in packets:
            data = self._kit.codec.encode(Data(self._view, 0, 0, tuple(chunks)))
            for link in self.by_peer.values():
                effects += link.send(QueueClass.DATA, data, now_us)
        self._note_due()
        return effects

    def arrived(self, rank: int, frame: Data, datagram: bytes) -> tuple[Chunk, ...] | Dropped:
        return self.by_peer[rank].arrived(frame, datagram)

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
