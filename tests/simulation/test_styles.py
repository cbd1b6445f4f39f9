"""What a seed's programs are called, what they do at once, and what the network does with datagrams too large."""

from __future__ import annotations

from random import Random

import pytest

from covey.config import DATAGRAM_BYTES_MAX, GROUPS_BYTES_MAX, GROUPS_MAX, Settings
from covey.drivers.simulation.network import NEAR_THE_LIMIT, Network, NetworkOptions
from covey.drivers.simulation.options import Asked, draw
from covey.drivers.simulation.style import PLAIN_GROUPS, Style
from covey.names import GROUP_MAX, NAME_MAX, destination_problem, name_problem
from covey.protocol.counters import Count, Counter
from covey.protocol.wire.group_names import groups_bytes

SEEDS = range(150)
STYLES = [Style(seed, 8, Settings()) for seed in SEEDS]


def _options(seed: int) -> Settings:
    return draw(seed, Asked(clients=8), Random(f"covey {seed}")).settings


@pytest.mark.parametrize("reliable", [False, True])
def test_a_datagram_beyond_the_limit_is_lost_and_counted(reliable: bool) -> None:
    arrived: list[int] = []
    network = Network(NetworkOptions(), Random(1), lambda _at, _to, data, _reliable: arrived.append(len(data)), Count())
    sizes = [100, NEAR_THE_LIMIT + 1, DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MAX + 1]
    for size in sizes:
        network.send(0, 0, 1, bytes(size), reliable)
    assert arrived == (sizes if reliable else sizes[:-1])  # A reliable link is a stream: it has no such limit.
    counted = {} if reliable else {Counter.DATAGRAM_NEAR_THE_LIMIT: 2, Counter.DATAGRAM_TOO_LARGE: 1}
    assert dict(network.count) == counted


def test_names_are_legal_and_of_every_length() -> None:
    groups = {group for style in STYLES for group in style.groups}
    names = {name for style in STYLES for name in style.names}
    assert not any(map(destination_problem, groups))
    assert not any(map(name_problem, names))
    assert {len(group) for group in groups} >= {1, 2, 12, GROUP_MAX}
    assert len({len(group) for group in groups}) > 60
    assert max(len(group.encode()) for group in groups) == 4 * GROUP_MAX
    assert max(map(len, names)) == NAME_MAX
    assert all(len(set(style.names)) == len(style.names) for style in STYLES)


def test_lists_of_destinations_are_legal_and_reach_their_bounds() -> None:
    lists = [tuple(style.destinations(style.random)) for style in STYLES for _ in range(30)]
    lists += [style.submitted_to() for style in STYLES for _ in range(30)]
    sizes = [groups_bytes(one) for one in lists]
    assert max(map(len, lists)) == GROUPS_MAX
    assert GROUPS_BYTES_MAX - 100 < max(sizes) <= GROUPS_BYTES_MAX
    assert all(len(set(one)) == len(one) for one in lists)


def test_a_style_without_traits_draws_what_was_always_drawn() -> None:
    plain = next(style for style in STYLES if not style.traits)
    drawn, expected = Random(1), Random(1)
    assert plain.destinations(drawn) == expected.sample(PLAIN_GROUPS, expected.choice((1, 1, 1, 2, 3)))
    assert plain.daemon(drawn, 5) == expected.randrange(5)
    assert plain.session_options(drawn) == (expected.randrange(3), expected.choice(("disconnect", "block")))
    assert plain.names[:2] == ["p0", "p1"]
    assert drawn.getstate() == expected.getstate()


def test_some_have_many_groups_and_every_trait_is_drawn() -> None:
    assert max(style.many for style in STYLES) >= 1_000
    assert {trait for style in STYLES for trait in style.traits} == {"names", "many", "storm", "large", "hop"}
    assert any(not style.traits for style in STYLES)


def test_settings_are_drawn_from_their_whole_range() -> None:
    drawn = [_options(seed) for seed in SEEDS]
    assert {one.block_percent for one in drawn} == {0, 25, 100}
    assert {one.packet_bytes for one in drawn} == {512, 600, 1_400, 9_000, 65_000}
    assert any(one.clients_bytes_max for one in drawn)
    assert min(one.memberships_max for one in drawn) < 100
    assert all(one.ring_packets_unstable >= one.pieces_max for one in drawn)
    assert all(not one.clients_bytes_max or one.clients_bytes_max > one.session_receive_bytes for one in drawn)
