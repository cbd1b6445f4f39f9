"""Links beside rings: what a site stamps goes to its ring and over its links, and a link may be full, late or fail."""

from __future__ import annotations

import msgspec
import pytest

from covey.config import Cluster, one_daemon_sites, one_site
from covey.ids import Life
from covey.protocol.effects import Deliver, Effect, LinkSend, Send, Stamped
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Announce, Data
from covey.protocol.evs.growth import Growth
from covey.protocol.evs.links.link import IdealLink, QueueClass
from covey.protocol.evs.operation import Operation
from covey.protocol.evs.states import Reason, State
from covey.protocol.transport.queue import SubmitQueue, Waiting
from covey.protocol.values import Kind, Service
from tests.unit.protocol.builders import VIEW, kit
from tests.unit.protocol.network import SECOND_US, TinyNetwork

LIVES = tuple(Life(rank, 1) for rank in range(4))


def two_rings() -> Cluster:
    """Four daemons, two in each of two sites. No configuration allows that yet."""
    cluster = one_site(4)
    placed = tuple(msgspec.structs.replace(daemon, site=rank // 2) for rank, daemon in enumerate(cluster.daemons))
    msgspec.structs.force_setattr(cluster, "daemons", placed)
    return cluster


def operation(me: Life, cluster: Cluster, members: tuple[Life, ...] = LIVES) -> Operation:
    own = kit(me, cluster)
    queue = SubmitQueue(me, 1 << 20, 60_000, 1 << 20)
    return Operation(own, VIEW, members, queue, 0, Growth(4, SECOND_US))


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


def test_what_a_ring_stamps_goes_to_the_ring_and_over_every_link() -> None:
    sender = operation(LIVES[2], two_rings())
    sender.queue.put(Waiting(1, 1, 1, Service.RELIABLE, (), b"x", Kind.RAW, 0, 1))
    effects = sender.start(0)
    assert [one.bundle.site for one in effects if isinstance(one, Stamped)] == [1]
    data = [one for one in effects if isinstance(one, Send) and isinstance(frame_of(sender, one), Data)]
    assert [one.to for one in data] == [(3,)]
    assert [one.to for one in effects if isinstance(one, LinkSend)] == [(0,), (1,)]


def frame_of(one: Operation, send: Send | LinkSend) -> object:
    return one.kit.codec.decode(send.data).frame


def test_what_comes_over_a_link_is_of_the_other_site() -> None:
    sender, receiver = operation(LIVES[2], two_rings()), operation(LIVES[1], two_rings())
    sender.queue.put(Waiting(1, 1, 1, Service.RELIABLE, (), b"x", Kind.RAW, 0, 1))
    (carried,) = [one for one in sender.start(0) if isinstance(one, LinkSend) and one.to == (1,)]
    frame = frame_of(sender, carried)
    assert isinstance(frame, Data)
    taken = receiver.on_data(LIVES[2], frame, carried.data, 0)
    assert [one.bundle.origin for one in taken if isinstance(one, Deliver)] == [LIVES[2]]
    assert receiver.flow.received() == {0: 0, 1: 1}


def test_a_daemon_announces_its_own_site_only() -> None:
    receiver = operation(LIVES[1], two_rings())
    before = receiver.order.line()
    for site in (0, 1):
        receiver.on_announce(LIVES[0], Announce(VIEW, site, 0, 50, 0, (), True), 0)
    assert receiver.order.line() == before
    assert receiver.order.logs[1].frontier == 0


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
