"""A peer's bad frame is data: whatever a member says, a daemon goes on, and the cluster comes to work again.

Each case is one frame under a good head, from a member, with something in it that no correct daemon says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace

from covey.cluster import Cluster, one_daemon_sites, one_site
from covey.ids import INFINITE, Ballot, Life
from covey.protocol.counters import Family
from covey.protocol.evs.frames import (
    Alive,
    Announce,
    Chunk,
    Data,
    Floor,
    Frame,
    Join,
    NewMemb,
    Refuse,
    Token,
    Unreliable,
)
from covey.protocol.evs.states import State
from covey.protocol.inputs import Datagram
from covey.protocol.values import Kind, Service
from covey.protocol.wire.bundles import encode_bundle
from tests.unit.protocol.builders import A, B, C, alive, bundle, codec_of
from tests.unit.protocol.network import SECOND_US, TinyNetwork

HUGE = 2**64 - 1
MakeFrame = Callable[[Ballot], Frame]
MakeCluster = Callable[[int], Cluster]


def packet(view: Ballot, *encodings: bytes, packet_seq: int = 0) -> Data:
    return Data(view, 0, packet_seq, tuple(Chunk(1, at, 0, 1, one) for at, one in enumerate(encodings, start=1)))


def from_b(number: int, stamp: int, **fields: object) -> bytes:
    """The encoding of a bundle of b's site."""
    return encode_bundle(replace(bundle(number, stamp, site=1, origin=B), **fields))


def with_service(number: int) -> bytes:
    encoding = bytearray(from_b(1, 10))
    encoding[encoding.index(bytes([Service.AGREED, 0, 0, 0, 0, 1]))] = number
    return bytes(encoding)


def unreliable(view: Ballot, fifo_number: int, service: Service = Service.UNRELIABLE) -> Unreliable:
    return Unreliable(view, bundle(0, 0, origin=B, fifo_number=fifo_number, service=service))


def change_of_groups(kind: Kind, service: Service, groups: tuple[str, ...], view: Ballot) -> Frame:
    """A bundle of a client, or about one: as its daemon would make it, or not."""
    if service is Service.UNRELIABLE:
        return Unreliable(view, replace(unreliable(view, 1).bundle, kind=kind, groups=groups))
    return packet(view, from_b(1, 10, kind=kind, service=service, groups=groups))


def working(view: Ballot, members: tuple[Life, ...] = (A, B, C), **fields: object) -> Alive:
    """What a member of the view says, but for some fields."""
    word = alive(60, state=State.OP, view=view, members=members, counter=view.counter)
    return replace(word, **fields)


def token(view: Ballot, **fields: object) -> Token:
    """A token that could come next, but for some fields."""
    floor = Floor(0, -1)
    good = Token(view, 1_000, 0, floor, floor, ((0, floor),), 0, 2_000_000_000, 0, 0, ())
    return replace(good, **fields)


MESH: dict[str, MakeFrame] = {
    "a chunk that is too short": lambda view: packet(view, b"abc"),
    "an empty chunk": lambda view: packet(view, b""),
    "a chunk with an unknown service": lambda view: packet(view, with_service(99)),
    "a chunk with a group that is not text": lambda view: packet(
        view, from_b(1, 10, groups=("ab",)).replace(b"ab", b"\xff\xfe")
    ),
    "a chunk with bytes left over": lambda view: packet(view, from_b(1, 10) + b"!"),
    "a bundle of an unknown daemon": lambda view: packet(view, from_b(1, 10, origin=Life(60_000, 1))),
    "a bundle of an unknown site": lambda view: packet(view, from_b(1, 10, site=999)),
    "a bundle of somebody else's site": lambda view: packet(view, from_b(1, 10, site=2)),
    "a stamp above all stamps": lambda view: packet(view, from_b(1, HUGE)),
    "the highest stamp": lambda view: packet(view, from_b(1, INFINITE)),
    "fragments of two different messages": lambda view: packet(
        view, from_b(1, 10, fragments=2), from_b(2, 20, fragment=4, fragments=5)
    ),
    "a fragment before the first fifo number": lambda view: packet(
        view, from_b(1, 10, fifo_number=1, fragment=5, fragments=6)
    ),
    "a fragment of more than the largest message": lambda view: packet(view, from_b(1, 10, fragments=2**31)),
    "one fifo number twice, stamps falling": lambda view: packet(
        view, from_b(1, 20, fifo_number=1), from_b(2, 10, fifo_number=1)
    ),
    "an announcement above all stamps": lambda view: Announce(view, 1, 0, HUGE, 0, (), True),
    "an announcement of negative numbers": lambda view: Announce(view, 1, -5, -5, -5, ((1, -5),), True),
    "an announcement of an unknown site": lambda view: Announce(view, 77, 0, 5, 5, ((77, 1),), True),
    "an unreliable bundle far ahead": lambda view: unreliable(view, 2**62),
    "an unreliable bundle of fifo number 0": lambda view: unreliable(view, 0),
    "an unreliable bundle of our own": lambda view: Unreliable(
        view, bundle(0, 0, origin=A, fifo_number=9, service=Service.UNRELIABLE)
    ),
    **{
        f"{kind.name} {service.name} for {len(groups)} groups": partial(change_of_groups, kind, service, groups)
        for kind in Kind
        for service in (Service.UNRELIABLE, Service.RELIABLE, Service.AGREED)
        for groups in ((), ("red",), ("red", "green"))
    },
    "a stamp of another age": lambda view: packet(view, from_b(1, 2**60)),
    "an announcement of another age": lambda view: Announce(view, 1, 0, 2**60, 0, (), True),
    "an ALIVE with no members": lambda view: working(view, ()),
    "an ALIVE with an unknown state": lambda view: working(view, state=99),
    "an ALIVE with a negative state": lambda view: working(view, state=-1),
    "an ALIVE with a huge counter": lambda view: working(view, counter=HUGE),
    "an ALIVE with a negative counter": lambda view: working(view, counter=-HUGE // 2),
    "an ALIVE with unknown members": lambda view: working(view, (Life(-1, 1), Life(4_000, 1))),
    "a JOIN with a huge wait": lambda view: Join(working(view), HUGE, (A, B, C)),
    "a NEWMEMB with a huge counter": lambda view: NewMemb(Ballot(HUGE, 1, 1), (A, B)),
    "a NEWMEMB with a negative rank": lambda view: NewMemb(Ballot(view.counter + 50, 1, 1), (Life(-1, 1), A, B)),
    "a NEWMEMB of an unknown proposer": lambda view: NewMemb(Ballot(view.counter + 50, 999, 1), (A, B)),
    "a NEWMEMB of another proposer": lambda view: NewMemb(Ballot(view.counter + 50, 2, 1), (A, B)),
    "a REFUSE with a huge counter": lambda view: Refuse(view, HUGE),
    "a REFUSE with the highest counter": lambda view: Refuse(view, 2**62 - 1),
    "an ALIVE with the highest counter": lambda view: working(view, counter=2**62 - 1),
    "an ALIVE with the highest promise": lambda view: working(view, promised=Ballot(2**62 - 1, 1, 1)),
    "a NEWMEMB with the highest counter": lambda view: NewMemb(Ballot(2**62 - 1, 1, 1), (A, B)),
}
RING: dict[str, MakeFrame] = {
    "a token with a huge number": lambda view: token(view, number=HUGE),
    "a token with a huge stamp": lambda view: token(view, stamp=HUGE),
    "a token with a stamp of another age": lambda view: token(view, stamp=2**62 - 1),
    "a token with a negative stamp": lambda view: token(view, stamp=-1),
    "a token with huge packet numbers": lambda view: token(view, packet_seq=1_000_000),
    "a token with negative packet numbers": lambda view: token(view, packet_seq=-5),
    "a token with huge bundle numbers": lambda view: token(view, site_seq=HUGE),
    "a token with negative bundle numbers": lambda view: token(view, site_seq=-5),
    "a token with a huge flow": lambda view: token(view, flow=HUGE),
    "a token with a negative flow": lambda view: token(view, flow=-HUGE // 2),
    "a token with a huge idle count": lambda view: token(view, idle=HUGE),
    "a token with huge floors": lambda view: token(view, packet_floor=Floor(HUGE, 2), line_floor=Floor(HUGE, 2)),
    "a token without floors": lambda view: token(view, received_floors=()),
    "a token with an unknown site": lambda view: token(view, received_floors=((9, Floor(0, -1)),)),
    "a token with strange requests": lambda view: token(view, requests=(-1, 0, HUGE)),
    "a packet far beyond the window": lambda view: packet(view, from_b(1, 10), packet_seq=HUGE),
}
CASES = [
    *(pytest.param(one_daemon_sites, make, id=f"mesh: {name}") for name, make in MESH.items()),
    *(pytest.param(one_site, make, id=f"ring: {name}") for name, make in RING.items()),
]


def quiet(make_cluster: MakeCluster) -> TinyNetwork:
    network = TinyNetwork(make_cluster(3))
    network.form_view()
    network.run(SECOND_US)
    network.checks = False  # Lies may break what holds among honest daemons.
    return network


def part_and_merge(network: TinyNetwork) -> None:
    """Whatever was said in the old view is over."""
    network.loses = lambda source, to, header: 2 in (source, to)
    network.run_until(lambda: network.in_one_view((0, 1)))
    network.loses = lambda source, to, header: False
    network.form_view()


@pytest.mark.parametrize(("make_cluster", "make_frame"), CASES)
def test_a_daemon_goes_on_after(make_cluster: MakeCluster, make_frame: MakeFrame) -> None:
    network = quiet(make_cluster)
    frame = make_frame(network.daemons[0].engine.machine.view)
    network.give(0, Datagram(codec_of(B, network.cluster).encode(frame)))
    network.submit(0, 1, b"before", Service.AGREED)
    network.run(SECOND_US)
    part_and_merge(network)
    network.submit(0, 2, b"after", Service.AGREED)
    network.run_until(lambda: all(b"after" in network.payloads(rank) for rank in range(3)))
    assert network.in_one_view((0, 1, 2))


def test_a_life_that_could_not_be_sent_on_is_no_sender() -> None:
    """Whoever is heard is listed in our own ALIVEs: a number there that nobody takes would make us mute."""
    network = quiet(one_site)
    head = codec_of(Life(2, 2**62), network.cluster).encode(working(network.daemons[0].engine.machine.view))
    before = dict(network.daemons[0].engine.machine.hearing.peers)
    network.give(0, Datagram(head))
    assert network.daemons[0].kit.count[Family.FRAME_REJECTED.of("malformed frame")] == 1
    assert network.daemons[0].engine.machine.hearing.peers == before


@pytest.mark.parametrize("service", [service for service in Service if service is not Service.UNRELIABLE])
def test_an_unreliable_bundle_that_claims_a_stronger_service_is_dropped_and_counted(service: Service) -> None:
    network = quiet(one_site)
    before = sum(network.daemons[0].kit.count.values())
    frame = unreliable(network.daemons[0].engine.machine.view, 1, service)
    network.give(0, Datagram(codec_of(B, network.cluster).encode(frame)))
    assert network.delivered(0) == []
    assert sum(network.daemons[0].kit.count.values()) == before + 1


def test_a_jump_of_an_unreliable_stream_costs_nothing() -> None:
    network = quiet(one_site)
    view = network.daemons[0].engine.machine.view
    for fifo_number in (1, 2**62):
        network.give(0, Datagram(codec_of(B, network.cluster).encode(unreliable(view, fifo_number))))
    assert len(network.delivered(0)) == 2


@pytest.mark.parametrize("sender", [Life(1, 7), Life(2, 7)])
def test_a_token_of_who_is_not_a_member_is_dropped_and_counted(sender: Life) -> None:
    network = quiet(one_site)
    daemon = network.daemons[0]
    before = sum(daemon.kit.count.values())
    effects = network.give(0, Datagram(codec_of(sender, network.cluster).encode(token(daemon.engine.machine.view))))
    assert effects == []
    assert sum(daemon.kit.count.values()) == before + 1
