"""Links beside rings: what a site stamps goes to its ring and over its links, and a link may be full, late or fail."""

from __future__ import annotations

import msgspec
import pytest

from covey.cluster import Cluster, many_sites, one_daemon_sites
from covey.ids import Life
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Deliver, Effect, LinkSend, Send, Stamped
from covey.protocol.evs.codec import CHUNK_OVERHEAD
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Announce, Chunk, Data, Hurry, Parked, Token, Unreliable
from covey.protocol.evs.growth import Growth
from covey.protocol.evs.links.foreign import Foreign
from covey.protocol.evs.links.link import IdealLink, QueueClass
from covey.protocol.evs.operation import Operation
from covey.protocol.evs.overlay import overlay
from covey.protocol.evs.stamping.token import TokenStamper
from covey.protocol.evs.states import Reason, State
from covey.protocol.transport.queue import SubmitQueue, Waiting
from covey.protocol.values import Kind, Service
from tests.unit.protocol.builders import VIEW, kit
from tests.unit.protocol.network import SECOND_US, TinyNetwork

LIVES = tuple(Life(rank, 1) for rank in range(4))


def two_rings() -> Cluster:
    """Four daemons, two in each of two sites: a and c speak for theirs."""
    return many_sites([2, 2])


def operation(me: Life, cluster: Cluster, members: tuple[Life, ...] = LIVES) -> Operation:
    own = kit(me, cluster)
    queue = SubmitQueue(me, 1 << 20, 60_000, 1 << 20)
    return Operation(own, VIEW, members, queue, 0, Growth(4, SECOND_US), overlay(cluster, members))


def submit(one: Operation, service: Service = Service.RELIABLE, seq: int = 1) -> list[Effect]:
    one.queue.put(Waiting(1, seq, 1, service, (), b"x", Kind.RAW, 0, 1))
    return one.submitted(0)


class TestLink(IdealLink):
    """One that is as full, as late and as broken as it is told to be."""

    __test__ = False

    def __init__(self, peer: int) -> None:
        super().__init__(peer)
        self.bytes = 0
        self.due: int | None = None
        self.reason = ""
        self.looked_at: list[int] = []

    @property
    def failed(self) -> str:  # type: ignore[override]
        return self.reason

    @property
    def due_us(self) -> int | None:  # type: ignore[override]
        return self.due

    def room(self, queue_class: QueueClass) -> int:
        return self.bytes

    def on_deadline(self, now_us: int) -> list[Effect]:
        self.looked_at.append(now_us)
        self.due = None
        return []


# --- a ring and links


def test_the_lowest_of_each_ring_makes_its_token() -> None:
    all_four = [operation(life, two_rings()) for life in LIVES]
    for one in all_four:
        one.start(0)
    waits = [one.kit.deadlines.is_set(EvsDeadline.TOKEN_LOST) for one in all_four]
    first = [one.kit.deadlines.is_set(EvsDeadline.TOKEN_RESEND) for one in all_four]
    assert waits == [True] * 4
    assert first == [True, False, True, False]


def stamped_by(sender: Operation) -> list[Effect]:
    sender.queue.put(Waiting(1, 1, 1, Service.RELIABLE, (), b"x", Kind.RAW, 0, 1))
    return sender.start(0)


def frame_of(one: Operation, send: Send | LinkSend) -> object:
    return one.kit.codec.decode(send.data).frame


def data_of(one: Operation, effects: list[Effect]) -> list[Send]:
    return [send for send in effects if isinstance(send, Send) and isinstance(frame_of(one, send), Data)]


def test_what_a_representative_stamps_goes_to_its_ring_and_to_the_other_site() -> None:
    sender = operation(LIVES[2], two_rings())
    effects = stamped_by(sender)
    assert [one.bundle.site for one in effects if isinstance(one, Stamped)] == [1]
    assert [one.to for one in data_of(sender, effects)] == [(3,)]
    assert [one.to for one in effects if isinstance(one, LinkSend)] == [(0,)]


def test_what_a_ring_mate_stamps_is_passed_on_by_its_representative() -> None:
    cluster = many_sites([2, 2])
    mate, speaks = operation(LIVES[1], cluster), operation(LIVES[0], cluster)
    (token,) = [one for one in speaks.start(0) if isinstance(one, Send) and isinstance(frame_of(speaks, one), Token)]
    mate.queue.put(Waiting(1, 1, 1, Service.RELIABLE, (), b"x", Kind.RAW, 0, 1))
    frame = frame_of(speaks, token)
    assert isinstance(frame, Token)
    effects = [one for one in mate.on_site_frame(LIVES[0], frame, 0) if not isinstance(one, Dropped)]
    assert not any(isinstance(one, LinkSend) for one in effects)
    (packet,) = data_of(mate, effects)
    data = frame_of(mate, packet)
    assert isinstance(data, Data)
    passed = [one for one in speaks.on_data(LIVES[1], data, packet.data, 0) if isinstance(one, LinkSend)]
    assert [one.to for one in passed] == [(2,)]


def carried_to(rank: int) -> tuple[Operation, LinkSend, Data]:
    sender = operation(LIVES[2], two_rings())
    (carried,) = [one for one in stamped_by(sender) if isinstance(one, LinkSend) and one.to == (rank,)]
    frame = frame_of(sender, carried)
    assert isinstance(frame, Data)
    return sender, carried, frame


@pytest.mark.parametrize("content", [0b100, 1 << 63, 0b001], ids=["beyond the view", "far beyond", "not its own"])
def test_a_piece_that_goes_where_it_cannot_is_dropped_and_counted(content: int) -> None:
    _, carried, frame = carried_to(0)
    receiver = operation(LIVES[0], two_rings())
    wrong = msgspec.structs.replace(
        frame, chunks=tuple(msgspec.structs.replace(chunk, content=content) for chunk in frame.chunks)
    )
    assert receiver.on_data(LIVES[2], wrong, carried.data, 0) == [Dropped(Counter.BUNDLE_IMPOSSIBLE)]
    assert receiver.flow.received() == {0: 0, 1: 0}


def test_a_piece_that_goes_elsewhere_than_its_bundle_says_is_dropped_and_counted() -> None:
    _, carried, frame = carried_to(0)
    receiver = operation(LIVES[0], two_rings())
    wrong = msgspec.structs.replace(
        frame, chunks=tuple(msgspec.structs.replace(chunk, content=0b011) for chunk in frame.chunks)
    )
    assert Dropped(Counter.BUNDLE_IMPOSSIBLE) in receiver.on_data(LIVES[2], wrong, carried.data, 0)
    assert receiver.flow.received() == {0: 0, 1: 0}


@pytest.mark.parametrize("frame", [Hurry(VIEW), Parked(VIEW, 5)], ids=["hurry", "parked"])
def test_words_of_a_ring_are_taken_from_the_ring_alone(frame: Hurry | Parked) -> None:
    receiver = operation(LIVES[0], two_rings())
    assert receiver.on_site_frame(LIVES[2], frame, 0) == [Dropped(Counter.FRAME_MISDIRECTED)]


def test_what_comes_over_a_link_is_of_the_other_site_and_goes_around_the_ring() -> None:
    _, carried, frame = carried_to(0)
    receiver = operation(LIVES[0], two_rings())
    taken = receiver.on_data(LIVES[2], frame, carried.data, 0)
    assert [one.bundle.origin for one in taken if isinstance(one, Deliver)] == [LIVES[2]]
    assert receiver.flow.received() == {0: 0, 1: 1}
    (packet,) = data_of(receiver, receiver.start(0))
    again = frame_of(receiver, packet)
    assert isinstance(again, Data)
    assert [(chunk.site, chunk.number) for chunk in again.chunks] == [(1, 1)]


def test_what_another_site_sends_is_taken_from_the_tree_alone() -> None:
    sender, carried, frame = carried_to(0)
    for life, operated in ((LIVES[3], operation(LIVES[0], two_rings())), (LIVES[2], operation(LIVES[1], two_rings()))):
        assert operated.on_data(life, frame, carried.data, 0) == [Dropped(Counter.FRAME_WRONG_WAY)]
    (onto_ring,) = data_of(sender, stamped_by(operation(LIVES[2], two_rings())))
    speaks = operation(LIVES[0], two_rings())
    ring_frame = frame_of(sender, onto_ring)
    assert isinstance(ring_frame, Data)
    assert speaks.on_data(LIVES[1], ring_frame, onto_ring.data, 0) == [Dropped(Counter.FRAME_WRONG_WAY)]


def test_an_announcement_comes_along_the_tree_and_is_repeated_to_the_ring() -> None:
    announce = Announce(VIEW, 1, 0, 50, 0, (), quiet=True)
    speaks, mate = operation(LIVES[0], two_rings()), operation(LIVES[1], two_rings())
    (repeated,) = speaks.on_announce(LIVES[2], announce, 0)
    assert isinstance(repeated, Send)
    assert repeated.to == (1,)
    assert speaks.order.logs[1].frontier == 50
    mate.on_announce(LIVES[0], announce, 0)
    assert mate.order.logs[1].frontier == 50


@pytest.mark.parametrize(("sender", "me", "site"), [(0, 1, 0), (3, 0, 1), (2, 1, 1), (1, 0, 1)])
def test_an_announcement_that_came_another_way_is_dropped(sender: int, me: int, site: int) -> None:
    """Of the own site; of who does not speak for its site; past our own representative; through a ring-mate."""
    receiver = operation(LIVES[me], two_rings())
    announce = Announce(VIEW, site, 0, 50, 0, (), quiet=True)
    assert receiver.on_announce(LIVES[sender], announce, 0) == [Dropped(Counter.FRAME_WRONG_WAY)]
    assert receiver.order.line() == 0


def test_an_unreliable_message_goes_along_the_tree_once() -> None:
    sender, speaks, other, mate = (operation(LIVES[rank], two_rings()) for rank in (1, 0, 2, 3))
    bundle = sender.unreliable.make(1, 1, 1, (), b"x", Kind.RAW, 0)
    frame = Unreliable(VIEW, bundle)
    assert [one.to for one in sender.send_unreliable(frame) if isinstance(one, Send)] == [(0,)]
    assert [one.to for one in speaks.on_unreliable(LIVES[1], frame) if isinstance(one, Send)] == [(2,)]
    assert [one.to for one in other.on_unreliable(LIVES[0], frame) if isinstance(one, Send)] == [(3,)]
    assert [type(one) for one in mate.on_unreliable(LIVES[2], frame)] == [Deliver]
    assert other.on_unreliable(LIVES[1], frame) == [Dropped(Counter.BUNDLE_IMPOSSIBLE)]


def test_pieces_beyond_what_windows_allow_are_dropped_and_counted() -> None:
    foreign = Foreign(2)
    pieces = tuple(Chunk(1, number, 0, 1, b"x") for number in (1, 2))
    assert foreign.put(pieces) is None
    assert foreign.put(pieces[:1]) == Dropped(Counter.FOREIGN_TOO_MUCH)


def test_foreign_pieces_fill_packets_in_the_order_in_which_they_came() -> None:
    foreign = Foreign(10)
    foreign.put(tuple(Chunk(1, number, 0, 1, bytes(100)) for number in range(1, 6)))
    packets = foreign.packets(2, 2 * (100 + CHUNK_OVERHEAD))
    assert [[chunk.number for chunk in packet] for packet in packets] == [[1, 2], [3, 4]]
    assert [[chunk.number for chunk in packet] for packet in foreign.packets(2, 500)] == [[5]]
    assert not foreign


def test_the_status_tells_of_sites_and_links() -> None:
    status = operation(LIVES[3], two_rings()).snapshot()
    assert status["sites"] == ["0", "1"]
    assert status["links"] == ["0 - 1: 1"]
    assert status["speaks_for_its_site"] == "c"
    assert "sites" not in operation(LIVES[0], many_sites([4])).snapshot()


# --- one link


@pytest.fixture
def link() -> TestLink:
    return TestLink(1)


@pytest.fixture
def alone(link: TestLink) -> Operation:
    """The only daemon of its site, in a view with one of another."""
    one = operation(LIVES[0], one_daemon_sites(2), LIVES[:2])
    one.links.by_peer[link.peer] = link
    return one


def test_nothing_is_stamped_while_a_link_has_no_room(alone: Operation, link: TestLink) -> None:
    assert not any(isinstance(one, Stamped) for one in submit(alone))
    link.bytes, link.due = 1_000, 10
    effects = alone.on_deadline(EvsDeadline.LINK, 10)
    assert link.looked_at == [10]
    assert [one.to for one in effects if isinstance(one, LinkSend)] == [(1,)]


def test_the_deadline_of_a_link_stands_in_the_table(alone: Operation, link: TestLink) -> None:
    link.bytes, link.due = 1_000, 70
    submit(alone)
    assert alone.kit.deadlines.at(EvsDeadline.LINK) == 70
    alone.on_deadline(EvsDeadline.LINK, 60)
    assert link.looked_at == []
    alone.on_deadline(EvsDeadline.LINK, 70)
    assert link.looked_at == [70]
    assert not alone.kit.deadlines.is_set(EvsDeadline.LINK)


def test_a_link_that_waits_for_nothing_is_not_looked_at(alone: Operation, link: TestLink) -> None:
    idle = alone.links.by_peer[2] = TestLink(2)
    link.due = 10
    alone.on_deadline(EvsDeadline.LINK, 10)
    assert (link.looked_at, idle.looked_at) == ([10], [])


def test_a_link_that_fails_ends_the_view(link: TestLink) -> None:
    network = TinyNetwork(one_daemon_sites(2))
    network.form_view()
    engine = network.daemons[0].engine
    link.bytes, link.due, link.reason = 1_000, network.now, "the other end does not answer"
    engine.operation.links.by_peer[link.peer] = link
    network.submit(0, 1, b"x", Service.AGREED)
    network.run(1)
    assert engine.machine.state is State.SEG
    assert engine.machine.reason is Reason.LINK_FAILED
    assert engine.machine.ending.detail == "b: the other end does not answer"


# --- a token parked elsewhere


@pytest.mark.parametrize(("window", "says"), [(200, True), (1, False)])
def test_who_has_something_to_send_wants_a_parked_token_at_once_or_when_its_window_may_be_open(
    window: int, says: bool
) -> None:
    mate = operation(LIVES[1], two_rings())
    stamper = mate.stamper
    assert isinstance(stamper, TokenStamper)
    mate.kit.settings = msgspec.structs.replace(mate.kit.settings, source_bundles_unstable=window)
    mate.start(0)
    stamper.site_seq = 1
    mate.queue.put(Waiting(1, 1, 1, Service.RELIABLE, (), b"x", Kind.RAW, 0, 1))
    said = mate.on_site_frame(LIVES[0], Parked(VIEW, 5), 1_000)
    assert [type(frame_of(mate, one)) for one in said if isinstance(one, Send)] == ([Hurry] if says else [])
    assert mate.kit.deadlines.at(EvsDeadline.HURRY) == 1_000 + mate.kit.settings.hurry_ms * 1_000
