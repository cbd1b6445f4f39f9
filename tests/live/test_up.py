"""`covey up` with real daemons: how it starts, whom it names, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from covey.cluster import Cluster, DaemonConfig
from covey.config_file import render
from covey.drivers.live.sockets import free_ports

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

WITHIN_S = 60
COVEY = (sys.executable, "-m", "covey")


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_up_runs_until_it_is_told_to_stop_and_leaves_nobody_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    up = subprocess.Popen(
        [*COVEY, "up", "--json", "--daemons", "2"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert up.stdout is not None
    while True:
        said = json.loads(up.stdout.readline())
        if said["kind"] == "view" and len(said["members"]) == 2:
            break
    command = [*COVEY, "send", "room", "hi", "--json"]
    sent = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=WITHIN_S, check=True)
    assert json.loads(sent.stdout)["delivered"]
    up.send_signal(signal.SIGINT)
    rest, _ = up.communicate(timeout=WITHIN_S)
    assert up.returncode == 0
    assert sum(one["kind"] == "stopped" for one in objects(rest)) == 2


def test_who_dies_is_named_by_up_and_by_a_status_from_elsewhere(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "COVEY_ADDRESS": ""}
    up = subprocess.Popen(
        [*COVEY, "up", "--json", "--daemons", "2", "--dir", "cluster"], cwd=tmp_path, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    request.addfinalizer(up.kill)  # Its daemons do not outlive it.
    assert up.stdout is not None
    assert up.stderr is not None
    seen: set[str] = set()
    while len(seen) < 2:
        said = json.loads(up.stdout.readline())
        seen |= {said["process"]} if len(said.get("members", ())) == 2 else set()

    def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COVEY, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=WITHIN_S,
            check=False,
        )  # fmt: skip

    well = ask("status", "--json")
    assert (well.returncode, len(objects(well.stdout))) == (0, 2)
    kill_daemon("b", up.pid)
    assert next(line for line in up.stderr if "died" in line) == (
        "covey up: daemon b has died: killed by SIGKILL; still running: a\n"
    )
    partly = ask("status", "--json")
    assert partly.returncode == 1
    assert {one["name"]: one["running"] for one in objects(partly.stdout)} == {"a": True, "b": False}
    file = tmp_path / "cluster" / "covey.toml"
    assert f"not running: b. Start with `covey daemon b --config {file}`" in partly.stderr
    (picture,) = objects(ask("top", "--once", "--json").stdout)
    assert {one["name"]: one["running"] for one in picture["daemons"]} == {"a": True, "b": False}
    kill_daemon("a", up.pid)
    _, errors = up.communicate(timeout=WITHIN_S)
    assert (up.returncode, errors) == (1, "covey up: daemon a has died: killed by SIGKILL; none is left\n")


def kill_daemon(name: str, parent: int) -> None:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    (child,) = [one for one in children if f'"name":"{name}"' in Path(f"/proc/{one}/cmdline").read_text()]
    os.kill(int(child), signal.SIGKILL)


def test_up_runs_a_file_and_says_its_views_only(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    path = tmp_path / "covey.toml"
    ports = free_ports(2)
    members = tuple(DaemonConfig(name, 0, "127.0.0.1", port) for name, port in zip("ab", ports, strict=True))
    path.write_text(render(Cluster("mine", members), "loopback"))
    up = subprocess.Popen(
        [*COVEY, "up"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert up.stdout is not None
    said = [next(line for line in up.stdout if " of a b; " in line)]
    again = subprocess.run(
        [*COVEY, "up"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert (again.returncode, again.stdout) == (2, "")
    assert "run already" in again.stderr
    up.send_signal(signal.SIGTERM)
    rest, errors = up.communicate(timeout=WITHIN_S)
    assert up.returncode == 0
    assert "covey chat" in errors
    assert all(line.split()[3] in {"ready", "view", "stopped"} for line in [*said, *rest.splitlines()])
