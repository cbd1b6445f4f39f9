"""Stamping alone: the only daemon of a site gives what waits its place in the order at once, within a window.

In:        what waits in the queue; progress of the order.
Out:       packets over the links to other sites, stamps, deliveries.
Not here:  what the other sites are told (announcing.py), how packets travel (links/).

Invariant: A1 no stamp is at or below one used or promised before.
"""

from __future__ import annotations

from enum import Enum

from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Effect
from covey.protocol.evs.announcing import Announcer
from covey.protocol.evs.flow import Flow
from covey.protocol.evs.frames import Chunk, Data
from covey.protocol.evs.links.links import Links
from covey.protocol.values import Announcement

from .stamper import SiteFrame


class AloneStamper:
    def __init__(self, flow: Flow, links: Links, announcer: Announcer, stamp: int) -> None:
        self.site_seq = 0
        self.withdrawn_seq = 0  # We have said it ourselves, and know.
        self.stamp = stamp
        self._flow = flow
        self._kit = flow.kit
        self._links = links
        self._announcer = announcer
        self._was_behind = False  # As the others have been told.
        self._checked = (0, stamp)

    def start(self, now_us: int) -> list[Effect]:
        return self.submitted(now_us) if self._flow.has_to_send() else []

    def submitted(self, now_us: int) -> list[Effect]:
        return self.progress(now_us)

    def progress(self, now_us: int) -> list[Effect]:
        self.raise_own(now_us)
        effects = self._flow.deliver()
        while self._has_window() and self._flow.may_stamp():
            effects += self._stamp_waiting(now_us)
            self.raise_own(now_us)
            effects += self._flow.deliver()
        if self._flow.queue.length and not self._has_window():
            self._kit.count.add(Counter.WINDOW_CLOSED)
        return effects

    def _stamp_waiting(self, now_us: int) -> list[Effect]:
        """Stamp what the window allows, and send it."""
        flow, packer, effects = self._flow, self._flow.packer(), list[Effect]()
        while self._has_window() and flow.may_stamp():
            lowest = max(self.stamp + 1, flow.lowest_stamp())
            self.site_seq, self.stamp = self.site_seq + 1, max(lowest, self._kit.clock.now(now_us))
            effects += flow.stamp(self.site_seq, self.stamp, packer)
        carried = self._links.carry(packer.packets, self._kit.site, now_us)
        heads, flow.heads_to_send = flow.heads_to_send, []
        return effects + carried + self._links.carry_heads(heads, self._kit.site, now_us)

    def _has_window(self) -> bool:
        """Whether more bundles may be under way."""
        taken = self._flow.order.stability.taken_by_all(self._kit.site)
        return self.site_seq - taken < self._kit.settings.source_bundles_unstable and self._links.has_room()

    def raise_own(self, now_us: int) -> None:
        """A one-daemon site raises its own frontier, line and received numbers locally (rule R3).

        Announcing is a stamping act: we shall never stamp at or below what is promised here.
        """
        flow, site = self._flow, self._kit.site
        self.stamp = max(self.stamp, self._kit.clock.now(now_us))
        self._kit.clock.see(self.stamp - 1)
        flow.order.announce(site, Announcement(self.site_seq, self.stamp))
        line, before = flow.order.line(), flow.order.safe_line()
        flow.order.stability.raise_line(site, line)
        for source, number in flow.received().items():
            flow.order.raise_received(site, source, number)
        flow.look_at_joins(0)
        flow.give_up_interest(self.site_seq, now_us)
        if flow.behind != self._was_behind:
            self._announcer.want(now_us)
        if line > before and flow.order.has_unstable():
            self._announcer.want_in_time(now_us)

    def announce(self, now_us: int) -> list[Effect]:
        self.raise_own(now_us)
        flow, own = self._flow, Announcement(self.site_seq, self.stamp)
        line, received, behind = flow.order.line(), flow.received(), flow.behind
        quiet, self._was_behind = flow.is_settled and not behind, behind
        return self._announcer.announce(own, line, received, quiet, behind, now_us) + self.progress(now_us)

    # --- nobody else is in the site

    def relay(self, chunks: tuple[Chunk, ...]) -> Dropped | None:
        return None

    def arrived(self, sender: int, frame: Data, datagram: bytes, now_us: int) -> tuple[Chunk, ...]:
        return ()

    def on_site_frame(self, sender: int, frame: SiteFrame, now_us: int) -> list[Effect | Dropped]:
        return [Dropped(Counter.FRAME_MISDIRECTED)]

    def hasten(self, now_us: int) -> list[Effect]:
        return []

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        return []

    def snapshot(self) -> dict[str, object]:
        return {"kind": "alone"}

    def check(self) -> None:
        number, stamp = self._checked
        assert self.stamp > stamp if self.site_seq > number else self.stamp >= stamp, "A1"
        self._checked = (self.site_seq, self.stamp)
