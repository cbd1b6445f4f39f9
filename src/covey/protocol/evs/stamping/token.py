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
from covey.protocol.evs.announcing import Announcer
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.flow import Flow
from covey.protocol.evs.frames import Ack, Chunk, Data, Hurry, Parked, Token
from covey.protocol.evs.links.foreign import Foreign
from covey.protocol.evs.links.links import Links
from covey.protocol.evs.links.relay import Relay
from covey.protocol.evs.links.ring import Ring
from covey.protocol.evs.links.turn import Standing, Turn
from covey.protocol.evs.packing import Packer
from covey.protocol.values import Announcement

from .stamper import SiteFrame

VISIT_BUNDLES_MAX: Final = 500
"""Bundles stamped while the token is held once: others handle all of them in one step."""
SAFE_VISITS: Final = 2
"""A safe message that waits when the token comes needs what it brings, and so do the others: no stay for so long."""


class TokenStamper:
    def __init__(
        self,
        flow: Flow,
        ring: Ring,
        links: Links,
        announcer: Announcer,
        relay: Relay,
        foreign: Foreign,
        stamp: int,
        ahead_max: int,
    ) -> None:
        self.site_seq = 0
        self.withdrawn_seq = 0
        """The number of the last bundle with which our site gave up interest, as the token tells."""
        self.stamp = stamp
        self.ring = ring
        self._links = links
        self._announcer = announcer
        self._relay = relay
        self._flow = flow
        self._kit = flow.kit
        self._ahead_max = ahead_max
        self._foreign = foreign
        self._safe_visits = 0
        # Where there are other sites, and we speak for ours:
        self._seen: tuple[object, ...] = ()
        self._must_go_round = False
        self._announcement_due = False
        self._was_behind = False  # As the others have been told.
        self._is_ours = False  # The next visit is for what waits here.

    def start(self, now_us: int) -> list[Effect]:
        """The lowest of the ring makes the token."""
        if not self.ring.is_first:
            self._kit.deadlines.set(EvsDeadline.TOKEN_LOST, now_us + self.ring.lost_after_us(now_us))
            return []
        self.ring.hold(self.ring.first_token(tuple(self._flow.order.logs), self.stamp), now_us, self._kit.deadlines)
        return self._visit(now_us)

    def submitted(self, now_us: int) -> list[Effect]:
        if not self._flow.has_to_send():
            return []  # What waits waits for other sites to hear of our interest.
        if self.ring.resume() is not None:
            return self._use_token(now_us)  # What it allows is delivered by `progress`, when the packets have left.
        if not self.ring.may_be_kept() and self._kit.deadlines.is_set(EvsDeadline.TOKEN_LOST):
            return []  # It is on its way.
        if self._relay.has_other_sites and self.site_seq >= self._window():
            # As far as we know, other sites lack too much: the token would come in vain, and often.
            self._kit.deadlines.set_if_clear(EvsDeadline.HURRY, now_us + self._kit.settings.hurry_ms * 1_000)
            return []
        return list[Effect](self.ring.hurry(now_us, self._kit.deadlines))

    def progress(self, now_us: int) -> list[Effect]:
        """Where somebody keeps the token, say at once what it would have asked of us."""
        order = self._flow.order
        if self._foreign and self.ring.resume() is not None:
            return self._visit(now_us)
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
        self._must_go_round = True
        if self.ring.holding is not None:
            return self._visit(now_us, may_rest=False)
        return [*self.ring.hurry(now_us, self._kit.deadlines)] if self.ring.may_be_kept() else []

    def announce(self, now_us: int) -> list[Effect]:
        """Only who holds the token may say up to where nothing will be stamped (rule W6)."""
        self._announcement_due = True
        return self._visit(now_us) if self.ring.holding is not None else []

    def relay(self, chunks: tuple[Chunk, ...]) -> Dropped | None:
        return self._foreign.put(chunks)

    def _received_here(self) -> dict[int, int]:
        """Of each site, up to where everybody in ours has all bundles."""
        return {source: everywhere.usable for source, everywhere in self.ring.received_everywhere.items()}

    def arrived(self, sender: int, frame: Data, datagram: bytes, now_us: int) -> tuple[Chunk, ...] | Dropped:
        if frame.kept_line:
            self.ring.lines.hear(sender, frame.kept_line)
        if self._relay.has_other_sites and any(chunk.site != self._kit.site for chunk in frame.chunks):
            if self._relay.speaks:
                return Dropped(Counter.FRAME_WRONG_WAY)  # What other sites send comes to the ring through us.
            if self.ring.has_asked_for(frame.packet_seq):
                self._kit.count.add(Counter.FOREIGN_RESENT)
        return self.ring.on_data(frame, datagram, now_us, self._kit.deadlines)

    # --- the token

    def on_site_frame(self, sender: int, frame: SiteFrame, now_us: int) -> list[Effect | Dropped]:
        if isinstance(frame, Token):
            return self._on_token(frame, now_us)
        if isinstance(frame, Ack):
            return self._on_ack(sender, frame)
        if isinstance(frame, Parked):
            self.ring.on_parked(frame, self._kit.deadlines)
            return [*self.submitted(now_us)] if self._flow.queue.length else []  # It looks what may be sent.
        assert isinstance(frame, Hurry)
        self._must_go_round = True
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
        most = order.logs[self._kit.site].received + self._ahead_max
        if max(token.site_seq, token.withdrawn_seq) > most or self._kit.clock.is_of_another_age(token.stamp, now_us):
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
        flow.give_up_interest(self.site_seq, now_us)
        allowance, packer = ring.allowance(ring.holding), flow.packer()
        foreign = self._foreign.packets(self._share_of_foreign(allowance), flow.packet_bytes) if self._foreign else []
        effects = self._stamp_waiting(ring.holding, packer, allowance, len(foreign), now_us)
        if self._relay.speaks:
            effects += self._speak(ring.holding, now_us)
        may_rest = may_rest and not self._relay.has_other_sites and not self._safe_visits and not flow.in_haste
        may_rest = may_rest and (ring.lines.are_told or not flow.order.safe_waits)
        packets = foreign + packer.packets if foreign else packer.packets
        turn = Turn(
            packets=packets,
            busy=bool(packets) or not flow.is_settled or flow.behind,
            may_rest=may_rest and not flow.queue.ready and not flow.behind,
            behind=flow.behind,
            parks=self._may_park(ring.holding) if self._relay.has_other_sites else None,
        )
        effects += ring.turn(self._standing(), turn, now_us, self._kit.deadlines)
        heads, flow.heads_to_send = flow.heads_to_send, []
        if not self._links.by_peer:
            return effects
        effects += self._links.carry(packer.packets, self._kit.site, now_us)
        return effects + self._links.carry_heads(heads, self._kit.site, now_us)

    def _share_of_foreign(self, allowance: int) -> int:
        """What comes from other sites goes first; a quarter is left for what waits here (rule W4).

        A bundle of ours that needs more packets than were left has the next visit for itself; where a visit may send
        one packet, they take turns.
        """
        if not self._flow.has_to_send() or self.site_seq >= self._window():
            return allowance
        ours, self._is_ours = self._is_ours, allowance == 1 and not self._is_ours
        return 0 if ours else allowance - (max(1, allowance // 4) if allowance > 1 else 0)

    def _speak(self, token: Token, now_us: int) -> list[Effect]:
        """For our site, with the token: nothing will be stamped up to our clock, and that is announced (R1, W6)."""
        flow, clock, site = self._flow, self._kit.clock, self._kit.site
        self.stamp = max(self.stamp, clock.now(now_us))
        clock.see(self.stamp - 1)
        own = Announcement(self.site_seq, self.stamp)
        flow.order.announce(site, own)
        if not flow.is_settled:
            self._announcer.want_in_time(now_us)
        behind = flow.behind or token.behind not in (-1, self._kit.me.rank)
        if behind != self._was_behind:
            self._announcer.want(now_us)  # More than once: one may be lost.
        elif not self._announcement_due:
            return []
        self._was_behind = behind
        self._announcement_due = False
        quiet = self.ring.is_quiet(token) and flow.is_settled and not self._foreign and not behind
        self._must_go_round = self._must_go_round or not quiet
        line, received = self.ring.line_everywhere.usable, self._received_here()
        return self._announcer.announce(own, line, received, quiet, behind, now_us)

    def _may_park(self, token: Token) -> bool:
        """With who speaks for the site, once going round brings nothing new: what comes next comes to it (rule W4)."""
        if not self._relay.speaks:
            return False
        ring = self.ring
        seen = (self.site_seq, ring.line_everywhere.usable, tuple(self._received_here().values()))
        is_new, self._seen = seen != self._seen, seen
        must_go_round, self._must_go_round = self._must_go_round, False
        return not (is_new or must_go_round or self._foreign) and ring.all_have_all(token)

    def _learn(self) -> None:
        """From a token that has just come: what the site has stamped, and how far everybody in it is."""
        token, order = self.ring.holding, self._flow.order
        assert token is not None
        self.site_seq, self.stamp = token.site_seq, token.stamp
        self.withdrawn_seq = max(self.withdrawn_seq, token.withdrawn_seq)
        self._kit.clock.see(token.stamp)
        order.announce(self._kit.site, Announcement(token.site_seq, token.stamp))
        self.ring.arrive(self._standing())
        self._raise_stability()
        self._flow.look_at_joins(self.withdrawn_seq)
        self._safe_visits = SAFE_VISITS if order.safe_waits else max(0, self._safe_visits - 1)

    def _standing(self) -> Standing:
        return Standing(self._flow.order.line(), self._flow.received(), self.site_seq, self.stamp, self.withdrawn_seq)

    def _window(self) -> int:
        """The number of the last bundle that may be under way."""
        taken, settings = self._flow.order.stability.taken_by_all(self._kit.site), self._kit.settings
        window = settings.source_bundles_unstable if self._relay.has_other_sites else settings.ring_bundles_unstable
        return taken + window

    def _stamp_waiting(self, token: Token, packer: Packer, allowance: int, foreign: int, now_us: int) -> list[Effect]:
        """As much as the windows of packets and of bundles leave room for."""
        flow, queue = self._flow, self._flow.queue
        window = self._window()
        last, has_room = min(window, self.site_seq + VISIT_BUNDLES_MAX), self._links.has_room()
        effects: list[Effect] = []
        allowance = min(allowance - foreign, self._kit.settings.ring_packets_per_visit)
        if token.behind not in (-1, self._kit.me.rank):
            allowance = 0  # What comes from other sites goes on: they learn of it otherwise.
        is_pruned = flow.interest is not None
        while allowance > 0 and self.site_seq < last and has_room and (queue.ready or is_pruned) and self._may_stamp():
            if (packer.packets or foreign) and packer.packets_after(flow.next_bytes()) > allowance:
                self._is_ours = not packer.packets
                break
            self.site_seq, self.stamp = self.site_seq + 1, max(self.stamp + 1, self._kit.clock.now(now_us))
            if is_pruned:
                self.stamp = max(self.stamp, flow.lowest_stamp())
            effects += flow.stamp(self.site_seq, self.stamp, packer)
        if flow.interest is not None:
            self.withdrawn_seq = max(self.withdrawn_seq, flow.interest.withdrawn_seq)
            flow.end_turn(now_us)
        if queue.ready and (self.site_seq >= window or self.ring.window(token) <= len(packer.packets)):
            self._kit.count.add(Counter.WINDOW_CLOSED)
        return effects

    def _may_stamp(self) -> bool:
        return self._flow.may_stamp(self.withdrawn_seq)

    def _raise_stability(self) -> None:
        """What the token has shown of everybody in the site."""
        order, site = self._flow.order, self._kit.site
        order.stability.raise_line(site, self.ring.line_everywhere.usable)
        for source, number in self._received_here().items():
            order.raise_received(site, source, number)

    def snapshot(self) -> dict[str, object]:
        return {"kind": "ring"} | self.ring.snapshot()

    def check(self) -> None:
        self.ring.check()
