"""How the members of an attempt reach one another: inside a site at once, between sites along the trees (rule W17).

In:        frames of the attempt, and for whom; what others have passed on.
Out:       datagrams to site-mates, frames on links; a frame that is for us.
Not here:  what the frames say (exchange.py), which way it is (links/relay.py).

Who does not speak for its site hands what is for other sites to who does. Each of these passes it on: to its own site
as it was said, in the name of who said it, and to those of its children below whom there is somebody whom it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from covey.errors import FrameError
from covey.ids import Life
from covey.protocol.bits import from_bits, to_bits
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Effect, Send

from .decisions import Attempt
from .frames import AttemptFrame, PassedOn
from .kit import EvsKit
from .links.link import Link, QueueClass
from .links.relay import Relay
from .tree import tree


class Handed(NamedTuple):
    """What is to be done with something that was passed to us."""

    effects: list[Effect]
    sender: Life
    frame: AttemptFrame | None
    """If it is for us too."""


class Ways:
    def __init__(self, kit: EvsKit, attempt: Attempt, make: Callable[[int], Link]) -> None:
        self.ballot = attempt.ballot
        self._kit = kit
        self.members = attempt.members
        self._relay = Relay(kit.cluster, kit.me, attempt.members, attempt.links)
        self._links = {peer: make(peer) for peer in self._relay.peers}
        self._costs = tree(self._relay.sites, attempt.links, kit.site).costs

    def distance(self, life: Life) -> tuple[int, int]:
        """To compare who is near: those of our own site first, then by the cost of the path; then by rank."""
        site = self._kit.site_of(life)
        return 0 if site == self._kit.site else 1 + self._costs[site], life.rank

    def send(self, to: Iterable[Life], frame: AttemptFrame, now_us: int) -> list[Effect]:
        return self._send_out(self._kit.site, to, self._kit.codec.encode(frame), now_us)

    def _send_out(self, source: int, to: Iterable[Life], data: bytes, now_us: int) -> list[Effect]:
        """As somebody in this site said it."""
        site_of, site = self._kit.site_of, self._kit.site
        lives = [life for life in to if life != self._kit.me]
        near = tuple([life.rank for life in lives if site_of(life) == site])
        effects: list[Effect] = [Send(near, data)] if near else []
        far = {life for life in lives if site_of(life) != site}
        return effects + self._send_far(source, far, data, now_us) if far else effects

    def _send_far(self, source: int, far: Collection[Life], data: bytes, now_us: int) -> list[Effect]:
        relay, effects = self._relay, list[Effect]()
        if not relay.speaks:
            passed = self._passed(far, data)
            return [Send((relay.representative,), passed)] if relay.representative >= 0 else []
        for child in relay.children(source):
            below = [life for life in far if relay.is_below(source, child, self._kit.site_of(life))]
            if below:
                effects += self._links[child].send(QueueClass.CONTROL, self._passed(below, data), now_us)
        return effects

    def _passed(self, to: Collection[Life], data: bytes) -> bytes:
        bits = to_bits([at for at, life in enumerate(self.members) if life in to])
        return self._kit.codec.encode(PassedOn(self.ballot, bits, self._kit.codec.without_prefix(data)))

    def passed(self, sender: Life, frame: PassedOn, now_us: int) -> Handed | Dropped:
        """Pass it on to whom else it is for."""
        data = self._kit.codec.with_prefix(frame.data)
        try:
            origin, inner = self._kit.codec.decode(data)
        except FrameError:
            return Dropped(Counter.PASSED_IMPOSSIBLE)
        places = from_bits(frame.to)
        if not isinstance(inner, AttemptFrame) or inner.attempt != self.ballot or origin not in self.members:
            return Dropped(Counter.PASSED_IMPOSSIBLE)
        if not self._relay.speaks or not places or places[-1] >= len(self.members):
            return Dropped(Counter.PASSED_IMPOSSIBLE)
        source = self._kit.site_of(origin)
        if sender.rank != (origin.rank if source == self._kit.site else self._relay.comes_from(source)):
            return Dropped(Counter.FRAME_WRONG_WAY)
        to = [self.members[at] for at in places]
        effects = self._send_out(source, [life for life in to if life != origin], data, now_us)
        return Handed(effects, origin, inner if self._kit.me in to else None)
