"""The watch over what waits in a sound view: who does not get on is named, and who has reason to wait is not."""

from __future__ import annotations

from random import Random

import pytest

from covey.cluster import one_site
from covey.config import Settings
from covey.drivers.simulation.fairness import Fairness
from covey.drivers.simulation.network import NetworkOptions
from covey.drivers.simulation.node import Clocks
from covey.drivers.simulation.progress import ASKED_AGAIN, PATIENCE_US, PROGRESS, SOON_US, Progress
from covey.drivers.simulation.world import World
from covey.ids import Ballot, Life
from covey.protocol.effects import Effect, Installed, Stamped
from covey.protocol.evs.states import Reason
from covey.protocol.inputs import Submit
from covey.protocol.values import Bundle, Kind, Service

SECOND = 1_000_000
ME = Life(0, 1)
VIEW, NEXT_VIEW = Ballot(1, 0, 1), Ballot(2, 0, 1)


class Watched:
    """Two daemons in one view; the test tells what else they do."""

    def __init__(self) -> None:
        self.world = World(one_site(2), Settings(), NetworkOptions(), Random(1), "run", lambda _row: None)
        self.fairness = Fairness(self.world, "run")
        self.progress = Progress(self.world, self.fairness, "run")
        for rank in range(2):
            self.world.start(rank, Clocks(0, 0, 100 * SECOND))
        self.progress.making_wait = lambda node: self.waited_for  # type: ignore[method-assign]
        self.waited_for = {101}
        self.world.play(self.progress.script())
        self.wait(SECOND)

    def wait(self, microseconds: int) -> None:
        self.world.run_until(self.world.now + microseconds)

    def tell(self, effect: Effect) -> None:
        for observe in self.world.observers:
            observe(self.world.nodes[0], effect)

    def stamp(self, kind: Kind, session: int = 101, seq: int = 1) -> None:
        bundle = Bundle(0, 1, 1, ME, session, seq, 1, 1, Service.AGREED, 0, 1, ("g",), b"", kind, 0)
        self.tell(Stamped(VIEW, bundle, (b"",)))

    def install(self) -> None:
        self.tell(Installed(VIEW, NEXT_VIEW, (ME,), (ME,), "loss", Reason.PEER_SILENT, "", ()))

    def found(self) -> list[str]:
        assert self.progress.verdict().guarantee == PROGRESS
        return [one.detail for one in self.progress.verdict().violations]


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_what_is_stamped_and_delivered_gets_on(watched: Watched) -> None:
    for seq in range(1, 5):
        watched.world.give(0, Submit(7, seq, Service.SAFE, b"x"))
        watched.wait(2 * PATIENCE_US)
    assert watched.found() == []
    assert watched.progress.verdict().premises >= 4


def test_a_submission_that_nobody_stamps_does_not_get_on(watched: Watched) -> None:
    watched.world.nodes[0].owed |= {(7, 3), (7, 4)}
    watched.wait(PATIENCE_US + SECOND)
    assert watched.found() == ["submission 3 of session 7 waits for 2.0 s"]


def test_a_message_of_a_program_that_nobody_stamps_does_not_get_on(watched: Watched) -> None:
    watched.fairness.handed(ME, 5, "al@a:1.101", 9, 0)
    watched.wait(PATIENCE_US + SECOND)
    assert watched.found() == ["message 9 of al@a:1.101 waits for 2.0 s"]


def test_who_must_wait_for_a_receiver_has_reason_to(watched: Watched) -> None:
    watched.fairness.handed(ME, 5, "al@a:1.101", 9, 0)
    watched.fairness._daemon(ME).blockers.add((ME, 102))
    watched.wait(PATIENCE_US + SECOND)
    assert watched.found() == []


def test_what_is_stamped_and_never_delivered_does_not_get_on(watched: Watched) -> None:
    watched.stamp(Kind.MESSAGES, seq=3)
    watched.wait(PATIENCE_US + SECOND)
    assert watched.found() == ["the delivery of messages 3 of session 101 waits for 2.0 s"]


@pytest.mark.parametrize("trouble", ["pause", "cut", "crash"])
def test_nothing_is_demanded_of_a_view_that_is_not_sound(watched: Watched, trouble: str) -> None:
    watched.world.nodes[0].owed.add((7, 3))
    for _ in range(4):
        watched.wait(PATIENCE_US // 2)
        if trouble == "pause":
            watched.world.pause(1)
            watched.wait(SECOND // 3)
            watched.world.resume(1)
        elif trouble == "cut":
            watched.world.network.cut(1, 0)
            watched.wait(SECOND)
            watched.world.network.mend(watched.world.now, 1, 0)
        else:
            watched.world.crash(1)
            watched.world.start(1, Clocks(0, 0, 100 * SECOND))
    assert watched.found() == []


def test_who_made_senders_wait_asks_again(watched: Watched) -> None:
    watched.stamp(Kind.BLOCK)
    watched.install()
    watched.stamp(Kind.BLOCK, seq=2)
    watched.wait(SOON_US)
    watched.stamp(Kind.DISCONNECT, seq=3)
    assert watched.found() == []
    assert watched.progress.reactions == {ASKED_AGAIN}


def test_who_ends_in_a_new_view_without_asking_again_was_flooded(watched: Watched) -> None:
    watched.stamp(Kind.BLOCK)
    watched.install()
    watched.wait(SOON_US)
    watched.stamp(Kind.DISCONNECT, seq=2)
    assert watched.found() == ["session 101 made senders wait, and ended in a new view without asking again"]


@pytest.mark.parametrize("first", [Kind.UNBLOCK, Kind.DISCONNECT])
def test_who_had_caught_up_or_was_gone_need_not_ask(watched: Watched, first: Kind) -> None:
    watched.stamp(Kind.BLOCK)
    if first is Kind.UNBLOCK:
        watched.stamp(first, seq=2)
    else:
        watched.waited_for = set()
    watched.install()
    watched.wait(SOON_US)
    watched.stamp(Kind.DISCONNECT, seq=3)
    assert watched.found() == []
