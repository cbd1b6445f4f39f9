"""The chat as two people use it: the same lines in the same order, also when a daemon dies."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from covey.lab.cluster import LocalCluster
from tests.examples.crew import address, heard, process, run, say, three

pytestmark = pytest.mark.live


def test_two_people_talk_and_one_leaves(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with (
            process("chat", "ann", "--address", address(cluster, "a")) as ann,
            process("chat", "ben", "--address", address(cluster, "b")) as ben,
        ):
            await heard(ann, "ben@b")
            await heard(ben, "here: ann@a ben@b")
            say(ann, "hello")
            say(ann, "/to ben@b psst")
            for line in ("ann@a: hello", "ann@a (to you): psst"):
                assert await heard(ben, "ann@a") == line
            say(ben, "/who")
            assert await heard(ben, "here") == "* here: ann@a ben@b"
            say(ben, "/to @@@ nobody")
            assert "@@@" in await heard(ben, "* ")
            assert ben.stdin is not None
            ben.stdin.close()  # Ctrl-D
            assert await ben.wait() == 0
            assert await heard(ann, "left") == "* ben@b left (disconnect); here: ann@a"

    with three(tmp_path) as cluster:
        run(program(cluster))


def test_who_loses_its_daemon_finds_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with process("chat", "ann") as ann, process("chat", "ben", "--address", address(cluster, "b")) as ben:
            await heard(ann, "here: ann@a ben@b")
            cluster.kill("a")
            assert await heard(ann, "cut off")
            assert await heard(ann, "back") == "* we are back as ann@b"
            change = await heard(ben, "network")
            assert change in {f"* ann@a left (network); here: {who}" for who in ("ben@b", "ann@b ben@b")}
            if "ann@b" not in change:  # Her join came after the change, not between its signal and its view.
                await heard(ben, "here: ann@b ben@b")
            say(ann, "still here")
            assert await heard(ben, "still") == "ann@b: still here"

    # Daemons are found where their sockets are, since ann names none. The path of a socket must be short.
    with TemporaryDirectory(prefix="covey-") as sockets:
        monkeypatch.setenv("TMPDIR", sockets)
        monkeypatch.delenv("COVEY_ADDRESS", raising=False)
        with three(tmp_path) as cluster:
            run(program(cluster))
