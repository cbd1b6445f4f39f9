"""An ordering engine of a page that uses all of the boundary: it orders within one daemon, and listens to others.

A frame is a word, after a mark and the rank of who says it. `sleep` stops the view for a second; words that begin with
`late` wait for the others of their step; `mumble` is dropped. Its source is the daemon; numbers count for a whole life.
"""

from __future__ import annotations

from enum import Enum

from covey.errors import FrameError
from covey.ids import Ballot, Life
from covey.protocol.boundary import EngineReport, Header
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Deliver, Effect, Entered, Installed, Notice, Send, Signal, Stamped
from covey.protocol.groups.declared import Declared
from covey.protocol.inputs import Submit
from covey.protocol.kit import Kit
from covey.protocol.status import LinkStatus
from covey.protocol.transport.queue import SubmitQueue
from covey.protocol.values import Bundle, GroupNews, Payload

MARK = b"solo"
SLEEP_US = 1_000_000


class Phase(Enum):
    AWAKE = "awake"
    ASLEEP = "asleep"


class Why(Enum):
    START = "it begins"
    TOLD = "it was told to sleep"
    RESTED = "it has slept enough"


class SoloDeadline(Enum):
    WAKE = "sleep no longer"


class SoloLink(LinkStatus):
    heard: int
    joined: int


class SoloEngine:
    def __init__(self, kit: Kit, queue: SubmitQueue, declared: Declared) -> None:
        self._kit = kit
        self._queue = queue
        self._declared = declared
        self._phase, self._why = Phase.AWAKE, Why.START
        self._view = Ballot(1, kit.me.rank, kit.me.boot)
        self._number = self._heard = 0
        self._pieces: list[Payload] = []
        self._behind = False
        self.checks: set[bool] = set()

    @property
    def is_working(self) -> bool:
        return self._phase is Phase.AWAKE

    @property
    def is_changing(self) -> bool:
        return self._phase is Phase.ASLEEP

    @property
    def is_settled(self) -> bool:
        return not len(self._queue)

    def start(self, now_us: int) -> list[Effect]:
        return [self._entered(Phase.AWAKE, Why.START), self._installed(None, "start")]

    def report(self, now_us: int) -> EngineReport:
        link: SoloLink = {"kind": "solo", "heard": self._heard, "joined": len(self._declared)}
        me, phase, why = (self._kit.me,), self._phase.value, self._why.value
        return EngineReport(phase, why, self._view, me, self.is_working, link, [], ["the world"], len(self._queue))

    def check(self, full: bool) -> None:
        self.checks.add(full)
        self._queue.check()

    # --- what is sent

    def submitted(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        while len(self._queue) and self.is_working and not self._behind:
            self._number += 1
            bundle, whole = self._queue.take(self._kit.me.rank, self._number, self._number)
            self._pieces.append(bundle.payload)
            if whole is not None:
                pieces, self._pieces = tuple(self._pieces), []
                effects += [Stamped(self._view, bundle, (whole,)), Deliver(self._view, bundle, pieces)]
        return effects

    def send_unreliable(self, submit: Submit) -> list[Effect]:
        s, me = submit, self._kit.me
        bundle = Bundle(
            0, 0, 0, me, s.session, s.session_seq, s.count, 1, s.service, 0, 1, s.groups, s.payload, s.kind, s.flags
        )
        return [Stamped(self._view, bundle, (s.payload,)), Deliver(self._view, bundle, (s.payload,))]

    def on_group_news(self, news: GroupNews, now_us: int) -> None:
        """It has one site."""

    def hold_back(self, behind: bool) -> None:
        self._behind = behind

    def hasten(self, now_us: int) -> list[Effect]:
        return self.submitted(now_us)

    def progress(self, now_us: int) -> list[Effect]:
        return self.submitted(now_us)

    def last_words(self) -> list[Effect]:
        return [Send((0,), said(self._kit.me.rank, "goodbye"))]

    # --- what is heard

    def decode(self, data: bytes) -> Header:
        if not data.startswith(MARK) or len(data) == len(MARK):
            raise FrameError("not a word")
        return Header(Life(data[len(MARK)], 1), data[len(MARK) + 1 :].decode())

    def comes_last(self, frame: str) -> bool:
        return frame.startswith("late")

    def on_frame(self, sender: Life, frame: str, data: bytes, now_us: int) -> list[Effect | Dropped]:
        self._heard += 1
        if frame == "mumble":
            return [Notice("what?"), Dropped(Counter.FRAME_MISDIRECTED)]
        if frame != "sleep":
            return [Notice(f"{self._kit.name(sender.rank)} says {frame}")]
        self._kit.deadlines.set(SoloDeadline.WAKE, now_us + SLEEP_US)
        return [self._entered(Phase.ASLEEP, Why.TOLD)]

    def on_peer_refused(self, rank: int, now_us: int) -> list[Effect]:
        return [Notice(f"{self._kit.name(rank)} is gone")]

    def on_deadline(self, deadline: Enum, now_us: int) -> list[Effect]:
        assert deadline is SoloDeadline.WAKE
        old, self._view = self._view, self._view._replace(counter=self._view.counter + 1)
        return [self._entered(Phase.AWAKE, Why.RESTED), Signal(old), self._installed(old, "rest")]

    def _entered(self, phase: Phase, why: Why) -> Entered:
        self._phase, self._why = phase, why
        return Entered(phase, why, "")

    def _installed(self, previous: Ballot | None, cause: str) -> Installed:
        me = (self._kit.me,)
        return Installed(previous, self._view, me, me, cause, self._why, "")


def said(rank: int, word: str) -> bytes:
    """A datagram."""
    return MARK + bytes([rank]) + word.encode()
