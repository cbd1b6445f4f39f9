"""Programs and real daemons: the client library from the first HELLO to the last goodbye, on loopback."""

from __future__ import annotations

import asyncio
import inspect
import re
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import covey
from covey.client.address import socket_path
from covey.lab.cluster import LocalCluster
from covey.trace.client import ClientRecorder
from covey.trace.reading import read_rows
from covey.trace.record import Row
from covey.trace.segments import SegmentWriter

pytestmark = pytest.mark.live

WITHIN_S = 30
SERVICES = list(covey.Service)
RELIABLE = SERVICES[1:]
SMALL_BUFFERS = """
[settings]
message_bytes_max = 100_000
session_receive_bytes = 1_000_000
"""
ORDERED = (covey.CAUSAL, covey.AGREED, covey.SAFE)


PATIENT = """
[settings]
token_lost_ms = 2_000
peer_timeout_ms = 3_000
"""
"""On a machine with too much to do, a daemon that had no time must not be taken for a lost one."""


def three(directory: Path, settings: str = "") -> LocalCluster:
    """Three daemons in one view."""
    cluster = LocalCluster(directory, run=directory.name)
    cluster.file.write_text(cluster.file.read_text() + settings)
    try:
        cluster.start("a", "b", "c")
        cluster.wait_for_view("a", "b", "c")
    except BaseException:
        cluster.close()
        raise
    return cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """For programs that leave it as they found it."""
    with three(tmp_path_factory.mktemp("clients"), PATIENT) as made:
        yield made


def address(cluster: LocalCluster, daemon: str) -> str:
    return f"unix:{socket_path(cluster.cluster.digest(), daemon)}"


def run(program: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(program, WITHIN_S))


async def entered(name: str, where: str) -> covey.Session:
    """A name that was just given up is free once its departure is ordered."""
    while True:
        try:
            return await covey.connect(name, where)
        except covey.RefusedError:
            await asyncio.sleep(0)


def entered_blocking(name: str, where: str | None) -> covey.blocking.Session:
    while True:
        try:
            return covey.blocking.connect(name, where)
        except covey.RefusedError:
            pass


@asynccontextmanager
async def together(cluster: LocalCluster, group: str, *names: str) -> AsyncIterator[list[covey.Session]]:
    """One session at each of the daemons a, b, c …, all in the group, and all have seen that."""
    sessions: list[covey.Session] = []
    try:
        for daemon, name in zip("abc", names, strict=False):
            session = await entered(name, address(cluster, daemon))
            sessions.append(session)
            await session.join(group)
        for session in sessions:
            await until_members(session, len(names))
        yield sessions
    finally:
        for session in sessions:
            await session.disconnect()


async def until_members(session: covey.Session, count: int) -> covey.View:
    async for event in session:
        if isinstance(event, covey.View) and len(event.members) == count:
            return event
    raise AssertionError("the session ended")


async def messages(session: covey.Session, count: int) -> list[covey.Message]:
    got: list[covey.Message] = []
    async for event in session:
        if isinstance(event, covey.Message):
            got.append(event)
        if len(got) == count:
            break
    return got


async def until(session: covey.Session, payload: bytes) -> list[covey.Message]:
    """All messages up to this one."""
    got: list[covey.Message] = []
    while not got or got[-1].payload != payload:
        got += await messages(session, 1)
    return got


# --- messages


def test_everyone_gets_the_same_messages_in_the_same_order(cluster: LocalCluster) -> None:
    each = 300

    async def send(session: covey.Session) -> None:
        for number in range(each):
            await session.send("order", number.to_bytes(2, "big") * (number % 200), ORDERED[number % 3], kind=number)
            if number % 7 == 0:
                await asyncio.sleep(0)

    async def program() -> None:
        async with together(cluster, "order", "alice", "bob", "carol") as sessions:
            sending = [asyncio.create_task(send(session)) for session in sessions]
            got = await asyncio.gather(*(messages(session, 3 * each) for session in sessions))
            await asyncio.gather(*sending)
        assert got[0] == got[1] == got[2]
        orders = [message.order for message in got[0] if message.order is not None]
        assert orders == sorted(orders)
        for sender in ("alice@a", "bob@b", "carol@c"):
            theirs = [message for message in got[0] if message.sender == sender]
            assert [message.session_seq for message in theirs] == list(range(1, each + 1))
            assert [message.kind for message in theirs] == list(range(each))
            assert all(message.payload == (at.to_bytes(2, "big") * (at % 200)) for at, message in enumerate(theirs))

    run(program())


@pytest.mark.parametrize("service", RELIABLE)
def test_every_service_delivers(cluster: LocalCluster, service: covey.Service) -> None:
    async def program() -> None:
        async with together(cluster, "services", "alice", "bob") as (alice, bob):
            await alice.send_many("services", [b"one", b"two"], service)
            for session in (alice, bob):
                got = await messages(session, 2)
                assert [(one.payload, one.service) for one in got] == [(b"one", service), (b"two", service)]

    run(program())


def test_unreliable_messages_have_no_order(cluster: LocalCluster) -> None:
    async def program() -> None:
        async with together(cluster, "loose", "alice", "bob") as (alice, bob):
            await alice.send_many("loose", [b"x"] * 10, covey.UNRELIABLE)
            await alice.send("loose", b"end")
            *loose, end = await until(bob, b"end")
            assert end.order is not None
            assert all((one.service, one.order) == (covey.UNRELIABLE, None) for one in loose)

    run(program())


def test_a_large_message_arrives_whole(cluster: LocalCluster) -> None:
    large = bytes(range(256)) * 12_000

    async def program() -> None:
        async with together(cluster, "large", "alice", "bob") as (alice, bob):
            await alice.send_many("large", [b"before", large, b"after"])
            got = await messages(bob, 3)
            assert [one.payload for one in got] == [b"before", large, b"after"]

    run(program())


def test_private_messages_and_several_groups_at_once(cluster: LocalCluster) -> None:
    async def program() -> None:
        async with together(cluster, "one", "alice", "bob", "carol") as (alice, bob, carol):
            await bob.join("two")
            await until_members(bob, 1)
            await alice.send(["one", "two", "carol@c"], b"all", covey.SAFE)
            await alice.send("bob@b", b"psst")
            await alice.send("one", b"end")
            expected = {alice: [b"all", b"end"], bob: [b"all", b"psst", b"end"], carol: [b"all", b"end"]}
            for session, payloads in expected.items():
                assert [one.payload for one in await messages(session, len(payloads))] == payloads

    run(program())


def test_a_sender_may_be_outside_and_may_not_want_its_own_back(cluster: LocalCluster) -> None:
    async def program() -> None:
        async with (
            together(cluster, "open", "alice", "bob") as (alice, bob),
            covey.connect("dave", address(cluster, "c")) as dave,
        ):
            await alice.send("open", b"not to me", self_discard=True)
            assert [one.payload for one in await messages(bob, 1)] == [b"not to me"]
            await dave.send("open", b"from outside")
            for session in (alice, bob):
                assert [(one.sender, one.payload) for one in await messages(session, 1)] == [
                    ("dave@c", b"from outside")
                ]

    run(program())


# --- views


def test_views_say_who_came_and_who_left_and_why(cluster: LocalCluster) -> None:
    async def program() -> None:
        async with together(cluster, "views", "alice") as (alice,):
            async with await entered("bob", address(cluster, "b")) as bob:
                await bob.join("views")
                seen, own = await until_members(alice, 2), await until_members(bob, 2)
                assert (seen.id, seen.members, seen.processes) == (own.id, ("alice@a", "bob@b"), own.processes)
                assert (seen.cause, seen.transitional, own.transitional) == ("join", ("alice@a",), ("bob@b",))
                assert dict(alice.views) == dict(bob.views) == {"views": seen.id}
                await bob.leave("views")
                assert isinstance(await bob.receive(), covey.SelfLeave)
                assert (await until_members(alice, 1)).cause == "leave"
                await bob.join("views")
                await until_members(alice, 2)
            view = await until_members(alice, 1)
            assert (view.cause, view.members) == ("disconnect", ("alice@a",))

    run(program())


def test_a_program_that_is_killed_leaves_alone(cluster: LocalCluster) -> None:
    code = f"""
        import covey, time
        session = covey.blocking.connect("frank", {address(cluster, "b")!r})
        session.join("killed")
        time.sleep(1000)
    """

    async def program() -> None:
        async with together(cluster, "killed", "alice") as (alice,):
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", textwrap.dedent(code))
            try:
                await until_members(alice, 2)
            finally:
                process.kill()
                await process.wait()
            view = await until_members(alice, 1)
            assert (view.cause, view.order is not None) == ("disconnect", True)

    run(program())


# --- names


def test_a_name_is_unique_at_its_daemon_and_free_again_after_goodbye(cluster: LocalCluster) -> None:
    async def program() -> None:
        where = address(cluster, "a")
        async with covey.connect("erin", where) as first:
            with pytest.raises(covey.RefusedError, match="taken"):
                await covey.connect("erin", where)
            async with covey.connect("erin", address(cluster, "b")) as other:
                assert (first.name, other.name) == ("erin@a", "erin@b")
        async with await entered("erin", where) as second:
            assert second.name == first.name
            assert second.process != first.process

    run(program())


def test_daemons_are_found(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COVEY_ADDRESS", raising=False)
    monkeypatch.chdir(cluster.trace)
    with entered_blocking("alice", None) as session:
        assert session.name == "alice@a"
    with entered_blocking("alice", "b") as session:
        assert session.name == "alice@b"
    monkeypatch.setenv("COVEY_ADDRESS", "c")
    with entered_blocking("alice", None) as session:
        assert session.name == "alice@c"


def test_clients_come_over_tcp_where_the_file_says_so(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 1, run=tmp_path.name) as cluster, socket.create_server(("127.0.0.1", 0)) as free:
        where = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        port = f"port = {cluster.address('a')[1]}\n"
        cluster.file.write_text(cluster.file.read_text().replace(port, f'{port}clients = "{where}"\n'))
        cluster.start("a")
        cluster.wait_for_view("a")
        with covey.blocking.connect("alice", f"tcp://{where}") as alice:
            alice.send("alice@a", bytes(1_000_000))
            event = alice.receive(WITHIN_S)
            assert isinstance(event, covey.Message)
            assert len(event.payload) == 1_000_000


# --- ends


def test_a_daemon_that_dies_is_left_for_the_next(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        addresses = [address(cluster, daemon) for daemon in "ab"]
        async with (
            covey.connect("alice", addresses) as alice,
            covey.connect("carol", address(cluster, "c")) as carol,
        ):
            await alice.join("room")
            await until_members(alice, 1)
            await carol.join("room")
            for session in (alice, carol):
                await until_members(session, 2)
            cluster.kill("a")
            lost = await alice.receive()
            assert isinstance(lost, covey.Disconnected)
            assert lost.groups == ("room",)
            assert isinstance(await alice.receive(), covey.Reconnected)
            assert (alice.name, alice.groups) == ("alice@b", ())
            assert await carol.receive() == covey.Transitional("room")
            view = await carol.receive()
            assert isinstance(view, covey.View)
            assert (view.cause, view.members, view.order) == ("network", ("carol@c",), None)
            await alice.join("room")
            assert (await until_members(carol, 2)).members == ("alice@b", "carol@c")

    with three(tmp_path) as cluster:
        run(program(cluster))


def test_a_daemon_that_stops_says_so(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with covey.connect("alice", address(cluster, "a")) as alice:
            await alice.join("room")
            await until_members(alice, 1)
            stopping = asyncio.create_task(asyncio.to_thread(cluster.stop, "a"))
            event = await alice.receive()
            await stopping
            assert isinstance(event, covey.Disconnected)
            assert (event.reason, event.groups) == ("the daemon stops", ("room",))
            assert [event async for event in alice] == []

    with three(tmp_path) as cluster:
        run(program(cluster))


def test_who_reads_too_slowly_is_told_how_far_behind_it_was(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with together(cluster, "room", "slow", "fast") as (slow, fast):
            for _ in range(400):  # More than it reads for a program that takes nothing, its socket, and its daemon.
                await fast.send("room", bytes(20_000), self_discard=True)
            assert (await until_members(fast, 1)).cause == "disconnect"
            got = [event async for event in slow]
            assert isinstance(got[-1], covey.Disconnected)
            assert "too slowly" in got[-1].reason
            assert got[-1].lag_bytes > 1_000_000
            assert all(isinstance(event, covey.Message) for event in got[:-1])

    with three(tmp_path, SMALL_BUFFERS) as cluster:
        run(program(cluster))


# --- the same without asyncio, and what the documents show


def test_blocking_sessions_speak_with_the_others(cluster: LocalCluster) -> None:
    with (
        entered_blocking("alice", address(cluster, "a")) as alice,
        entered_blocking("bob", address(cluster, "b")) as bob,
    ):
        alice.join("sync")
        assert isinstance(alice.receive(WITHIN_S), covey.View)
        bob.join("sync")
        for session in (alice, bob):
            assert isinstance(session.receive(WITHIN_S), covey.View)
        bob.send_many("sync", [b"%d" % number for number in range(2_000)])
        for session in (alice, bob):
            got: list[bytes] = []
            for event in session.batches():
                assert isinstance(event, covey.Batch)
                got += event.payloads()
                if len(got) == 2_000:
                    break
            assert got == [b"%d" % number for number in range(2_000)]


def test_one_thread_reads_while_others_send(cluster: LocalCluster) -> None:
    senders, each = 4, 400
    with entered_blocking("crowd", address(cluster, "a")) as session:
        session.join("threads")

        def send(sender: int) -> None:
            for number in range(each):
                session.send("threads", b"%d %d" % (sender, number))

        threads = [threading.Thread(target=send, args=(sender,), daemon=True) for sender in range(senders)]
        for thread in threads:
            thread.start()
        got: list[covey.Message] = []
        while len(got) < senders * each:
            event = session.receive(WITHIN_S)
            assert isinstance(event, covey.Message | covey.View)
            got += [event] if isinstance(event, covey.Message) else []
        for thread in threads:
            thread.join()
    assert [message.session_seq for message in got] == list(range(1, senders * each + 1))
    for sender in range(senders):
        mine = [message.payload for message in got if message.payload.startswith(b"%d " % sender)]
        assert mine == [b"%d %d" % (sender, number) for number in range(each)]


@pytest.mark.parametrize("door", ["connect", "blocking.connect"])
def test_the_examples_of_the_documentation_run(
    cluster: LocalCluster, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = covey.connect if door == "connect" else covey.blocking.connect
    text = re.search(r"\n\n((?:    .*\n|\n)+)", f"{inspect.getdoc(function)}\n")
    assert text is not None
    monkeypatch.setenv("COVEY_ADDRESS", address(cluster, "b"))
    name = door.replace(".", "-")
    command = [sys.executable, "-c", textwrap.dedent(text.group(1)).replace("alice", name)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.stderr == ""
    assert f"{name}@b says b'hi'" in done.stdout


def test_histories_of_programs_are_stored_beside_those_of_daemons(cluster: LocalCluster, tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, "alice") as writer:
        recorder = ClientRecorder(cluster.run, writer.append)
        with covey.blocking.connect("tess", address(cluster, "a"), trace=recorder) as session:
            session.join("traced")
            session.send("traced", b"x", covey.SAFE)
            for _ in range(2):
                session.receive(WITHIN_S)
    rows: list[Row] = list(read_rows(tmp_path))
    assert [row.event for row in rows] == ["connect", "join", "send", "view", "deliver", "disconnect"]
    assert {row.process for row in rows} == {session.process}
    assert {row.daemon for row in rows} == {session.process.partition("@")[2].rpartition(".")[0]}
