"""What happens to one packet on the fault bench: pure, with a clock of our own."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from covey.errors import ConfigError
from covey.lab.faultnet.lane import MS_NS, SECOND_NS, Lane
from covey.lab.faultnet.messages import HOSTS_MAX, MESSAGE_BYTES_MAX, Report, SetPaths
from covey.lab.faultnet.path import Counters, Path

SIZE = 1_000


def arrivals(lane: Lane, packets: int, now_ns: int = 0) -> list[tuple[int, ...]]:
    random = Random(1)
    return [lane.admit(now_ns, SIZE, random) for _ in range(packets)]


def test_a_plain_lane_changes_nothing() -> None:
    lane = Lane(Path())
    assert lane.plain
    assert arrivals(lane, 2, now_ns=7) == [(7,), (7,)]
    assert lane.counters == Counters()


def test_the_same_seed_gives_the_same_arrivals() -> None:
    path = Path(delay_ms=1, jitter_ms=5, loss=0.2, duplication=0.2, rate_bytes_per_s=1_000_000)
    assert arrivals(Lane(path), 50) == arrivals(Lane(path), 50)


def test_delay_is_a_minimum_and_jitter_bounds_what_is_added() -> None:
    times = [time for (time,) in arrivals(Lane(Path(delay_ms=10, jitter_ms=5)), 200)]
    assert min(times) >= 10 * MS_NS
    assert max(times) <= 15 * MS_NS
    assert times != sorted(times), "packets overtake one another"


def test_a_cut_comes_before_everything_else() -> None:
    lane = Lane(Path(cut=True, loss=1.0, duplication=1.0))
    assert arrivals(lane, 3) == [()] * 3
    assert lane.counters == Counters(cut=3)


def test_every_packet_is_lost_or_repeated_if_the_share_is_one() -> None:
    losing, repeating = Lane(Path(loss=1.0)), Lane(Path(duplication=1.0, delay_ms=1))
    assert arrivals(losing, 3) == [()] * 3
    assert losing.counters == Counters(lost=3)
    assert arrivals(repeating, 3) == [(MS_NS, MS_NS)] * 3
    assert repeating.counters == Counters(duplicated=3)


def test_a_slow_lane_sends_one_packet_after_the_other_and_is_idle_again_later() -> None:
    lane = Lane(Path(rate_bytes_per_s=SIZE, queue_bytes=10 * SIZE))
    assert arrivals(lane, 3) == [(SECOND_NS,), (2 * SECOND_NS,), (3 * SECOND_NS,)]
    assert arrivals(lane, 1, now_ns=10 * SECOND_NS) == [(11 * SECOND_NS,)]


def test_what_does_not_fit_into_the_queue_is_lost_and_counted() -> None:
    lane = Lane(Path(rate_bytes_per_s=SIZE, queue_bytes=2 * SIZE))
    assert arrivals(lane, 5) == [(SECOND_NS,), (2 * SECOND_NS,), (), (), ()]
    assert lane.counters == Counters(queue_full=3)
    assert arrivals(lane, 2, now_ns=SECOND_NS) == [(3 * SECOND_NS,), ()]


def test_an_idle_lane_takes_a_packet_larger_than_its_queue() -> None:
    lane = Lane(Path(rate_bytes_per_s=SIZE, queue_bytes=0))
    assert arrivals(lane, 2) == [(SECOND_NS,), ()]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("loss", 1.5),
        ("duplication", -0.1),
        ("delay_ms", -1),
        ("jitter_ms", float("nan")),
        ("rate_bytes_per_s", -1),
        ("queue_bytes", -1),
    ],
)
def test_an_impossible_path_is_refused_with_what_to_write(option: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{option} is .*: write"):
        msgspec.structs.replace(Path(), **{option: value})


def test_what_is_said_about_all_pairs_fits_into_one_message() -> None:
    large, share = 2**63 - 1, 1 / 3
    path = Path(
        delay_ms=share,
        jitter_ms=share,
        rate_bytes_per_s=large,
        queue_bytes=large,
        loss=share,
        duplication=share,
        cut=True,
    )
    pairs = [(one, other) for one in range(HOSTS_MAX) for other in range(HOSTS_MAX) if one != other]
    counters = Counters(*[large] * 6)
    for message in (
        SetPaths([(pair, path) for pair in pairs]),
        Report([(pair, counters) for pair in pairs], large, large, large),
    ):
        assert len(msgspec.msgpack.encode(message)) <= MESSAGE_BYTES_MAX
