"""Who does not belong here is named, with what to do about it; nobody can fill the memory or the log with names."""

from __future__ import annotations

import pytest

from covey.cluster import Address, Cluster, DaemonConfig, one_site
from covey.errors import FrameError, OutsiderError
from covey.ids import Ballot, Life
from covey.protocol.effects import Notice
from covey.protocol.evs.codec import VERSION, Codec
from covey.protocol.evs.frames import Hurry
from covey.protocol.outsiders import FORGET_US, MINUTE_US, NOTICES_MAX, OUTSIDERS_MAX, UNLISTED, Outsiders

CLUSTER = Cluster("ours", tuple(DaemonConfig(name, 0, "192.0.2.1", 4_801 + at) for at, name in enumerate("abc")))
ELSEWHERE: Address = ("198.51.100.9", 999)
OURS = Codec("ours", 7, Life(0, 1))


def found(data: bytes) -> OutsiderError:
    with pytest.raises(OutsiderError) as caught:
        OURS.decode(data)
    return caught.value


def said_by(cluster: str, digest: int, rank: int) -> bytes:
    return Codec(cluster, digest, Life(rank, 5)).encode(Hurry(Ballot(1, 0, 1)))


def of_other_version() -> bytes:
    data = bytearray(said_by("ours", 7, 2))
    data[2] = VERSION + 1
    return bytes(data)


def texts(effects: list[object]) -> list[str]:
    return [effect.text for effect in effects if isinstance(effect, Notice)]


@pytest.mark.parametrize(
    ("data", "source", "words"),
    [
        (of_other_version(), ELSEWHERE, ["another version", "it has 9, we have 8", "the same version of Covey"]),
        (said_by("theirs", 7, 2), ELSEWHERE, ["another cluster", "daemon number 2 of 'theirs'", "a port of its own"]),
        (said_by("ours", 8, 2), ELSEWHERE, ["our daemon c", "another configuration", "give it the same covey.toml"]),
        (said_by("ours", 8, 2), ("192.0.2.1", 4_802), ["192.0.2.1:4802, our daemon b", "another configuration"]),
        (said_by("ours", 8, 700), ELSEWHERE, ["another configuration", "daemon number 700"]),
    ],
)
def test_the_notice_tells_who_what_and_the_remedy(data: bytes, source: Address, words: list[str]) -> None:
    outsiders = Outsiders(CLUSTER)
    (text,) = texts([*outsiders.see(found(data), source, 0)])
    assert [word for word in [f"{source[0]}:{source[1]}", *words] if word not in text] == []
    assert [one["text"] in text for one in outsiders.snapshot(0)] == [True]


def test_noise_is_nobody() -> None:
    with pytest.raises(FrameError) as caught:
        OURS.decode(b"noise")
    assert not isinstance(caught.value, OutsiderError)


def test_one_address_is_named_once_for_each_difference() -> None:
    outsiders = Outsiders(CLUSTER)
    told = [texts([*outsiders.see(found(said_by(name, 7, 2)), ELSEWHERE, at)]) for at, name in enumerate("xyz")]
    assert [len(one) for one in told] == [1, 0, 0]
    (one,) = outsiders.snapshot(2_000)
    assert (one["datagrams"], one["silent_ms"], one["detail"]) == (3, 1, "daemon number 2 of 'z'")
    assert texts([*outsiders.see(UNLISTED, ELSEWHERE, 3)])


def test_only_those_heard_last_are_remembered() -> None:
    outsiders = Outsiders(CLUSTER)
    for port in range(1, 10 * OUTSIDERS_MAX):
        outsiders.see(UNLISTED, ("192.0.2.1", port), port)
    told = outsiders.snapshot(10 * OUTSIDERS_MAX)
    assert len(told) == OUTSIDERS_MAX
    assert min(one["heard_us"] for one in told) == 9 * OUTSIDERS_MAX


def test_the_log_takes_so_many_names_a_minute() -> None:
    outsiders = Outsiders(CLUSTER)
    first = [text for port in range(100) for text in texts([*outsiders.see(UNLISTED, ("192.0.2.1", port), 5)])]
    assert len(first) == NOTICES_MAX
    assert "in the status only" in first[-1]
    assert len(texts([*outsiders.see(UNLISTED, ("192.0.2.1", 200), 5 + MINUTE_US)])) == 1


def test_who_was_silent_for_long_is_forgotten_and_named_again() -> None:
    outsiders = Outsiders(CLUSTER)
    outsiders.see(UNLISTED, ELSEWHERE, 0)
    assert outsiders.snapshot(FORGET_US) != []
    assert outsiders.snapshot(FORGET_US + 1) == []
    assert texts([*outsiders.see(UNLISTED, ELSEWHERE, FORGET_US + 1)])
    (one,) = outsiders.snapshot(FORGET_US + 1)
    assert one["datagrams"] == 1


def test_without_an_address_there_is_still_a_name() -> None:
    (text,) = texts([*Outsiders(one_site(3)).see(found(said_by("ours", 8, 1)), None, 0)])
    assert "from somewhere, our daemon b" in text
