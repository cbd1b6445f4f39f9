"""What every part of this engine shares: the daemon's context, the bytes of its frames, and the clock of its stamps."""

from __future__ import annotations

from dataclasses import dataclass, field

from covey.config import digest
from covey.ids import Instant, Life
from covey.protocol.effects import Send
from covey.protocol.kit import Kit

from .clock import StampClock
from .codec import Codec
from .frames import Frame


@dataclass(slots=True)
class EvsKit(Kit):
    codec: Codec
    clock: StampClock

    site: int = field(init=False)
    """The source of what this daemon sends: numbers and stamps count in a site."""

    def __post_init__(self) -> None:
        self.site = self.site_of(self.me)

    def site_of(self, life: Life) -> int:
        return self.cluster.daemons[life.rank].site

    def send(self, to: tuple[int, ...], frame: Frame) -> Send:
        return Send(to, self.codec.encode(frame))


def evs_kit(kit: Kit, start: Instant) -> EvsKit:
    codec = Codec(kit.cluster.name, digest(kit.cluster, kit.settings), kit.me)
    clock = StampClock(start, kit.settings.skew_max_ms * 1_000)
    return EvsKit(kit.me, kit.cluster, kit.settings, kit.count, kit.deadlines, codec, clock)
