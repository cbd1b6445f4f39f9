"""The order of a view against a model: bundles and announcements in any order; every service keeps its word."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.ids import INFINITE, Ballot, Life
from covey.protocol.counters import Count, Dropped
from covey.protocol.evs.ordering.order import ViewOrder
from covey.protocol.values import Announcement, Bundle, Delivery, Service
from tests.properties.streams import STRONG, breaks_fifo, draw_bundles, fresh, in_order, name

ME = Life(0, 1)
SEED = st.integers(0, 2**32)


class Receiver:
    """One daemon that is given the bundles of a view at random, and looks at itself after every event."""

    def __init__(self, seed: int, *, wants_to_stamp: bool = False) -> None:
        self.random = random = Random(seed)
        self.sites = range(random.randrange(1, 4))
        self.bundles = draw_bundles(random, len(self.sites), random.randrange(1, 3), most=10)
        self.order = ViewOrder(Ballot(1, 0, 1), tuple(self.sites), ME, Count())
        self.arrived: set[tuple[int, int]] = set()
        self.delivered: list[Delivery] = []
        self.wants_to_stamp = wants_to_stamp
        self.expected = in_order(self.bundles)

    def play(self) -> None:
        coming = self.bundles + self.bundles[:3]
        self.random.shuffle(coming)
        for one in coming:
            self._arrive(one)
            self._announce(self.random.choice(self.sites))
            self._learn_what_others_have()
            self.delivered += self.order.deliver()
            self.order.discard()
            self._look()
        self._learn_everything()
        self.delivered += self.order.deliver()
        self._look()

    # --- what happens

    def _arrive(self, one: Bundle) -> None:
        self.arrived.add((one.site, one.number))
        added = self.order.add(fresh(one))
        early = [] if isinstance(added, Dropped) else added
        assert all(delivery.bundle.service in (Service.RELIABLE, Service.FIFO) for delivery in early)
        self.delivered += early
        if self.wants_to_stamp and self.random.random() < 0.3 and self.order.past_is_complete():
            assert self._all_arrived_up_to(self.order.early_high)

    def _announce(self, site: int) -> None:
        """Any true announcement of a site, also one whose bundles are not here yet."""
        stamps = [0, *sorted(one.stamp for one in self.bundles if one.site == site), INFINITE]
        number = self.random.randrange(len(stamps) - 1)
        last = self.random.randrange(stamps[number], min(stamps[number + 1], stamps[number] + 5))
        self.order.announce(site, Announcement(number, last))

    def _learn_what_others_have(self) -> None:
        """Others say how far they are; for our own site (0) we know it ourselves."""
        stability, logs = self.order.stability, self.order.logs
        stability.raise_line(0, self.order.line())
        stability.raise_line(self.random.choice(self.sites), self.random.randrange(self.order.line() + 1))
        for source, log in logs.items():
            for site in self.sites:
                stability.raise_received(site, source, self.random.randrange(log.gap_free + 1))

    def _learn_everything(self) -> None:
        for site in self.sites:
            number = max((one.number for one in self.bundles if one.site == site), default=0)
            self.order.announce(site, Announcement(number, INFINITE))
            self.order.stability.raise_line(site, INFINITE)

    # --- what must hold

    def _look(self) -> None:
        self.order.check(full=True)
        names = [name(delivery) for delivery in self.delivered]
        assert len(set(names)) == len(names), "nothing comes twice"
        strong = [name(one) for one in self.delivered if one.bundle.service in STRONG]
        assert strong == self.expected[: len(strong)], "strong messages come in the agreed order, without a gap"
        assert breaks_fifo(self.delivered) == []
        assert self._all_arrived_up_to(self.order.line())
        for one in self.delivered:
            bound = {Service.SAFE: self.order.safe_line(), Service.AGREED: self.order.line()}.get(one.bundle.service)
            assert bound is None or one.bundle.stamp <= bound
        if not self.wants_to_stamp:
            assert self._whole_reliable() == {n for n in names if self._service(n) is Service.RELIABLE}

    def _all_arrived_up_to(self, stamp: int) -> bool:
        return all((one.site, one.number) in self.arrived for one in self.bundles if one.stamp <= stamp)

    def _service(self, key: tuple[int, int]) -> Service:
        return next(one.service for one in self.bundles if (one.site, one.number) == key)

    def _whole_reliable(self) -> set[tuple[int, int]]:
        """Reliable messages all of whose fragments are here, by their last."""
        whole = set()
        for last in self.bundles:
            first = last.fifo_number - last.fragment
            parts = [
                one for one in self.bundles if one.key == last.key and first <= one.fifo_number <= last.fifo_number
            ]
            if last.service is Service.RELIABLE and last.is_last_fragment:
                if all((part.site, part.number) in self.arrived for part in parts):
                    whole.add((last.site, last.number))
        return whole


@pytest.mark.parametrize("wants_to_stamp", [False, True])
@settings(max_examples=60)
@given(seed=SEED)
def test_every_service_keeps_its_word_whatever_order_things_come_in(seed: int, wants_to_stamp: bool) -> None:
    receiver = Receiver(seed, wants_to_stamp=wants_to_stamp)
    receiver.play()
    messages = [(one.site, one.number) for one in receiver.bundles if one.is_last_fragment]
    assert sorted(name(delivery) for delivery in receiver.delivered) == sorted(messages)


@settings(max_examples=60)
@given(seed=SEED)
def test_a_message_comes_with_all_its_fragments_in_order(seed: int) -> None:
    receiver = Receiver(seed)
    receiver.play()
    for last, payloads in receiver.delivered:
        parts = [
            f"{last.origin.rank}.{last.session}.{last.fifo_number - back}" for back in range(last.fragment, -1, -1)
        ]
        assert [bytes(payload).decode() for payload in payloads] == parts


@settings(max_examples=40)
@given(first=SEED, second=SEED)
def test_two_receivers_deliver_strong_messages_in_the_same_order(first: int, second: int) -> None:
    one, other = Receiver(first), Receiver(first)
    other.random = Random(second)
    one.play()
    other.play()
    strong = [[name(d) for d in receiver.delivered if d.bundle.service in STRONG] for receiver in (one, other)]
    assert strong[0] == strong[1]
