"""One view in operation at one daemon: the routes between queue, stamper, links, order and announcements.

In:   submissions and frames of this view.  Out: effects.  Not here: how views begin and end (exchange.py, membership/).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import cast

from covey.cluster import SiteLink
from covey.config import FRAME_SLACK, GROUPS_BYTES_MAX, Settings, part_bytes
from covey.errors import FrameError
from covey.ids import INFINITE, Ballot, Life
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Deliver, Effect, Notice, Stamped
from covey.protocol.evs.links.foreign import Foreign
from covey.protocol.evs.links.link import IdealLink
from covey.protocol.evs.links.links import Links
from covey.protocol.evs.links.relay import Relay
from covey.protocol.evs.links.ring import Ring
from covey.protocol.evs.stamping.alone import AloneStamper
from covey.protocol.evs.stamping.stamper import SiteFrame, Stamper
from covey.protocol.evs.stamping.token import TokenStamper
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import Bundle, Service

from .announcing import Announcer
from .deadlines import WORKING, EvsDeadline
from .flow import Flow
from .frames import Announce, Chunk, Data, Unreliable
from .growth import Growth
from .kit import EvsKit
from .link_status import EvsLinkStatus
from .packing import Reassembly


def _pieces_max(settings: Settings, sites: int) -> int:
    """More pieces than the windows of all sources let be under way."""
    pieces_per_bundle = 2 + (settings.bundle_bytes + GROUPS_BYTES_MAX) // (settings.packet_bytes // 2)
    return 2 * settings.ring_packets_unstable + sites * settings.source_bundles_unstable * pieces_per_bundle


class Operation:
    def __init__(
        self,
        kit: EvsKit,
        view: Ballot,
        members: tuple[Life, ...],
        queue: SubmitQueue,
        high: int,
        patience: Growth,
        links: tuple[SiteLink, ...] = (),
    ) -> None:
        self.kit = kit
        self.view = view
        self.members = members
        self.queue = queue
        self.flow = Flow(kit, view, members, queue)
        self.order = self.flow.order
        self.unreliable = self.flow.unreliable
        self.overlay = links
        self.relay = Relay(kit.cluster, kit.me, members, links)
        self._site_of = {life: kit.site_of(life) for life in members}
        self._pieces_max = _pieces_max(kit.settings, len(self.order.logs))
        self._reassembly = Reassembly(self._pieces_max)
        self.ahead_max = max(kit.settings.ring_bundles_unstable, kit.settings.source_bundles_unstable)
        """Bundles of one site that can be under way at once: windows open only as far as everybody has received."""
        self._announcer = Announcer(self.flow, self.relay)
        self.links = Links(kit, view, self.relay, IdealLink)
        self.stamper = self._make_stamper(high, patience)
        self.submitted = self.stamper.submitted
        """Something waits in the queue."""
        self.progress = self.stamper.progress
        """Deliver what may be delivered now, let go of what nobody needs, and send on where a window has opened."""
        self._far_ahead: set[int] = set()
        smallest = part_bytes(kit.settings.bundle_bytes, GROUPS_BYTES_MAX)
        self._fragments_max = 1 + (kit.settings.message_bytes_max + FRAME_SLACK) // smallest
        if queue.begin_again():
            kit.count.add(Counter.MESSAGE_BEGUN_AGAIN)
        queue.count_anew()

    def _make_stamper(self, high: int, patience: Growth) -> Stamper:
        """By the token where the site has several daemons, otherwise alone."""
        kit = self.kit
        ring = tuple(life.rank for life in self.members if self._site_of[life] == kit.site)
        if len(ring) == 1:
            return AloneStamper(self.flow, self.links, self._announcer, high)
        made = Ring(self.view, ring, kit.me.rank, kit.settings, kit.codec, kit.count, patience, kit.site)
        foreign = Foreign(self._pieces_max)
        return TokenStamper(self.flow, made, self.links, self._announcer, self.relay, foreign, high, self.ahead_max)

    # --- beginning and ending

    def start(self, now_us: int) -> list[Effect]:
        """The view is installed: the lowest of the ring makes the token, who is alone sends what waits."""
        return self.stamper.start(now_us)

    def end(self) -> None:
        """The view ends here: nothing is stamped, acknowledged or taken any more."""
        self.order.freeze()
        self.kit.deadlines.clear(*WORKING)

    def is_settled(self) -> bool:
        return self.flow.is_settled

    # --- sending and delivering

    def deliver(self) -> list[Effect]:
        """The same where nothing may be sent."""
        return self.flow.deliver()

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        if deadline is EvsDeadline.LINK:
            return self.links.on_deadline(now_us) + self.progress(now_us)
        if deadline is EvsDeadline.ANNOUNCE:
            return self.stamper.announce(now_us)
        return self.stamper.on_deadline(deadline, now_us)

    # --- frames

    def on_data(self, sender: Life, frame: Data, datagram: bytes, now_us: int) -> list[Effect | Dropped]:
        is_ours = self._site_of[sender] == self.kit.site
        if is_ours:
            chunks = self.stamper.arrived(sender.rank, frame, datagram, now_us)
        else:
            chunks = self.links.arrived(sender.rank, frame, datagram)
        if isinstance(chunks, Dropped):
            return [chunks]
        taken: list[Effect | Dropped] = []
        if self.relay.speaks:
            if not all(map(self._may_be_under_way, chunks)):
                return [Dropped(Counter.BUNDLE_IMPOSSIBLE)]
            taken += self._pass_on(chunks, is_ours, now_us)
        for chunk in chunks:
            try:
                bundle = self._reassembly.add(chunk)
            except FrameError:
                bundle = Dropped(Counter.BUNDLE_MALFORMED)
            if bundle is None:
                continue
            if isinstance(bundle, Dropped):
                taken.append(bundle)
            elif (dropped := self.why_impossible(bundle) or self._why_not_now(bundle, now_us)) is not None:
                taken.append(dropped)
            else:
                if self.kit.clock.follow(bundle.stamp, now_us):
                    taken += self._name_who_is_ahead(bundle.origin.rank)
                taken += self._enter(bundle)
        return taken

    def _may_be_under_way(self, chunk: Chunk) -> bool:
        log = self.order.logs.get(chunk.site)
        return log is not None and chunk.number <= log.gap_free + self.ahead_max

    def _pass_on(self, chunks: tuple[Chunk, ...], is_ours: bool, now_us: int) -> list[Effect | Dropped]:
        """To our children in the tree of its site, and to our ring if it comes from elsewhere."""
        dropped = None if is_ours else self.stamper.relay(chunks)
        forwarded = self.links.forward(chunks, now_us)
        return [dropped, *forwarded] if dropped is not None else [*forwarded]

    def _enter(self, bundle: Bundle) -> Sequence[Effect | Dropped]:
        early = self.order.add(bundle)
        if isinstance(early, Dropped):
            return (early,)
        return self.flow.deliveries(early) if early else ()

    def on_site_frame(self, sender: Life, frame: SiteFrame, now_us: int) -> list[Effect | Dropped]:
        return self.stamper.on_site_frame(sender.rank, frame, now_us)

    def on_announce(self, sender: Life, frame: Announce, now_us: int) -> list[Effect | Dropped]:
        if (dropped := self._announcer.why_not(sender.rank, frame)) is not None:
            return [dropped]
        if self.kit.clock.is_of_another_age(frame.last, now_us):
            return [Dropped(Counter.ANNOUNCEMENT_IMPOSSIBLE)]
        is_ahead = self.kit.clock.follow(frame.last - 1, now_us)
        seen = self._name_who_is_ahead(self.relay.speaks_for(frame.site)) if is_ahead else []
        told: list[Effect | Dropped] = [*seen, *self._announcer.on_announce(frame, now_us)]
        return [*told, *self.submitted(now_us)] if self.queue.length else told

    def want_announcement(self, now_us: int) -> None:
        """Data has come that the other sites wait to hear of."""
        self._announcer.want(now_us)

    # --- unreliable

    def send_unreliable(self, bundle_frame: Unreliable) -> list[Effect]:
        bundle = bundle_frame.bundle
        effects: list[Effect] = [Stamped(self.view, bundle, (bundle.payload,))]
        if to := self.relay.mates + self.relay.children(self.kit.site):
            effects.append(self.kit.send(to, bundle_frame))
        return [*effects, Deliver(self.view, bundle, (bundle.payload,))]

    def on_unreliable(self, sender: Life, frame: Unreliable) -> list[Effect | Dropped]:
        bundle = frame.bundle
        source = self._site_of.get(bundle.origin, -1)
        is_ours = source == self.kit.site
        if (
            source < 0
            or (bundle.origin != sender if is_ours else self.relay.comes_from(source) != sender.rank)
            or bundle.service is not Service.UNRELIABLE
            or bundle.number
            or not bundle.fifo_number
        ):
            return [Dropped(Counter.BUNDLE_IMPOSSIBLE)]
        if not self.unreliable.is_new(frame.bundle):
            known = self.unreliable.knows(bundle.key)
            return [Dropped(Counter.UNRELIABLE_DUPLICATE if known else Counter.UNRELIABLE_TOO_MANY_SESSIONS)]
        to = self.relay.children(source) + (self.relay.mates if self.relay.speaks and not is_ours else ())
        delivery = Deliver(self.view, bundle, (bundle.payload,))
        return [self.kit.send(to, frame), delivery] if to else [delivery]

    # --- what may be true

    def why_impossible(self, bundle: Bundle) -> Dropped | None:
        """None if a member may have sent it: of its own site, stamped, within the limit of a message."""
        if (
            self._site_of.get(bundle.origin) == bundle.site
            and bundle.service is not Service.UNRELIABLE
            and 0 < bundle.stamp < INFINITE
            and bundle.number > 0
            and bundle.fragments <= self._fragments_max
        ):
            return None
        return Dropped(Counter.BUNDLE_IMPOSSIBLE)

    def _why_not_now(self, bundle: Bundle, now_us: int) -> Dropped | None:
        """None if it may be under way in a working view: not from ourselves, within what clocks and windows allow."""
        if (
            bundle.origin != self.kit.me
            and not self.kit.clock.is_of_another_age(bundle.stamp, now_us)
            and bundle.number <= self.order.logs[bundle.site].gap_free + self.ahead_max
        ):
            return None
        return Dropped(Counter.BUNDLE_IMPOSSIBLE)

    def _name_who_is_ahead(self, rank: int) -> list[Effect]:
        """A clock that is far ahead is named to the operator, once a view."""
        if rank in self._far_ahead:
            return []
        self._far_ahead.add(rank)
        self.kit.count.add(Counter.STAMP_FAR_AHEAD)
        return [Notice(f"the clock of {self.kit.name(rank)} is far ahead of ours: set it right, it delays everyone")]

    def snapshot(self) -> EvsLinkStatus:
        """Where the token is as far as we know, and how full the windows are."""
        order = self.order
        common = {
            "undelivered": order.undelivered,
            "unstable": order.has_unstable(),
            "line": order.line(),
            "safe_line": order.safe_line(),
        }
        return cast("EvsLinkStatus", self.stamper.snapshot() | common | self._sites_snapshot())

    def _sites_snapshot(self) -> dict[str, object]:
        relay, name = self.relay, self.kit.cluster.site_name
        if not relay.has_other_sites:
            return {}
        return {
            "sites": [name(site) for site in relay.sites],
            "links": [f"{name(one)} - {name(other)}: {cost}" for one, other, cost in self.overlay],
            "speaks_for_its_site": self.kit.name(relay.representative),
        }

    def check(self, full: bool) -> None:
        self.stamper.check()
        self.order.check(full)
        if full:
            self._reassembly.check()
            self.unreliable.check()
            self.queue.check()
