"""Covey beside others, in short runs with real processes: each system that is installed here, and the end of a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from covey.cli.main import app
from covey.lab.peers.plan import OURS, SYSTEMS, WORKLOADS
from covey.lab.peers.system import system_named

pytestmark = [pytest.mark.live, pytest.mark.slow]
SHORT = ["--rounds", "1", "--seconds", "0.3", "--sizes", "100", "--json"]


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_message_arrives(name: str) -> None:
    if reason := system_named(name).unavailable():
        pytest.skip(reason)
    systems = name if name == OURS else f"{OURS},{name}"
    workloads = ",".join(WORKLOADS) if name == OURS else "three-to-three,asked,idle"
    ran = CliRunner().invoke(app, ["bench", "peers", "--systems", systems, "--workloads", workloads, *SHORT])
    assert ran.exit_code == 0, ran.output
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    found = [one for one in said if one["what"] == "summary" and one["system"] == name]
    work = [one for one in workloads.split(",") if one != "idle" or system_named(name).has_servers]
    assert [one["workload"] for one in found] == work
    for one in found:
        assert one["workload"] == "idle" or one["figures"]["messages_per_s"]["median"] > 0
        assert one["ratios"]


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_nothing_is_left_of_a_run_that_was_ended(name: str, number: signal.Signals, tmp_path: Path) -> None:
    if reason := system_named(name).unavailable():
        pytest.skip(reason)
    command = [sys.executable, "-m", "covey", "bench", "peers", "--systems", name, "--workloads", "latency"]
    mark = {"COVEY_TEST_MARK": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen([*command, "--seconds", "600"], env=mark, stderr=subprocess.PIPE, text=True) as run:
        try:
            # Senders start last: who sees one sees everything at work.
            await_process(run, tmp_path, b"send0")
        finally:
            run.send_signal(number)
            _, said = run.communicate(timeout=60)
    assert (run.returncode, "interrupted" in said) == (130, True)
    assert marked(tmp_path) == []
    # The directory for the sockets of all daemons of a user stays, empty.
    assert [path for path in tmp_path.rglob("*") if path.name != f"covey-{os.getuid()}"] == []


def await_process(run: subprocess.Popen[str], mark: Path, word: bytes) -> None:
    """Until a process of this run has the word in its command line."""
    deadline = time.monotonic() + 60
    while not any(word in one for one in marked(mark)):
        assert run.poll() is None, "the run has ended before"
        assert time.monotonic() < deadline, f"there is no {word!r} after a minute"
        time.sleep(0.05)


def marked(mark: Path) -> list[bytes]:
    """The command lines of all processes that this run has started."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            if directory.name.isdigit() and str(mark).encode() in (directory / "environ").read_bytes():
                found.append((directory / "cmdline").read_bytes())
        except OSError:
            continue  # It has ended, or is not ours.
    return found
