"""One attempt to end a view and begin the next: declare, ask, resend, done."""

from __future__ import annotations

import pytest

from covey.cluster import SiteLink, one_daemon_sites, one_site
from covey.config import Settings
from covey.ids import INFINITE, Ballot, Life
from covey.protocol.counters import Counter
from covey.protocol.effects import Effect, LinkSend, Send
from covey.protocol.evs.frames import Announce, Data, Done, Frame, NewMemb, Resend, StateTrans, Want, WantState
from covey.protocol.evs.overlay import overlay
from covey.protocol.evs.states import State
from covey.protocol.inputs import Datagram, Submit
from covey.protocol.values import START, Bundle, Declaration, Service, SiteDeclaration
from tests.unit.protocol.builders import A, B, C, bundle, codec_of, declared_in, frames_in, held, told
from tests.unit.protocol.network import SECOND_US, TinyNetwork


class Attempt:
    """Three sites in a view; the lowest has been asked by b to go on without c."""

    def __init__(
        self, messages: int = 0, size: int = 10, groups: tuple[str, ...] = (), members: tuple[Life, ...] = (A, B)
    ) -> None:
        self.network = TinyNetwork(one_daemon_sites(3))
        self.network.form_view()
        self.network.run(SECOND_US)
        self.network.loses = lambda source, to, header: isinstance(header.frame, Data | Announce)
        for seq in range(1, messages + 1):
            self.network.give(0, Submit(1, seq, Service.AGREED, bytes(size), groups=groups))
        self.daemon = self.network.daemons[0]
        self.view = self.daemon.engine.machine.view
        self.ballot = Ballot(self.daemon.engine.machine.counter + 1, B.rank, B.boot)
        self.network.loses = lambda source, to, header: True
        self.begun = self.give(NewMemb(self.ballot, members, overlay(self.network.cluster, members)))

    def give(self, frame: Frame, sender: Life = B) -> list[Effect]:
        return self.network.give(0, Datagram(codec_of(sender, self.network.cluster).encode(frame)))

    def proposed_next(self) -> list[Effect]:
        """B proposes again, to us alone."""
        ballot = self.ballot._replace(counter=self.ballot.counter + 1)
        return self.give(NewMemb(ballot, (A, B), (SiteLink(0, 1),)))

    def said(self, effects: list[Effect]) -> list[Frame]:
        return frames_in(effects, self.daemon.engine.kit.codec)

    def declares(self, *sites: SiteDeclaration, view: Ballot | None = None, high: int = 0) -> StateTrans:
        """What b says it holds; without sites, nothing."""
        entries = sites or tuple(held(site) for site in range(3))
        return told(self.ballot, Declaration(view or self.view, START, 0, high, (B,), entries))


def kinds(frames: list[Frame]) -> list[type[Frame]]:
    return [type(frame) for frame in frames]


# --- declaring


def test_who_promises_declares_what_it_holds() -> None:
    attempt = Attempt(messages=3)
    (declared,) = [frame for frame in attempt.said(attempt.begun) if isinstance(frame, StateTrans)]
    assert declared.attempt == attempt.ballot
    [declaration] = declared_in([declared])
    assert [entry.gap_free for entry in declaration.sites] == [3, 0, 0]
    assert declaration.commit == (A,)


def test_a_view_that_ends_takes_nothing_more() -> None:
    attempt = Attempt(messages=1)
    assert attempt.daemon.engine.operation.order.frozen
    effects = attempt.network.submit(0, 2, b"later", Service.RELIABLE)
    assert effects == []


def test_whose_declaration_is_missing_is_asked_for_it() -> None:
    attempt = Attempt()
    since = len(attempt.network.effects[0])
    attempt.network.run(3 * Settings().exchange_resend_ms * 1_000)
    later = attempt.said(attempt.network.effects[0][since:])
    assert later.count(WantState(attempt.ballot, ())) == 3
    attempt.give(attempt.declares())
    since = len(attempt.network.effects[0])
    attempt.network.run(Settings().exchange_resend_ms * 1_000)
    assert WantState not in kinds(attempt.said(attempt.network.effects[0][since:]))


def test_who_is_asked_for_its_declaration_says_it_again() -> None:
    attempt = Attempt(messages=3)
    first = [frame for frame in attempt.said(attempt.begun) if isinstance(frame, StateTrans)]
    assert attempt.said(attempt.give(WantState(attempt.ballot, ()))) == first
    assert attempt.said(attempt.give(WantState(attempt.ballot, (0,)))) == first
    assert attempt.give(WantState(attempt.ballot, (7,))) == []


def test_whoever_misses_nothing_is_done_when_all_have_declared() -> None:
    attempt = Attempt(messages=3)
    effects = attempt.give(attempt.declares())
    assert Done(attempt.ballot, reply=False) in attempt.said(effects)
    assert attempt.daemon.engine.machine.state is State.EVS


def test_the_view_is_installed_when_everyone_is_done() -> None:
    attempt = Attempt(messages=3)
    attempt.give(attempt.declares())
    assert len(attempt.network.views(0)) == 1
    attempt.give(Done(attempt.ballot, reply=False))
    view = attempt.network.views(0)[-1]
    assert (view.view, view.members, view.transitional) == (attempt.ballot, (A, B), (A, B))
    assert len(attempt.network.payloads(0)) == 3


def test_who_comes_from_another_view_is_not_a_co_mover() -> None:
    attempt = Attempt()
    attempt.give(attempt.declares(view=Ballot(1, 1, 1)))
    attempt.give(Done(attempt.ballot, reply=False))
    assert attempt.network.views(0)[-1].transitional == (A,)


def test_the_next_view_stamps_above_everything_declared() -> None:
    attempt = Attempt()
    high = attempt.daemon.engine.kit.clock.high + 1_000_000
    attempt.give(attempt.declares(high=high))
    attempt.give(Done(attempt.ballot, reply=False))
    attempt.network.submit(0, 1, b"x", Service.FIFO)
    assert attempt.network.delivered(0)[-1].bundle.stamp > high


def test_a_declaration_fits_a_datagram_however_much_is_held_beyond_a_gap() -> None:
    """One daemon misses the first packet, and all the others go on until their window is full of small messages."""
    network = TinyNetwork(one_site(3))
    network.form_view()
    network.loses = lambda source, to, header: (
        to == 2 and isinstance(header.frame, Data) and header.frame.packet_seq == 1
    )
    network.checks = False  # They look at every bundle after every step.
    network.give(0, *(Submit(1, seq, Service.FIFO, b"x") for seq in range(1, 8_000)))
    network.run(SECOND_US // 10)
    log = network.daemons[2].engine.operation.order.logs[0]
    assert (log.gap_free, len(log.bundles) > 1_500) == (0, True)
    network.loses = lambda source, to, header: 0 in (source, to)
    network.run_until(lambda: network.in_one_view((1, 2)))
    sizes = [len(effect.data) for effect in network.effects[2] if isinstance(effect, Send)]
    assert max(sizes) <= 65_507


# --- asking and resending


def test_what_is_missing_is_asked_for() -> None:
    attempt = Attempt()
    effects = attempt.give(attempt.declares(held(0), held(1, gap_free=2, frontier=20), held(2, extras=(4,))))
    assert attempt.said(effects) == [Want(attempt.ballot, ((1, 1, 1), (1, 2, 2), (2, 4, 4)))]


def test_a_large_recovery_asks_for_a_batch_at_a_time() -> None:
    attempt, batch = Attempt(), Settings().recovery_batch_bundles
    (want,) = attempt.said(attempt.give(attempt.declares(held(0), held(1, gap_free=batch + 5, frontier=999), held(2))))
    assert isinstance(want, Want)
    assert len(want.ranges) == batch
    resend = Resend(attempt.ballot, tuple(bundle(n, site=1, origin=B) for n in range(1, batch + 1)))
    (want,) = attempt.said(attempt.give(resend))
    assert isinstance(want, Want)
    assert [first for _, first, _ in want.ranges] == list(range(batch + 1, batch + 6))


def test_when_the_last_missing_bundle_has_come_we_are_done() -> None:
    attempt = Attempt()
    attempt.give(attempt.declares(held(0), held(1, gap_free=1, frontier=10), held(2)))
    effects = attempt.give(Resend(attempt.ballot, (bundle(1, site=1, origin=B, payload=b"late"),)))
    assert kinds(attempt.said(effects)) == [Done]
    attempt.give(Done(attempt.ballot, reply=False))
    assert attempt.network.payloads(0) == [b"late"]


@pytest.mark.parametrize(
    "resent",
    [bundle(7, site=1, origin=B), bundle(1, site=0), bundle(1, site=9, origin=B)],
    ids=["beyond the union", "one we hold", "of an unknown site"],
)
def test_a_resent_bundle_that_is_not_missing_is_dropped_and_counted(resent: Bundle) -> None:
    attempt = Attempt(messages=1)
    attempt.give(attempt.declares(held(0), held(1, gap_free=1, frontier=10), held(2)))
    before = sum(attempt.daemon.kit.count.values())
    assert attempt.give(Resend(attempt.ballot, (resent,))) == []
    assert sum(attempt.daemon.kit.count.values()) == before + 1


def test_what_a_co_mover_asks_for_is_resent_in_datagrams_of_moderate_size() -> None:
    attempt = Attempt(messages=6, size=500)
    effects = attempt.give(Want(attempt.ballot, ((0, 1, 9), (1, 1, 1), (7, 1, 1))))
    assert all(isinstance(effect, LinkSend) and effect.to == (B.rank,) for effect in effects)
    resends = [frame for frame in attempt.said(effects) if isinstance(frame, Resend)]
    assert [[one.number for one in resend.bundles] for resend in resends] == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(
    "groups", [(), tuple(f"{number:0400}" for number in range(16))], ids=["few bytes", "long names"]
)
def test_a_resent_datagram_is_no_longer_than_a_packet_unless_it_holds_one_bundle(groups: tuple[str, ...]) -> None:
    attempt = Attempt(messages=60, size=1, groups=groups)
    effects = attempt.give(Want(attempt.ballot, ((0, 1, 60),)))
    sizes = [len(effect.data) for effect in effects if isinstance(effect, LinkSend)]
    counts = [len(frame.bundles) for frame in attempt.said(effects) if isinstance(frame, Resend)]
    assert sum(counts) == 60
    assert all(size <= Settings().packet_bytes or count == 1 for size, count in zip(sizes, counts, strict=True))


def test_an_endless_want_is_answered_with_what_is_there() -> None:
    attempt = Attempt(messages=2)
    (resend,) = attempt.said(attempt.give(Want(attempt.ballot, ((0, 1, 2**60),))))
    assert isinstance(resend, Resend)
    assert len(resend.bundles) == 2


def test_a_want_is_answered_with_a_batch_however_often_it_names_a_bundle() -> None:
    attempt = Attempt(messages=100)
    effects = attempt.give(Want(attempt.ballot, ((0, 1, 100),) * 500))
    resent = [bundle for frame in attempt.said(effects) if isinstance(frame, Resend) for bundle in frame.bundles]
    assert len(resent) == Settings().recovery_batch_bundles


# --- done


def test_a_repeated_done_is_answered_and_a_reply_is_not() -> None:
    attempt = Attempt()
    attempt.give(attempt.declares())
    done = Done(attempt.ballot, reply=False)
    attempt.give(done)
    assert attempt.said(attempt.give(done)) == [Done(attempt.ballot, reply=True)]
    assert attempt.give(Done(attempt.ballot, reply=True)) == []


def test_while_others_are_not_done_a_repeated_done_is_answered_and_a_reply_is_not() -> None:
    attempt = Attempt(members=(A, B, C))
    attempt.give(attempt.declares())
    attempt.give(attempt.declares(), sender=C)
    attempt.give(Done(attempt.ballot, reply=False))
    assert attempt.said(attempt.give(Done(attempt.ballot, reply=False))) == [Done(attempt.ballot, reply=True)]
    assert attempt.give(Done(attempt.ballot, reply=True)) == []
    assert len(attempt.network.views(0)) == 1


def test_who_was_done_with_an_attempt_declares_its_commit_in_the_next() -> None:
    attempt = Attempt(members=(A, B, C))
    attempt.give(attempt.declares())
    attempt.give(attempt.declares(), sender=C)
    effects = attempt.proposed_next()
    assert [one.commit for one in declared_in(attempt.said(effects))] == [(A, B, C)]


def test_who_was_not_done_with_an_attempt_declares_itself_in_the_next() -> None:
    attempt = Attempt(members=(A, B, C))
    attempt.give(attempt.declares())
    effects = attempt.proposed_next()
    assert [one.commit for one in declared_in(attempt.said(effects))] == [(A,)]


def test_frontiers_of_an_attempt_that_we_were_done_with_are_declared_in_the_next() -> None:
    attempt = Attempt(members=(A, B, C))
    attempt.give(attempt.declares())
    attempt.give(attempt.declares(), sender=C)
    effects = attempt.proposed_next()
    (again,) = declared_in(attempt.said(effects))
    assert [entry.frontier for entry in again.sites] == [INFINITE] * 3


def test_a_frame_of_another_attempt_is_dropped_and_counted() -> None:
    attempt = Attempt()
    before = sum(attempt.daemon.kit.count.values())
    for ballot in (attempt.ballot._replace(counter=1), attempt.ballot._replace(proposer=2)):
        assert attempt.give(Done(ballot, reply=False)) == []
    assert sum(attempt.daemon.kit.count.values()) == before + 2


def test_a_frame_of_who_is_not_in_the_attempt_is_dropped_and_counted() -> None:
    attempt = Attempt()
    before = sum(attempt.daemon.kit.count.values())
    assert attempt.give(Done(attempt.ballot, reply=False), sender=C) == []
    assert sum(attempt.daemon.kit.count.values()) == before + 1


def test_done_before_everyone_has_declared_installs_nothing() -> None:
    attempt = Attempt()
    attempt.give(Done(attempt.ballot, reply=False))
    assert len(attempt.network.views(0)) == 1


# --- declarations that cannot be


@pytest.mark.parametrize(
    "sites",
    [
        (held(0), held(1), held(2), held(9)),
        (held(0), held(0), held(2)),
        (held(0), held(1)),
        (held(0), held(1, low=5, gap_free=5), held(2)),
        (held(0), held(1, gap_free=2**62), held(2)),
        (held(0), held(1, low=3, gap_free=1), held(2)),
        (held(0), held(1, frontier=2**63), held(2)),
        (held(0), held(1, extras=(2**15,)), held(2)),
    ],
    ids=[
        "an unknown site",
        "a site twice",
        "a site missing",
        "let go of what we never had",
        "more than any window",
        "let go of what it does not hold",
        "a frontier above all stamps",
        "more beyond a gap than any window",
    ],
)
def test_an_impossible_declaration_is_dropped_and_counted(sites: tuple[SiteDeclaration, ...]) -> None:
    attempt = Attempt()
    before = sum(attempt.daemon.kit.count.values())
    assert attempt.give(attempt.declares(*sites)) == []
    assert sum(attempt.daemon.kit.count.values()) == before + 1


@pytest.mark.parametrize(("ahead", "asked"), [(0, True), (1, False)])
def test_a_declaration_is_at_most_a_window_ahead(ahead: int, asked: bool) -> None:
    attempt = Attempt()
    most = attempt.daemon.engine.operation.ahead_max + ahead
    effects = attempt.give(attempt.declares(held(0), held(1, gap_free=most), held(2)))
    assert (Want in kinds(attempt.said(effects))) == asked


def test_a_resent_bundle_of_nobody_is_dropped_and_counted() -> None:
    attempt = Attempt()
    attempt.give(attempt.declares(held(0), held(1, gap_free=1), held(2)))
    attempt.give(Resend(attempt.ballot, (bundle(1, site=1, origin=Life(1_000, 5)),)))
    assert attempt.daemon.kit.count[Counter.BUNDLE_IMPOSSIBLE] == 1
    attempt.give(Resend(attempt.ballot, (bundle(1, site=1, origin=B),)))
    attempt.give(Done(attempt.ballot, reply=False))
    assert len(attempt.network.views(0)) == 2


def test_after_an_impossible_declaration_a_possible_one_counts() -> None:
    attempt = Attempt()
    attempt.give(attempt.declares(held(9)))
    attempt.give(attempt.declares())
    attempt.give(Done(attempt.ballot, reply=False))
    assert len(attempt.network.views(0)) == 2
