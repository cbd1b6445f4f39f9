"""Messages only where members are: heads that count or not, interest before joins, withdrawal, sessions put aside."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from covey.cluster import many_sites
from covey.config import Settings
from covey.errors import FrameError
from covey.ids import Ballot, Instant, Life
from covey.protocol.counters import Count, Counter, Dropped
from covey.protocol.deadlines import DeadlineTable
from covey.protocol.evs.flow import Flow
from covey.protocol.evs.interest import PRUNED_LEAST, Interest, InterestWord
from covey.protocol.evs.kit import evs_kit
from covey.protocol.evs.ordering.log import SiteLog
from covey.protocol.evs.ordering.order import ViewOrder
from covey.protocol.evs.ordering.recovery import make_plan, missing
from covey.protocol.evs.ordering.sessions import SessionOrder
from covey.protocol.kit import Kit
from covey.protocol.transport.queue import SubmitQueue, Waiting
from covey.protocol.values import START, Announcement, Bundle, Declaration, Kind, Service, SiteDeclaration
from covey.protocol.wire.bodies import sender_prefix
from covey.protocol.wire.bundles import encode_bundle, meta_of, read_bundle
from tests.unit.protocol.builders import A, B, bundle, fragments_of, held

SITES = (0, 1, 2)
LARGE = PRUNED_LEAST
NAME = sender_prefix("ann@a:1.101")


def message(number: int, content: int, *, service: Service = Service.AGREED) -> Bundle:
    one = bundle(number, service=service, groups=("room",), payload=NAME + bytes(300))
    return replace(one, kind=Kind.MESSAGES, content=content)


def head(number: int, content: int, *, service: Service = Service.AGREED) -> Bundle:
    return meta_of(message(number, content, service=service))


# --- bytes


def test_a_head_has_the_name_of_who_sent_it_and_nothing_else() -> None:
    one = head(1, 0b101)
    assert (bytes(one.payload), one.is_meta, one.content) == (NAME, True, 0b101)
    assert read_bundle(memoryview(encode_bundle(one))) == one


def test_the_head_of_a_later_fragment_has_no_payload() -> None:
    later = replace(message(2, 1), fragment=1, fragments=2)
    assert bytes(meta_of(later).payload) == b""


@pytest.mark.parametrize(
    "wrong",
    [
        replace(message(1, 0b1), is_meta=True),
        replace(head(1, 0b1), content=0),
        replace(head(1, 0b1), kind=Kind.RAW),
        replace(bundle(1, groups=("room",)), kind=Kind.JOIN, content=0b1),
    ],
    ids=["a payload", "no sites", "no message of a program", "a join in part"],
)
def test_a_head_that_cannot_be_is_no_bundle(wrong: Bundle) -> None:
    with pytest.raises(FrameError):
        read_bundle(memoryview(encode_bundle(wrong)))


# --- received and held


def test_a_head_that_does_not_count_is_received_and_not_held() -> None:
    log = SiteLog(0)
    log.add(bundle(1))
    log.add(head(2, 0b1), counts=False)
    log.add(bundle(3))
    log.check()
    assert (log.received, log.gap_free, log.frontier) == (3, 1, 10)
    assert log.declaration() == held(gap_free=1, frontier=10, extras=(3,))


def test_an_announcement_waits_for_a_head_to_count() -> None:
    log = SiteLog(0)
    log.add(head(1, 0b1), counts=False)
    log.announce(Announcement(1, 50))
    assert log.frontier == 0
    assert [one.number for one in log.count(lambda _: True)] == [1]
    assert (log.gap_free, log.frontier) == (1, 50)
    log.check()


def test_content_that_is_resent_takes_the_place_of_a_head() -> None:
    log = SiteLog(0)
    log.add(head(1, 0b1), counts=False)
    assert log.recover(message(1, 0b1))
    assert (log.gap_free, log.bundles[1].is_meta) == (1, False)
    assert not log.recover(message(1, 0b1))


def order_of(*sites: int) -> ViewOrder:
    return ViewOrder(Ballot(1, 0, 1), sites, B, Count())


def test_a_head_counts_when_every_content_site_has_received_it() -> None:
    order = order_of(*SITES)
    assert order.add(head(1, 0b011)) == []
    assert order.undelivered == 0
    assert order.has_unstable()
    order.raise_received(0, 0, 1)
    assert order.logs[0].gap_free == 0
    order.raise_received(1, 0, 1)
    assert (order.logs[0].gap_free, order.undelivered) == (1, 1)


def test_a_reliable_head_is_delivered_when_it_counts() -> None:
    order = order_of(*SITES)
    order.add(head(1, 0b001, service=Service.RELIABLE))
    assert order.deliver() == []
    order.raise_received(0, 0, 1)
    assert [one.bundle.number for one in order.deliver()] == [1]


def test_what_comes_in_the_same_step_does_not_pass_a_head_that_counts_now() -> None:
    order = order_of(*SITES)
    order.add(head(1, 0b001, service=Service.RELIABLE))
    order.raise_received(0, 0, 1)
    early = order.add(bundle(2, service=Service.FIFO))
    assert isinstance(early, list)
    assert [one.bundle.number for one in early] == [1, 2]
    assert order.deliver() == []


def test_what_somebody_has_let_go_of_is_held_by_all() -> None:
    order = order_of(*SITES)
    order.add(head(1, 0b001))
    order.add(head(2, 0b001))
    order.freeze()
    mine = order.declare(0, ())
    entries = (held(low=1, gap_free=2, frontier=20), *(SiteDeclaration(site, 0, 0, 0, b"", ()) for site in (1, 2)))
    theirs = Declaration(order.view, START, 0, 0, (), entries)
    plan = make_plan({A: theirs, B: mine}, ())
    order.count_heads(plan.lows)
    assert missing(plan, mine) == [(0, 2)]
    assert order.logs[0].gap_free == 1


def test_a_message_begun_again_leaves_nothing_behind() -> None:
    session = SessionOrder()
    parts = fragments_of(1, [b"a", b"b", b"c"], service=Service.AGREED)
    again = fragments_of(3, [b"a", b"b", b"c"], service=Service.AGREED)
    for one in parts[:2]:
        session.hold(one)
        session.go_past(one)
    for one in again:
        session.hold(one)
    for one in again[:2]:
        session.go_past(one)
    delivery = session.whole(again[2])
    assert delivery is not None
    assert delivery.payloads == (b"a", b"b", b"c")
    session.finish(delivery)
    assert (session.held, session.done_to) == ({}, 5)


def begun_again(service: Service) -> tuple[SessionOrder, list[Bundle], list[Bundle]]:
    """Two fragments of a message of three, which then begins again."""
    session = SessionOrder()
    parts = [replace(one, session_seq=7) for one in fragments_of(1, [b"a", b"b", b"c"], service=service)]
    again = [replace(one, session_seq=7) for one in fragments_of(3, [b"a", b"b", b"c"], service=service)]
    for one in [*parts[:2], *again]:
        session.hold(one)
    return session, parts[:2], again


def test_a_message_begun_again_that_is_delivered_early_leaves_nothing_behind() -> None:
    session, parts, again = begun_again(Service.FIFO)
    for one in parts:
        session.go_past(one)
    delivery = session.whole(again[2])
    assert delivery is not None
    session.finish(delivery)
    assert (session.held, session.done_to, session.is_within_a_message()) == ({}, 5, False)


def test_what_was_sent_of_a_message_before_it_began_again_may_be_passed_after_its_delivery() -> None:
    session, parts, again = begun_again(Service.RELIABLE)
    delivery = session.whole(again[2])
    assert delivery is not None
    session.finish(delivery)
    for one in parts:
        session.go_past(one)
        session.check()
    assert (session.held, session.done_to, session.is_within_a_message()) == ({}, 5, False)


def test_an_earlier_message_that_is_not_whole_stays_when_a_later_one_is_delivered() -> None:
    session = SessionOrder()
    first = [replace(one, session_seq=7) for one in fragments_of(1, [b"a", b"b", b"c"], service=Service.FIFO)]
    later = [replace(one, session_seq=8) for one in fragments_of(4, [b"d", b"e"], service=Service.RELIABLE)]
    for one in [*first[:2], *later]:
        session.hold(one)
    for one in first[:2]:
        session.go_past(one)
    delivery = session.whole(later[1])
    assert delivery is not None
    session.finish(delivery)
    session.hold(first[2])
    whole = session.whole(first[2])
    assert whole is not None
    assert whole.payloads == (b"a", b"b", b"c")


def test_a_message_of_which_one_fragment_is_a_head_is_a_head() -> None:
    session = SessionOrder()
    first, second = fragments_of(1, [b"a", b"b"], service=Service.AGREED)
    first.is_meta = True
    session.hold(first)
    session.hold(second)
    delivery = session.whole(second)
    assert delivery is not None
    assert delivery.bundle.is_meta
    assert not second.is_meta  # It is resent as it is held.


# --- interest


def interest(*, speaks: bool = True, linger_ms: int = 1, interests_max: int = 10, site: int = 1) -> Interest:
    settings = Settings(interest_linger_ms=linger_ms, interests_max=interests_max)
    return Interest(many_sites([1, 2, 1]), settings, SITES, site, speaks, Count())


def says(log: SiteLog, kind: Kind, *groups: str, into: Interest) -> None:
    one = bundle(log.received + 1, site=log.site, service=Service.RELIABLE, groups=groups)
    log.add(replace(one, kind=kind))
    into.follow(log)
    into.check()


def test_everything_goes_everywhere_until_it_is_known_who_was_where() -> None:
    one = interest()
    assert one.content_sites(("room",), LARGE) == 0
    one.begin({"room": 0b001})
    assert one.content_sites(("room",), LARGE) == 0b011  # Our own site has it anyway.
    assert one.content_sites(("room",), LARGE - 1) == 0


def test_a_private_message_goes_to_the_site_of_its_daemon() -> None:
    one = interest()
    one.begin({})
    last = many_sites([1, 2, 1]).daemons[-1].name
    assert one.content_sites((f"bob@{last}",), LARGE) == 0b110
    assert one.content_sites(("bob@nowhere",), LARGE) == 0b010


def test_what_another_site_asks_for_goes_there_until_it_gives_it_up() -> None:
    one, log = interest(), SiteLog(2)
    one.begin({})
    says(log, Kind.INTEREST, "room", into=one)
    assert one.content_sites(("room",), LARGE) == 0b110
    says(log, Kind.UNINTEREST, "room", into=one)
    assert one.content_sites(("room",), LARGE) == 0b010


def test_what_was_heard_before_the_beginning_is_known_counts() -> None:
    one, log = interest(), SiteLog(2)
    says(log, Kind.INTEREST, "room", into=one)
    one.begin({})
    assert one.content_sites(("room",), LARGE) == 0b110


def test_a_join_waits_until_everybody_has_received_the_interest() -> None:
    one, log = interest(speaks=False), SiteLog(1)
    one.begin({})
    assert not one.may_join("room", 0, 99)
    one.want("room")
    assert one.next_word() == InterestWord(Kind.INTEREST, ("room",))
    says(log, Kind.INTEREST, "room", into=one)
    assert not one.may_join("room", 0, 0)
    assert one.may_join("room", 0, 1)


def test_no_join_is_stamped_by_who_has_not_heard_the_last_withdrawal() -> None:
    one = interest(speaks=False)
    one.begin({"room": 0b010})
    assert one.may_join("room", 0, 0)
    assert not one.may_join("room", 1, 0)


def test_interest_is_given_up_a_while_after_the_last_has_left() -> None:
    one, log = interest(linger_ms=5), SiteLog(1)
    one.begin({"room": 0b010})
    one.emptied("room", 10, now_us=1_000)
    assert one.withdrawal(0, 5_999) is None
    assert one.withdrawal(1, 6_000) is None  # Not all that our site has stamped is here.
    assert one.withdrawal(0, 6_000) == InterestWord(Kind.UNINTEREST, ("room",))
    says(log, Kind.UNINTEREST, "room", into=one)
    assert (one.withdrawn_seq, one.may_join("room", 1, 9)) == (1, False)


def test_interest_is_not_given_up_where_somebody_has_joined_since() -> None:
    one, log = interest(), SiteLog(1)
    one.begin({"room": 0b010})
    one.emptied("room", 5, now_us=0)
    says(log, Kind.JOIN, "room", into=one)
    assert one.withdrawal(1, 1_000_000) is None
    one.emptied("room", 5, now_us=0)  # Told late: the join has the stamp 10.
    assert one.withdrawal(1, 1_000_000) is None


def test_interest_is_not_given_up_while_who_asked_has_not_joined() -> None:
    one, log = interest(), SiteLog(1)
    one.begin({})
    says(log, Kind.INTEREST, "room", into=one)
    one.emptied("room", 5, now_us=0)
    assert one.withdrawal(1, 1_000_000) is None


@pytest.mark.parametrize(("groups", "is_pruned"), [(3, True), (4, False)])
def test_a_site_that_asks_for_too_many_groups_gets_everything(groups: int, is_pruned: bool) -> None:
    one, log = interest(interests_max=3), SiteLog(2)
    one.begin({"before": 0b100})
    for number in range(groups - 1):
        says(log, Kind.INTEREST, f"g{number}", into=one)
    assert one.content_sites(("other",), LARGE) == (0b010 if is_pruned else 0b110)
    assert one.unpruned_sites == ([] if is_pruned else [2])


def test_a_word_names_no_more_groups_than_a_bundle_may() -> None:
    one = interest()
    one.begin({})
    for number in range(150):
        one.want(f"g{number}")
    assert [len(one.next_word().groups), len(one.next_word().groups)] == [100, 50]
    assert not one.has_word


# --- sessions put aside


def waiting(session: int, group: str, kind: Kind = Kind.JOIN) -> Waiting:
    return Waiting(session, 1, 1, Service.AGREED, (group,), b"x", kind)


def queue_of(*some: Waiting) -> SubmitQueue:
    queue = SubmitQueue(Life(0, 1), 1 << 20, 1_000)
    queue.note_joins(True)
    for one in some:
        queue.put(one)
    return queue


def test_a_join_that_waits_holds_up_its_own_session_only() -> None:
    queue = queue_of(waiting(1, "room"), waiting(1, "room", Kind.MESSAGES), waiting(2, "room", Kind.MESSAGES))
    assert list(queue.joins) == ["room"]
    assert queue.next_join() == "room"
    queue.put_aside()
    queue.check()
    assert (queue.length, queue.ready, queue.next_join()) == (3, 1, None)
    assert queue.take(0, 1, 10)[0].session == 2
    assert queue.next_service() is None
    queue.bring_back("room")
    queue.check()
    assert [queue.take(0, number, 10)[0].kind for number in (2, 3)] == [Kind.JOIN, Kind.MESSAGES]


def test_a_session_that_comes_back_waits_for_the_message_that_is_being_stamped() -> None:
    large = Waiting(2, 1, 1, Service.AGREED, ("room",), bytes(2_500), Kind.MESSAGES)
    queue = queue_of(waiting(1, "room"))
    queue.next_join()
    queue.put_aside()
    queue.put(large)
    assert queue.take(0, 1, 10)[0].session == 2
    queue.bring_back("room")
    assert [queue.take(0, number, 10)[0].session for number in (2, 3, 4)] == [2, 2, 1]
    queue.check()


def test_joins_that_wait_are_named_again_in_another_view() -> None:
    queue = queue_of(waiting(1, "room"))
    queue.joins.clear()
    queue.next_join()
    queue.put_aside()
    queue.note_joins(True)
    assert (list(queue.joins), queue.ready) == (["room"], 1)


# --- giving up, with the token


def flow_of(one: Interest) -> Flow:
    cluster, me = many_sites([1, 2, 1]), Life(1, 1)
    kit = evs_kit(Kit(me, cluster, Settings(), Count(), DeadlineTable()), Instant(0, 0))
    members = tuple(Life(rank, 1) for rank in range(4))
    return Flow(kit, Ballot(1, 0, 1), members, queue_of(), one)


def test_what_is_not_given_up_with_the_token_is_looked_at_again() -> None:
    """Between two turns somebody else in the site may stamp a join."""
    one, log = interest(), SiteLog(1)
    one.begin({"room": 0b010})
    one.emptied("room", 5, now_us=0)
    flow = flow_of(one)
    flow.give_up_interest(0, 10_000)
    assert flow.may_stamp()
    flow.end_turn(10_000)  # No window was open.
    says(log, Kind.JOIN, "room", into=one)
    flow.give_up_interest(1, 20_000)
    assert not flow.may_stamp()


def test_what_could_not_be_given_up_is_given_up_in_the_next_turn() -> None:
    one = interest()
    one.begin({"room": 0b010})
    one.emptied("room", 5, now_us=0)
    flow = flow_of(one)
    flow.give_up_interest(0, 10_000)
    flow.end_turn(10_000)
    flow.give_up_interest(0, 20_000)
    flow.stamp(1, 100, flow.packer())
    assert (one.withdrawn_seq, one.content_sites(("room",), LARGE)) == (1, 0b010)
    assert not one.may_join("room", 1, 99)


def test_what_is_given_up_while_joins_of_it_wait_is_asked_for_again_together() -> None:
    one = interest()
    one.begin({})
    flow, log = flow_of(one), SiteLog(1)
    says(log, Kind.INTEREST, "room", "hall", "else", into=one)
    for session, group in enumerate(("room", "hall")):
        flow.queue.put(waiting(session, group))
    assert not one.has_word
    says(log, Kind.UNINTEREST, "room", "hall", "else", into=one)
    assert flow.has_to_send()
    assert one.next_word() == InterestWord(Kind.INTEREST, ("room", "hall"))


def test_who_gets_everything_asks_for_nothing_and_keeps_nothing() -> None:
    one, log = interest(interests_max=2), SiteLog(1)
    one.begin({})
    says(log, Kind.INTEREST, "a", "b", "c", into=one)
    assert one.unpruned_sites == [1]
    one.want("d")
    assert not one.has_word
    assert not one.may_join("d", 0, log.received - 1)
    assert one.may_join("d", 0, log.received)
    says(log, Kind.INTEREST, "e", into=one)
    one.emptied("a", 1_000, 0)
    assert one.next_withdrawal_us() is None


def test_a_message_that_is_hardly_larger_than_the_names_of_its_groups_goes_everywhere() -> None:
    one = interest()
    one.begin({})
    names = tuple(f"{number:0100}" for number in range(5))
    assert one.content_sites(names, 300) == 0
    assert one.content_sites(names, 700) == 0b010


def test_a_message_that_begins_again_for_new_interest_is_passed_by_nobody() -> None:
    one = interest()
    one.begin({"room": 0b010, "other": 0b010})
    flow, packer = flow_of(one), flow_of(one).packer()
    large = NAME + bytes(3_000)
    flow.queue.put(Waiting(1, 1, 1, Service.AGREED, ("room",), large, Kind.MESSAGES))
    assert flow.may_stamp()
    flow.stamp(1, 10, packer)
    says(flow.order.logs[0], Kind.INTEREST, "room", into=one)
    assert flow.may_stamp()
    flow.queue.put(Waiting(2, 1, 1, Service.AGREED, ("other",), NAME, Kind.MESSAGES, priority=0))
    sessions = []
    for number in range(2, 7):
        assert flow.may_stamp()
        flow.stamp(number, 10 * number, packer)
        sessions.append((flow.order.logs[1].bundles[number].session, flow.order.logs[1].bundles[number].content))
    assert sessions == [(1, 0)] * 4 + [(2, 0)]
    flow.queue.check()


def test_a_bundle_whose_place_is_taken_does_not_end_what_is_heard_of_its_site() -> None:
    one = interest()
    one.begin({})
    order = order_of(*SITES)
    order.add(bundle(1))
    assert order.add(replace(bundle(2), fifo_number=1)) == Dropped(Counter.BUNDLE_PLACE_TAKEN)
    one.follow(order.logs[0])
    for source in SITES:
        order.raise_received(source, 0, 2)
    order.deliver()
    order.announce(1, Announcement(0, 99))
    order.announce(2, Announcement(0, 99))
    order.deliver()
    order.discard()
    order.add(bundle(3, fifo_number=2))
    one.follow(order.logs[0])
    assert one._seen[0] == 3


def test_joins_that_were_put_aside_are_looked_at_when_it_is_known_who_was_where() -> None:
    one = interest()
    flow = flow_of(one)
    flow.queue.put(waiting(1, "room"))
    assert not flow.may_stamp()
    assert flow.queue.groups_aside == ["room"]
    assert not flow.look_at_joins(0)
    one.begin({"room": 0b010})
    assert flow.look_at_joins(0)
    assert flow.may_stamp()


def test_messages_in_fragments_that_come_early_are_not_remembered() -> None:
    session = SessionOrder()
    for number in range(1, 31, 3):
        parts = [
            replace(one, session_seq=number)
            for one in fragments_of(number, [b"a", b"b", b"c"], service=Service.RELIABLE)
        ]
        for one in parts:
            session.hold(one)
        delivery = session.whole(parts[2])
        assert delivery is not None
        session.finish(delivery)
    assert not session._delivered_ahead


def test_what_a_frozen_view_has_declared_is_kept() -> None:
    order = order_of(0)
    order.add(bundle(1))
    order.announce(0, Announcement(1, 50))
    order.deliver()
    order.raise_received(0, 0, 1)
    order.freeze()
    order.discard()
    assert 1 in order.logs[0].bundles
