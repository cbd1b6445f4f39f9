"""One view in operation at one daemon: the engine's routes between queue, links and order.

In:   submissions and frames of this view.  Out: effects.  Not here: how views begin and end (change.py, membership/).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from covey.config import FRAME_SLACK, GROUPS_BYTES_MAX, Settings, part_bytes
from covey.errors import FrameError
from covey.ids import INFINITE, Ballot, Life
from covey.protocol.effects import Deliver, Effect, Notice, Send, Stamped
from covey.protocol.evs.deadlines import WORKING, EvsDeadline
from covey.protocol.evs.kit import EvsKit
from covey.protocol.evs.links.mesh import Mesh
from covey.protocol.evs.links.ring import Ring, Visit
from covey.protocol.evs.ordering.order import Order
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import Announcement, Bundle, Delivery, Kind, Service
from covey.protocol.wire.bundles import bundle_parts

from .codec import PACKET_OVERHEAD
from .frames import Announce, Data, Parked, Token, Unreliable
from .growth import Growth
from .packing import Packer, Reassembly
from .unreliable import UnreliableStreams

VISIT_BUNDLES_MAX: Final = 500
"""Bundles stamped while the token is held once: others handle all of them in one step."""


def _pieces_max(settings: Settings, sites: int) -> int:
    """More pieces than the windows of all sources let be under way."""
    pieces_per_bundle = 2 + (settings.bundle_bytes + GROUPS_BYTES_MAX) // (settings.packet_bytes // 2)
    return 2 * settings.ring_packets_unstable + sites * settings.source_bundles_unstable * pieces_per_bundle


class Operation:
    def __init__(
        self, kit: EvsKit, view: Ballot, members: tuple[Life, ...], queue: SubmitQueue, high: int, patience: Growth
    ) -> None:
        self.kit = kit
        self.view = view
        self.members = members
        self.queue = queue
        self._site_of = {life: kit.site_of(life) for life in members}
        sites = tuple(sorted(set(self._site_of.values())))
        self.order = Order(view, sites, kit.me, kit.count)
        self._reassembly = Reassembly(_pieces_max(kit.settings, len(sites)), kit.count)
        self.unreliable = UnreliableStreams(kit.me)
        self.others = tuple(life.rank for life in members if life != kit.me)
        ring = tuple(life.rank for life in members if kit.site_of(life) == kit.site)
        self.ring = None
        if len(ring) > 1:
            self.ring = Ring(view, ring, kit.me.rank, kit.settings, kit.codec, kit.count, patience)
        self.mesh = Mesh(view, kit.site, self.others, high, kit.settings) if self.ring is None else None
        self._high = high
        self.behind = False
        """Our clients are told too slowly: nothing is stamped here, and others are asked to send less."""
        self._received_before: dict[int, int] = {}
        self._far_ahead: set[int] = set()
        self._packet_bytes = kit.settings.packet_bytes - kit.codec.overhead - PACKET_OVERHEAD
        smallest = part_bytes(kit.settings.bundle_bytes, GROUPS_BYTES_MAX)
        self._fragments_max = 1 + (kit.settings.message_bytes_max + FRAME_SLACK) // smallest
        self.ahead_max = max(kit.settings.ring_bundles_unstable, kit.settings.source_bundles_unstable)
        """Bundles of one site that can be under way at once: windows open only as far as everybody has received."""
        if queue.start_view():
            kit.count.add("message begun again")

    # --- beginning and ending

    def start(self, now_us: int) -> list[Effect]:
        """The view is installed: the lowest of the ring makes the token, everyone sends what waits."""
        if self.ring is not None:
            if self.members[0] != self.kit.me:
                self.kit.deadlines.set(EvsDeadline.TOKEN_LOST, now_us + self.ring.lost_after_us(now_us))
                return []
            return self.on_token(self.ring.first_token(tuple(self.order.logs), self._high), now_us)
        return self.send_waiting(now_us)

    def end(self) -> None:
        """The view ends here: nothing is stamped, acknowledged or taken any more."""
        self.order.freeze()
        self.kit.deadlines.clear(*WORKING)

    def is_settled(self) -> bool:
        return not len(self.queue) and not self.order.has_unstable()

    # --- sending

    def send_waiting(self, now_us: int) -> list[Effect]:
        """Something waits in the queue."""
        if not len(self.queue):
            return []
        if self.mesh is not None:
            return self.progress(now_us)
        assert self.ring is not None
        if self.ring.resume() is not None:
            return self._use_token(self.ring, now_us)
        if not self.kit.deadlines.is_set(EvsDeadline.TOKEN_LOST):
            return list[Effect](self.ring.hurry(now_us, self.kit.deadlines))
        return []

    def _send_mesh(self, mesh: Mesh, now_us: int) -> list[Effect]:
        """Stamp what the window allows, and send it."""
        packer = Packer(self._packet_bytes)
        effects: list[Effect] = []
        while self._has_window(mesh) and self._may_stamp():
            number, stamp = mesh.next_stamp(self.kit.clock.now(now_us))
            effects += self._stamp(number, stamp, packer)
        for chunks in packer.packets:
            if self.others:
                data = self.kit.codec.encode(Data(self.view, 0, 0, tuple(chunks)))
                effects.append(Send(self.others, data, reliable=True))
        return effects

    def _has_window(self, mesh: Mesh) -> bool:
        return mesh.window(self.order.stability.received_by_all(mesh.site)) > 0

    def _may_stamp(self) -> bool:
        service = self.queue.next_service()
        if self.behind and service is not None:
            self.kit.count.add("sending waits: clients are behind")
            return False
        return service is not None and (service < Service.CAUSAL or self.order.past_is_complete())

    def _stamp(self, number: int, stamp: int, packer: Packer) -> list[Effect]:
        """Give the next waiting bundle its place in the order."""
        bundle, whole = self.queue.take(number, stamp)
        self.kit.clock.see(stamp)
        if bundle.kind is Kind.DISCONNECT:
            self.unreliable.ended(bundle.session)
        packer.add(bundle.site, number, tuple(bundle_parts(bundle)))
        stamped: list[Effect] = [] if whole is None else [Stamped(self.view, bundle, (whole,))]
        return stamped + self._deliveries(self.order.add(bundle))

    # --- the ring

    def on_token(self, token: Token, now_us: int) -> list[Effect]:
        if self.ring is None or {site for site, _ in token.received_floors} != set(self.order.logs):
            return self._misdirected()
        most = self.order.logs[self.kit.site].gap_free + self.ahead_max
        if token.site_seq > most or self.kit.clock.is_of_another_age(token.stamp, now_us):
            self.kit.count.drop("token dropped: impossible")
            return []
        if not self.ring.accept(token, now_us, self.kit.deadlines):
            return list[Effect](self.ring.on_duplicate(token))
        return self._use_token(self.ring, now_us)

    def _use_token(self, ring: Ring, now_us: int) -> list[Effect]:
        token = ring.holding
        assert token is not None
        self.kit.clock.see(token.stamp)
        self.order.announce(self.kit.site, Announcement(token.site_seq, token.stamp))
        allowance, packer = ring.allowance(token), Packer(self._packet_bytes)
        effects: list[Effect] = []
        site_seq, stamp = token.site_seq, token.stamp
        received = self.order.stability.received_by_all(self.kit.site)
        window = received + self.kit.settings.ring_bundles_unstable
        bundles_max = min(window, site_seq + VISIT_BUNDLES_MAX)
        while allowance and site_seq < bundles_max and self._may_stamp():
            if packer.packets and packer.packets_after(self.queue.next_bytes()) > allowance:
                break
            site_seq, stamp = site_seq + 1, max(stamp + 1, self.kit.clock.now(now_us))
            effects += self._stamp(site_seq, stamp, packer)
        if len(self.queue) and (site_seq >= window or ring.window(token) <= len(packer.packets)):
            self.kit.count.add("window closed")
        mine = Visit(
            line=self.order.line(),
            received=self._received(),
            site_seq=site_seq,
            stamp=stamp,
            packets=packer.packets,
            busy=not self.is_settled() or self.behind,
            behind=self.behind,
        )
        effects += ring.turn(mine, now_us, self.kit.deadlines)
        stability = self.order.stability
        stability.raise_line(self.kit.site, ring.line_everywhere.usable)
        for site, everywhere in ring.received_everywhere.items():
            stability.raise_received(self.kit.site, site, everywhere.usable)
        return effects + self.progress(now_us)

    def on_data(self, frame: Data, datagram: bytes, now_us: int) -> list[Effect]:
        chunks = frame.chunks
        if self.ring is not None:
            chunks = self.ring.on_data(frame, datagram, self.kit.deadlines)
        effects: list[Effect] = []
        for chunk in chunks:
            try:
                bundle = self._reassembly.add(chunk)
            except FrameError:
                self.kit.count.drop("bundle dropped: malformed")
                continue
            if bundle is None or not self.is_possible(bundle) or not self._is_new(bundle, now_us):
                continue
            effects += self._see_stamp(bundle.stamp, bundle.origin.rank, now_us)
            if early := self.order.add(bundle):
                effects += self._deliveries(early)
        return effects

    def on_parked(self, frame: Parked, now_us: int) -> list[Effect]:
        if self.ring is None:
            return self._misdirected()
        self.ring.on_parked(frame, self.kit.deadlines)
        return self.send_waiting(now_us)

    def on_hurry(self, now_us: int) -> list[Effect]:
        if self.ring is None:
            return self._misdirected()
        return self._use_token(self.ring, now_us) if self.ring.resume() is not None else []

    def on_token_deadline(self, deadline: EvsDeadline, now_us: int) -> list[Effect]:
        if self.ring is None:
            return []
        if deadline is EvsDeadline.TOKEN_RESEND:
            return list[Effect](self.ring.resend_token(now_us, self.kit.deadlines))
        return list[Effect](self.ring.hurry(now_us, self.kit.deadlines))

    # --- announcements between sites

    def on_announce(self, frame: Announce, now_us: int) -> list[Effect]:
        if self.mesh is None or frame.site not in self.order.logs:
            return self._misdirected()
        if self.kit.clock.is_of_another_age(frame.last, now_us):
            self.kit.count.drop("announcement dropped: impossible")
            return []
        effects = self._see_stamp(frame.last - 1, self._daemon_of(frame.site), now_us)
        self.order.announce(frame.site, Announcement(frame.number, frame.last))
        stability = self.order.stability
        stability.raise_line(frame.site, frame.line)
        for source, number in frame.received:
            if source in self.order.logs:
                stability.raise_received(frame.site, source, number)
        if not frame.quiet:
            self.mesh.want_announcement(now_us, self.kit.deadlines)
        return effects + self.send_waiting(now_us)

    def want_announcement(self, now_us: int) -> None:
        """Data has come that the other sites wait to hear of."""
        if self.mesh is not None:
            self.mesh.want_announcement(now_us, self.kit.deadlines)

    def send_announcement(self, now_us: int) -> list[Effect]:
        if self.mesh is None or not self.others:
            return []
        self._raise_own(self.mesh, now_us)
        quiet = self.is_settled()
        received = self._told_received(self.mesh)
        frame = self.mesh.announcement(self.order.line(), received, quiet)
        self.mesh.announced(now_us, quiet, self.kit.deadlines)
        return [Send(self.others, self.kit.codec.encode(frame)), *self.progress(now_us)]

    # --- unreliable

    def send_unreliable(self, bundle_frame: Unreliable) -> list[Effect]:
        bundle = bundle_frame.bundle
        effects: list[Effect] = [Stamped(self.view, bundle, (bundle.payload,))]
        if self.others:
            effects.append(Send(self.others, self.kit.codec.encode(bundle_frame)))
        return [*effects, Deliver(self.view, bundle, (bundle.payload,))]

    def on_unreliable(self, sender: Life, frame: Unreliable) -> list[Effect]:
        bundle = frame.bundle
        if bundle.origin != sender or bundle.service is not Service.UNRELIABLE or bundle.number or not bundle.place:
            self.kit.count.drop("bundle dropped: impossible")
            return []
        if not self.unreliable.is_new(frame.bundle):
            known = self.unreliable.knows(bundle.key)
            self.kit.count.drop(f"unreliable dropped: {'duplicate' if known else 'too many sessions in this view'}")
            return []
        return [Deliver(self.view, frame.bundle, (frame.bundle.payload,))]

    # --- delivery

    def progress(self, now_us: int) -> list[Effect]:
        """Deliver what may be delivered now, let go of what nobody needs, and send on where a window has opened."""
        if self.mesh is None:
            return self.deliver_and_discard()
        self._raise_own(self.mesh, now_us)
        effects = self.deliver_and_discard()
        while self._has_window(self.mesh) and self._may_stamp():
            effects += self._send_mesh(self.mesh, now_us)
            self._raise_own(self.mesh, now_us)
            effects += self.deliver_and_discard()
        if len(self.queue) and not self._has_window(self.mesh):
            self.kit.count.add("window closed")
        return effects

    def deliver_and_discard(self) -> list[Effect]:
        effects = self._deliveries(self.order.deliver())
        self.order.discard()
        return effects

    def _raise_own(self, mesh: Mesh, now_us: int) -> None:
        """A one-daemon site raises its own frontier, line and received numbers locally (rule R3)."""
        promised = mesh.promise(self.kit.clock.now(now_us))
        self.kit.clock.see(promised - 1)
        self.order.announce(mesh.site, Announcement(mesh.site_seq, promised))
        line, before = self.order.line(), self.order.safe_line()
        self.order.stability.raise_line(mesh.site, line)
        for site, number in self._told_received(mesh).items():
            self.order.stability.raise_received(mesh.site, site, number)
        if self.others and line > before and self.order.has_unstable():
            interval_us = self.kit.settings.announce_interval_ms * 1_000
            self.kit.deadlines.set_if_clear(EvsDeadline.ANNOUNCE, now_us + interval_us)

    def _received(self) -> dict[int, int]:
        """Of each site, up to where we have all bundles."""
        return {site: log.gap_free for site, log in self.order.logs.items()}

    def _told_received(self, mesh: Mesh) -> dict[int, int]:
        """The same; while we are behind, what others sent does not count as received, so that their windows close."""
        received = self._received()
        if self.behind and self._received_before:
            received = self._received_before | {mesh.site: received[mesh.site]}
        self._received_before = received
        return received

    def _deliveries(self, deliveries: Iterable[Delivery]) -> list[Effect]:
        return [Deliver(self.view, bundle, payloads) for bundle, payloads in deliveries]

    def is_possible(self, bundle: Bundle) -> bool:
        """Whether a member may have sent it: of its own site, stamped, within the limit of a message."""
        if (
            self._site_of.get(bundle.origin) == bundle.site
            and bundle.service is not Service.UNRELIABLE
            and 0 < bundle.stamp < INFINITE
            and bundle.number > 0
            and bundle.fragments <= self._fragments_max
        ):
            return True
        self.kit.count.drop("bundle dropped: impossible")
        return False

    def _is_new(self, bundle: Bundle, now_us: int) -> bool:
        """Whether it may be under way in a working view: not from ourselves, within what clocks and windows allow."""
        if (
            bundle.origin != self.kit.me
            and not self.kit.clock.is_of_another_age(bundle.stamp, now_us)
            and bundle.number <= self.order.logs[bundle.site].gap_free + self.ahead_max
        ):
            return True
        self.kit.count.drop("bundle dropped: impossible")
        return False

    def _daemon_of(self, site: int) -> int:
        return next(life.rank for life in self.members if self.kit.site_of(life) == site)

    def _see_stamp(self, stamp: int, rank: int, now_us: int) -> list[Effect]:
        """Our clock follows every stamp; a clock that is far ahead is named to the operator, once a view."""
        clock = self.kit.clock
        far = clock.is_far_ahead(stamp, now_us)
        clock.see(stamp)
        if not far or rank in self._far_ahead:
            return []
        self._far_ahead.add(rank)
        self.kit.count.add("stamp far ahead")
        return [Notice(f"the clock of {self.kit.name(rank)} is far ahead of ours: set it right, it delays everyone")]

    def _misdirected(self) -> list[Effect]:
        self.kit.count.drop("frame dropped: not for this kind of view")
        return []

    def snapshot(self) -> dict[str, object]:
        """Where the token is as far as we know, and how full the windows are."""
        order = self.order
        common: dict[str, object] = {
            "undelivered": order.undelivered,
            "unstable": order.has_unstable(),
            "line": order.line(),
            "safe_line": order.safe_line(),
        }
        if self.ring is None:
            return {"kind": "mesh"} | common
        return {"kind": "ring"} | self.ring.snapshot() | common

    def check(self, full: bool) -> None:
        if self.ring is not None:
            self.ring.check()
        if self.mesh is not None:
            self.mesh.check()
        self.order.check(full)
        if full:
            self._reassembly.check()
            self.unreliable.check()
            self.queue.check()
