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
from covey.protocol.evs.frames import Ack, Chunk, Data, Hurry, Parked, Token
from covey.protocol.evs.links.links import Links
from covey.protocol.evs.links.ring import Ring, Standing, Turn
from covey.protocol.evs.packing import Packer
from covey.protocol.values import Announcement

from .stamper import SiteFrame

VISIT_BUNDLES_MAX: Final = 500
"""Bundles stamped while the token is held once: others handle all of them in one step."""
SAFE_VISITS: Final = 2
"""A safe message that waits when the token comes needs what it brings, and so do the others: no stay for so long."""


class TokenStamper:
    def __init__(self, flow: Flow, ring: Ring, links: Links, stamp: int, ahead_max: int) -> None:
        self.site_seq = 0
        self.stamp = stamp
        self.ring = ring
        self._links = links
        self._flow = flow
        self._kit = flow.kit
        self._ahead_max = ahead_max
        self._is_one_site = len(flow.order.logs) == 1
        """There are no other sites, which would wait for what the token brings."""
        self._safe_visits = 0

    def start(self, now_us: int) -> list[Effect]:
        """The lowest of the ring makes the token."""
        if not self.ring.is_first:
            self._kit.deadlines.set(EvsDeadline.TOKEN_LOST, now_us + self.ring.lost_after_us(now_us))
            return []
        self.ring.hold(self.ring.first_token(tuple(self._flow.order.logs), self.stamp), now_us, self._kit.deadlines)
        return self._visit(now_us)

    def submitted(self, now_us: int) -> list[Effect]:
        if self.ring.resume() is not None:
            return self._use_token(now_us)  # What it allows is delivered by `progress`, when the packets have left.
        if self.ring.may_be_kept() or not self._kit.deadlines.is_set(EvsDeadline.TOKEN_LOST):
            return list[Effect](self.ring.hurry(now_us, self._kit.deadlines))
        return []

    def progress(self, now_us: int) -> list[Effect]:
        """Where somebody keeps the token, say at once what it would have asked of us."""
        order = self._flow.order
        safe_waits = order.safe_waits
        said = self._say_to_who_keeps_it(safe_waits, now_us) if self.ring.is_kept_elsewhere() else []
        if safe_waits:
            order.stability.raise_line(self._kit.site, self.ring.lines.least(order.line()))
        return said + self._flow.deliver() if order.undelivered else said

    def _say_to_who_keeps_it(self, safe_waits: bool, now_us: int) -> list[Effect]:
        """That something is missing here; or, where a safe message waits for it, up to where nothing is."""
        if self.ring.lacks_something():
            return [*self.ring.hurry(now_us, self._kit.deadlines)]
        return [*self.ring.acknowledge(self._flow.order.line())] if safe_waits else []

    def hasten(self, now_us: int) -> list[Effect]:
        """The token goes round: what is sent, and what we are told, does not wait for the end of a stay."""
        if self.ring.holding is not None:
            return self._visit(now_us, may_rest=False)
        return [*self.ring.hurry(now_us, self._kit.deadlines)] if self.ring.may_be_kept() else []

    def raise_own(self, now_us: int) -> None:
        """The token does that, on its way."""

    def received_here(self) -> dict[int, int]:
        return {source: everywhere.usable for source, everywhere in self.ring.received_everywhere.items()}

    def arrived(self, sender: int, frame: Data, datagram: bytes, now_us: int) -> tuple[Chunk, ...] | Dropped:
        if frame.kept_line:
            self.ring.lines.hear(sender, frame.kept_line)
        return self.ring.on_data(frame, datagram, now_us, self._kit.deadlines)

    # --- the token

    def on_site_frame(self, sender: int, frame: SiteFrame, now_us: int) -> list[Effect | Dropped]:
        if isinstance(frame, Token):
            return self._on_token(frame, now_us)
        if isinstance(frame, Ack):
            return self._on_ack(sender, frame)
        if isinstance(frame, Parked):
            self.ring.on_parked(frame, self._kit.deadlines)
            return [*self.submitted(now_us)] if self._flow.queue.length else []
        assert isinstance(frame, Hurry)
        return [*self._visit(now_us, may_rest=False)] if self.ring.on_hurry(now_us) is not None else []

    def _on_ack(self, sender: int, frame: Ack) -> list[Effect | Dropped]:
        """What it allows is delivered when all datagrams of the step were taken."""
        if not self.ring.lines.knows(sender):
            return [Dropped(Counter.FRAME_MISDIRECTED)]
        self.ring.lines.hear(sender, frame.line)
        return []

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        if deadline is EvsDeadline.TOKEN_RESEND:
            return list[Effect](self.ring.resend_token(now_us, self._kit.deadlines))
        if deadline is EvsDeadline.REST:
            return self._visit(now_us, may_rest=False)
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
        return [*self._visit(now_us)]

    def _visit(self, now_us: int, may_rest: bool = True) -> list[Effect]:
        return self._use_token(now_us, may_rest) + self._flow.deliver()

    def _use_token(self, now_us: int, may_rest: bool = True) -> list[Effect]:
        """Learn from it, stamp what it allows, and hand it on with what we know, unless it stays here for a while."""
        ring, flow = self.ring, self._flow
        if ring.is_new:
            self._learn()
        assert ring.holding is not None
        packer = Packer(flow.packet_bytes)
        effects = self._stamp_waiting(ring.holding, packer, now_us)
        may_rest = may_rest and self._is_one_site and not self._safe_visits and not flow.in_haste
        may_rest = may_rest and (ring.lines.are_told or not flow.order.safe_waits)
        turn = Turn(
            packets=packer.packets,
            busy=bool(packer.packets) or not flow.is_settled or flow.behind,
            may_rest=may_rest and not flow.queue.length and not flow.behind,
            behind=flow.behind,
        )
        effects += ring.turn(self._standing(), turn, now_us, self._kit.deadlines)
        return effects + self._links.carry(packer.packets, now_us) if self._links.by_peer else effects

    def _learn(self) -> None:
        """From a token that has just come: what the site has stamped, and how far everybody in it is."""
        token, order = self.ring.holding, self._flow.order
        assert token is not None
        self.site_seq, self.stamp = token.site_seq, token.stamp
        self._kit.clock.see(token.stamp)
        order.announce(self._kit.site, Announcement(token.site_seq, token.stamp))
        self.ring.arrive(self._standing())
        self._raise_stability()
        self._safe_visits = SAFE_VISITS if order.safe_waits else max(0, self._safe_visits - 1)

    def _standing(self) -> Standing:
        return Standing(self._flow.order.line(), self._flow.received(), self.site_seq, self.stamp)

    def _stamp_waiting(self, token: Token, packer: Packer, now_us: int) -> list[Effect]:
        """As much as the windows of packets and of bundles leave room for."""
        flow, queue = self._flow, self._flow.queue
        allowance = self.ring.allowance(token)
        received = flow.order.stability.received_by_all(self._kit.site)
        window = received + self._kit.settings.ring_bundles_unstable
        last, has_room = min(window, self.site_seq + VISIT_BUNDLES_MAX), self._links.has_room()
        effects: list[Effect] = []
        while allowance and self.site_seq < last and has_room and queue.length and flow.may_stamp():
            if packer.packets and packer.packets_after(queue.next_bytes()) > allowance:
                break
            self.site_seq, self.stamp = self.site_seq + 1, max(self.stamp + 1, self._kit.clock.now(now_us))
            effects += flow.stamp(self.site_seq, self.stamp, packer)
        if queue.length and (self.site_seq >= window or self.ring.window(token) <= len(packer.packets)):
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
