"""A daemon inside the program, and the program of the README against it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

import covey

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.live, pytest.mark.timeout(60)]


def test_two_sessions_of_one_program_meet() -> None:
    async def meet() -> list[bytes]:
        async with (
            covey.embedded() as daemon,
            covey.connect("alice", daemon.address) as alice,
            covey.connect("bob", daemon.address) as bob,
        ):
            await alice.join("room")
            async for event in alice:
                if isinstance(event, covey.View):
                    await bob.send("room", b"hello", covey.SAFE)
                elif isinstance(event, covey.Message):
                    return [event.payload, event.sender.encode()]
        return []

    assert asyncio.run(meet()) == [b"hello", b"bob@here"]


def test_a_blocking_session_works_too() -> None:
    with covey.embedded("d") as daemon, covey.blocking.connect("alice", daemon.address) as alice:
        alice.join("room")
        alice.send("room", b"to myself")
        kinds = [type(event).__name__ for event in islice(alice, 2)]
    assert kinds == ["View", "Message"]


def test_a_daemon_may_have_the_longest_name() -> None:
    name = "😀" * 32
    with covey.embedded(name) as daemon, covey.blocking.connect("alice", daemon.address) as alice:
        assert alice.name == f"alice@{name}"


def test_a_place_for_which_no_socket_has_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("d" * 90)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with pytest.raises(covey.CoveyError, match="set TMPDIR to a directory with a shorter"):
        covey.embedded()
    assert list(long.iterdir()) == []


def test_sessions_are_told_when_the_daemon_ends() -> None:
    with covey.embedded() as daemon:
        session = covey.blocking.connect("alice", daemon.address)
    with session:
        assert [type(event).__name__ for event in session] == ["Disconnected"]


def test_the_program_of_the_readme_is_a_chat() -> None:
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    with covey.embedded() as daemon:
        environment = os.environ | {"COVEY_ADDRESS": daemon.address, "PYTHONUNBUFFERED": "1"}
        programs = []
        for name in ("ann", "ben"):
            program = subprocess.Popen(
                [sys.executable, "-c", found.group(1), name], env=environment, stdout=subprocess.PIPE, text=True
            )
            programs.append(program)
            assert program.stdout is not None
            lines = iter(program.stdout.readline, "")
            assert any(line == f"{name}@here says hello from {name}\n" for line in lines)
        first = programs[0].stdout
        assert first is not None
        assert any(line == "ben@here says hello from ben\n" for line in iter(first.readline, ""))
        for program in programs:
            program.kill()
            program.communicate()
