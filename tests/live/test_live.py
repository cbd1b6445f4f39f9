"""Real processes on loopback: they form one view, and come back to one after whatever is done to them.

Every wait has a deadline and says what it waited for; every run ends with its trace checked against all guarantees.
"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from covey.cluster import Cluster, DaemonConfig
from covey.config_file import render
from covey.drivers.live.launch import DaemonOptions, command
from covey.drivers.live.sockets import free_ports
from covey.guarantees.checkers import check
from covey.lab.cluster import LiveError, LocalCluster
from covey.protocol.counters import Family

pytestmark = pytest.mark.live

LOAD = 50
PUT_TO_THE_TEST = ("S1", "S4", "S5", "S6", "S7", "S9", "S10", "S12", "S14", "S15", "M1", "M2", "M3", "M4", "M5", "M6")


def started(tmp_path: Path, seed: int) -> LocalCluster:
    """Three daemons in one view, with some traffic behind them."""
    cluster = LocalCluster(tmp_path, run=tmp_path.name, load=LOAD, seed=seed)
    try:
        cluster.start("a", "b", "c")
        cluster.wait_for_view("a", "b", "c")
        cluster.wait_for_traffic(30)
    except BaseException:
        cluster.close()
        raise
    return cluster


def finish_and_check(cluster: LocalCluster) -> None:
    """Some traffic without faults, then rest; every guarantee holds, and the main ones had something to say."""
    cluster.calm()
    cluster.wait_for_traffic(30)
    assert cluster.finish(), "the daemons did not come to rest"
    verdicts = {verdict.guarantee: verdict for verdict in check(cluster.rows())}
    violations = [str(one) for verdict in verdicts.values() for one in verdict.violations]
    assert not violations, "\n".join(violations)
    assert not [name for name in PUT_TO_THE_TEST if verdicts[name].premises == 0], "guarantees without a case"


def test_three_daemons_form_one_view(tmp_path: Path) -> None:
    with started(tmp_path, seed=1) as cluster:
        views = cluster.wait_for_view("a", "b", "c")
        assert {view.members for view in views} == {("a", "b", "c")}
        finish_and_check(cluster)


def test_a_killed_daemon_is_left_out_and_merged_again(tmp_path: Path) -> None:
    with started(tmp_path, seed=2) as cluster:
        cluster.kill("c")
        views = cluster.wait_for_view("a", "b")
        assert {(view.cause, view.transitional) for view in views} == {("loss", ("a", "b"))}
        cluster.wait_for_traffic(30)
        cluster.start("c")
        views = cluster.wait_for_view("a", "b", "c")
        assert {view.name: view.transitional for view in views if view.name != "c"} == {
            "a": ("a", "b"),
            "b": ("a", "b"),
        }
        finish_and_check(cluster)
        crashes = [row for row in cluster.rows() if row.event == "crash"]
        assert [row.name for row in crashes] == ["c"]


def test_the_lowest_daemon_is_killed_and_comes_back(tmp_path: Path) -> None:
    with started(tmp_path, seed=3) as cluster:
        cluster.kill("a")
        cluster.wait_for_view("b", "c")
        cluster.start("a")
        cluster.wait_for_view("a", "b", "c")
        finish_and_check(cluster)


def test_a_daemon_that_stops_says_goodbye(tmp_path: Path) -> None:
    with started(tmp_path, seed=4) as cluster:
        cluster.stop("b")
        views = cluster.wait_for_view("a", "c")
        assert {view.name: view.cause for view in views}["a"] == "goodbye"
        cluster.start("b")
        cluster.wait_for_view("a", "b", "c")
        finish_and_check(cluster)


def test_a_paused_daemon_converges_when_it_goes_on(tmp_path: Path) -> None:
    with started(tmp_path, seed=5) as cluster:
        cluster.pause("b")
        cluster.wait_for_view("a", "c")
        cluster.resume("b")
        cluster.wait_for_view("a", "b", "c")
        finish_and_check(cluster)


def test_a_short_pause_of_all_changes_no_more_than_it_must(tmp_path: Path) -> None:
    with started(tmp_path, seed=6) as cluster:
        for name in "abc":
            cluster.pause(name)
        for name in "abc":
            cluster.resume(name)
        cluster.wait_for_traffic(30)
        finish_and_check(cluster)


def test_garbage_does_not_disturb(tmp_path: Path) -> None:
    noise = random.Random(7)
    with started(tmp_path, seed=7) as cluster, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        before = {status.process: status.snapshot["view"] for status in cluster.statuses()}
        for _ in range(200):
            head = noise.choice((b"", b"Cv", b"Cv\x01", b"Cv\x02"))
            stranger.sendto(head + noise.randbytes(noise.randrange(1_500)), cluster.address("a"))
        cluster.wait_for_traffic(30)
        after = cluster.statuses()
        assert {status.process: status.snapshot["view"] for status in after} == before
        counted = next(status for status in after if status.name == "a").snapshot["count"]
        assert sum(amount for name, amount in counted.items() if name.startswith(Family.FRAME_REJECTED.value)) == 200
        finish_and_check(cluster)


def test_a_second_daemon_of_the_same_name_is_refused(tmp_path: Path) -> None:
    with started(tmp_path, seed=8) as cluster:
        again = command(DaemonOptions(config=str(cluster.file), name="a"))
        second = subprocess.run(again, capture_output=True, text=True, timeout=30, check=False)
        assert second.returncode == 2
        assert "is it running already?" in second.stderr


def test_another_host_than_loopback_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "covey.toml"
    text = render(Cluster("x", (DaemonConfig("a", 0, "192.0.2.1", 4803),)), "lan")
    file.write_text(text.replace("allow_unsealed = true", "allow_unsealed = false"))
    far = command(DaemonOptions(config=str(file), name="a"))
    ran = subprocess.run(far, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 2
    assert "write 127.0.0.1" in ran.stderr


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    cluster = Cluster(
        "x", tuple(DaemonConfig(name, 0, port=port) for name, port in zip("ab", free_ports(2), strict=True))
    )
    file = tmp_path / "covey.toml"
    file.write_text(render(cluster, "loopback"))
    alone = command(DaemonOptions(config=str(file), name="a", json=True))
    with subprocess.Popen(alone, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        assert b'"ready"' in daemon.stdout.readline()
        daemon.send_signal(signal.SIGTERM)
        daemon.send_signal(signal.SIGTERM)
        # Either the goodbye was said before the second signal came, or the second signal ended it.
        assert daemon.wait(10) in (0, -signal.SIGTERM)


def test_a_daemon_that_dies_unasked_is_reported(tmp_path: Path) -> None:
    with started(tmp_path, seed=9) as cluster:
        cluster.child("b").signal(signal.SIGKILL)
        with pytest.raises(LiveError, match="b ended with code -9"):
            cluster.wait_until(lambda: False, "something that never comes", within_s=10)
