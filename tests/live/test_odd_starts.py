"""Daemons in odd places: ports in use, directories of others, no room to write, no descriptors left, stopped."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from covey.client.address import socket_path
from covey.cluster import Cluster, DaemonConfig
from covey.config_file import render
from covey.drivers.live.clients import DEAF_S
from covey.drivers.live.sockets import free_ports
from covey.protocol.counters import Family

pytestmark = pytest.mark.live

COVEY = (sys.executable, "-m", "covey")
WITHIN_S = 60.0
FEW = 24
"""Descriptors."""


def cluster_in(directory: Path, clients: str | None = None) -> Cluster:
    """A file for one daemon."""
    cluster = Cluster("odd", (DaemonConfig("a", 0, port=free_ports(1)[0], clients=clients),))
    (directory / "covey.toml").write_text(render(cluster, "loopback"))
    return cluster


def daemon(directory: Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COVEY, "daemon", "a"], cwd=directory, stderr=subprocess.PIPE, text=True,
        **{"stdout": subprocess.PIPE, **options},
    )  # fmt: skip


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.02)


def status(directory: Path) -> tuple[dict[str, Any], str]:
    ran = subprocess.run([*COVEY, "status", "--json"], cwd=directory, capture_output=True, text=True, check=False)
    return json.loads(ran.stdout), ran.stderr


def test_a_name_for_which_no_socket_has_room_is_refused_with_what_to_do(tmp_path: Path) -> None:
    name = "😀" * 32
    cluster = Cluster("odd", (DaemonConfig(name, 0, port=free_ports(1)[0]),))
    (tmp_path / "covey.toml").write_text(render(cluster, "loopback"))
    ran = subprocess.run(
        [*COVEY, "daemon", name], cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "give the daemon a shorter name, or set TMPDIR" in ran.stderr


def test_a_client_port_in_use_is_named_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        cluster = cluster_in(tmp_path, f"127.0.0.1:{taken.getsockname()[1]}")
        started = daemon(tmp_path)
        _, said = started.communicate(timeout=WITHIN_S)
    assert started.returncode == 2
    assert said.startswith("covey daemon a: it cannot listen at 127.0.0.1:")
    assert "give this daemon another place" in said
    assert not socket_path(cluster.digest(), "a").exists()


@pytest.mark.parametrize("mode", [None, 0o777], ids=["missing", "open to others"])
def test_a_directory_for_sockets_that_is_not_private_is_refused(tmp_path: Path, mode: int | None) -> None:
    cluster_in(tmp_path)
    parent = tmp_path / "tmp"
    if mode is not None:
        (parent / f"covey-{os.getuid()}").mkdir(parents=True)
        (parent / f"covey-{os.getuid()}").chmod(mode)
    started = daemon(tmp_path, env=os.environ | {"TMPDIR": str(parent)})
    _, said = started.communicate(timeout=WITHIN_S)
    assert (started.returncode, "set TMPDIR to a directory of yours" in said.replace("\n", " ")) == (2, True)


def test_a_daemon_whose_log_finds_no_room_goes_on_and_says_goodbye(tmp_path: Path) -> None:
    cluster = cluster_in(tmp_path)
    with Path("/dev/full").open("w") as full:
        started = daemon(tmp_path, stdout=full)
        until(socket_path(cluster.digest(), "a").exists)
        started.send_signal(signal.SIGHUP)
        _, said = started.communicate(timeout=WITHIN_S)
    assert (started.returncode, said) == (0, "")


def test_status_tells_a_stopped_daemon_from_one_that_does_not_run(tmp_path: Path) -> None:
    cluster = cluster_in(tmp_path)
    started = daemon(tmp_path)
    try:
        until(socket_path(cluster.digest(), "a").exists)
        started.send_signal(signal.SIGSTOP)
        told, said = status(tmp_path)
        assert (told["running"], told["answers"]) == (True, False)
        assert "stopped or overloaded" in said
    finally:
        started.send_signal(signal.SIGCONT)
        started.terminate()
        started.communicate(timeout=WITHIN_S)
    told, said = status(tmp_path)
    assert (told["running"], "Start with" in said) == (False, True)


def test_without_descriptors_newcomers_wait_and_the_daemon_does_not_spin(tmp_path: Path) -> None:
    cluster = cluster_in(tmp_path)
    few = (FEW, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    started = daemon(tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few))
    path, counted = socket_path(cluster.digest(), "a"), Family.CONNECTION_NOT_ACCEPTED.of("EMFILE").value
    waiting: list[socket.socket] = []
    try:
        until(path.exists)
        began = time.monotonic()
        for _ in range(2 * FEW):
            waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            waiting[-1].connect(str(path))
        until(lambda: len(list(Path(f"/proc/{started.pid}/fd").iterdir())) >= FEW)
        for one in waiting:
            one.close()
        until(lambda: counted in status(tmp_path)[0].get("count", {}))
        assert status(tmp_path)[0]["count"][counted] <= 1 + (time.monotonic() - began) / DEAF_S
    finally:
        started.terminate()
        started.communicate(timeout=WITHIN_S)
