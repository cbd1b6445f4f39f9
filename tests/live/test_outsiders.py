"""Real daemons that do not belong together: each is named with its address and the remedy, in status and log, once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from covey.cli.main import app
from covey.cluster import Cluster, DaemonConfig
from covey.config_file import render
from covey.drivers.live.events import Noticed
from covey.drivers.live.launch import DaemonOptions, command
from covey.drivers.live.sockets import free_ports
from covey.lab.cluster import LocalCluster
from covey.protocol.evs.codec import VERSION

pytestmark = pytest.mark.live

NEXT_VERSION = f"import covey.protocol.evs.codec as codec; codec.VERSION = {VERSION + 1}; "
ENOUGH = 5
"""Datagrams of an outsider: it keeps talking, and the log keeps silent."""

Outsider = tuple[list[str], str, str]
"""How it is started, its address, and our name for it."""


def another_cluster(cluster: LocalCluster, folder: Path) -> Outsider:
    """It thinks that one of its own daemons has the address of our a."""
    (port,) = free_ports(1)
    daemons = (DaemonConfig("x", 0, port=port), DaemonConfig("y", 0, *cluster.address("a")))
    file = folder / "theirs.toml"
    file.write_text(render(Cluster("theirs", daemons), "loopback"))
    return command(DaemonOptions(config=str(file), name="x")), f"127.0.0.1:{port}", ""


def another_configuration(cluster: LocalCluster, folder: Path) -> Outsider:
    """Somebody changed a setting in the file of one host."""
    file = folder / "edited.toml"
    file.write_text(cluster.file.read_text() + "\n[settings]\ntoken_lost_ms = 251\n")
    return command(DaemonOptions(config=str(file), name="c")), _address_of_c(cluster), "c"


def another_version(cluster: LocalCluster, folder: Path) -> Outsider:
    """The same file, and a Covey that speaks the next version."""
    python, *flags, boot, options = command(DaemonOptions(config=str(cluster.file), name="c"))
    return (
        [python, *flags, boot.replace("from covey", NEXT_VERSION + "from covey", 1), options],
        _address_of_c(cluster),
        "c",
    )


def _address_of_c(cluster: LocalCluster) -> str:
    host, port = cluster.address("c")
    return f"{host}:{port}"


Make = Callable[[LocalCluster, Path], Outsider]
REMEDIES: dict[Make, str] = {
    another_cluster: "two clusters share a port: give each daemon a port of its own",
    another_configuration: "give it the same covey.toml, and restart it",
    another_version: "run the same version of Covey on every host",
}


@contextmanager
def running(arguments: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output, subprocess.Popen(arguments, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.kill()


def outsiders_of_a(cluster: LocalCluster) -> list[dict[str, Any]]:
    ran = CliRunner().invoke(app, ["status", "a", "--json", "--config", str(cluster.file)])
    assert ran.exit_code == 0
    told: list[dict[str, Any]] = json.loads(ran.stdout)["outsiders"]
    return told


@pytest.mark.parametrize("make", REMEDIES, ids=lambda make: make.__name__)
def test_an_outsider_is_named_with_its_address_and_the_remedy(tmp_path: Path, make: Make) -> None:
    reason = make.__name__.replace("_", " ")
    with LocalCluster(tmp_path, run="ours", seed=1) as cluster:
        cluster.start("a", "b")
        cluster.wait_for_view("a", "b")
        arguments, address, name = make(cluster, tmp_path)
        with running(arguments, tmp_path / "outsider.log"):
            cluster.poll(lambda: any(one["datagrams"] >= ENOUGH for one in outsiders_of_a(cluster)), "its datagrams")
            (one,) = outsiders_of_a(cluster)
        assert (one["source"], one["daemon"], one["reason"]) == (address, name, reason)
        assert one["remedy"] == REMEDIES[make]
        shown = " ".join(CliRunner().invoke(app, ["status", "a", "--config", str(cluster.file)]).stdout.split())
        logged = [event.text for event in cluster.child("a").events if isinstance(event, Noticed)]
        assert len(logged) == 1, "once, however much it says"
        for text in (shown, logged[0]):
            assert [word for word in (address, reason, REMEDIES[make]) if word not in text] == []
        cluster.wait_for_view("a", "b")
