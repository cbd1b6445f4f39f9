"""Whatever is configured, every frame fits a datagram."""

from __future__ import annotations

import msgspec
import pytest

from covey.cluster import (
    DAEMONS_MAX,
    LINK_COST_MAX,
    LINKS_MAX,
    SITE_MAX,
    SiteLink,
    many_sites,
    one_daemon_sites,
    one_site,
)
from covey.config import AROUND_BYTES, DATAGRAM_BYTES_MAX, Settings, lan, loopback
from covey.errors import ConfigError
from covey.ids import INFINITE, Ballot, Instant, Life
from covey.protocol.building import build_daemon
from covey.protocol.evs.codec import RESEND_OVERHEAD, Codec
from covey.protocol.evs.frames import NewMemb
from covey.protocol.evs.sizes import check_sizes
from covey.protocol.wire.bundles import BUNDLE_OVERHEAD


def test_the_most_daemons_fit_with_the_defaults() -> None:
    check_sizes(one_site(DAEMONS_MAX), lan(DAEMONS_MAX))


@pytest.mark.parametrize(
    "settings",
    [{"recovery_batch_bundles": 4_096}],
)
def test_what_would_not_fit_is_refused_with_a_remedy(settings: dict[str, int]) -> None:
    wide = msgspec.structs.replace(lan(DAEMONS_MAX), **settings)
    with pytest.raises(ConfigError, match="have fewer daemons"):
        build_daemon(one_site(DAEMONS_MAX), Life(0, 1), wide, Instant(0, 0), 1)


def test_a_part_of_a_declaration_always_has_room() -> None:
    wide = msgspec.structs.replace(lan(DAEMONS_MAX), packet_bytes=512)
    with pytest.raises(ConfigError, match="raise packet_bytes"):
        check_sizes(many_sites([512, 512], name="c" * 250), wide)
    check_sizes(many_sites([2, 2]), Settings(packet_bytes=512))


def test_what_is_passed_between_sites_fits_with_the_largest_bundle_in_it() -> None:
    check_sizes(one_site(DAEMONS_MAX, name="c" * 250), lan(DAEMONS_MAX))
    check_sizes(many_sites([2, 2], name="c" * 250), loopback(4))
    with pytest.raises(ConfigError, match="give the cluster a shorter name"):
        check_sizes(many_sites([512, 512], name="c" * 250), lan(DAEMONS_MAX))


def test_the_largest_proposal_fits() -> None:
    lives = tuple(Life(rank, INFINITE - 1) for rank in range(DAEMONS_MAX))
    links = (SiteLink(SITE_MAX - 1, SITE_MAX, LINK_COST_MAX),) * LINKS_MAX
    codec = Codec("c" * 255, 0, lives[0])
    assert len(codec.encode(NewMemb(Ballot(INFINITE - 1, 1, INFINITE - 1), lives, links))) <= DATAGRAM_BYTES_MAX


def test_more_links_than_a_proposal_names_are_refused() -> None:
    assert len(one_daemon_sites(50).all_links) == LINKS_MAX
    with pytest.raises(ConfigError, match="there are 1275 links: at most 1225"):
        one_daemon_sites(51)


def test_however_much_may_be_under_way_it_is_declared_in_parts() -> None:
    check_sizes(many_sites([512, 512]), msgspec.structs.replace(lan(DAEMONS_MAX), ring_bundles_unstable=2_500))


def test_what_stands_around_a_bundle_is_within_its_bound() -> None:
    longest = Codec("c" * 255, 0, Life(0, 1))
    assert longest.overhead + RESEND_OVERHEAD + BUNDLE_OVERHEAD <= AROUND_BYTES < DATAGRAM_BYTES_MAX
