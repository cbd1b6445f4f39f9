"""Whether a session goes on at another daemon when its own is lost: as told, else only with a list of addresses."""

from __future__ import annotations

from typing import Any

import pytest

import covey
from covey.client.plan import Address, Bounds, make_plan
from covey.protocol.wire.words import VERSION, Hello
from covey.trace.client import ClientRecorder
from covey.trace.record import Row
from tests.unit.client.fake_daemon import words_of


@pytest.mark.parametrize(
    ("address", "told", "reconnects"),
    [
        (None, None, False),
        ("a", None, False),
        (["a"], None, True),
        (["a", "b"], None, True),
        (None, True, True),
        ("a", True, True),
        (["a", "b"], False, False),
    ],
)
def test_who_reconnects(address: Address, told: bool | None, reconnects: bool) -> None:
    assert make_plan("alice", address, told, 1, "disconnect", 1.0, Bounds(), None).reconnects is reconnects


def test_the_end_says_what_to_do_next() -> None:
    with covey.embedded() as daemon:
        session = covey.blocking.connect("alice", daemon.address, reconnect=True, reconnect_for=0.2)
    with session:
        assert isinstance(session.receive(), covey.Disconnected)
        with pytest.raises(covey.ReconnectError, match="covey up"):
            list(session)


@pytest.mark.parametrize("name", ["daemon_timeout", "alive_timeout", "lag_max", "reconnect_for", "timeout"])
@pytest.mark.parametrize("door", [covey.connect, covey.blocking.connect])
@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5"])
def test_times_that_make_no_sense_are_refused_with_a_remedy(door: Any, name: str, seconds: object) -> None:
    with pytest.raises(covey.ArgumentError, match=f"{name} is .*: write the seconds"):
        door("alice", "unix:/nowhere", **{name: seconds})


def test_what_a_daemon_has_to_know_is_said_in_hello() -> None:
    bounds = Bounds(5.0, 0.0001, None, 60.0)
    (hello,) = words_of(make_plan("alice", None, None, 1, "disconnect", 1.0, bounds, None).protocol().take(1))
    assert hello == Hello("covey", VERSION, "alice", 1, "disconnect", 5_000, 1, 0)


def test_it_is_said_by_those_who_record_too() -> None:
    rows: list[Row] = []
    recorder = ClientRecorder("live", rows.append)
    plan = make_plan("alice", None, None, 1, "disconnect", 1.0, Bounds(5.0), recorder)
    (hello,) = words_of(plan.protocol().take(1))
    assert isinstance(hello, Hello)
    assert hello.daemon_timeout_ms == 5_000
