"""When a daemon has been silent for too long, and when it only seems so; how a search goes on, and what it tells."""

from __future__ import annotations

import logging
from itertools import islice

import pytest

import covey
from covey.client.search import PAUSE_FIRST_S, PAUSE_MAX_S, TELL_EVERY_S, Search, pauses
from covey.client.watch import Watch
from covey.errors import ConnectError


def test_silence_counts_from_the_last_byte() -> None:
    watch = Watch(5.0, 1.0, now=100.0)
    assert (watch.due, watch.is_silent(now=104.9, planned=104.9)) == (105.0, False)
    watch.heard_at = 104.0
    assert (watch.due, watch.is_silent(now=105.0, planned=105.0)) == (109.0, False)
    assert watch.is_silent(now=109.0, planned=109.0)


@pytest.mark.parametrize(("timeout_s", "interval_s"), [(None, 1.0), (5.0, 0.0), (None, 0.0)])
def test_who_did_not_promise_to_speak_is_not_judged(timeout_s: float | None, interval_s: float) -> None:
    watch = Watch(timeout_s, interval_s, now=100.0)
    assert (watch.is_on, watch.due) == (False, float("inf"))
    assert not watch.is_silent(now=1e9, planned=1e9)


def test_nobody_is_asked_to_speak_more_often_than_it_promised() -> None:
    watch = Watch(1.0, 2.0, now=100.0)
    assert (watch.due, watch.reason) == (104.0, "the daemon did not answer for 4 s")


def test_who_looks_much_too_late_may_have_slept_like_the_daemon_and_waits_once_more() -> None:
    watch = Watch(5.0, 1.0, now=100.0)
    assert not watch.is_silent(now=160.0, planned=105.0)
    assert watch.due == 165.0
    assert watch.is_silent(now=300.0, planned=165.0)


def test_who_was_heard_again_is_excused_again() -> None:
    watch = Watch(5.0, 1.0, now=100.0)
    assert not watch.is_silent(now=160.0, planned=105.0)
    watch.heard_at = 161.0
    assert not watch.is_silent(now=300.0, planned=166.0)


# --- a search


def test_pauses_double_up_to_a_bound_and_are_drawn_from_a_half() -> None:
    expected = [min(PAUSE_FIRST_S * 2**power, PAUSE_MAX_S) for power in range(10)]
    assert expected[-1] == PAUSE_MAX_S
    many = [list(islice(pauses(), 10)) for _ in range(50)]
    assert all(full / 2 <= pause <= full for one in many for pause, full in zip(one, expected, strict=True))
    assert len({one[9] for one in many}) > 1


def test_a_search_tells_at_once_and_then_now_and_then_and_logs_once(caplog: pytest.LogCaptureFixture) -> None:
    search = Search("alice", None, now=100.0)
    with caplog.at_level(logging.WARNING, "covey"):
        told = [search.failed(ConnectError("nobody listens"), now=100.0 + second) for second in range(12)]
    assert [one for one in told if one is not None] == [
        covey.Reconnecting(1, "nobody listens", 0.0),
        covey.Reconnecting(1 + int(TELL_EVERY_S), "nobody listens", TELL_EVERY_S),
        covey.Reconnecting(1 + 2 * int(TELL_EVERY_S), "nobody listens", 2 * TELL_EVERY_S),
    ]
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == (
        "covey",
        "alice has lost its daemon, and looks for one: nobody listens",
    )


def test_patience_ends_with_an_error_that_says_how_long_and_why() -> None:
    search = Search("alice", 10.0, now=100.0)
    search.failed(ConnectError("nobody listens"), now=101.0)
    assert search.left(now=101.0) == 9.0
    assert search.pause(now=101.0) <= PAUSE_FIRST_S
    with pytest.raises(covey.ReconnectError, match=r"no daemon let us in again within 10 s: nobody listens"):
        search.pause(now=110.0)
    assert issubclass(covey.ReconnectError, covey.ConnectError)


def test_who_is_patient_for_ever_goes_on() -> None:
    search = Search("alice", None, now=100.0)
    assert search.left(now=1e9) is None
    assert search.pause(now=1e9) > 0
