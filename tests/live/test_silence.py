"""Daemons and programs that hang, as real processes under SIGSTOP: each side notices, and says why."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import covey
from covey.client import inbox
from covey.lab.cluster import LocalCluster
from tests.live.test_clients import PATIENT, address, three

pytestmark = pytest.mark.live

WITHIN_S = 20.0

PROGRAM = """
import sys, covey
with covey.blocking.connect("frozen", sys.argv[1], alive_timeout=float(sys.argv[2]) or None) as session:
    session.join("room")
    for event in session:
        print(type(event).__name__, flush=True)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with three(tmp_path, PATIENT) as made:
        yield made


def program(cluster: LocalCluster, alive_timeout: float) -> subprocess.Popen[str]:
    """A member of the room, at daemon a, that is there when this returns."""
    made = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, address(cluster, "a"), str(alive_timeout)], stdout=subprocess.PIPE, text=True
    )
    assert made.stdout is not None
    assert made.stdout.readline() == "View\n"
    return made


def next_view(session: covey.blocking.Session) -> covey.View:
    while True:
        event = session.receive(WITHIN_S)
        if isinstance(event, covey.View):
            return event


def send_for_ever(session: covey.blocking.Session) -> None:
    while True:
        session.send("room", b"tick")


def test_a_program_notices_that_its_daemon_hangs_and_goes_on_at_another(cluster: LocalCluster) -> None:
    where = [address(cluster, "a"), address(cluster, "b")]
    with covey.blocking.connect("watcher", where, reconnect=True, daemon_timeout=1.0) as session:
        cluster.pause("a")
        events = [session.receive(WITHIN_S)]
        while not isinstance(events[-1], covey.Reconnected):
            events.append(session.receive(WITHIN_S))
        assert isinstance(events[0], covey.Disconnected)
        assert events[0].reason == "the daemon did not answer for 1 s"
        assert session.name == "watcher@b"
        session.join("room")
        assert next_view(session).members == ("watcher@b",)


def test_a_program_that_only_sends_notices_it_too(cluster: LocalCluster) -> None:
    session = covey.blocking.connect("sender", address(cluster, "a"), daemon_timeout=1.0)
    cluster.pause("a")
    with pytest.raises(covey.SessionOverError, match="did not answer for 1 s"):
        send_for_ever(session)


def test_a_program_that_only_sends_and_takes_nothing_notices_it_too(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "RECEIVE_BYTES_MAX", 0)  # What it has not taken is as much as it may be.
    session = covey.blocking.connect("sender", address(cluster, "a"), daemon_timeout=1.0)
    cluster.pause("a")
    with pytest.raises(covey.SessionOverError, match="did not answer for 1 s"):
        send_for_ever(session)


def test_a_program_that_hangs_is_given_up_and_the_others_learn_why(cluster: LocalCluster) -> None:
    with covey.blocking.connect("other", address(cluster, "b")) as session:
        session.join("room")
        assert next_view(session).members == ("other@b",)
        frozen = program(cluster, alive_timeout=1.0)
        assert next_view(session).members == ("frozen@a", "other@b")
        frozen.send_signal(signal.SIGSTOP)
        try:
            view = next_view(session)
            assert view.members == ("other@b",)
            assert view.cause == "disconnect"
            assert "it did not answer for" in view.detail
        finally:
            frozen.kill()
            frozen.communicate()


def test_a_program_that_reads_and_does_nothing_else_is_not_given_up(cluster: LocalCluster) -> None:
    quiet = program(cluster, alive_timeout=0.5)
    with covey.blocking.connect("other", address(cluster, "a")) as session:
        session.join("room")
        assert next_view(session).members == ("frozen@a", "other@a")
        with pytest.raises(TimeoutError):  # Several timeouts long nothing happens to it.
            session.receive(3.0)
    quiet.kill()
    quiet.communicate()


def test_a_configuration_may_ask_for_it_in_the_name_of_all(tmp_path: Path) -> None:
    with three(tmp_path, PATIENT + "session_silence_max_ms = 1_000\n") as cluster:
        frozen = program(cluster, alive_timeout=0.0)
        with covey.blocking.connect("other", address(cluster, "b")) as session:
            session.join("room")
            assert next_view(session).members == ("frozen@a", "other@b")
            frozen.send_signal(signal.SIGSTOP)
            try:
                assert next_view(session).members == ("other@b",)
            finally:
                frozen.kill()
                frozen.communicate()
