"""A view in operation: routes between queue, links and order, on a ring and on a mesh."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from covey.cluster import Cluster, one_daemon_sites, one_site
from covey.config import Settings
from covey.errors import ConfigError
from covey.ids import Life
from covey.protocol.counters import Counter
from covey.protocol.effects import Effect, LinkSend, Notice, Send, Stamped
from covey.protocol.evs.frames import Announce, Chunk, Data, Frame, Parked, Token, Unreliable
from covey.protocol.inputs import Datagram, Submit
from covey.protocol.values import Service
from covey.protocol.wire.bundles import encode_bundle
from tests.unit.protocol.builders import A, B, C, bundle, codec_of, frames_in
from tests.unit.protocol.network import DELAY_US, SECOND_US, TinyNetwork


def quiet(cluster: Cluster, settings: Settings | None = None) -> TinyNetwork:
    """A view in which nothing is outstanding any more."""
    network = TinyNetwork(cluster, settings)
    network.form_view()
    network.run(SECOND_US)
    return network


def give(network: TinyNetwork, rank: int, sender: Life, frame: Frame) -> list[Effect]:
    return network.give(rank, Datagram(codec_of(sender, network.cluster).encode(frame)))


def message(network: TinyNetwork, sender: Life, stamp: int, service: Service, number: int = 1) -> Data:
    """A packet of a one-daemon site with one message."""
    encoding = encode_bundle(bundle(number, stamp, site=sender.rank, origin=sender, service=service))
    return Data(network.daemons[0].engine.machine.view, 0, 0, (Chunk(sender.rank, number, 0, 1, encoding),))


def stamped(effects: list[Effect]) -> list[Stamped]:
    return [effect for effect in effects if isinstance(effect, Stamped)]


def total(network: TinyNetwork, rank: int) -> int:
    """Everything that a daemon has counted."""
    return sum(network.daemons[rank].kit.count.values())


def packets(effects: list[Effect], network: TinyNetwork) -> list[tuple[bytes, Data]]:
    decoded = [
        (one.data, network.daemons[0].engine.kit.codec.decode(one.data).frame)
        for one in effects
        if isinstance(one, Send | LinkSend)
    ]
    return [(data, frame) for data, frame in decoded if isinstance(frame, Data)]


# --- the mesh


def test_a_mesh_sends_data_through_the_reliable_link() -> None:
    network = quiet(one_daemon_sites(2))
    effects = network.submit(0, 1, b"x", Service.AGREED)
    assert [effect.to for effect in effects if isinstance(effect, LinkSend)] == [(1,)]
    assert not any(isinstance(effect, Send) for effect in effects)


def test_small_messages_of_one_step_share_a_packet() -> None:
    network = TinyNetwork(one_daemon_sites(2))
    for seq in range(1, 6):
        network.submit(0, seq, b"x", Service.AGREED)
    network.form_view()
    frames = [frame for _, frame in packets(network.effects[0], network)]
    assert [len(frame.chunks) for frame in frames] == [5]


def test_a_mesh_sends_no_more_than_its_window() -> None:
    network = quiet(one_daemon_sites(2), Settings(source_bundles_unstable=3))
    network.loses = lambda source, to, header: isinstance(header.frame, Announce | Data)
    made = [len(stamped(network.submit(0, seq, b"x", Service.AGREED))) for seq in range(1, 7)]
    assert made == [1, 1, 1, 0, 0, 0]


def test_what_waits_for_the_window_goes_when_the_others_have_the_rest() -> None:
    network = quiet(one_daemon_sites(2), Settings(source_bundles_unstable=3))
    for seq in range(1, 20):
        network.submit(0, seq, bytes([seq]), Service.AGREED)
    network.run(SECOND_US)
    assert network.payloads(1) == [bytes([seq]) for seq in range(1, 20)]


@pytest.mark.parametrize("window", [1, 200])
def test_a_daemon_alone_delivers_however_much_waits(window: int) -> None:
    network = TinyNetwork(one_daemon_sites(1), Settings(source_bundles_unstable=window))
    network.checks = False  # They look at everything that waits after every step.
    network.give(0, *(Submit(1, seq, Service.AGREED, b"x") for seq in range(1, 3_001)))
    network.form_view()
    network.run(SECOND_US)
    assert len(network.payloads(0)) == 3_000


def test_a_quiet_mesh_announces_nothing() -> None:
    network = quiet(one_daemon_sites(3))
    network.submit(0, 1, b"x", Service.SAFE)
    network.run(SECOND_US)
    for rank in range(3):
        network.effects[rank].clear()
    network.run(SECOND_US)
    sent = [
        frame for rank in range(3) for frame in frames_in(network.effects[rank], network.daemons[0].engine.kit.codec)
    ]
    assert not any(isinstance(frame, Announce) for frame in sent)


def test_a_strong_message_waits_for_the_past_of_what_was_delivered_early() -> None:
    network = quiet(one_daemon_sites(3))
    network.loses = lambda source, to, header: isinstance(header.frame, Announce)
    ahead = network.daemons[0].engine.kit.clock.high + 1_000_000
    give(network, 0, B, message(network, B, ahead, Service.RELIABLE))
    assert len(network.delivered(0)) == 1
    assert stamped(network.submit(0, 1, b"after", Service.AGREED)) == []
    give(network, 0, C, Announce(network.daemons[0].engine.machine.view, 2, 0, ahead, 0, (), True))
    assert [b"".join(one.payloads) for one in stamped(network.effects[0])] == [b"after"]


def test_a_weak_message_does_not_wait_for_any_past() -> None:
    network = quiet(one_daemon_sites(3))
    ahead = network.daemons[0].engine.kit.clock.high + 1_000_000
    give(network, 0, B, message(network, B, ahead, Service.RELIABLE))
    assert len(stamped(network.submit(0, 1, b"at once", Service.FIFO))) == 1


def test_our_next_stamp_is_above_every_stamp_seen() -> None:
    network = quiet(one_daemon_sites(2))
    ahead = network.daemons[0].engine.kit.clock.high + 1_000_000
    give(network, 0, B, message(network, B, ahead, Service.FIFO))
    (ours,) = stamped(network.submit(0, 1, b"x", Service.FIFO))
    assert ours.bundle.stamp > ahead


def test_a_clock_far_ahead_is_named_once() -> None:
    network = quiet(one_daemon_sites(2))
    far = network.daemons[0].engine.kit.clock.high + 10**12
    effects = [
        effect
        for number in (1, 2)
        for effect in give(network, 0, B, message(network, B, far + number, Service.FIFO, number))
    ]
    notices = [effect.text for effect in effects if isinstance(effect, Notice)]
    assert len(notices) == 1
    assert " b " in notices[0]


LONG_NAMES = tuple(f"{number:0500}" for number in range(16))


@pytest.mark.parametrize("groups", [(), LONG_NAMES], ids=["no groups", "long names"])
@pytest.mark.parametrize("last_first", [False, True])
def test_a_reliable_link_may_bring_the_pieces_of_a_full_window_in_any_order(
    last_first: bool, groups: tuple[str, ...]
) -> None:
    settings = Settings(source_bundles_unstable=40, ring_packets_unstable=20)
    network = quiet(one_daemon_sites(2), settings)
    network.loses = lambda source, to, header: isinstance(header.frame, Data)
    window, payload = settings.source_bundles_unstable, bytes(settings.bundle_bytes)
    messages = [Submit(1, seq, Service.AGREED, payload, groups=groups) for seq in range(window)]
    effects = [effect for message in messages for effect in network.give(0, message)]

    def place(packet: tuple[bytes, Data]) -> int:
        piece = packet[1].chunks[0].piece
        return -piece if last_first else piece

    network.give(1, *(Datagram(data) for data, _ in sorted(packets(effects, network), key=place)))
    network.run(SECOND_US)
    assert len(network.delivered(1)) == window


# --- the ring


def test_a_ring_delivers_a_message_larger_than_all_its_windows() -> None:
    settings = Settings(ring_packets_unstable=30, ring_packets_per_visit=10, ring_packets_per_rotation=20)
    network = quiet(one_site(3), settings)
    payload = bytes(range(250)) * 2_000
    network.submit(1, 1, payload, Service.SAFE)
    network.run(10 * SECOND_US)
    assert [network.payloads(rank) for rank in range(3)] == [[payload]] * 3
    assert [len(network.views(rank)) for rank in range(3)] == [1, 1, 1]


def test_a_window_smaller_than_one_bundle_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigError):
        Settings(packet_bytes=512, bundle_bytes=8_192, ring_packets_unstable=5, ring_packets_per_visit=5)


@pytest.mark.parametrize("too_large", [{"packet_bytes": 70_000}, {"bundle_bytes": 100_000}])
def test_what_does_not_fit_a_datagram_is_a_mistake_in_the_configuration(too_large: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Settings(**too_large)


def test_a_lost_token_ends_the_view() -> None:
    network = quiet(one_site(3))
    network.loses = lambda source, to, header: isinstance(header.frame, Token | Parked) and len(network.views(0)) == 1
    network.submit(0, 1, b"x", Service.AGREED)
    network.run_until(lambda: network.payloads(2) == [b"x"])
    assert [network.views(rank)[-1].cause for rank in range(3)] == ["loss"] * 3


def test_data_is_taken_before_the_token_that_came_with_it() -> None:
    network = quiet(one_site(2), Settings(token_rest_ms=0))
    network.loses = lambda source, to, header: source == 0
    (holder,) = [rank for rank in range(2) if network.daemons[rank].engine.operation.snapshot()["token_is_here"]]
    effects = network.submit(holder, 1, b"x", Service.SAFE)
    sends = [effect.data for effect in effects if isinstance(effect, Send)]
    other = 1 - holder
    frames = [network.daemons[0].engine.kit.codec.decode(data).frame for data in sends]
    assert [type(frame) for frame in frames] == [Token, Data]
    network.give(other, *map(Datagram, sends))
    passed = [
        frame
        for frame in frames_in(network.effects[other], network.daemons[0].engine.kit.codec)
        if isinstance(frame, Token)
    ]
    assert passed[-1].requests == ()
    assert passed[-1].packet_floor.value == 1


# --- what does not belong


def test_frames_of_the_other_kind_of_view_are_dropped_and_counted() -> None:
    ring, mesh = quiet(one_site(2)), quiet(one_daemon_sites(2))
    for network, frame in (
        (ring, Announce(ring.daemons[0].engine.machine.view, 0, 0, 5, 5, (), True)),
        (mesh, Parked(mesh.daemons[0].engine.machine.view, 5)),
    ):
        before = total(network, 0)
        assert give(network, 0, B, frame) == []
        assert total(network, 0) == before + 1


def test_a_frame_of_another_view_is_dropped_and_counted() -> None:
    network = quiet(one_daemon_sites(2))
    before = total(network, 0)
    packet = message(network, B, 5, Service.RELIABLE)
    give(network, 0, B, replace(packet, view=network.daemons[0].engine.machine.view._replace(counter=1)))
    assert (network.delivered(0), total(network, 0)) == ([], before + 1)


@pytest.mark.parametrize("sender", [C, Life(1, 2)], ids=["not in the view", "another life"])
def test_a_frame_of_who_is_not_a_member_is_dropped_and_counted(sender: Life) -> None:
    network = TinyNetwork(one_daemon_sites(3))
    network.loses = lambda source, to, header: 2 in (source, to)
    network.run_until(lambda: network.in_one_view((0, 1)))
    before = total(network, 0)
    give(network, 0, sender, message(network, B, 5, Service.RELIABLE))
    assert (network.delivered(0), total(network, 0)) == ([], before + 1)


def test_an_unreliable_message_that_comes_twice_is_delivered_once() -> None:
    network = quiet(one_site(2))
    (send,) = [effect for effect in network.submit(0, 1, b"x", Service.UNRELIABLE) if isinstance(effect, Send)]
    network.run(1_000)
    before = total(network, 1)
    network.give(1, Datagram(send.data))
    assert (network.payloads(1), total(network, 1)) == ([b"x"], before + 1)


def test_a_daemon_delivers_its_own_unreliable_message() -> None:
    network = quiet(one_site(2))
    network.submit(0, 1, b"x", Service.UNRELIABLE)
    assert network.payloads(0) == [b"x"]
    assert network.delivered(0)[0].bundle.origin == A


def moments(cluster: Cluster, service: Service, unreliable: int) -> list[tuple[int, int]]:
    """When each daemon delivers one message, sent together with unreliable ones that are all lost."""
    network = quiet(cluster)
    network.loses = lambda source, to, header: isinstance(header.frame, Unreliable)
    for seq in range(unreliable):
        network.submit(0, 1 + seq, bytes(1_000), Service.UNRELIABLE)
    network.submit(0, 1, b"x", service, session=2)
    began, seen = network.now, dict.fromkeys(network.daemons, 0)
    while not all(seen.values()):
        network.run(DELAY_US)
        for rank in [rank for rank, at in seen.items() if not at and network.payloads(rank, service)]:
            seen[rank] = network.now - began
    return sorted(seen.items())


@pytest.mark.parametrize("cluster", [one_site(3), one_daemon_sites(3)], ids=["ring", "alone"])
@pytest.mark.parametrize("service", list(Service)[1:])
def test_lost_unreliable_messages_delay_no_other(cluster: Cluster, service: Service) -> None:
    assert moments(cluster, service, unreliable=50) == moments(cluster, service, unreliable=0)


@pytest.mark.parametrize("cluster", [one_site(3), one_daemon_sites(3)], ids=["ring", "alone"])
def test_a_closed_window_is_counted_and_opens_again(cluster: Cluster) -> None:
    network = quiet(cluster, Settings(ring_bundles_unstable=2, source_bundles_unstable=2))
    for seq in range(1, 31):
        network.submit(0, seq, b"x", Service.AGREED)
    assert len(network.daemons[0].engine.operation.queue) > 20
    network.run(SECOND_US)
    assert network.daemons[0].kit.count[Counter.WINDOW_CLOSED] > 0
    assert [len(network.payloads(rank)) for rank in network.daemons] == [30, 30, 30]


def test_nobody_is_said_to_be_far_ahead_whose_clock_is_right() -> None:
    network = quiet(one_site(3))
    network.submit(0, 1, b"x", Service.AGREED)
    network.run(SECOND_US)
    assert network.payloads(2) == [b"x"]
    assert Counter.STAMP_FAR_AHEAD not in network.daemons[2].kit.count
    assert not [effect for effect in network.effects[2] if isinstance(effect, Notice)]
