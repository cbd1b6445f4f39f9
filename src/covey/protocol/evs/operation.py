"""One view in operation at one daemon: the routes between queue, stamper, links, order and announcements.

In:   submissions and frames of this view.  Out: effects.  Not here: how views begin and end (exchange.py, membership/).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, cast

import msgspec

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
from covey.protocol.values import Bundle, GroupNews, Kind, Service
from covey.protocol.wire.bundles import CONTENT_SITES_MAX, bundle_parts, meta_of

from .announcing import Announcer
from .deadlines import WORKING, EvsDeadline
from .flow import Flow
from .frames import Announce, Chunk, Data, Unreliable
from .growth import Growth
from .interest import Interest
from .kit import EvsKit
from .link_status import EvsLinkStatus
from .packing import Reassembly

GIVING_UP_GAP_US: Final = 50_000
"""The shortest time between two looks for groups that nobody here is in."""


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
        self.overlay = links
        self.relay = Relay(kit.cluster, kit.me, members, links)
        self.interest = self._make_interest()
        self.flow = Flow(kit, view, members, queue, self.interest)
        self.order = self.flow.order
        self.unreliable = self.flow.unreliable
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
        queue.note_joins(self.interest is not None)

    def _make_interest(self) -> Interest | None:
        """None where everything goes everywhere."""
        kit, relay = self.kit, self.relay
        if not kit.settings.prune or not 1 < len(relay.sites) <= CONTENT_SITES_MAX:
            return None
        return Interest(kit.cluster, kit.settings, relay.sites, relay.site, relay.speaks, kit.count)

    def _make_stamper(self, high: int, patience: Growth) -> Stamper:
        """By the token where the site has several daemons, otherwise alone."""
        kit = self.kit
        ring = tuple(life.rank for life in self.members if self._site_of[life] == kit.site)
        if len(ring) == 1:
            return AloneStamper(self.flow, self.links, self._announcer, high)
        sources = len(self.relay.sites) if self.relay.speaks else 1
        made = Ring(self.view, ring, kit.me.rank, kit.settings, kit.codec, kit.count, patience, kit.site, sources)
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
        if deadline is EvsDeadline.INTEREST:
            return self._on_interest_deadline(now_us)
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
            elif chunk.content != (0 if bundle.is_meta else bundle.content):
                taken.append(Dropped(Counter.BUNDLE_IMPOSSIBLE))  # It went another way than it says.
            else:
                if self.kit.clock.follow(bundle.stamp, now_us):
                    taken += self._name_who_is_ahead(bundle.origin.rank)
                taken += self._enter(bundle, now_us)
        return taken

    def _may_be_under_way(self, chunk: Chunk) -> bool:
        log = self.order.logs.get(chunk.site)
        return log is not None and chunk.number <= log.received + self.ahead_max and self._is_possible_way(chunk)

    def _is_possible_way(self, chunk: Chunk) -> bool:
        """The sites that it says it goes to are of this view, its own among them."""
        content, relay = chunk.content, self.relay
        return not content or (not content >> len(relay.sites) and bool(content & relay.bit_of(chunk.site)))

    def _pass_on(self, chunks: tuple[Chunk, ...], is_ours: bool, now_us: int) -> list[Effect | Dropped]:
        """To our children in the tree of its site, and to our ring if it comes from elsewhere and is for us."""
        bit = self.relay.bit
        ours = chunks if is_ours else tuple([one for one in chunks if not one.content or one.content & bit])
        dropped = None if is_ours or not ours else self.stamper.relay(ours)
        forwarded = self.links.forward(chunks, now_us)
        return [dropped, *forwarded] if dropped is not None else [*forwarded]

    def _enter(self, bundle: Bundle, now_us: int) -> Sequence[Effect | Dropped]:
        early = self.order.add(bundle)
        effects: list[Effect | Dropped] = []
        if isinstance(early, Dropped):
            effects = [early]
            if early.counter is Counter.BUNDLE_KNOWN:
                return effects
        elif early:
            effects = [*self.flow.deliveries(early)]
        if self.interest is not None:
            self.interest.follow(self.order.logs[bundle.site])
            if bundle.content and not bundle.is_meta and self.relay.speaks:
                effects += self._pass_on_head(bundle, now_us)
        return effects

    def _pass_on_head(self, bundle: Bundle, now_us: int) -> list[Effect | Dropped]:
        """It is whole here: those below whom nobody needs its content, and our ring likewise, get its head."""
        effects: list[Effect | Dropped] = [*self.links.carry_heads([bundle], bundle.site, now_us)]
        if bundle.content & self.relay.bit:
            return effects
        packer = self.flow.packer()
        packer.add(bundle.site, bundle.number, tuple(bundle_parts(meta_of(bundle))))
        chunks = tuple(_copied(chunk) for packet in packer.packets for chunk in packet)
        dropped = self.stamper.relay(chunks)
        return effects if dropped is None else [*effects, dropped]

    def on_site_frame(self, sender: Life, frame: SiteFrame, now_us: int) -> list[Effect | Dropped]:
        if self._site_of[sender] != self.kit.site:
            return [Dropped(Counter.FRAME_MISDIRECTED)]
        return self.stamper.on_site_frame(sender.rank, frame, now_us)

    def on_announce(self, sender: Life, frame: Announce, now_us: int) -> list[Effect | Dropped]:
        if (dropped := self._announcer.why_not(sender.rank, frame)) is not None:
            return [dropped]
        if self.kit.clock.is_of_another_age(frame.last, now_us):
            return [Dropped(Counter.ANNOUNCEMENT_IMPOSSIBLE)]
        is_ahead = self.kit.clock.follow(frame.last - 1, now_us)
        seen = self._name_who_is_ahead(self.relay.speaks_for(frame.site)) if is_ahead else []
        told: list[Effect | Dropped] = [*seen, *self._announcer.on_announce(frame, now_us)]
        self.flow.look_at_joins(self.stamper.withdrawn_seq)
        return [*told, *self.submitted(now_us)] if self.queue.length else told

    # --- interest

    def on_group_news(self, news: GroupNews, now_us: int) -> None:
        """Who was where when the view began; groups that nobody in our site is in any more."""
        interest = self.interest
        if interest is None or news.view != self.view:
            return
        if news.at_start is not None:
            interest.begin(news.at_start)
            self.flow.look_at_joins(self.stamper.withdrawn_seq)
        for group, stamp in news.emptied.items():
            interest.emptied(group, stamp, now_us)
        self._look_again_at_interest(now_us)

    def _look_again_at_interest(self, now_us: int) -> None:
        assert self.interest is not None
        if (at := self.interest.next_withdrawal_us()) is not None:
            self.kit.deadlines.set_if_clear(EvsDeadline.INTEREST, max(at, now_us + GIVING_UP_GAP_US))

    def _on_interest_deadline(self, now_us: int) -> list[Effect]:
        """With the token, which is taken up for it if it is parked here."""
        self._look_again_at_interest(now_us)
        return self.stamper.announce(now_us)

    def want_announcement(self, now_us: int) -> None:
        """Data has come that the other sites wait to hear of."""
        self._announcer.want(now_us)

    # --- unreliable

    def send_unreliable(self, bundle_frame: Unreliable) -> list[Effect]:
        bundle = bundle_frame.bundle
        effects: list[Effect] = [Stamped(self.view, bundle, (bundle.payload,))]
        if self.interest is not None and bundle.kind is Kind.MESSAGES:
            bundle.content = self.interest.content_sites(bundle.groups, len(bundle.payload))
        if to := self.relay.mates + self.relay.children_for(self.kit.site, bundle.content):
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
            or self._is_wrongly_pruned(bundle, source)
        ):
            return [Dropped(Counter.BUNDLE_IMPOSSIBLE)]
        if not self.unreliable.is_new(frame.bundle):
            known = self.unreliable.knows(bundle.key)
            return [Dropped(Counter.UNRELIABLE_DUPLICATE if known else Counter.UNRELIABLE_TOO_MANY_SESSIONS)]
        to = self.relay.children_for(source, bundle.content)
        is_for_us = not bundle.content or bool(bundle.content & self.relay.bit)
        to += self.relay.mates if self.relay.speaks and not is_ours and is_for_us else ()
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
            and not (bundle.content and self._is_wrongly_pruned(bundle, bundle.site))
            and (bundle.kind is not Kind.UNINTEREST or self.relay.speaks_for(bundle.site) == bundle.origin.rank)
        ):
            return None
        return Dropped(Counter.BUNDLE_IMPOSSIBLE)

    def _is_wrongly_pruned(self, bundle: Bundle, source: int) -> bool:
        """Its content is for sites of this view, its own among them; and not for ours if we get the head."""
        content = bundle.content
        if not content:
            return bundle.is_meta
        is_of_view = not content >> len(self.relay.sites) and content & self.relay.bit_of(source)
        return not is_of_view or (bundle.is_meta and bool(content & self.relay.bit))

    def _why_not_now(self, bundle: Bundle, now_us: int) -> Dropped | None:
        """None if it may be under way in a working view: not from ourselves, within what clocks and windows allow."""
        if (
            bundle.origin != self.kit.me
            and not self.kit.clock.is_of_another_age(bundle.stamp, now_us)
            and bundle.number <= self.order.logs[bundle.site].received + self.ahead_max
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
            "carried": {
                self.kit.name(peer): {
                    "pieces": one.pieces,
                    "bytes": one.bytes,
                    "head_pieces": one.head_pieces,
                    "head_bytes": one.head_bytes,
                }
                for peer, one in self.links.carried.items()
            },
            "to_be_received": self._to_be_received(),
            "to_be_brought": self._to_be_brought(),
            "prunes": self.interest is not None,
            "not_pruned": [name(site) for site in self.interest.unpruned_sites] if self.interest is not None else [],
        }

    def _to_be_received(self) -> int:
        """Bundles of our site that some daemon of the view is not known to have."""
        return self.order.logs[self.kit.site].received - self.order.stability.received_by_all(self.kit.site)

    def _to_be_brought(self) -> int:
        """Bundles of other sites that we have, and some daemon of our ring is not known to have."""
        order, site = self.order, self.kit.site
        here = [(source, log.received) for source, log in order.logs.items() if source != site and self.relay.mates]
        return sum(received - order.stability.received_at(site, source) for source, received in here)

    def check(self, full: bool) -> None:
        self.stamper.check()
        self.order.check(full)
        if full:
            self._reassembly.check()
            self.unreliable.check()
            self.queue.check()
            if self.interest is not None:
                self.interest.check()


def _copied(chunk: Chunk) -> Chunk:
    """A piece as it comes from a datagram: one run of bytes."""
    data = chunk.data
    return msgspec.structs.replace(chunk, data=memoryview(b"".join(data))) if isinstance(data, tuple) else chunk
