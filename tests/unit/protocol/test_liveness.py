"""Life between programs and their daemon: each hears from the other in time, or is given up with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from covey.config import Settings
from covey.protocol.counters import Counter
from covey.protocol.effects import Notice
from covey.protocol.inputs import ClientBytes, ClientConnected
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import MAGIC, VERSION, ClientAlive, DaemonAlive, Ended, Hello, JoinGroup, Word
from tests.unit.protocol.network import SECOND_US, TinyNetwork
from tests.unit.protocol.peers import Peer, differences, kinds, network

SETTINGS = Settings(session_alive_ms=1_000)


def pair(house: TinyNetwork, **asked: int) -> tuple[Peer, Peer]:
    """A watched program and another, both in one group."""
    watched, other = Peer(house), Peer(house, connection=2)
    watched.hello("watched", **asked)  # type: ignore[arg-type]
    other.hello("other")
    for peer in (other, watched):
        peer.say(JoinGroup("room"))
        peer.read()
    other.read()
    return watched, other


@pytest.mark.parametrize(("timeout_ms", "interval_ms"), [(5_000, 1_000), (1_500, 750)])
def test_an_idle_session_hears_from_its_daemon_within_the_interval(timeout_ms: int, interval_ms: int) -> None:
    peer = Peer(network(settings=SETTINGS))
    welcome = peer.hello(daemon_timeout_ms=timeout_ms)
    assert (welcome.alive_interval_ms, welcome.alive_timeout_ms) == (interval_ms, 0)
    silent_ms = longest_ms = 0
    for _ in range(200):
        heard = peer.read(50)
        assert all(isinstance(word, DaemonAlive) for word in heard)
        silent_ms = 0 if heard else silent_ms + 50
        longest_ms = max(longest_ms, silent_ms)
    assert interval_ms / 2 <= longest_ms <= timeout_ms / 2


def test_who_does_not_mind_hears_nothing() -> None:
    peer = Peer(network(settings=SETTINGS))
    assert peer.hello().alive_interval_ms == 0
    assert peer.read(20_000) == []


def test_a_session_that_is_told_things_needs_no_more() -> None:
    watched, other = pair(network(settings=SETTINGS), daemon_timeout_ms=3_000)
    heard: list[str] = []
    for _ in range(50):
        other.send("room")
        heard += kinds(watched.read(100))
    assert heard == ["Arrived"] * 50


@pytest.mark.parametrize("by", ["program", "configuration"])
def test_who_says_nothing_is_given_up_and_its_groups_learn_why(by: str) -> None:
    configured = Settings(session_silence_max_ms=1_500 if by == "configuration" else 0)
    house = network(settings=configured)
    watched, other = pair(house, alive_timeout_ms=1_500 if by == "program" else 0)
    stopped_us = house.now
    while not watched.is_closed:
        assert house.now - stopped_us < 4 * SECOND_US
        other.say(ClientAlive())
        house.run(SECOND_US // 5)
    assert house.now - stopped_us > 1.4 * SECOND_US
    [*_, word] = watched.read()
    assert isinstance(word, Ended)
    assert "it did not answer for" in word.reason
    [view] = [one for one in differences(other.read(0)) if one.cause == "disconnect"][:1]
    assert view.gone == (watched.process,)
    assert "it did not answer for" in view.detail
    assert any(watched.process in text and "did not answer" in text for text in watched.texts(Notice))


@pytest.mark.parametrize("word", [ClientAlive(), JoinGroup("@")])
def test_who_says_anything_lives(word: Word) -> None:
    house = network()
    peer = Peer(house)
    assert peer.hello(alive_timeout_ms=1_500).alive_timeout_ms == 1_500
    for _ in range(30):
        peer.say(word)
        peer.read(400)
    assert not peer.is_closed


def test_half_a_word_is_a_sign_of_life() -> None:
    house = network()
    peer = Peer(house)
    peer.hello(alive_timeout_ms=1_500)
    for byte in encode_word(JoinGroup("room" * 10)):
        peer.write(bytes([byte]))
        peer.read(400)
    assert not peer.is_closed


@pytest.mark.parametrize("reads", [True, False])
def test_who_reads_on_with_much_before_it_lives(reads: bool) -> None:
    """It comes to our question only behind all that."""
    house = network(settings=SETTINGS)
    house.checks = False
    watched, other = pair(house, alive_timeout_ms=1_500)
    for _ in range(50):
        other.send("room", payload=bytes(8_000))
        house.run(1_000)
    for _ in range(20):
        house.run(SECOND_US // 5)
        if reads:
            watched.pull(9_000)
    house.daemons[0].check(full=True)
    assert watched.is_closed is not reads
    watched.pull(1 << 30)
    house.run(3 * SECOND_US)
    assert watched.is_closed


def test_who_is_not_read_is_not_judged_until_it_is() -> None:
    """A sender to a group whose senders wait."""
    small = Settings(session_receive_bytes=20_000, message_bytes_max=3_000, block_percent=100, session_send_bytes=2_000)
    house = network(settings=small)
    slow, watched = Peer(house), Peer(house, connection=2)
    slow.hello("slow", policy="block")
    slow.say(JoinGroup("room"))
    watched.hello("watched", alive_timeout_ms=1_500)
    for _ in range(15):
        watched.send("room", payload=bytes(900))
        house.run(1_000)
    assert not is_read(house, "watched")
    house.run(8 * SECOND_US)
    assert not is_read(house, "watched")
    assert not watched.is_closed
    for _ in range(5):
        slow.read()
        house.run(SECOND_US // 5)
    assert is_read(house, "watched")
    assert not watched.is_closed
    house.run(2 * SECOND_US)
    assert watched.is_closed


def is_read(house: TinyNetwork, name: str) -> bool:
    told: Any = house.daemons[0].clients.snapshot(house.now)
    [session] = [one for one in told["sessions"] if one["name"] == name]
    return bool(session["reading"])


def test_after_a_pause_of_the_daemon_nobody_is_judged_before_it_is_heard() -> None:
    house = network()
    peer = Peer(house)
    peer.hello(alive_timeout_ms=1_500)
    house.now += 60 * SECOND_US
    house.give(0)
    assert not peer.is_closed
    house.give(0, ClientBytes(1, encode_word(ClientAlive())))
    for _ in range(10):
        house.run(SECOND_US // 2)
        peer.say(ClientAlive())
    assert not peer.is_closed


def test_many_programs_that_die_at_once_are_all_given_up() -> None:
    house = network()
    house.checks = False
    for connection in range(1, 40):
        hello = Hello(MAGIC, VERSION, f"p{connection}", 1, "disconnect", 0, 600, 0)
        house.give(0, ClientConnected(connection), ClientBytes(connection, encode_word(hello)))
    house.run(3 * SECOND_US)
    assert house.daemons[0].clients.snapshot(house.now)["session_count"] == 0
    assert house.daemons[0].kit.count[Counter.CLIENT_SILENT] == 39
