"""From the queue into the order, and from the order to deliveries: what stamping, announcing and receiving share.

In:        numbers and stamps for what waits; bundles.  Out: packets to send, deliveries.
Not here:  who stamps and when (stamping/), how packets travel (links/), what others are told (announcing.py), where
           messages are wanted (interest.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from covey.ids import Ballot, Life
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Deliver, Effect, InterestSaid, Stamped
from covey.protocol.evs.ordering.order import ViewOrder
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import Bundle, Delivery, Kind, Service
from covey.protocol.wire.bundles import BUNDLE_OVERHEAD, CONTENT_BYTES, bundle_parts
from covey.protocol.wire.group_names import groups_bytes

from .codec import CHUNK_OVERHEAD, PACKET_OVERHEAD, PRUNED_OVERHEAD
from .interest import Interest, InterestWord
from .kit import EvsKit
from .packing import Packer
from .unreliable import UnreliableStreams

INTEREST_SESSION = 100
"""The session in which a daemon says what its site wants: above those of drivers, below those of programs."""


class Flow:
    def __init__(
        self, kit: EvsKit, view: Ballot, members: tuple[Life, ...], queue: SubmitQueue, interest: Interest | None = None
    ) -> None:
        self.kit = kit
        self.view = view
        self.members = members
        self.queue = queue
        self.interest = interest
        self._site = kit.site
        sites = tuple(sorted({kit.site_of(life) for life in members}))
        self.order = ViewOrder(view, sites, kit.me, kit.count)
        self.unreliable = UnreliableStreams(kit.me)
        self.behind = False
        """Our clients are told too slowly: nothing is stamped here, and others are asked to send less."""
        self.in_haste = False
        """This daemon stops as soon as it is settled."""
        self.packet_bytes = kit.settings.packet_bytes - kit.codec.overhead - PACKET_OVERHEAD
        self._words: list[InterestWord] = []
        self._words_said = 0
        self._content = 0  # Sites that get the next bundle: those of the message of which some fragments are stamped.
        self._seen: tuple[int, ...] = ()  # What decided of the joins that were put aside, when they were looked at.
        self.heads_to_send: list[Bundle] = []
        """Stamped here and not for all sites: those who have links send heads to the others."""

    @property
    def is_settled(self) -> bool:
        return not self.queue.length and not self.order.has_unstable()

    def packer(self) -> Packer:
        return Packer(self.packet_bytes, CHUNK_OVERHEAD + (PRUNED_OVERHEAD if self.interest is not None else 0))

    # --- into the order

    def has_to_send(self) -> bool:
        """Whether something waits that may be stamped, as far as interest is concerned."""
        if self.interest is None:
            return self.queue.ready > 0
        for group in self.queue.joins:
            self.interest.want(group)
        self.queue.joins.clear()
        for group in self.interest.take_given_up():
            if self.queue.has_join_of(group):
                self.interest.want(group)  # All at once: they would wait for a round trip each.
        return bool(self.queue.ready or self._words or self.interest.has_word)

    def look_at_joins(self, withdrawn_seq: int) -> bool:
        """Joins that were put aside have their turn if they may be stamped now; whether there are any."""
        if self.interest is None or not (aside := self.queue.groups_aside):
            return False
        received, is_known = self.order.stability.received_by_all(self._site), self.interest.is_known
        seen = received, self.interest.heard, withdrawn_seq, len(aside), int(is_known)
        if seen == self._seen:
            return False
        self._seen = seen
        may = [group for group in aside if self._may_join(group, withdrawn_seq)]
        self.queue.bring_back(*may)
        return bool(may)

    def _may_join(self, group: str, withdrawn_seq: int) -> bool:
        assert self.interest is not None
        return self.interest.may_join(group, withdrawn_seq, self.order.stability.received_by_all(self._site))

    def may_stamp(self, withdrawn_seq: int = 0) -> bool:
        """Whether something waits that can take its place in the order now."""
        if self.interest is not None:
            if not self.has_to_send():
                return False
            if self._has_word():
                return not self.behind
            self._put_joins_aside(self.interest, withdrawn_seq)
            self._choose_content_sites(self.interest)  # It may begin again: how large the next bundle is depends on it.
        service = self.queue.next_service()
        if self.behind and service is not None:
            self.kit.count.add(Counter.SENDING_WAITS)
            return False
        return service is not None and (service < Service.CAUSAL or self.order.past_is_complete())

    def _has_word(self) -> bool:
        """What our site says of its interest goes first."""
        assert self.interest is not None
        if self.interest.has_word:
            self._words.append(self.interest.next_word())
        return bool(self._words)

    def _put_joins_aside(self, interest: Interest, withdrawn_seq: int) -> None:
        while (group := self.queue.next_join()) is not None and not self._may_join(group, withdrawn_seq):
            interest.want(group)
            self.kit.count.add(Counter.JOIN_WAITED)
            self.queue.put_aside()

    def give_up_interest(self, site_seq: int, now_us: int) -> None:
        """What our site gives up is said before anything else, in this turn or not at all (`end_turn`)."""
        if self.interest is not None and (word := self.interest.withdrawal(site_seq, now_us)) is not None:
            self._words.insert(0, word)

    def end_turn(self, now_us: int) -> None:
        """Somebody else may stamp a join now: what was to be given up and is not stamped must be looked at again."""
        if self._words and self._words[0].kind is Kind.UNINTEREST:
            assert self.interest is not None
            self.interest.keep(self._words.pop(0).groups, now_us)

    def next_bytes(self) -> int:
        """Of the next bundle, at most."""
        if self._words:
            return BUNDLE_OVERHEAD + groups_bytes(self._words[0].groups)
        return self.queue.next_bytes() + (CONTENT_BYTES if self.interest is not None else 0)

    def lowest_stamp(self) -> int:
        """A join is stamped above all that other sites have promised (rule W12, d)."""
        if self.interest is None or self._words or self.queue.next_join() is None:
            return 0
        return self.interest.heard_last + 1

    def stamp(self, number: int, stamp: int, packer: Packer) -> list[Effect]:
        """Give the next waiting bundle its place in the order."""
        self.kit.clock.see(stamp)
        if self._words:
            return self._stamp_word(self._words.pop(0), number, stamp, packer)
        content = 0 if self.queue.goes_everywhere else self._content
        bundle, whole = self.queue.take(self._site, number, stamp)
        if content:
            bundle.content = content
            self.heads_to_send.append(bundle)
        if whole is not None:
            self._content = 0
        if bundle.kind is Kind.DISCONNECT:
            self.unreliable.ended(bundle.session)
        stamped: list[Effect] = [] if whole is None else [Stamped(self.view, bundle, (whole,))]
        return stamped + self._take_place(bundle, packer)

    def _take_place(self, bundle: Bundle, packer: Packer) -> list[Effect]:
        packer.add(self._site, bundle.number, tuple(bundle_parts(bundle)), bundle.content)
        early = self.order.add(bundle)
        if self.interest is not None:
            self.interest.follow(self.order.logs[self._site])
        if isinstance(early, Dropped):
            self.kit.count.add(early.counter)  # Somebody has forged one of this number. No frame is dropped here.
            return []
        return self.deliveries(early) if early else []

    def _stamp_word(self, word: InterestWord, number: int, stamp: int, packer: Packer) -> list[Effect]:
        self._words_said += 1
        bundle = Bundle(
            self._site, number, stamp, self.kit.me, INTEREST_SESSION, stamp, 1, self._words_said, Service.RELIABLE, 0,
            1, word.groups, b"", word.kind,
        )  # fmt: skip
        is_asked = word.kind is Kind.INTEREST
        self.kit.count.add(Counter.INTEREST_ASKED if is_asked else Counter.INTEREST_WITHDRAWN, len(word.groups))
        said = [InterestSaid(self.view, group, is_asked) for group in word.groups]
        return [Stamped(self.view, bundle, (b"",)), *said, *self._take_place(bundle, packer)]

    def _choose_content_sites(self, interest: Interest) -> None:
        """Fixed by the first fragment of a message; one that more sites want by now begins again (rule W15)."""
        following = self.queue.content_of_next()
        if following is None or self.queue.goes_everywhere:
            return
        kind, groups, size = following
        content = interest.content_sites(groups, size) if kind is Kind.MESSAGES else 0
        if not self.queue.fragments_taken():
            self._content = content
        elif self._content and (not content or content & ~self._content):
            self.kit.count.add(Counter.BEGUN_AGAIN_FOR_INTEREST)
            self.queue.go_everywhere()

    # --- out of it

    def deliver(self) -> list[Effect]:
        """Deliver what may be delivered now, and let go of what nobody needs."""
        deliveries = self.order.deliver()
        self.order.discard()
        return self.deliveries(deliveries) if deliveries else []

    def deliveries(self, deliveries: Iterable[Delivery]) -> list[Effect]:
        return [Deliver(self.view, bundle, payloads) for bundle, payloads in deliveries]

    def received(self) -> dict[int, int]:
        """Of each site, up to where we have all bundles, or their heads."""
        return {site: log.received for site, log in self.order.logs.items()}
