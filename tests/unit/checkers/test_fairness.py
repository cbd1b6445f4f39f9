"""The watch over turns: who starves is named, and who only waits its turn is not."""

from __future__ import annotations

from random import Random

from covey.cluster import one_site
from covey.config import Settings
from covey.drivers.simulation.fairness import FAIRNESS, WAITED, Fairness
from covey.drivers.simulation.network import NetworkOptions
from covey.drivers.simulation.node import Clocks
from covey.drivers.simulation.world import World
from covey.guarantees.checkers import Verdict
from covey.ids import Ballot, Life
from covey.protocol.effects import ClientClosed, Deliver, Effect, Installed, Stamped
from covey.protocol.evs.states import Reason
from covey.protocol.values import Bundle, Kind, Service

VIEW = Ballot(1, 0, 1)
ME = Life(0, 1)
WAITING = "slow@a:1.101"
MANY = 1_000


class Watched:
    """One daemon whose effects are told by the test; session 101 waits, and 102 goes on."""

    def __init__(self) -> None:
        self.world = World(one_site(1), Settings(), NetworkOptions(), Random(1), "run", lambda _row: None)
        self.fairness = Fairness(self.world, "run")
        self.world.start(0, Clocks(0, 0, 0))
        self.is_there = True
        """What session 101 has said waits at the daemon."""
        clients = self.world.nodes[0].core.clients
        clients.has_words_of = lambda number: self.is_there  # type: ignore[method-assign]
        self.is_queued = False
        """What session 101 has said waits to be ordered."""
        clients.has_queued = lambda number: self.is_queued  # type: ignore[method-assign]

    def tell(self, effect: Effect) -> None:
        for observe in self.world.observers:
            observe(self.world.nodes[0], effect)

    def hand(self, seq: int = 1, upto: int = 0) -> None:
        self.fairness.handed(ME, 7, WAITING, seq, upto)

    def stamp(self, session: int, seq: int = 1, kind: Kind = Kind.MESSAGES, size: int = 1) -> None:
        self.tell(Stamped(VIEW, _bundle(session, seq, kind), (bytes(size),)))

    def others(self, count: int, kind: Kind = Kind.MESSAGES, each_step: int = 1) -> None:
        for seq in range(count):
            self.world.steps += seq % each_step == 0
            self.stamp(102, seq + 1, kind)

    def verdict(self) -> Verdict:
        return self.fairness.verdict()


def _bundle(session: int, seq: int, kind: Kind) -> Bundle:
    return Bundle(0, 1, 1, ME, session, seq, 1, 1, Service.AGREED, 0, 1, ("g",), b"", kind, 0)


def test_who_waits_while_many_pass_starves() -> None:
    watched = Watched()
    watched.hand(seq=5)
    watched.others(MANY)
    verdict = watched.verdict()
    assert (verdict.guarantee, verdict.violation_count) == (FAIRNESS, 1)
    assert verdict.violations[0].process == WAITING
    assert f"message 5 of {WAITING} was passed by {MANY} of others" in verdict.violations[0].detail


def test_one_step_may_stamp_much_that_was_taken_before() -> None:
    watched = Watched()
    watched.hand(seq=5)
    watched.others(MANY, each_step=MANY)
    watched.stamp(101, 5)
    assert watched.verdict().violation_count == 1, "it was in the queue with them: it came in the same step"
    watched.hand(seq=6)
    watched.others(MANY, each_step=MANY)
    watched.world.steps += 1
    watched.stamp(101, 6)
    assert watched.verdict().violation_count == 1, "it was not heard before the step was over"


def test_who_is_in_the_queue_is_not_passed_in_one_step() -> None:
    watched = Watched()
    watched.is_queued = True
    watched.hand(seq=5)
    watched.others(MANY, each_step=MANY)
    assert watched.verdict().violation_count == 1


def test_steps_that_stamp_much_starve_too() -> None:
    watched = Watched()
    watched.hand(seq=5)
    watched.others(10 * MANY, each_step=MANY)
    assert watched.verdict().violation_count == 1


def test_who_has_nothing_at_the_daemon_does_not_wait_there() -> None:
    watched = Watched()
    watched.hand(seq=5)
    watched.is_there = False
    watched.others(MANY)
    assert watched.verdict().violation_count == 0


def test_a_wait_is_also_judged_when_it_ends() -> None:
    watched = Watched()
    watched.hand()
    watched.others(MANY)
    watched.stamp(101)
    watched.others(1)
    assert watched.verdict().violation_count == 1


def test_who_gets_its_turns_does_not_starve() -> None:
    watched = Watched()
    for seq in range(1, 21):
        watched.hand(seq)
    for seq in range(1, 21):
        watched.others(MANY // 10)
        watched.stamp(101, seq)
    verdict = watched.verdict()
    assert (verdict.premises, verdict.violations) == (20, [])


def test_who_has_nothing_to_say_does_not_wait() -> None:
    watched = Watched()
    watched.hand()
    watched.stamp(101)
    watched.others(MANY)
    assert watched.verdict().violations == []


def test_joins_of_others_and_words_of_its_own_are_no_starvation() -> None:
    watched = Watched()
    watched.hand()
    watched.others(MANY, Kind.JOIN)
    for seq in range(MANY):
        watched.stamp(101, seq + 1, Kind.JOIN)
        watched.others(1)
    assert watched.verdict().violations == []


def test_a_view_begins_all_waits_anew() -> None:
    watched = Watched()
    watched.hand()
    for _ in range(10):
        watched.others(MANY // 10)
        watched.tell(Installed(VIEW, VIEW, (ME,), (ME,), "loss", next(iter(Reason)), ""))
    assert watched.verdict().violations == []


def test_while_a_receiver_makes_senders_wait_nothing_is_counted() -> None:
    watched = Watched()
    watched.hand()
    watched.tell(Deliver(VIEW, _bundle(103, 1, Kind.BLOCK), (b"",)))
    watched.others(MANY)
    assert watched.verdict().violations == []
    watched.tell(Deliver(VIEW, _bundle(103, 2, Kind.UNBLOCK), (b"",)))
    watched.others(MANY)
    assert watched.verdict().violation_count == 1


def test_what_is_still_on_its_way_does_not_wait() -> None:
    watched = Watched()
    watched.hand(upto=50_000)
    for before in range(0, 50_000, 1_000):
        watched.others(MANY // 10)
        watched.fairness.was_read(ME, WAITING, before)
    assert watched.verdict().violations == []
    watched.others(MANY)  # Now the daemon reads no more of it.
    assert watched.verdict().violation_count == 1


def test_nothing_is_owed_to_a_session_that_is_over_or_was_answered() -> None:
    over, closed, answered = Watched(), Watched(), Watched()
    for watched in (over, closed, answered):
        watched.hand()
    over.fairness.over(ME, WAITING)
    closed.tell(ClientClosed(7))
    answered.fairness.answered(ME, WAITING, 1)
    for watched in (over, closed, answered):
        watched.others(MANY)
        assert watched.verdict().violations == []


def test_a_large_message_that_waited_is_a_reaction() -> None:
    watched = Watched()
    watched.hand()
    watched.others(50)
    watched.stamp(101, size=20_000)
    assert watched.fairness.reactions == {WAITED}
    assert watched.verdict().violations == []
