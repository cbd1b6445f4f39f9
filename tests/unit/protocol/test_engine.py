"""One daemon through its door: what it takes, what it refuses, and how a few of them form views and deliver."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from covey.cluster import Cluster, one_daemon_sites, one_site
from covey.config import Settings
from covey.ids import Instant, Life
from covey.protocol.counters import Counter, Family
from covey.protocol.daemon import Daemon
from covey.protocol.effects import Deliver, Effect, Notice, Refused, Stamped, Stopped
from covey.protocol.evs.codec import Codec
from covey.protocol.evs.engine import EvsEngine
from covey.protocol.evs.frames import Chunk, Data, Floor, Goodbye, Hurry, Token
from covey.protocol.evs.states import State
from covey.protocol.inputs import Datagram, PeerRefused, Stop, Submit
from covey.protocol.values import Service
from tests.unit.protocol.builders import VIEW, B, alive, codec_of, frames_in
from tests.unit.protocol.network import SECOND_US, START_US, TinyNetwork, instant, make_daemon

RELIABLE_OR_STRONGER = [service for service in Service if service is not Service.UNRELIABLE]
CLUSTERS = pytest.mark.parametrize("make_cluster", [one_site, one_daemon_sites], ids=["ring", "alone"])
MakeCluster = Callable[[int], Cluster]


def together(cluster: Cluster, settings: Settings | None = None) -> TinyNetwork:
    network = TinyNetwork(cluster, settings)
    network.form_view()
    return network


def submit(daemon: Daemon[EvsEngine], payload: bytes, service: Service = Service.AGREED) -> list[Effect]:
    return daemon.step(instant(START_US), [Submit(1, 1, service, payload)])


def refusals(effects: list[Effect]) -> list[str]:
    return [effect.reason for effect in effects if isinstance(effect, Refused)]


# --- submissions


def test_a_message_that_is_too_large_is_refused() -> None:
    daemon = make_daemon(one_site(1), 0, Settings(message_bytes_max=10))
    assert refusals(submit(daemon, bytes(11))) == ["the message is too large"]
    assert refusals(submit(daemon, bytes(10))) == []


def test_a_message_beyond_the_queue_is_refused_and_names_its_session() -> None:
    daemon = make_daemon(one_site(1), 0, Settings(submit_queue_bytes=10_000))
    submit(daemon, bytes(9_000))
    effects = daemon.step(instant(START_US), [Submit(5, 70, Service.FIFO, bytes(9_000))])
    assert effects == [Refused(5, 70, "the send queue is full")]


def test_an_unreliable_message_must_fit_one_bundle() -> None:
    daemon = make_daemon(one_site(1), 0, Settings(bundle_bytes=512))
    assert refusals(submit(daemon, bytes(513), Service.UNRELIABLE)) == ["an unreliable message must fit one bundle"]


def test_a_stopping_daemon_takes_nothing() -> None:
    daemon = make_daemon(one_site(1), 0)
    daemon.step(instant(START_US), [Stop()])
    assert refusals(submit(daemon, b"x")) == ["the daemon is stopping"]


def test_every_refusal_is_counted() -> None:
    daemon = make_daemon(one_site(1), 0, Settings(message_bytes_max=10))
    for _ in range(3):
        submit(daemon, bytes(11))
    assert daemon.kit.count == {Family.SUBMISSION_REFUSED.of("the message is too large"): 3}


@pytest.mark.parametrize(
    "wrong",
    [
        Submit(1, 1, Service.AGREED, b"x", 1, tuple(f"group {number}" for number in range(300))),
        Submit(1, 1, Service.AGREED, b"x", 1, ("g" * 70_000,)),
        Submit(1, 1, Service.AGREED, b"x", 0),
        Submit(1, 1, Service.UNRELIABLE, b"x", 1, ("g" * 70_000,)),
    ],
    ids=["too many groups", "a group name too long", "no message", "an unreliable message"],
)
def test_what_does_not_fit_the_wire_is_refused(wrong: Submit) -> None:
    network = together(one_site(1))
    assert len(refusals(network.give(0, wrong))) == 1


# --- alone


@pytest.mark.parametrize("others", [0, 2], ids=["configured alone", "nobody else there"])
def test_a_daemon_alone_forms_a_view_of_itself(others: int) -> None:
    network = TinyNetwork(one_site(1 + others))
    network.loses = lambda source, to, header: True
    network.run_until(lambda: network.in_one_view((0,)))
    (view,) = network.views(0)
    assert (view.previous, view.members, view.transitional, view.cause) == (None, (Life(0, 1),), (Life(0, 1),), "start")


@pytest.mark.parametrize("service", Service)
def test_a_daemon_alone_delivers_its_own_messages(service: Service) -> None:
    network = together(one_site(1))
    network.submit(0, 1, b"hello", service)
    network.run(SECOND_US)
    assert network.payloads(0) == [b"hello"]
    assert network.all_settled()


def test_what_was_submitted_before_the_first_view_is_delivered_in_it() -> None:
    network = TinyNetwork(one_site(1))
    network.submit(0, 1, b"early", Service.SAFE)
    network.form_view()
    network.run(SECOND_US)
    assert network.payloads(0) == [b"early"]
    assert network.delivered(0)[0].view == network.views(0)[0].view


def test_an_unreliable_message_without_a_view_is_lost() -> None:
    network = TinyNetwork(one_site(1))
    assert network.submit(0, 1, b"early", Service.UNRELIABLE) == []
    network.form_view()
    assert network.payloads(0) == []


def test_a_large_message_is_delivered_whole() -> None:
    network = together(one_site(1))
    payload = bytes(range(256)) * 1_000
    network.submit(0, 1, payload, Service.AGREED)
    network.run(SECOND_US)
    assert network.payloads(0) == [payload]


def test_a_message_is_stamped_before_it_is_delivered() -> None:
    network = together(one_site(1))
    network.submit(0, 1, b"x", Service.AGREED)
    kinds = [type(effect) for effect in network.effects[0] if isinstance(effect, Stamped | Deliver)]
    assert kinds == [Stamped, Deliver]


# --- together


@CLUSTERS
@pytest.mark.parametrize("count", [2, 3, 5])
def test_daemons_that_hear_each_other_form_one_view(make_cluster: MakeCluster, count: int) -> None:
    network = together(make_cluster(count))
    assert len({network.views(rank)[-1].view for rank in range(count)}) == 1


@CLUSTERS
@pytest.mark.parametrize("service", Service)
def test_everyone_delivers_what_anyone_sends(make_cluster: MakeCluster, service: Service) -> None:
    network = together(make_cluster(3))
    for rank in range(3):
        for seq in range(1, 6):
            network.submit(rank, seq, f"{rank}.{seq}".encode(), service)
    network.run(SECOND_US)
    sent = sorted(f"{rank}.{seq}".encode() for rank in range(3) for seq in range(1, 6))
    assert [sorted(network.payloads(rank)) for rank in range(3)] == [sent] * 3
    assert network.all_settled()


@CLUSTERS
def test_everyone_delivers_strong_messages_in_the_same_order(make_cluster: MakeCluster) -> None:
    network = together(make_cluster(3))
    for seq in range(1, 11):
        for rank in range(3):
            network.submit(rank, seq, f"{rank}.{seq}".encode(), (Service.AGREED, Service.SAFE, Service.CAUSAL)[seq % 3])
        network.run(500)
    network.run(SECOND_US)
    assert len(network.payloads(0)) == 30
    assert network.payloads(0) == network.payloads(1) == network.payloads(2)


@CLUSTERS
def test_large_messages_of_several_senders_are_delivered_whole(make_cluster: MakeCluster) -> None:
    network = together(make_cluster(2))
    large = [bytes([rank]) * 100_000 for rank in range(2)]
    for rank, payload in enumerate(large):
        network.submit(rank, 1, payload, Service.AGREED)
    network.run(2 * SECOND_US)
    assert [sorted(network.payloads(rank)) for rank in range(2)] == [large] * 2


@CLUSTERS
def test_a_quiet_view_stays_as_it_is(make_cluster: MakeCluster) -> None:
    network = together(make_cluster(3))
    network.run(10 * SECOND_US)
    assert [len(network.views(rank)) for rank in range(3)] == [1, 1, 1]


def test_a_quiet_ring_sends_no_token() -> None:
    network = together(one_site(3))
    network.run(SECOND_US)
    for rank in range(3):
        network.effects[rank].clear()
    network.run(SECOND_US)
    sent = [
        frame for rank in range(3) for frame in frames_in(network.effects[rank], network.daemons[0].engine.kit.codec)
    ]
    assert sent
    assert not any(isinstance(frame, Token) for frame in sent)


# --- views change


def isolate(network: TinyNetwork, rank: int) -> None:
    network.loses = lambda source, to, header: rank in (source, to)


@CLUSTERS
def test_a_partition_and_a_merge_leave_everyone_in_one_view(make_cluster: MakeCluster) -> None:
    network = together(make_cluster(3))
    isolate(network, 2)
    network.run_until(lambda: network.in_one_view((0, 1)) and network.in_one_view((2,)))
    network.loses = lambda source, to, header: False
    network.form_view()
    a, b, c = (Life(rank, 1) for rank in range(3))
    assert [view.members for view in network.views(0)] == [(a, b, c), (a, b), (a, b, c)]
    assert [view.transitional for view in network.views(0)] == [(a,), (a, b), (a, b)]
    assert [view.cause for view in network.views(0)] == ["start", "loss", "merge"]
    assert network.views(2)[-1].transitional == (c,)


@CLUSTERS
def test_a_signal_comes_before_every_view_but_the_first(make_cluster: MakeCluster) -> None:
    network = together(make_cluster(2))
    isolate(network, 1)
    network.run_until(lambda: network.in_one_view((0,)))
    assert network.story(0) == ["view", "signal", "view"]


@CLUSTERS
def test_what_a_cut_off_daemon_sends_is_delivered_by_itself_and_by_nobody_else(make_cluster: MakeCluster) -> None:
    network = together(make_cluster(3))
    isolate(network, 2)
    network.submit(2, 1, b"alone", Service.SAFE)
    network.run_until(lambda: network.in_one_view((0, 1)) and network.in_one_view((2,)))
    network.run(SECOND_US)
    assert [network.payloads(rank) for rank in range(3)] == [[], [], [b"alone"]]


@CLUSTERS
def test_members_of_the_next_view_deliver_the_same_before_it(make_cluster: MakeCluster) -> None:
    """One of them misses every packet of a daemon that is then cut off."""
    network = together(make_cluster(3))
    network.loses = lambda source, to, header: (source, to) == (2, 1) and isinstance(header.frame, Data)
    for seq in range(1, 4):
        network.submit(2, seq, f"last {seq}".encode(), Service.RELIABLE)
    network.run_until(lambda: len(network.payloads(0)) == 3)
    assert network.payloads(1) == []
    isolate(network, 2)
    network.run_until(lambda: network.in_one_view((0, 1)))
    assert network.payloads(1) == [b"last 1", b"last 2", b"last 3"]
    assert network.story(1) == ["view", "signal", "message", "message", "message", "view"]


# --- stopping


def test_a_daemon_alone_stops_at_once() -> None:
    network = together(one_site(1))
    assert network.give(0, Stop()) == [Stopped()]
    assert network.daemons[0].next_deadline_us() is None


def test_a_daemon_stops_when_its_messages_are_stable() -> None:
    network = together(one_site(2))
    network.submit(0, 1, b"last words", Service.SAFE)
    assert not any(isinstance(effect, Stopped) for effect in network.give(0, Stop()))
    network.run_until(lambda: isinstance(network.effects[0][-1], Stopped))
    assert network.payloads(0) == [b"last words"]
    network.run(SECOND_US)
    assert network.payloads(1) == [b"last words"]


def test_a_daemon_that_cannot_finish_stops_in_bounded_time() -> None:
    network = together(one_site(2))
    isolate(network, 0)
    network.submit(0, 1, b"lost words", Service.SAFE)
    network.give(0, Stop())
    network.run(SECOND_US)
    assert isinstance(network.effects[0][-1], Stopped)


def test_goodbye_is_the_last_word() -> None:
    network = together(one_site(2))
    network.run(SECOND_US)
    *_, goodbye, again, stopped = network.give(0, Stop())
    frames = frames_in([goodbye, again], network.daemons[0].engine.kit.codec)
    assert all(isinstance(frame, Goodbye) for frame in frames)
    assert isinstance(stopped, Stopped)


def test_a_stopped_daemon_does_nothing_more() -> None:
    network = together(one_site(1))
    network.give(0, Stop())
    assert network.give(0, Submit(1, 1, Service.AGREED, b"x"), Stop(), Datagram(b"?")) == []


# --- what is not ours


def test_bad_datagrams_are_counted_by_their_reason() -> None:
    daemon = make_daemon(one_site(2), 0)
    other = Codec("elsewhere", 1, B)
    daemon.step(instant(START_US), [Datagram(b"noise"), Datagram(b""), Datagram(other.encode(Hurry(VIEW)))])
    assert daemon.kit.count == {
        Family.FRAME_REJECTED.of("not a covey datagram"): 2,
        Family.FRAME_REJECTED.of("another cluster"): 1,
    }


def test_an_outsider_is_named_to_the_operator_once() -> None:
    daemon = make_daemon(one_site(2), 0)
    one = Datagram(Codec("elsewhere", 1, B).encode(Hurry(VIEW)), ("192.0.2.7", 4_801), unlisted=True)
    effects = [effect for _ in range(3) for effect in daemon.step(instant(START_US), [one])]
    notices = [effect.text for effect in effects if isinstance(effect, Notice)]
    assert len(notices) == 1
    assert "'elsewhere'" in notices[0]
    (told,) = daemon.snapshot(START_US)["outsiders"]
    assert (told["source"], told["reason"], told["datagrams"]) == ("192.0.2.7:4801", "another cluster", 3)
    assert told["text"] in notices[0]


def test_who_speaks_as_one_of_ours_from_elsewhere_is_named() -> None:
    cluster = one_site(2)
    daemon = make_daemon(cluster, 0)
    data = codec_of(B, cluster).encode(alive())
    effects = daemon.step(instant(START_US), [Datagram(data, ("192.0.2.7", 99), unlisted=True)])
    (notice,) = [effect.text for effect in effects if isinstance(effect, Notice)]
    assert "192.0.2.7:99" in notice
    assert daemon.datagrams.outcomes_unlisted == {Counter.ACCEPTED: 1}


def test_every_datagram_has_one_outcome() -> None:
    """Also a packet with two bad bundles, though both are counted; and a token, though it waits for the others."""
    network = together(one_site(2))
    daemon, codec = network.daemons[0], codec_of(B, network.cluster)
    view, floor, before = daemon.engine.machine.view, Floor(0, -1), dict(daemon.datagrams.outcomes)
    packet = Data(view, 0, 1, tuple(Chunk(0, number, 0, 1, b"?") for number in (1, 2)))
    token = Token(view, 0, 0, floor, floor, ((0, floor),), 0, 1, 0, 0, ())
    frames = (packet, token, Hurry(view), Hurry(VIEW))
    network.give(0, *(Datagram(codec.encode(frame)) for frame in frames), Datagram(b"?"))
    new = {what: number - before.get(what, 0) for what, number in daemon.datagrams.outcomes.items()}
    assert {what: number for what, number in new.items() if number} == {
        Counter.ACCEPTED: 1,
        Counter.BUNDLE_MALFORMED: 1,
        Counter.TOKEN_DUPLICATE: 1,
        Counter.FRAME_OF_ANOTHER_VIEW: 1,
        Family.FRAME_REJECTED.of("not a covey datagram"): 1,
    }
    assert daemon.kit.count[Counter.BUNDLE_MALFORMED] == 2


def test_a_daemon_that_is_not_configured_is_rejected() -> None:
    cluster = one_site(2)
    daemon = make_daemon(cluster, 0)
    daemon.step(instant(START_US), [Datagram(codec_of(Life(2, 1), cluster).encode(Hurry(VIEW)))])
    assert daemon.kit.count == {Family.FRAME_REJECTED.of("unknown daemon"): 1}


def test_our_own_frame_that_comes_back_is_dropped() -> None:
    cluster = one_site(2)
    daemon = make_daemon(cluster, 0)
    daemon.step(instant(START_US), [Datagram(daemon.engine.kit.codec.encode(Hurry(VIEW)))])
    assert daemon.kit.count == {Counter.FRAME_OUR_OWN: 1}


# --- purity


def drive(wall_step_us: int) -> list[Effect]:
    """A daemon alone from its start to a delivery, while its wall clock is set."""
    daemon = make_daemon(one_site(1), 0)
    effects = daemon.start(instant(START_US))
    now = START_US
    while daemon.engine.machine.state is not State.OP:
        now = daemon.next_deadline_us() or now
        effects += daemon.step(Instant(now, now + wall_step_us), [])
    return effects + daemon.step(Instant(now, now - wall_step_us), [Submit(1, 1, Service.SAFE, b"x")])


def test_the_same_inputs_give_the_same_effects() -> None:
    assert drive(0) == drive(0)


@pytest.mark.parametrize("step_us", [-(10**12), 10**12])
def test_a_step_of_the_wall_clock_changes_nothing(step_us: int) -> None:
    assert drive(step_us) == drive(0)


def test_a_snapshot_tells_a_person_how_the_daemon_is() -> None:
    network = together(one_site(2))
    snapshot = network.daemons[1].snapshot(network.now)
    assert (snapshot["name"], snapshot["state"], snapshot["members"]) == ("b", "op", ["a", "b"])
    assert snapshot["view"] == str(network.views(1)[-1].view)


def test_a_daemon_is_at_rest_when_no_change_is_under_way_and_nothing_waits() -> None:
    network = TinyNetwork(one_site(2))
    assert not network.daemons[0].is_at_rest
    network.form_view()
    network.run_until(lambda: network.daemons[0].is_at_rest)
    network.submit(0, 1, b"x", Service.SAFE)
    assert not network.daemons[0].is_at_rest
    network.run_until(lambda: network.daemons[0].is_at_rest)
    network.give(0, PeerRefused(1))
    assert (network.daemons[0].engine.is_changing, network.daemons[0].is_at_rest) == (True, False)
