"""Stamping by the token: whoever holds it gives what waits its place in the order, and passes it on.

In:        tokens of the site's ring; what waits in the queue.
Out:       packets and the token, stamps, deliveries.
Not here:  how the token travels and packets are made reliable (links/ring.py), order itself (ordering/).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Effect
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.flow import Flow
from covey.protocol.evs.frames import Chunk, Data, Hurry, Parked, Token
from covey.protocol.evs.links.links import Links
from covey.protocol.evs.links.ring import Ring, Visit
from covey.protocol.evs.packing import Packer
from covey.protocol.values import Announcement

from .stamper import SiteFrame

VISIT_BUNDLES_MAX: Final = 500
"""Bundles stamped while the token is held once: others handle all of them in one step."""


class TokenStamper:
    def __init__(self, flow: Flow, ring: Ring, links: Links, stamp: int, ahead_max: int) -> None:
        self.site_seq = 0
        self.stamp = stamp
        self.ring = ring
        self._links = links
        self._flow = flow
        self._kit = flow.kit
        self._ahead_max = ahead_max

    def start(self, now_us: int) -> list[Effect]:
        """The lowest of the ring makes the token."""
        if not self.ring.is_first:
            self._kit.deadlines.set(EvsDeadline.TOKEN_LOST, now_us + self.ring.lost_after_us(now_us))
            return []
        self.ring.hold(self.ring.first_token(tuple(self._flow.order.logs), self.stamp), now_us, self._kit.deadlines)
        return self._use_token(now_us)

    def submitted(self, now_us: int) -> list[Effect]:
        if self.ring.resume() is not None:
            return self._use_token(now_us)
        if not self._kit.deadlines.is_set(EvsDeadline.TOKEN_LOST):
            return list[Effect](self.ring.hurry(now_us, self._kit.deadlines))
        return []

    def progress(self, now_us: int) -> list[Effect]:
        return self._flow.deliver()

    def raise_own(self, now_us: int) -> None:
        """The token does that, on its way."""

    def received_here(self) -> dict[int, int]:
        return {source: everywhere.usable for source, everywhere in self.ring.received_everywhere.items()}

    def arrived(self, frame: Data, datagram: bytes) -> tuple[Chunk, ...] | Dropped:
        return self.ring.on_data(frame, datagram, self._kit.deadlines)

    # --- the token

    def on_site_frame(self, frame: SiteFrame, now_us: int) -> list[Effect | Dropped]:
        if isinstance(frame, Token):
            return self._on_token(frame, now_us)
        if isinstance(frame, Parked):
            self.ring.on_parked(frame, self._kit.deadlines)
            return [*self.submitted(now_us)] if len(self._flow.queue) else []
        assert isinstance(frame, Hurry)
        return [*self._use_token(now_us)] if self.ring.resume() is not None else []

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        if deadline is EvsDeadline.TOKEN_RESEND:
            return list[Effect](self.ring.resend_token(now_us, self._kit.deadlines))
        return list[Effect](self.ring.hurry(now_us, self._kit.deadlines))

    def _on_token(self, token: Token, now_us: int) -> list[Effect | Dropped]:
        order = self._flow.order
        if {site for site, _ in token.received_floors} != order.logs.keys():
            return [Dropped(Counter.FRAME_MISDIRECTED)]
        most = order.logs[self._kit.site].gap_free + self._ahead_max
        if token.site_seq > most or self._kit.clock.is_of_another_age(token.stamp, now_us):
            return [Dropped(Counter.TOKEN_IMPOSSIBLE)]
        if (dropped := self.ring.why_not(token)) is not None:
            return [dropped, *self.ring.on_duplicate(token)]
        self.ring.hold(token, now_us, self._kit.deadlines)
        return [*self._use_token(now_us)]

    def _use_token(self, now_us: int) -> list[Effect]:
        """Learn from it, stamp what it allows, and hand it on with what we know."""
        token, flow = self.ring.holding, self._flow
        assert token is not None
        self._kit.clock.see(token.stamp)
        self.site_seq, self.stamp = token.site_seq, token.stamp
        flow.order.announce(self._kit.site, Announcement(token.site_seq, token.stamp))
        packer = flow.packer()
        effects = self._stamp_waiting(token, packer, now_us)
        mine = Visit(
            line=flow.order.line(),
            received=flow.received(),
            site_seq=self.site_seq,
            stamp=self.stamp,
            packets=packer.packets,
            busy=not flow.is_settled or flow.behind,
            behind=flow.behind,
        )
        effects += self.ring.turn(mine, now_us, self._kit.deadlines)
        effects += self._links.carry(packer.packets, now_us)
        self._raise_stability()
        return effects + flow.deliver()

    def _stamp_waiting(self, token: Token, packer: Packer, now_us: int) -> list[Effect]:
        """As much as the windows of packets and of bundles leave room for."""
        flow, queue = self._flow, self._flow.queue
        allowance = self.ring.allowance(token)
        received = flow.order.stability.received_by_all(self._kit.site)
        window = received + self._kit.settings.ring_bundles_unstable
        last, has_room = min(window, self.site_seq + VISIT_BUNDLES_MAX), self._links.has_room()
        effects: list[Effect] = []
        while allowance and self.site_seq < last and has_room and flow.may_stamp():
            if packer.packets and packer.packets_after(queue.next_bytes()) > allowance:
                break
            self.site_seq, self.stamp = self.site_seq + 1, max(self.stamp + 1, self._kit.clock.now(now_us))
            effects += flow.stamp(self.site_seq, self.stamp, packer)
        if len(queue) and (self.site_seq >= window or self.ring.window(token) <= len(packer.packets)):
            self._kit.count.add(Counter.WINDOW_CLOSED)
        return effects

    def _raise_stability(self) -> None:
        """What the token has shown of everybody in the site."""
        stability, site = self._flow.order.stability, self._kit.site
        stability.raise_line(site, self.ring.line_everywhere.usable)
        for source, number in self.received_here().items():
            stability.raise_received(site, source, number)

    def snapshot(self) -> dict[str, object]:
        return {"kind": "ring"} | self.ring.snapshot()

    def check(self) -> None:
        self.ring.check()
