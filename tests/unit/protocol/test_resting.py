"""The token stays where the only sender is, for a while; and goes on as soon as anybody waits for it."""

from __future__ import annotations

from typing import Any

from covey.cluster import one_daemon_sites, one_site
from covey.config import Settings
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Send, Stopped
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Ack, Data, Floor, Hurry, Parked, Token
from covey.protocol.evs.links.floors import TwoVisits, visit
from covey.protocol.evs.links.lines import DIRECT_RING_MAX
from covey.protocol.inputs import Datagram, Stop
from covey.protocol.values import Service
from tests.unit.protocol.network import DELAY_US, SECOND_US, TinyNetwork
from tests.unit.protocol.ringhouse import SMALL, RingHouse

MS = 1_000
REST_US = Settings().token_rest_ms * MS


def three(**settings: Any) -> TinyNetwork:
    network = TinyNetwork(one_site(3), Settings(**settings))
    network.form_view()
    network.run(SECOND_US)
    return network


def holders(network: TinyNetwork) -> list[int]:
    return [rank for rank in range(3) if network.daemons[rank].engine.operation.snapshot()["token_is_here"]]


def say(network: TinyNetwork, rank: int, seq: int, service: Service = Service.AGREED) -> None:
    network.submit(rank, seq, b"x", service)


def test_an_idle_token_rests_with_who_sent_last() -> None:
    network = three()
    for seq, rank in enumerate((0, 2, 1, 2), start=1):
        say(network, rank, seq)
        network.run(SECOND_US)
        assert holders(network) == [rank]


def test_the_only_sender_keeps_the_token_for_a_while_and_then_passes_it_on() -> None:
    network = three()
    say(network, 1, 1)
    network.run(SECOND_US)
    say(network, 1, 2)
    network.run(REST_US // 2)
    assert holders(network) == [1]
    assert network.payloads(0) == network.payloads(2) == [b"x", b"x"]
    assert not network.all_settled()
    network.run(2 * REST_US)
    assert network.all_settled()


def test_what_it_sends_meanwhile_costs_a_step_at_each_daemon_and_no_more() -> None:
    network = three()
    say(network, 0, 1)
    network.run(SECOND_US)
    before = {rank: len(steps) for rank, steps in network.steps.items()}
    for seq in (2, 3, 4):
        say(network, 0, seq)
        network.run(REST_US // 8)
    assert [len(network.steps[rank]) - before[rank] for rank in (1, 2)] == [3, 3]


def test_who_else_wants_to_send_gets_the_token_at_once() -> None:
    network = three()
    say(network, 0, 1)
    network.run(SECOND_US)
    say(network, 0, 2)
    network.run(MS)
    say(network, 1, 1)
    network.run(REST_US // 2)
    assert len(network.payloads(2)) == 3


def test_where_two_send_the_token_does_not_stay() -> None:
    network = three()
    for seq in range(1, 20):
        say(network, 0, seq)
        say(network, 1, seq)
        network.run(2 * MS)
        assert not any(network.daemons[rank].kit.deadlines.is_set(EvsDeadline.REST) for rank in range(3))


def test_a_safe_message_does_not_wait_for_the_end_of_a_stay() -> None:
    network = three()
    say(network, 0, 1)
    network.run(SECOND_US)
    say(network, 0, 2)
    say(network, 0, 3, Service.SAFE)
    network.run(REST_US // 2)
    assert [len(network.payloads(rank, Service.SAFE)) for rank in range(3)] == [1, 1, 1]


def hops(network: TinyNetwork) -> int:
    number = network.daemons[0].engine.operation.snapshot()["token"]
    assert isinstance(number, int)
    return number


def test_a_token_that_has_come_back_waits_for_the_next_message_of_the_only_sender() -> None:
    network = three()
    for seq in range(1, 20):
        say(network, 0, seq)
        network.run(2 * MS)
    before = hops(network)
    for seq in range(20, 100):
        say(network, 0, seq)
        network.run(2 * MS)
    stays = 80 * 2 * MS // REST_US
    assert hops(network) - before <= 3 * (stays + 1)
    assert all(network.daemons[rank].kit.count.get(Counter.TOKEN_PARKED, 0) <= 2 for rank in range(3))


def test_who_wants_to_send_gets_a_token_that_waits_without_a_word() -> None:
    network = three()
    for seq in range(1, 20):
        say(network, 0, seq)
        network.run(2 * MS)
    network.run_until(lambda: not network.daemons[0].engine.operation.order.has_unstable())
    assert holders(network) == [0]
    say(network, 1, 1)
    network.run(MS)
    assert [len(network.payloads(rank)) for rank in range(3)] == [20, 20, 20]


def test_a_daemon_that_stops_does_not_wait_for_the_end_of_a_stay() -> None:
    for stopped in range(3):
        network = three()
        for seq in range(1, 6):
            say(network, 0, seq)
            network.run(MS)
        network.give(stopped, Stop())
        network.run(2 * MS)
        assert Stopped() in network.effects[stopped]


# --- safe messages


def acknowledgements(network: TinyNetwork, rank: int) -> list[Ack]:
    codec = network.daemons[0].engine.kit.codec
    frames = [codec.decode(effect.data).frame for effect in network.effects[rank] if isinstance(effect, Send)]
    return [frame for frame in frames if isinstance(frame, Ack)]


def delivered_safe(network: TinyNetwork) -> list[int]:
    return [len(network.payloads(rank, Service.SAFE)) for rank in range(len(network.daemons))]


def test_a_safe_message_of_the_only_sender_takes_two_hops() -> None:
    network = three()
    say(network, 0, 1)
    network.run(SECOND_US)
    say(network, 0, 2, Service.SAFE)
    network.run(DELAY_US)
    assert delivered_safe(network) == [0, 0, 0]
    network.run(DELAY_US)
    assert delivered_safe(network) == [1, 1, 1]
    assert holders(network) == [0]
    assert [len(acknowledgements(network, rank)) for rank in range(3)] == [0, 1, 1]


def test_one_acknowledgement_of_two_is_not_enough_and_the_token_brings_the_other() -> None:
    network = three()
    say(network, 0, 1)
    network.run(SECOND_US)
    network.loses = lambda source, to, header: isinstance(header.frame, Ack) and source == 2
    say(network, 0, 2, Service.SAFE)
    network.run(REST_US // 2)
    assert delivered_safe(network) == [0, 0, 1]
    network.run(2 * REST_US)
    assert delivered_safe(network) == [1, 1, 1]


def test_who_misses_a_message_acknowledges_nothing_behind_it() -> None:
    network = three()
    say(network, 0, 1)
    network.run(SECOND_US)
    network.loses = lambda source, to, header: isinstance(header.frame, Data) and to == 1
    say(network, 0, 2)
    network.run(MS)
    network.loses = lambda source, to, header: isinstance(header.frame, Token)
    say(network, 0, 3, Service.SAFE)
    network.run(REST_US // 2)
    assert acknowledgements(network, 1) == []
    assert delivered_safe(network) == [0, 0, 0]


def test_an_acknowledgement_may_come_before_what_it_is_about() -> None:
    network = three()
    say(network, 0, 1)
    network.run(SECOND_US)
    kept: list[Datagram] = []
    network.loses = lambda source, to, header: isinstance(header.frame, Data) and to == 1
    say(network, 0, 2, Service.SAFE)
    kept += [Datagram(effect.data) for effect in network.effects[0][-3:] if isinstance(effect, Send)]
    network.loses = lambda source, to, header: False
    network.run(DELAY_US)
    network.run(DELAY_US)
    network.give(1, *kept)
    assert delivered_safe(network) == [0, 1, 0]
    network.run(DELAY_US)
    assert delivered_safe(network) == [1, 1, 1]


def test_in_a_large_ring_safe_messages_wait_for_the_token() -> None:
    for daemons, said in ((DIRECT_RING_MAX, True), (DIRECT_RING_MAX + 1, False)):
        network = TinyNetwork(one_site(daemons), Settings())
        network.form_view()
        network.run(SECOND_US)
        say(network, 0, 1, Service.SAFE)
        network.run(SECOND_US)
        assert delivered_safe(network) == [1] * daemons
        assert bool(acknowledgements(network, 1)) is said


def test_the_acknowledgement_of_a_daemon_elsewhere_is_dropped() -> None:
    network = three()
    stamper = network.daemons[0].engine.operation.stamper
    frame = Ack(network.daemons[0].engine.machine.view, 5)
    assert stamper.on_site_frame(3, frame, network.now) == [Dropped(Counter.FRAME_MISDIRECTED)]


def test_a_packet_that_was_lost_while_the_token_stays_is_asked_for_when_the_next_comes() -> None:
    network = three()
    say(network, 0, 1)
    network.run(SECOND_US)
    network.loses = lambda source, to, header: isinstance(header.frame, Data) and to == 1
    say(network, 0, 2)
    network.run(MS // 2)
    network.loses = lambda source, to, header: False
    say(network, 0, 3)
    network.run(REST_US // 2)
    assert len(network.payloads(1)) == 3


def test_where_it_may_not_stay_it_goes_round() -> None:
    network = three(token_rest_ms=0)
    say(network, 0, 1)
    network.run(SECOND_US)
    say(network, 0, 2)
    assert holders(network) == []


def test_between_sites_there_is_no_stay() -> None:
    network = TinyNetwork(one_daemon_sites(3), Settings())
    network.form_view()
    say(network, 0, 1)
    assert not network.daemons[0].kit.deadlines.is_set(EvsDeadline.REST)


def test_several_turns_of_one_visit_count_once() -> None:
    """With two visits counted, the second turn would believe what members that are not visited yet cannot have."""
    everywhere = TwoVisits()
    everywhere.see(5)
    everywhere.revise(9)
    assert everywhere.usable == 0
    everywhere.see(7)
    assert everywhere.usable == 7
    assert visit(Floor(9, -1), 7, 2, 9) == Floor(7, 2)


def test_the_floors_of_a_ring_whose_token_stays_are_never_above_what_a_member_has() -> None:
    house = RingHouse(3, SMALL)
    house.run()
    for member in house.members:
        member.may_rest = True
    house.loses = lambda to, frame: isinstance(frame, Data) and to == 2 and frame.packet_seq % 2 == 0
    for _ in range(6):
        house.submit(0, 1)
        for _ in range(7):
            house.hop()
            low = min(member.line for member in house.members)
            assert all(member.ring.line_everywhere.usable <= low for member in house.members)


def test_a_stay_is_said_in_the_packets_and_not_by_words_of_its_own() -> None:
    network = three()
    say(network, 0, 1)
    network.run(SECOND_US)
    sent = len(network.effects[0])
    say(network, 0, 2)
    codec = network.daemons[1].engine.kit.codec
    frames = [codec.decode(effect.data).frame for effect in network.effects[0][sent:] if hasattr(effect, "data")]
    assert [frame.kept_line > 0 for frame in frames if isinstance(frame, Data)] == [True]
    assert not [frame for frame in frames if isinstance(frame, Token | Parked | Hurry)]
