"""A daemon alone in its site stamps by itself, within a window; announcements tell the other sites, and stop."""

from __future__ import annotations

import pytest

from covey.cluster import one_daemon_sites
from covey.config import Settings
from covey.ids import Life
from covey.protocol.effects import Effect, LinkSend, Send, Stamped
from covey.protocol.evs.announcing import Announcer
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.flow import Flow
from covey.protocol.evs.frames import Announce
from covey.protocol.evs.links.link import IdealLink
from covey.protocol.evs.links.links import Links
from covey.protocol.evs.links.relay import Relay
from covey.protocol.evs.stamping.alone import AloneStamper
from covey.protocol.transport.queue import SubmitQueue, Waiting
from covey.protocol.values import Announcement, Kind, Service
from tests.unit.protocol.builders import VIEW, kit

SETTINGS = Settings(announce_interval_ms=10, announce_gap_ms=2, source_bundles_unstable=5)


class Site:
    """The only daemon of site 0, in a view with those of other sites."""

    def __init__(self, sites: int = 2, stamp: int = 100) -> None:
        members = tuple(Life(rank, 1) for rank in range(sites))
        self.kit = kit(members[0], one_daemon_sites(sites), SETTINGS)
        self.kit.clock.see(stamp)
        queue = SubmitQueue(members[0], 1 << 20, 60_000, 1 << 20)
        self.flow = Flow(self.kit, VIEW, members, queue)
        relay = Relay(self.kit.cluster, members[0], members, self.kit.cluster.all_links)
        self.announcer = Announcer(self.flow, relay)
        links = Links(self.kit, VIEW, relay, IdealLink)
        self.stamper = AloneStamper(self.flow, links, self.announcer, stamp)
        self.seq = 0

    def submit(self, count: int, now_us: int = 0) -> list[Effect]:
        for _ in range(count):
            self.seq += 1
            self.flow.queue.put(Waiting(1, self.seq, 1, Service.AGREED, (), b"x", Kind.RAW, 0, 1))
        effects = self.stamper.submitted(now_us)
        self.stamper.check()
        return effects

    @property
    def due(self) -> int | None:
        return self.kit.deadlines.at(EvsDeadline.ANNOUNCE)


@pytest.fixture
def site() -> Site:
    return Site()


def stamps(effects: list[Effect]) -> list[tuple[int, int]]:
    return [(one.bundle.number, one.bundle.stamp) for one in effects if isinstance(one, Stamped)]


# --- stamping


def test_numbers_count_from_one_and_stamps_follow_the_clock(site: Site) -> None:
    assert stamps(site.submit(1, 500)) == [(1, 501)]  # Above what was promised on the way.
    assert stamps(site.submit(1, 600)) == [(2, 601)]


def test_stamps_grow_also_while_the_clock_stands(site: Site) -> None:
    assert [number for number, _ in stamps(site.submit(3))] == [1, 2, 3]
    assert site.stamper.stamp > 103


def test_no_stamp_is_at_or_below_a_promise(site: Site) -> None:
    site.stamper.raise_own(500)
    assert site.stamper.stamp == 500
    assert stamps(site.submit(1, 400))[0][1] > 500


def test_a_promise_never_falls(site: Site) -> None:
    site.stamper.raise_own(500)
    site.stamper.raise_own(200)
    assert site.stamper.stamp >= 500


def test_no_more_is_under_way_than_the_window_allows(site: Site) -> None:
    assert len(stamps(site.submit(9))) == 5
    site.flow.order.stability.raise_received(1, 0, 3)
    assert len(stamps(site.stamper.progress(0))) == 3
    assert len(site.flow.queue) == 1


def test_what_is_stamped_goes_over_every_link(site: Site) -> None:
    sends = [one.to for one in Site(3).submit(1) if isinstance(one, LinkSend)]
    assert sends == [(1,), (2,)]


def test_who_is_alone_in_the_world_sends_nothing() -> None:
    effects = Site(1).submit(2)
    assert not any(isinstance(one, LinkSend | Send) for one in effects)


# --- what an announcement says


def test_an_announcement_says_how_far_the_site_is(site: Site) -> None:
    (send,) = site.announcer.announce(Announcement(1, 500), 70, {1: 2, 0: 1}, True, False, 0)
    assert isinstance(send, Send)
    frame = site.kit.codec.decode(send.data).frame
    assert frame == Announce(VIEW, 0, 1, 500, 70, ((0, 1), (1, 2)), True)


# --- when to announce


def test_news_is_announced_at_once_when_the_gap_has_passed(site: Site) -> None:
    site.announcer.want(50_000)
    assert site.due == 50_000


def test_announcements_keep_a_gap(site: Site) -> None:
    site.announcer.announce(Announcement(0, 0), 0, {}, True, False, 50_000)
    site.kit.deadlines.clear(EvsDeadline.ANNOUNCE)
    site.announcer.want(50_500)
    assert site.due == 52_000


def test_an_earlier_announcement_is_not_put_off(site: Site) -> None:
    site.kit.deadlines.set(EvsDeadline.ANNOUNCE, 40_000)
    site.announcer.want(50_000)
    assert site.due == 40_000


def test_a_site_alone_announces_nothing() -> None:
    alone = Site(1)
    alone.announcer.want(50_000)
    alone.announcer.want_in_time(50_000)
    assert alone.due is None


def test_announcing_goes_on_while_anything_is_unstable(site: Site) -> None:
    site.submit(1)
    site.announcer.announce(Announcement(1, 500), 0, {}, False, False, 900_000)
    assert site.due == 910_000


def test_announcing_goes_on_for_a_while_and_then_stops(site: Site) -> None:
    site.announcer.want(1_000_000)
    site.kit.deadlines.clear(EvsDeadline.ANNOUNCE)
    site.announcer.announce(Announcement(0, 0), 0, {}, True, False, 1_040_000)
    assert site.due == 1_050_000
    site.kit.deadlines.clear(EvsDeadline.ANNOUNCE)
    site.announcer.announce(Announcement(0, 0), 0, {}, True, False, 1_050_000)
    assert site.due is None
