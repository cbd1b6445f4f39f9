"""One daemon with the engine of a page, as far as a peer looks at a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from covey.cluster import one_site
from covey.config import Settings
from covey.ids import Life
from covey.protocol.daemon import Daemon
from covey.protocol.dialects.dialect import Dialect
from covey.protocol.dialects.known import DIALECTS
from covey.protocol.effects import Effect
from covey.protocol.inputs import Input
from covey.protocol.portions import PORTIONS, Portions
from tests.unit.protocol.network import START_US, TinyNetwork, instant
from tests.unit.protocol.peers import Peer
from tests.unit.protocol.solo_engine import SoloEngine


class SoloHouse:
    """The daemon of the highest rank in its cluster."""

    def __init__(
        self, dialects: Mapping[str, Dialect] = DIALECTS, daemons: int = 1, portions: Portions = PORTIONS
    ) -> None:
        self.now = START_US
        self.rank = daemons - 1
        self.cluster, self.life = one_site(daemons), Life(self.rank, 1)
        self.daemon = Daemon(
            self.cluster, self.life, Settings(), instant(self.now), SoloEngine, portions=portions, dialects=dialects
        )
        self.daemons = {self.rank: self.daemon}
        self.effects: dict[int, list[Effect]] = {self.rank: self.daemon.start(instant(self.now))}

    def peer(self, connection: int, name: str) -> Peer:
        """A native one, let in under this name."""
        peer = Peer(cast("TinyNetwork", self), self.rank, connection)
        peer.hello(name)
        return peer

    def give(self, rank: int, *inputs: Input) -> list[Effect]:
        effects = self.daemons[rank].step(instant(self.now), list(inputs))
        self.daemons[rank].check(full=True)
        self.effects[rank] += effects
        return effects

    def run(self, microseconds: int) -> None:
        self.now += microseconds
        self.give(self.rank)
