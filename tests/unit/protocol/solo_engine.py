"""An ordering engine of a page: it orders within one daemon, at once. It shows that the boundary is complete."""

from __future__ import annotations

from enum import Enum
from typing import Any

from covey.errors import FrameError
from covey.ids import Ballot, Life
from covey.protocol.boundary import EngineReport, Header
from covey.protocol.counters import Dropped
from covey.protocol.effects import Deliver, Effect, Installed, Stamped
from covey.protocol.groups.declared import Declared
from covey.protocol.inputs import Submit
from covey.protocol.kit import Kit
from covey.protocol.status import LinkStatus
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import Bundle, Payload

LINK: LinkStatus = {"kind": "none"}


class Why(Enum):
    ALONE = "it is alone"


class SoloEngine:
    def __init__(self, kit: Kit, queue: SubmitQueue, declared: Declared) -> None:
        self._kit = kit
        self._queue = queue
        self._view = Ballot(1, kit.me.rank, kit.me.boot)
        self._number = 0
        self._pieces: list[Payload] = []
        self._behind = False

    @property
    def is_working(self) -> bool:
        return True

    @property
    def is_changing(self) -> bool:
        return False

    @property
    def is_settled(self) -> bool:
        return not len(self._queue)

    def start(self, now_us: int) -> list[Effect]:
        me = (self._kit.me,)
        return [Installed(None, self._view, me, me, "start", Why.ALONE, "")]

    def submitted(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        while len(self._queue) and not self._behind:
            self._number += 1
            bundle, whole = self._queue.take(self._kit.me.rank, self._number, self._number)
            self._pieces.append(bundle.payload)
            if whole is not None:
                effects.append(Stamped(self._view, bundle, (whole,)))
            if bundle.is_last_fragment:
                pieces, self._pieces = tuple(self._pieces), []
                effects.append(Deliver(self._view, bundle, pieces))
        return effects

    def send_unreliable(self, submit: Submit) -> list[Effect]:
        s, me = submit, self._kit.me
        bundle = Bundle(
            0, 0, 0, me, s.session, s.session_seq, s.count, 1, s.service, 0, 1, s.groups, s.payload, s.kind, s.flags
        )
        return [Stamped(self._view, bundle, (s.payload,)), Deliver(self._view, bundle, (s.payload,))]

    def hold_back(self, behind: bool) -> None:
        self._behind = behind

    def progress(self, now_us: int) -> list[Effect]:
        return self.submitted(now_us)

    # --- there is nobody else

    def decode(self, data: bytes) -> Header:
        raise FrameError("not a covey datagram")

    def comes_last(self, frame: Any) -> bool:
        return False

    def on_frame(self, sender: Life, frame: Any, data: bytes, now_us: int) -> list[Effect | Dropped]:
        return []

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        return []

    def on_peer_refused(self, rank: int, now_us: int) -> list[Effect]:
        return []

    def last_words(self) -> list[Effect]:
        return []

    def report(self, now_us: int) -> EngineReport:
        return EngineReport("op", Why.ALONE.value, self._view, (self._kit.me,), True, LINK, [], [], 0)

    def check(self, full: bool) -> None:
        self._queue.check()
