"""From the queue into the order, and from the order to deliveries: what stamping, announcing and receiving share.

In:        numbers and stamps for what waits; bundles.  Out: packets to send, deliveries.
Not here:  who stamps and when (stamping/), how packets travel (links/), what others are told (announcing.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from covey.ids import Ballot, Life
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Deliver, Effect, Stamped
from covey.protocol.evs.ordering.order import ViewOrder
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import Delivery, Kind, Service
from covey.protocol.wire.bundles import bundle_parts

from .codec import PACKET_OVERHEAD
from .kit import EvsKit
from .packing import Packer
from .unreliable import UnreliableStreams


class Flow:
    def __init__(self, kit: EvsKit, view: Ballot, members: tuple[Life, ...], queue: SubmitQueue) -> None:
        self.kit = kit
        self.view = view
        self.members = members
        self.queue = queue
        self._site = kit.site
        sites = tuple(sorted({kit.site_of(life) for life in members}))
        self.order = ViewOrder(view, sites, kit.me, kit.count)
        self.unreliable = UnreliableStreams(kit.me)
        self.behind = False
        """Our clients are told too slowly: nothing is stamped here, and others are asked to send less."""
        self._told_before: dict[int, int] = {}
        self.in_haste = False
        """This daemon stops as soon as it is settled."""
        self.packet_bytes = kit.settings.packet_bytes - kit.codec.overhead - PACKET_OVERHEAD

    @property
    def is_settled(self) -> bool:
        return not self.queue.length and not self.order.has_unstable()

    # --- into the order

    def may_stamp(self) -> bool:
        """Whether something waits that can take its place in the order now."""
        service = self.queue.next_service()
        if self.behind and service is not None:
            self.kit.count.add(Counter.SENDING_WAITS)
            return False
        return service is not None and (service < Service.CAUSAL or self.order.past_is_complete())

    def stamp(self, number: int, stamp: int, packer: Packer) -> list[Effect]:
        """Give the next waiting bundle its place in the order."""
        bundle, whole = self.queue.take(self._site, number, stamp)
        self.kit.clock.see(stamp)
        if bundle.kind is Kind.DISCONNECT:
            self.unreliable.ended(bundle.session)
        packer.add(self._site, number, tuple(bundle_parts(bundle)))
        stamped: list[Effect] = [] if whole is None else [Stamped(self.view, bundle, (whole,))]
        early = self.order.add(bundle)
        if isinstance(early, Dropped):
            self.kit.count.add(early.counter)  # Somebody has forged one of this number. No frame is dropped here.
            return stamped
        return stamped + self.deliveries(early) if early else stamped

    # --- out of it

    def deliver(self) -> list[Effect]:
        """Deliver what may be delivered now, and let go of what nobody needs."""
        deliveries = self.order.deliver()
        self.order.discard()
        return self.deliveries(deliveries) if deliveries else []

    def deliveries(self, deliveries: Iterable[Delivery]) -> list[Effect]:
        return [Deliver(self.view, bundle, payloads) for bundle, payloads in deliveries]

    def received(self) -> dict[int, int]:
        """Of each site, up to where we have all bundles."""
        return {site: log.gap_free for site, log in self.order.logs.items()}

    def received_to_tell(self) -> dict[int, int]:
        """The same for the others. While we are behind, what other sites sent does not count: their windows close."""
        received = self.received()
        if self.behind and self._told_before:
            received = self._told_before | {self._site: received[self._site]}
        self._told_before = received
        return received
