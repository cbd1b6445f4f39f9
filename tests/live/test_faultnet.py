"""The fault bench with real sockets and processes on its hosts.

Nothing waits for time to pass. What arrives is awaited with a deadline. What must not arrive needs no waiting: counters
are asked for, which the router answers after all that was sent before, and then the socket is found empty.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path as FilePath

import pytest

from covey.errors import ConfigError
from covey.lab.faultnet import FaultNet, FaultNetError, Path, namespace

pytestmark = pytest.mark.live

PORT = 4803
WITHIN_S = 20.0

# A process on a host that says when it runs, and then does nothing until it is killed.
IDLE = [sys.executable, "-S", "-c", "import time; print('up', flush=True); time.sleep(600)"]


@pytest.fixture(scope="module")
def bench() -> Iterator[FaultNet]:
    if reason := FaultNet.unavailable():
        pytest.skip(reason)
    with FaultNet(hosts=3, seed=1) as net:
        yield net


@pytest.fixture
def net(bench: FaultNet) -> FaultNet:
    bench.set_all(Path())
    return bench


@pytest.fixture
def sockets(net: FaultNet) -> Iterator[dict[int, socket.socket]]:
    """One bound UDP socket on each host."""
    with ExitStack() as stack:
        yield {host: stack.enter_context(closing(udp(net, host))) for host in net.hosts}


def udp(net: FaultNet, host: int) -> socket.socket:
    with net.inside(host):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 200_000)
    made.settimeout(WITHIN_S)
    made.bind((net.address(host), PORT))
    return made


def arrived(at: socket.socket) -> list[bytes]:
    """What is there already."""
    found = []
    while select.select([at], [], [], 0)[0]:
        found.append(at.recv(65_536))
    return found


def crossed(net: FaultNet, sockets: dict[int, socket.socket], source: int, to: int) -> bool:
    """Whether one datagram got through; only for paths without a delay."""
    sockets[source].sendto(b"?", (net.address(to), PORT))
    net.counters()
    return arrived(sockets[to]) == [b"?"]


# --- what a network does


def test_datagrams_cross_between_hosts_also_in_fragments(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    for data in (b"", b"hello", os.urandom(5_000)):
        sockets[1].sendto(data, (net.address(2), PORT))
        assert sockets[2].recvfrom(65_536) == (data, (net.address(1), PORT))
    assert arrived(sockets[3]) == []


def test_a_closed_port_is_told_to_the_sender(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    sockets[1].connect((net.address(2), PORT + 1))
    sockets[1].send(b"anybody?")
    with pytest.raises(ConnectionRefusedError):
        sockets[1].recv(1)


def test_a_stream_survives_loss_reordering_and_repetition(net: FaultNet) -> None:
    net.set_all(Path(delay_ms=0.5, jitter_ms=1, loss=0.01, duplication=0.05))
    data = os.urandom(300_000)
    with ExitStack() as stack:
        with net.inside(2):
            listener = stack.enter_context(socket.create_server((net.address(2), PORT)))
        with net.inside(1):
            sender = stack.enter_context(socket.create_connection((net.address(2), PORT), WITHIN_S))
        listener.settimeout(WITHIN_S)
        receiver = stack.enter_context(listener.accept()[0])
        receiver.settimeout(WITHIN_S)

        def send() -> None:
            sender.sendall(data)
            sender.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=send)
        thread.start()
        received = b"".join(iter(lambda: receiver.recv(65_536), b""))
        thread.join(WITHIN_S)
    assert received == data


def test_nothing_but_the_hosts_can_be_reached(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    with pytest.raises(OSError, match="unreachable") as caught:
        sockets[1].sendto(b"out", ("192.0.2.1", PORT))
    assert caught.value.errno == errno.ENETUNREACH
    before = net.report().nowhere
    sockets[1].sendto(b"nobody", ("10.77.0.200", PORT))
    assert net.report().nowhere > before
    with net.inside(1):
        assert [name for _, name in socket.if_nameindex()] == ["lo", namespace.DEVICE]


# --- faults


def test_a_cut_is_one_way_and_a_mended_path_carries_again(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    before = net.counters()[1, 2].cut
    net.cut(1, 2)
    assert not crossed(net, sockets, 1, 2)
    assert crossed(net, sockets, 2, 1)
    assert net.counters()[1, 2].cut == before + 1
    net.mend(1, 2)
    assert crossed(net, sockets, 1, 2)


def test_a_partition_parts_its_sides_alone_and_heal_keeps_other_options(
    net: FaultNet, sockets: dict[int, socket.socket]
) -> None:
    net.set(2, 3, Path(duplication=1.0))
    net.partition([[1], [2]])
    passed = [pair for pair in net.counters() if crossed(net, sockets, *pair) or pair == (2, 3)]
    assert passed == [(1, 3), (2, 3), (3, 1), (3, 2)]
    net.partition([[1], [2, 3]])
    assert [pair for pair in net.counters() if not net.path(*pair).cut] == [(2, 3), (3, 2)]
    net.heal()
    assert all(crossed(net, sockets, *pair) for pair in net.counters() if pair != (2, 3))
    assert net.path(2, 3) == Path(duplication=1.0)


def test_varied_options_hold_everywhere_and_end_no_cut(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    net.set(1, 2, Path(delay_ms=3.0))
    net.cut(2, 1)
    net.vary(duplication=1.0)
    assert net.path(1, 2) == Path(delay_ms=3.0, duplication=1.0)
    assert net.path(2, 1) == Path(duplication=1.0, cut=True)
    assert net.path(1, 3) == Path(duplication=1.0)
    with pytest.raises(ConfigError, match="share of packets"):
        net.vary(loss=2.0)


def test_a_delay_holds_in_its_direction_alone(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    net.set(1, 2, Path(delay_ms=60))
    begun = time.monotonic()
    sockets[1].sendto(b"slow", (net.address(2), PORT))
    assert crossed(net, sockets, 2, 1)
    assert sockets[2].recv(100) == b"slow"
    assert time.monotonic() - begun >= 0.06


def test_what_is_under_way_when_a_path_is_cut_arrives(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    net.set(1, 2, Path(delay_ms=30))
    sockets[1].sendto(b"last", (net.address(2), PORT))
    net.cut(1, 2)
    assert sockets[2].recv(100) == b"last"


def test_jitter_reorders_and_loses_nothing(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    net.set(1, 2, Path(jitter_ms=20))
    for number in range(50):
        sockets[1].sendto(bytes([number]), (net.address(2), PORT))
    order = [sockets[2].recv(1)[0] for _ in range(50)]
    assert sorted(order) == list(range(50))
    assert order != sorted(order)


def test_loss_takes_its_share(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    net.set(1, 2, Path(loss=0.5))
    before = net.counters()[1, 2]
    for _ in range(400):
        sockets[1].sendto(b"?", (net.address(2), PORT))
    after = net.counters()[1, 2]
    lost = after.lost - before.lost
    assert 100 < lost < 300, "ten standard deviations around the half"
    assert after.carried - before.carried == 400 - lost


def test_a_repeated_datagram_arrives_twice(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    net.set(1, 2, Path(duplication=1.0))
    before = net.counters()[1, 2]
    for number in range(20):
        sockets[1].sendto(bytes([number]), (net.address(2), PORT))
    assert sorted(sockets[2].recv(1)[0] for _ in range(40)) == sorted([*range(20)] * 2)
    after = net.counters()[1, 2]
    assert (after.duplicated - before.duplicated, after.carried - before.carried) == (20, 40)
    assert arrived(sockets[2]) == []


def test_a_slow_path_takes_its_time_and_drops_what_its_queue_cannot_hold(
    net: FaultNet, sockets: dict[int, socket.socket]
) -> None:
    rate, packet_bytes, packets = 20_000, 1_000, 200
    net.set(1, 2, Path(rate_bytes_per_s=rate, queue_bytes=5_000))
    before, begun = net.counters()[1, 2], time.monotonic()
    for _ in range(packets):
        sockets[1].sendto(bytes(packet_bytes - 28), (net.address(2), PORT))  # IP and UDP headers make up the rest.
    dropped = net.counters()[1, 2].queue_full - before.queue_full
    assert 0 < dropped < packets - 1
    for _ in range(packets - dropped):
        sockets[2].recv(packet_bytes)
    assert time.monotonic() - begun >= (packets - dropped) * packet_bytes / rate
    assert net.counters()[1, 2].carried - before.carried == packets - dropped


# --- processes, and the end


def test_a_process_lives_on_its_host(net: FaultNet, sockets: dict[int, socket.socket]) -> None:
    program = (
        "import socket, sys; s = socket.socket(type=socket.SOCK_DGRAM); s.connect((sys.argv[1], int(sys.argv[2])));"
        "s.send(s.getsockname()[0].encode()); print(s.recv(99).decode())"
    )
    command = [sys.executable, "-S", "-c", program, net.address(2), str(PORT)]
    with net.popen(1, command, stdout=subprocess.PIPE, text=True) as process:
        said, address = sockets[2].recvfrom(100)
        sockets[2].sendto(b"welcome", address)
        assert process.communicate(timeout=WITHIN_S)[0] == "welcome\n"
    assert said.decode() == net.address(1)


@pytest.mark.usefixtures("bench")
def test_nothing_is_left_of_a_closed_bench() -> None:
    descriptors, children, own = own_descriptors(), own_children(), own_namespace()
    with FaultNet(hosts=2) as net:
        process = net.popen(1, IDLE, stdout=subprocess.PIPE)
        wait_until_up(process)
        with net.inside(2):
            inside, kept = own_namespace(), namespace.own_namespace()
        router = net.router_pid
    assert own_namespace() == own != inside
    assert process.returncode == -signal.SIGKILL
    assert not FilePath(f"/proc/{router}").exists()
    with namespace.entered(kept):
        assert [device for _, device in socket.if_nameindex()] == ["lo"], "the device went with the router"
    os.close(kept)
    assert inside not in namespaces_in_use()
    assert own_children() == children
    assert own_descriptors() == descriptors


BENCH_TO_BE_KILLED = f"""
import subprocess, sys
from covey.lab.faultnet import FaultNet
net = FaultNet(hosts=2)
process = net.popen(1, {IDLE!r}, stdout=subprocess.PIPE)
process.stdout.readline()
print(net.router_pid, process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("bench")
def test_nothing_is_left_of_a_killed_bench() -> None:
    command = [sys.executable, "-c", BENCH_TO_BE_KILLED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed, ExitStack() as stack:
        assert killed.stdout is not None
        pids = [int(word) for word in killed.stdout.readline().split()]
        assert len(pids) == 2
        inside = str(FilePath(f"/proc/{pids[1]}/ns/net").readlink())
        ends = [os.pidfd_open(pid) for pid in pids]
        for end in ends:
            stack.callback(os.close, end)
        killed.kill()
        for end in ends:
            assert select.select([end], [], [], WITHIN_S)[0], "it still runs"
    assert inside not in namespaces_in_use()


@pytest.mark.usefixtures("bench")
def test_a_dead_router_is_reported() -> None:
    with FaultNet(hosts=2) as net:
        os.kill(net.router_pid, signal.SIGKILL)
        with pytest.raises(FaultNetError, match="router"):
            net.counters()


def test_what_the_bench_lacks_is_refused_with_what_to_write(net: FaultNet) -> None:
    with pytest.raises(ConfigError, match="from 1 to 32"):
        FaultNet(hosts=0)
    with pytest.raises(ConfigError, match="an mtu of 20"):
        FaultNet(hosts=1, mtu=20)
    with pytest.raises(ConfigError, match="no host 4: write a number from 1 to 3"):
        net.partition([[1], [4]])
    with pytest.raises(ConfigError, match="name two hosts"):
        net.cut(2, 2)


def test_without_the_right_to_make_hosts_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    namespace.unavailable.cache_clear()
    try:
        assert FaultNet.unavailable() == "only root may make network namespaces"
        with pytest.raises(FaultNetError, match="only root"):
            FaultNet(hosts=1)
    finally:
        namespace.unavailable.cache_clear()


# --- what the system says


def wait_until_up(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"up\n"


def own_namespace() -> str:
    return str(FilePath("/proc/thread-self/ns/net").readlink())


def own_descriptors() -> int:
    return len(list(FilePath("/proc/self/fd").iterdir()))


def own_children() -> list[str]:
    tasks = FilePath("/proc/self/task").iterdir()
    return sorted(child for task in tasks for child in (task / "children").read_text().split())


def namespaces_in_use() -> set[str]:
    """Of all processes: those they are in, and those they hold open."""
    found = set()
    for process in FilePath("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended meanwhile.
            found.add(str((process / "ns" / "net").readlink()))
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    found.add(str(descriptor.readlink()))
    return found
