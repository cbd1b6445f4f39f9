"""Nothing in the life of a daemon makes rings of objects: no collection of all objects is ever due in one."""

from __future__ import annotations

import gc

from covey.protocol.inputs import ClientGone
from covey.protocol.wire.words import Bye, JoinGroup, LeaveGroup
from tests.unit.protocol.peers import Peer, network


def test_sessions_views_and_errors_leave_no_rings_behind() -> None:
    house = network(2)
    gc.collect()
    gc.disable()
    try:
        for number in range(1, 5):
            peer = Peer(house, rank=number % 2, connection=number)
            peer.hello(f"p{number}")
            peer.say(JoinGroup("room"), JoinGroup("hall"))
            peer.read()
            peer.send("room", "hall", payload=bytes(5_000))
            peer.say(LeaveGroup("room"))
            peer.read()
            if number % 2:
                peer.say(Bye())
            else:
                peer.write(b"\xff" * 20)
            peer.read()
            peer.give(ClientGone(number))
            del peer
        assert gc.collect() == 0
    finally:
        gc.enable()
