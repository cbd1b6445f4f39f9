"""Members of an attempt reach one another along its trees: nobody but representatives speaks to other sites."""

from __future__ import annotations

from collections import Counter as Tally

import pytest

from covey.cluster import SiteLink, many_sites
from covey.config import wan
from covey.ids import Life
from covey.protocol.boundary import Header
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import LinkSend, Send
from covey.protocol.evs.decisions import Attempt
from covey.protocol.evs.frames import AttemptFrame, Data, Done, PassedOn, Resend
from covey.protocol.evs.links.link import IdealLink
from covey.protocol.evs.states import Reason
from covey.protocol.evs.ways import Handed, Ways
from covey.protocol.values import Service
from tests.unit.protocol.builders import VIEW, codec_of, kit
from tests.unit.protocol.network import DELAY_US, SECOND_US, TinyNetwork

CHAIN = (SiteLink(0, 1), SiteLink(1, 2))
CLUSTER = many_sites([2, 2, 2], CHAIN)
LIVES = tuple(Life(rank, 1) for rank in range(6))
DONE = Done(VIEW, reply=False)


def ways(rank: int) -> Ways:
    return Ways(kit(LIVES[rank], CLUSTER), Attempt(VIEW, LIVES, CHAIN), IdealLink)


def passed(rank: int, *to: int, frame: AttemptFrame = DONE) -> PassedOn:
    """As the daemon hands it to who speaks for its site, or to the next site."""
    (effect,) = ways(rank).send([LIVES[one] for one in to], frame, 0)
    assert isinstance(effect, Send | LinkSend)
    found = codec_of(LIVES[rank], CLUSTER).decode(effect.data).frame
    assert isinstance(found, PassedOn)
    return found


def sent(effects: list[object]) -> list[tuple[type, tuple[int, ...]]]:
    return [(type(one), one.to) for one in effects if isinstance(one, Send | LinkSend)]


def test_site_mates_are_told_at_once_and_others_through_who_speaks() -> None:
    assert sent([*ways(1).send(LIVES, DONE, 0)]) == [(Send, (0,)), (Send, (0,))]
    assert sent([*ways(0).send(LIVES, DONE, 0)]) == [(Send, (1,)), (LinkSend, (2,))]
    assert sent([*ways(2).send(LIVES, DONE, 0)]) == [(Send, (3,)), (LinkSend, (0,)), (LinkSend, (4,))]


def test_who_is_between_passes_on_what_is_for_those_below_and_takes_what_is_for_itself() -> None:
    handed = ways(2).passed(LIVES[0], passed(0, 2, 3, 5), 0)
    assert isinstance(handed, Handed)
    assert (handed.sender, handed.frame) == (LIVES[0], DONE)
    assert sent([*handed.effects]) == [(Send, (3,)), (LinkSend, (4,))]
    handed = ways(2).passed(LIVES[0], passed(0, 5), 0)
    assert isinstance(handed, Handed)
    assert handed.frame is None
    assert sent([*handed.effects]) == [(LinkSend, (4,))]


def test_site_mates_get_it_as_it_was_said() -> None:
    handed = ways(2).passed(LIVES[0], passed(0, 3), 0)
    assert isinstance(handed, Handed)
    (effect,) = handed.effects
    assert isinstance(effect, Send)
    assert codec_of(LIVES[3], CLUSTER).decode(effect.data) == (LIVES[0], DONE)


@pytest.mark.parametrize(
    ("rank", "sender", "frame", "why"),
    [
        (2, 4, passed(0, 3), Counter.FRAME_WRONG_WAY),
        (0, 2, passed(1, 5), Counter.FRAME_WRONG_WAY),
        (3, 2, passed(0, 3), Counter.PASSED_IMPOSSIBLE),
        (2, 0, PassedOn(VIEW, b"\x08", b"nothing"), Counter.PASSED_IMPOSSIBLE),
        (2, 0, PassedOn(VIEW, b"", passed(0, 3).data), Counter.PASSED_IMPOSSIBLE),
        (2, 0, PassedOn(VIEW, b"\x40", passed(0, 3).data), Counter.PASSED_IMPOSSIBLE),
        (2, 0, passed(0, 3, frame=Done(VIEW._replace(counter=99), reply=False)), Counter.PASSED_IMPOSSIBLE),
    ],
    ids=[
        "not the parent",
        "not who said it",
        "does not speak",
        "no frame",
        "for nobody",
        "for who is not there",
        "old",
    ],
)
def test_what_cannot_have_been_passed_on_is_dropped(rank: int, sender: int, frame: PassedOn, why: Counter) -> None:
    assert ways(rank).passed(LIVES[sender], frame, 0) == Dropped(why)


def test_who_is_near_is_asked_first() -> None:
    assert sorted(LIVES, key=ways(3).distance) == [LIVES[rank] for rank in (2, 3, 0, 1, 4, 5)]
    assert sorted(LIVES, key=ways(5).distance) == [LIVES[rank] for rank in (4, 5, 2, 3, 0, 1)]


class Watched(TinyNetwork):
    """Who says what of an attempt to whom, and what crosses from site to site."""

    def __init__(self, daemons: list[int], links: tuple[SiteLink, ...]) -> None:
        self.crossed: list[tuple[int, int, object]] = []
        super().__init__(many_sites(daemons, links), wan(sum(daemons)))
        self.checks = False
        self.loses = self._watch

    def _watch(self, source: int, to: int, header: Header) -> bool:
        daemons = self.cluster.daemons
        if daemons[source].site != daemons[to].site and isinstance(header.frame, AttemptFrame | PassedOn):
            self.crossed.append((source, to, header.frame))
        return False


def test_what_is_said_when_a_view_ends_goes_over_the_links_alone() -> None:
    network = Watched([2, 3, 2], CHAIN)
    network.form_view()
    network.submit(6, 1, b"x", Service.SAFE)
    network.run(SECOND_US)
    network.daemons[1].engine.machine.lost(Reason.TOKEN_LOST, "", network.now)
    network.run_until(lambda: all(len(network.views(rank)) > 1 for rank in range(7)))
    assert {(source, to) for source, to, _ in network.crossed} == {(0, 2), (2, 0), (2, 5), (5, 2)}
    assert all(isinstance(frame, PassedOn) for _, _, frame in network.crossed)


@pytest.mark.parametrize("delay_us", [DELAY_US, 50_000])
def test_what_a_whole_site_misses_crosses_the_link_once(delay_us: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.unit.protocol.network.DELAY_US", delay_us)
    network = Watched([2, 3], (SiteLink(0, 1),))
    network.form_view()
    network.run(SECOND_US)
    watch = network.loses
    network.loses = lambda source, to, header: isinstance(header.frame, Data) and source < 2 <= to
    for seq in range(1, 31):
        network.submit(1, seq, bytes(500), Service.FIFO)
    network.run(200_000 + 2 * delay_us)
    network.loses = watch
    network.crossed.clear()
    network.daemons[1].engine.machine.lost(Reason.TOKEN_LOST, "", network.now)
    network.run_until(lambda: all(len(network.payloads(rank)) == 30 for rank in range(5)))
    decode = network.daemons[0].engine.kit.codec
    inner = [
        decode.decode(decode.with_prefix(one.data)).frame for _, _, one in network.crossed if isinstance(one, PassedOn)
    ]
    carried = Tally(bundle.number for frame in inner if isinstance(frame, Resend) for bundle in frame.bundles)
    assert carried
    assert set(carried.values()) == {1}
    count = [network.daemons[rank].kit.count for rank in (2, 3, 4)]
    assert count[0][Counter.RESENT_FROM_AFAR] == len(carried)
    assert [one[Counter.RESENT_NEXT_DOOR] for one in count[1:]] == [len(carried)] * 2
