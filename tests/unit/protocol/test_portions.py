"""What one step does for clients: so much and no more, and nothing is lost or told twice where it is cut."""

from __future__ import annotations

import pytest

from covey.protocol.portions import Portions
from covey.protocol.values import Service
from covey.protocol.wire.bodies import SELF_DISCARD
from covey.protocol.wire.words import Arrived, JoinGroup
from tests.unit.protocol.peers import Peer, kinds, network


@pytest.mark.parametrize("service", [Service.UNRELIABLE, Service.AGREED])
@pytest.mark.parametrize("left", range(1, 5))
def test_what_its_sender_does_not_want_back_comes_once_wherever_a_step_ends(left: int, service: Service) -> None:
    house = network(portions=Portions(told=left))
    peers = [Peer(house, connection=number) for number in range(3)]
    for number, peer in enumerate(peers):
        peer.hello(f"p{number}")
        peer.say(JoinGroup("room"))
    for peer in peers:
        peer.read()
    peers[0].send("room", flags=SELF_DISCARD, service=service)
    assert kinds(peers[0].read()) == ["Discarded"]
    for peer in peers[1:]:
        assert [isinstance(word, Arrived) for word in peer.read()] == [True]
