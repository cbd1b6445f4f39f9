"""Where daemons are found, and what is said when they are not."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from covey.client import address
from covey.client.address import Tcp, Unix, endpoints, running, socket_directory, socket_path
from covey.cluster import Cluster, DaemonConfig
from covey.config_file import render
from covey.errors import ArgumentError, ConfigError, ConnectError

CLUSTER = Cluster("test", tuple(DaemonConfig(name, 0, "127.0.0.1", 4_000 + at) for at, name in enumerate("abc")))
OTHER = Cluster("other", (DaemonConfig("a", 0, "127.0.0.1", 5_000),))


class Machine:
    """A machine where nothing runs, with a directory to be in."""

    def __init__(self, here: Path, stack: ExitStack) -> None:
        self.here = here
        self._stack = stack

    def start(self, name: str, cluster: Cluster = CLUSTER) -> Path:
        path = self.leave_behind(name, cluster)
        path.unlink()
        listener = self._stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        listener.bind(str(path))
        listener.listen()
        return path

    def leave_behind(self, name: str, cluster: Cluster = CLUSTER) -> Path:
        """The socket of a daemon that was killed."""
        path = socket_path(cluster.digest(), name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
        return path

    def write_file(self, folder: Path) -> None:
        (folder / "covey.toml").write_text(render(CLUSTER, "loopback"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    # Short: the path of a socket has at most 107 bytes.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("COVEY_ADDRESS", raising=False)
    here = tmp_path / "above" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    with ExitStack() as stack:
        yield Machine(here, stack)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unix:/run/covey/a.client", Unix(Path("/run/covey/a.client"))),
        ("tcp://example.org:4803", Tcp("example.org", 4_803)),
        ("tcp://[::1]:4803", Tcp("::1", 4_803)),
    ],
)
def test_an_address_says_where(text: str, expected: Unix | Tcp) -> None:
    assert endpoints(text) == [expected]
    assert str(expected) == text


@pytest.mark.parametrize(
    "text",
    [
        "unix:",
        "unix:a.client",
        "tcp://",
        "tcp://host",
        "tcp://host:x",
        "tcp://host:70000",
        "http://host:1",
        "a/b",
        "a:1",
    ],
)
def test_what_is_no_address_is_refused_with_the_forms_there_are(text: str, machine: Machine) -> None:
    with pytest.raises(ArgumentError, match="write"):
        endpoints(text)


def test_the_environment_names_one(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.start("a")
    monkeypatch.setenv("COVEY_ADDRESS", "tcp://far:1")
    assert endpoints(None) == [Tcp("far", 1)]


@pytest.mark.parametrize("up", [0, 1])
def test_the_file_here_or_above_names_the_daemons_that_run_here(machine: Machine, up: int) -> None:
    machine.write_file([machine.here, machine.here.parent][up])
    machine.start("a", OTHER)
    paths = [machine.start("b"), machine.start("c")]
    assert endpoints(None) == [Unix(path) for path in paths]
    assert endpoints("c") == [Unix(paths[1])]


def test_without_a_file_the_only_cluster_counts(machine: Machine) -> None:
    machine.leave_behind("a", OTHER)
    paths = [machine.start("a"), machine.start("b")]
    assert endpoints(None) == [Unix(path) for path in paths]
    assert endpoints("b") == [Unix(paths[1])]


def test_several_clusters_are_told_apart_by_the_program(machine: Machine) -> None:
    paths = [machine.start("a"), machine.start("a", OTHER)]
    machine.start("b")
    with pytest.raises(ConnectError, match="say which one") as caught:
        endpoints(None)
    assert all(f"unix:{path} ({names})" in str(caught.value) for path, names in zip(paths, ("a b", "a"), strict=True))


def test_daemons_that_run_are_told_apart_by_their_cluster(machine: Machine) -> None:
    machine.leave_behind("c")
    paths = [machine.start("a"), machine.start("b"), machine.start("a", OTHER)]
    assert running() == sorted(paths)
    assert running(CLUSTER) == paths[:2]


def test_when_nothing_runs_it_says_what_to_start(machine: Machine) -> None:
    for asked in (None, "b"):
        with pytest.raises(ConnectError, match="covey up"):
            endpoints(asked)
    machine.leave_behind("a")
    with pytest.raises(ConnectError, match="covey up"):
        endpoints(None)


def test_when_no_daemon_of_the_file_runs_it_says_what_to_start(machine: Machine) -> None:
    machine.write_file(machine.here)
    with pytest.raises(ConnectError, match=r"covey daemon a --config .*covey\.toml.*covey up --config .*covey\.toml"):
        endpoints(None)
    with pytest.raises(ConnectError, match=r"no daemon 'b' of .*covey daemon b --config"):
        endpoints("b")


def test_a_daemon_that_the_file_does_not_have(machine: Machine) -> None:
    machine.write_file(machine.here)
    with pytest.raises(ConfigError, match="no daemon 'z'"):
        endpoints("z")


def test_a_directory_of_somebody_else_is_not_trusted(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    path = machine.start("a")
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    path.parent.rename(socket_directory())
    with pytest.raises(ConnectError):
        endpoints(None)
    machine.write_file(machine.here)
    with pytest.raises(ConnectError):
        endpoints(None)


def test_a_busy_daemon_runs(machine: Machine) -> None:
    path = machine.leave_behind("a")
    path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, ExitStack() as stack:
        listener.bind(str(path))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
            try:
                waiting.connect(str(path))
            except BlockingIOError:
                break
        assert address.endpoints(None) == [Unix(path)]
