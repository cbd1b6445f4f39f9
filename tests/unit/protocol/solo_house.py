"""One daemon with the engine of a page, as far as a peer looks at a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from covey.config import Settings, one_site
from covey.ids import Life
from covey.protocol.daemon import Daemon
from covey.protocol.dialects.dialect import Dialect
from covey.protocol.dialects.known import DIALECTS
from covey.protocol.effects import Effect
from covey.protocol.inputs import Input
from tests.unit.protocol.network import START_US, TinyNetwork, instant
from tests.unit.protocol.peers import Peer
from tests.unit.protocol.solo_engine import SoloEngine


class SoloHouse:
    def __init__(self, dialects: Mapping[str, Dialect] = DIALECTS) -> None:
        self.now = START_US
        daemon = Daemon(one_site(1), Life(0, 1), Settings(), instant(self.now), SoloEngine, dialects=dialects)
        self.daemons = {0: daemon}
        self.effects: dict[int, list[Effect]] = {0: daemon.start(instant(self.now))}

    def peer(self, connection: int, name: str) -> Peer:
        """A native one, let in under this name."""
        peer = Peer(cast("TinyNetwork", self), connection=connection)
        peer.hello(name)
        return peer

    def give(self, rank: int, *inputs: Input) -> list[Effect]:
        effects = self.daemons[rank].step(instant(self.now), list(inputs))
        self.daemons[rank].check(full=True)
        self.effects[rank] += effects
        return effects

    def run(self, microseconds: int) -> None:
        self.now += microseconds
        self.give(0)
