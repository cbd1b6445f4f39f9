"""The order of one view at one daemon, service by service, and how it ends."""

from __future__ import annotations

import pytest

from covey.ids import INFINITE, Life
from covey.protocol.counters import Count, Counter, Dropped
from covey.protocol.evs.ordering.order import ViewOrder
from covey.protocol.evs.ordering.recovery import RecoveryPlan
from covey.protocol.values import START, Announcement, Bundle, Delivery, Position, Service
from tests.unit.protocol.builders import VIEW, A, B, C, bundle, fragments_of

EARLY = [Service.RELIABLE, Service.FIFO]
ORDERED = [Service.CAUSAL, Service.AGREED]


def make_order(sites: tuple[int, ...] = (0, 1), me: Life = A) -> ViewOrder:
    return ViewOrder(VIEW, sites, me, Count())


def make_plan(
    *,
    hole_line: int = INFINITE,
    position: Position = START,
    commit: tuple[Life, ...] = (A,),
    frontiers: dict[int, int] | None = None,
) -> RecoveryPlan:
    return RecoveryPlan((A,), {}, {}, frontiers or {0: hole_line, 1: hole_line}, position, frozenset(commit))


def numbers(deliveries: list[Delivery]) -> list[int]:
    return [one.bundle.number for one in deliveries]


def add(order: ViewOrder, *bundles: Bundle) -> list[int]:
    """Numbers of what comes early."""
    return numbers([delivery for one in bundles for delivery in early(order, one)])


def early(order: ViewOrder, one: Bundle) -> list[Delivery]:
    deliveries = order.add(one)
    assert not isinstance(deliveries, Dropped)
    return deliveries


def know(order: ViewOrder, stamp: int, *, safe: bool = False) -> list[int]:
    """Every site is known up to the stamp; returns what is delivered."""
    for site, log in order.logs.items():
        order.announce(site, Announcement(log.gap_free, stamp))
        if safe:
            order.stability.raise_line(site, stamp)
    delivered = order.deliver()
    order.check(full=True)
    return numbers(delivered)


# --- in a working view


@pytest.mark.parametrize("service", ORDERED)
def test_an_ordered_message_waits_until_every_site_is_past_it(service: Service) -> None:
    order = make_order()
    assert add(order, bundle(1, 10, service=service)) == []
    order.announce(1, Announcement(0, 9))
    assert order.deliver() == []
    order.announce(1, Announcement(0, 10))
    assert numbers(order.deliver()) == [1]


def test_the_order_is_by_stamp_and_then_by_site() -> None:
    order = make_order()
    for one in (bundle(1, 10), bundle(2, 20), bundle(1, 10, site=1, origin=B), bundle(2, 11, site=1, origin=B)):
        order.add(one)
    order.announce(1, Announcement(2, 30))
    assert [one.bundle.position for one in order.deliver()] == [(10, 0), (10, 1), (11, 1), (20, 0)]


@pytest.mark.parametrize("service", EARLY)
def test_a_weak_message_comes_at_once(service: Service) -> None:
    order = make_order()
    assert add(order, bundle(1, service=service)) == [1]
    assert know(order, 50) == []


def test_a_reliable_message_overtakes_a_missing_one() -> None:
    assert add(make_order(), bundle(2, service=Service.RELIABLE)) == [2]


def test_a_fifo_message_waits_for_the_earlier_ones_of_its_session() -> None:
    order = make_order()
    assert add(order, bundle(2, service=Service.FIFO)) == []
    assert add(order, bundle(1, service=Service.FIFO)) == [1, 2]


def test_a_fifo_message_does_not_wait_for_another_session() -> None:
    assert add(make_order(), bundle(2, service=Service.FIFO, session=2, fifo_number=1)) == [2]


def test_a_fifo_message_never_overtakes_an_agreed_one_of_its_session() -> None:
    order = make_order()
    assert add(order, bundle(1), bundle(2, service=Service.FIFO)) == []
    assert know(order, 10) == [1, 2]


def test_a_safe_message_waits_for_the_lines_of_all_sites() -> None:
    order = make_order()
    order.add(bundle(1, service=Service.SAFE))
    assert know(order, 10) == []
    order.stability.raise_line(0, 10)
    assert order.deliver() == []
    order.stability.raise_line(1, 10)
    assert numbers(order.deliver()) == [1]


def test_an_agreed_message_waits_behind_a_safe_one() -> None:
    order = make_order()
    add(order, bundle(1, service=Service.SAFE), bundle(2))
    assert know(order, 20) == []
    assert know(order, 20, safe=True) == [1, 2]


def test_a_message_in_fragments_comes_at_the_place_of_its_last() -> None:
    order = make_order()
    add(
        order,
        bundle(1, fragments=2),
        bundle(2, 15, session=2, fifo_number=1),
        bundle(3, 20, fifo_number=2, fragment=1, fragments=2),
    )
    assert know(order, 15) == [2]
    assert know(order, 20) == [3]


def test_fragments_of_a_reliable_message_come_when_the_last_arrives() -> None:
    order = make_order()
    parts = fragments_of(1, [b"a", b"b", b"c"], service=Service.RELIABLE)
    assert add(order, parts[2], parts[0]) == []
    assert [delivery.payloads for delivery in early(order, parts[1])] == [(b"a", b"b", b"c")]


def test_a_known_bundle_is_dropped() -> None:
    order = ViewOrder(VIEW, (0,), A, Count())
    assert order.add(bundle(1)) == []
    assert order.add(bundle(1)) == Dropped(Counter.BUNDLE_KNOWN)
    assert order.add(bundle(1, site=7)) == Dropped(Counter.BUNDLE_KNOWN)


def test_what_everyone_has_is_let_go_once_delivered() -> None:
    order = make_order()
    add(order, bundle(1), bundle(2))
    for site in (0, 1):
        order.stability.raise_received(site, 0, 2)
    order.discard()
    assert sorted(order.logs[0].bundles) == [1, 2]
    know(order, 10)
    order.discard()
    assert sorted(order.logs[0].bundles) == [2]


def test_a_message_stays_whole_when_its_first_fragment_is_let_go() -> None:
    order = make_order()
    first, last = fragments_of(1, [b"a", b"b"], service=Service.AGREED)
    add(order, first)
    for site in (0, 1):
        order.stability.raise_received(site, 0, 1)
    know(order, 10)
    order.discard()
    assert order.logs[0].low == 1
    order.add(last)
    order.announce(1, Announcement(0, 20))
    assert [delivery.payloads for delivery in order.deliver()] == [(b"a", b"b")]


def test_a_view_without_messages_is_stable() -> None:
    assert not make_order().has_unstable()


def test_a_message_is_unstable_until_it_is_delivered_safe_and_received_everywhere() -> None:
    order = make_order()
    add(order, bundle(1))
    assert order.has_unstable()
    know(order, 10, safe=True)
    assert order.has_unstable()
    for site in (0, 1):
        order.stability.raise_received(site, 0, 1)
    assert not order.has_unstable()


# --- rule R8: no stamp without its past


def test_the_past_is_incomplete_while_something_early_is_above_the_line() -> None:
    order = make_order()
    add(order, bundle(1, site=1, origin=B, service=Service.RELIABLE))
    assert not order.past_is_complete()
    know(order, 10)
    assert order.past_is_complete()


def test_our_own_early_messages_do_not_make_the_past_incomplete() -> None:
    order = make_order()
    add(order, bundle(1, service=Service.RELIABLE))
    assert order.past_is_complete()


@pytest.mark.parametrize("service", EARLY)
def test_while_a_stamp_waits_nothing_of_others_comes_early(service: Service) -> None:
    order = make_order()
    add(order, bundle(1, site=1, origin=B, service=Service.RELIABLE))
    order.past_is_complete()
    assert add(order, bundle(2, site=1, origin=B, service=service)) == []
    assert add(order, bundle(1, service=service)) == [1]
    assert know(order, 20) == [2]


# --- ending the view


def test_a_frozen_view_takes_and_delivers_nothing() -> None:
    order = make_order()
    add(order, bundle(1))
    order.freeze()
    assert order.add(bundle(2)) == Dropped(Counter.BUNDLE_KNOWN)
    order.announce(0, Announcement(1, 50))
    assert (know(order, 50), order.line()) == ([], 0)


def test_a_declaration_tells_the_last_place_and_the_aru_of_the_moment_of_freezing() -> None:
    order = make_order()
    add(order, bundle(1))
    know(order, 10)
    order.stability.raise_line(0, 10)
    order.stability.raise_line(1, 5)
    order.freeze()
    order.stability.raise_line(1, 10)
    declaration = order.declare(33, [B, A])
    assert (declaration.position, declaration.aru, declaration.high) == ((10, 0), 5, 33)
    assert declaration.commit == (A, B)
    assert [entry.gap_free for entry in declaration.sites] == [1, 0]


def test_a_recovered_bundle_waits_for_its_place() -> None:
    order = make_order()
    add(order, bundle(2))
    order.freeze()
    assert order.recover(bundle(1, service=Service.RELIABLE)) is None
    assert order.recover(bundle(1, service=Service.RELIABLE)) == Dropped(Counter.RESEND_NOT_WANTED)
    assert [numbers(part) for part in order.finish(make_plan())] == [[], [1, 2]]


def test_what_is_at_or_below_the_signal_comes_before_it() -> None:
    order = make_order()
    add(order, bundle(1), bundle(1, 10, site=1, origin=B), bundle(2))
    order.freeze()
    before, after = order.finish(make_plan(position=Position(10, 0)))
    assert [one.bundle.position for one in before] == [(10, 0)]
    assert [one.bundle.position for one in after] == [(10, 1), (20, 0)]


@pytest.mark.parametrize("service", [Service.CAUSAL, Service.AGREED, Service.SAFE])
def test_above_the_hole_line_strong_messages_come_from_the_committed_only(service: Service) -> None:
    order = make_order()
    add(order, *(bundle(number, origin=life, service=service) for number, life in enumerate((C, B, C, A), 1)))
    order.freeze()
    _, after = order.finish(make_plan(hole_line=10, commit=(A, B)))
    assert numbers(after) == [1, 2, 4]


def test_above_the_hole_line_reliable_messages_come_always() -> None:
    order = make_order()
    order.freeze()
    order.recover(bundle(5, origin=C, service=Service.RELIABLE))
    assert numbers(order.finish(make_plan(hole_line=10))[1]) == [5]


def test_above_the_hole_line_fifo_messages_need_their_past() -> None:
    order = make_order()
    order.freeze()
    for number, fifo_number in ((2, 1), (3, 2), (5, 4)):
        order.recover(bundle(number, origin=C, fifo_number=fifo_number, service=Service.FIFO))
    assert numbers(order.finish(make_plan(hole_line=10))[1]) == [2, 3]


def test_a_message_with_a_lost_fragment_is_dropped() -> None:
    order = make_order()
    order.freeze()
    for part in fragments_of(3, [b"a", b"b", b"c"], service=Service.RELIABLE)[1:]:
        order.recover(part)
    assert order.finish(make_plan(hole_line=10)) == ([], [])


def test_safe_messages_after_the_signal_are_counted() -> None:
    count = Count()
    order = ViewOrder(VIEW, (0,), A, count)
    order.add(bundle(1, service=Service.SAFE))
    order.freeze()
    order.finish(make_plan())
    assert count[Counter.SAFE_AFTER_SIGNAL] == 1


def test_frontiers_raised_by_an_attempt_are_declared_in_the_next() -> None:
    order = make_order()
    order.freeze()
    order.be_done(make_plan(frontiers={0: 70, 1: INFINITE}))
    assert [entry.frontier for entry in order.declare(0, [A]).sites] == [70, INFINITE]


def test_who_is_done_with_an_attempt_puts_no_later_signal_before_the_one_of_that_attempt() -> None:
    order = make_order()
    order.freeze()
    order.be_done(make_plan(position=Position(50, 1)))
    assert order.declare(0, [A]).position == Position(50, 1)
    order.be_done(make_plan(position=Position(40, 0)))
    assert order.declare(0, [A]).position == Position(50, 1)
