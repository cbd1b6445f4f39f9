"""Commands against real daemons on loopback: what they say, as text and as JSON, and how they exit."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

import covey
from covey.client.address import socket_path
from covey.cluster import Cluster, DaemonConfig
from covey.config_file import render
from covey.lab.cluster import LocalCluster

pytestmark = pytest.mark.live

WITHIN_S = 60
COVEY = (sys.executable, "-m", "covey")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """For commands that leave it as they found it."""
    with LocalCluster(tmp_path_factory.mktemp("cli"), run="cli", traced=False) as made:
        made.start("a", "b", "c")
        made.wait_for_view("a", "b", "c")
        yield made


def run(cluster: LocalCluster, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """In the directory of the cluster's file: commands find the daemons by it."""
    return subprocess.run(
        [*COVEY, *arguments], cwd=cluster.directory, input=stdin, capture_output=True, text=True, timeout=WITHIN_S,
        check=False,
    )  # fmt: skip


def begun(cluster: LocalCluster, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COVEY, *arguments], cwd=cluster.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **{"stdin": subprocess.DEVNULL, **options},
    )  # fmt: skip


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def member(cluster: LocalCluster, name: str, group: str, daemon: str = "a") -> covey.blocking.Session:
    session = covey.blocking.connect(name, f"unix:{socket_path(cluster.cluster.digest(), daemon)}")
    session.join(group)
    until(session, covey.View)
    return session


def until(session: covey.blocking.Session, kind: type[Any]) -> Any:
    while True:
        event = session.receive(WITHIN_S)
        if isinstance(event, kind):
            return event


# --- send


def test_send_says_when_it_is_delivered_and_to_how_many(cluster: LocalCluster) -> None:
    with member(cluster, "reader", "sent") as reader:
        ran = run(cluster, "send", "sent", "hello", "--service", "safe", "--kind", "7", "--name", "sender", "--at", "b")
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout == "1 safe message to sent (1 member): delivered; every daemon of the view has it\n"
        message = until(reader, covey.Message)
    assert (message.sender, message.payload, message.service, message.kind) == ("sender@b", b"hello", covey.SAFE, 7)


def test_sending_to_one_program_does_not_claim_that_it_is_there(cluster: LocalCluster) -> None:
    ran = run(cluster, "send", "nobody@a", "hi")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "1 agreed message to nobody@a (if it is there): delivered, in one order for all\n"


def test_a_program_at_a_daemon_that_is_not_there_got_nothing(cluster: LocalCluster) -> None:
    ran = run(cluster, "send", "nobody@z", "hi")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "nobody@z cannot have got it" in ran.stderr
    assert "covey status" in ran.stderr


def test_nothing_to_send_is_said(cluster: LocalCluster) -> None:
    ran = run(cluster, "send", "room")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "standard input was empty" in ran.stderr


def test_lines_of_standard_input_are_messages(cluster: LocalCluster) -> None:
    with member(cluster, "reader", "lines") as reader:
        ran = run(cluster, "send", "lines", "--also", "nowhere", "--json", stdin="one\ntwo\n\nthree")
        got = [until(reader, covey.Message).payload for _ in range(4)]
    (told,) = objects(ran.stdout)
    assert got == [b"one", b"two", b"", b"three"]
    assert told["messages"] == 4
    assert told["delivered"]
    assert told["members"] == {"lines": 1, "nowhere": 0}


def test_sending_where_nobody_is_works_and_is_remarked(cluster: LocalCluster) -> None:
    ran = run(cluster, "send", "empty", "hi", "--count", "3", "--rate", "100")
    assert ran.returncode == 0
    assert ran.stdout.startswith("3 agreed messages to empty (0 members): delivered")
    assert "nobody was in 'empty'" in ran.stderr
    assert "covey groups" in ran.stderr


def test_who_sends_is_told_in_its_own_words_that_its_daemon_is_gone(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 2, run="gone", traced=False) as cluster:
        cluster.start("a", "b")
        cluster.wait_for_view("a", "b")
        send = begun(cluster, "send", "room", stdin=subprocess.PIPE)
        assert send.stdin is not None
        with member(cluster, "reader", "room", "b") as reader:
            send.stdin.write("one\n")
            send.stdin.flush()
            assert until(reader, covey.Message).sender.endswith("@a")
        cluster.kill("a")
        _, errors = send.communicate("two\n", timeout=WITHIN_S)
    assert send.returncode == 1
    assert "how much was delivered is not known" in errors
    assert "Reconnected" not in errors


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["send", "room@", "hi"], 2, "names no daemon"),
        (["send", "room", "hi", "--service", "swift"], 2, "unreliable"),
        (["send", "room", "hi", "--at", "nosuch"], 2, "no daemon 'nosuch'"),
        (["send", "room", "hi", "--at", "unix:/nowhere/x.client"], 1, "covey up"),
        (["send", "room", "hi", "--name", "a@b"], 2, "must not contain '@'"),
        (["tail", "a@b"], 2, "cannot be joined"),
        (["status", "nosuch"], 2, "has no daemon 'nosuch'"),
        (["status", "--at", "tcp://127.0.0.1:1"], 2, "on its own machine"),
        (["top", "--config", "missing.toml"], 2, "covey init"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_wrong_questions_are_answered_with_what_to_type(
    cluster: LocalCluster, arguments: list[str], code: int, text: str
) -> None:
    ran = run(cluster, *arguments)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert text in ran.stderr


@pytest.mark.parametrize(
    "arguments", [["send", "room", "hi"], ["tail", "room"], ["chat"], ["groups"], ["status"], ["top", "--once"]]
)
def test_without_any_daemon_every_command_says_how_to_start_one(tmp_path: Path, arguments: list[str]) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "COVEY_ADDRESS": ""}
    ran = subprocess.run(
        [*COVEY, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        timeout=WITHIN_S, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "covey up" in ran.stderr


def test_a_name_that_is_taken_is_refused_with_a_remedy(cluster: LocalCluster) -> None:
    with member(cluster, "taken", "names"):
        ran = run(cluster, "send", "room", "hi", "--name", "taken", "--at", "a")
    assert ran.returncode == 1
    assert "choose another one with --name" in ran.stderr


# --- tail


def test_tail_shows_views_with_causes_and_messages_until_it_has_enough(cluster: LocalCluster) -> None:
    tail = begun(cluster, "tail", "watched", "--json", "--count", "2", "--name", "watcher", "--at", "a")
    assert tail.stdout is not None
    first = json.loads(tail.stdout.readline())
    assert (first["kind"], first["cause"], first["members"]) == ("view", "join", ["watcher@a"])
    with member(cluster, "visitor", "watched", "b") as visitor:
        visitor.send("watched", b"one")
        visitor.send("watched", b"\xff", covey.SAFE, kind=5)
        rest, errors = tail.communicate(timeout=WITHIN_S)
    assert (tail.returncode, errors) == (0, "")
    events = objects(rest)
    assert [event["kind"] for event in events] == ["view", "message", "message"]
    assert events[0]["transitional"] == ["watcher@a"]
    assert events[1]["payload"] == "one"
    assert (events[2]["payload_base64"], events[2]["service"], events[2]["message_kind"]) == ("/w==", "safe", 5)


def test_tail_ends_in_good_order_by_time_and_by_ctrl_c(cluster: LocalCluster) -> None:
    ran = run(cluster, "tail", "quiet", "--seconds", "0.2", "--no-views")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    tail = begun(cluster, "tail", "quiet", "--name", "stopped")
    assert tail.stdout is not None
    assert "we are in" in tail.stdout.readline()
    tail.send_signal(signal.SIGINT)
    tail.communicate(timeout=WITHIN_S)
    assert tail.returncode == 130


def test_a_tail_goes_to_another_daemon_when_its_own_is_gone(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 2, run="moving", traced=False) as cluster:
        cluster.start("a", "b")
        cluster.wait_for_view("a", "b")
        tail = begun(cluster, "tail", "room", "--json", "--name", "mover", "--count", "1")
        assert tail.stdout is not None
        assert json.loads(tail.stdout.readline())["members"] == ["mover@a"]
        cluster.kill("a")
        kinds = [json.loads(tail.stdout.readline())["kind"] for _ in range(3)]
        assert kinds == ["disconnected", "reconnected", "view"]
        run(cluster, "send", "room", "hi", "--at", "b")
        # The daemons may notice the loss only now: then a view without it comes first.
        *_, last = tail.communicate(timeout=WITHIN_S)[0].splitlines()
        assert json.loads(last)["payload"] == "hi"
        assert tail.returncode == 0


class Terminal:
    """A command on a pseudo-terminal."""

    def __init__(self, cluster: LocalCluster, *arguments: str, columns: int = 60, term: str = "xterm") -> None:
        self._main, other = pty.openpty()
        environment = {**os.environ, "TERM": term, "COLUMNS": str(columns), "LINES": "24"}
        self.process = subprocess.Popen(
            [*COVEY, *arguments], cwd=cluster.directory, stdin=other, stdout=other, stderr=other, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(other)
        self.shown = ""

    def type(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def until(self, text: str) -> str:
        """What has appeared so far, once this is in it."""
        deadline = time.monotonic() + WITHIN_S
        while text not in self.shown:
            assert time.monotonic() < deadline, f"no {text!r} in {self.shown!r}"
            if select.select([self._main], [], [], 0.2)[0]:
                self.shown += os.read(self._main, 65_536).decode(errors="replace")
        shown, self.shown = self.shown, self.shown.partition(text)[2]
        return shown

    def wait(self) -> int:
        return self.process.wait(WITHIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._main)


def test_tail_pauses_and_goes_on_by_a_key(cluster: LocalCluster) -> None:
    with Terminal(cluster, "tail", "paused", "--name", "pauser") as tail:
        tail.until("space pauses, q ends")
        tail.until("we are in")
        tail.type(" ")
        tail.until("paused")
        with member(cluster, "speaker", "paused", "b") as speaker:
            speaker.send("paused", b"meanwhile")
            until(speaker, covey.Message)
            tail.type(" ")
            tail.until("going on")
            tail.until("meanwhile")
        tail.type("q")
        assert tail.wait() == 0


# --- chat


def test_a_chat_from_a_pipe_says_its_lines_and_leaves(cluster: LocalCluster) -> None:
    with member(cluster, "listener", "piped") as listener:
        ran = run(cluster, "chat", "piped", "--name", "poet", "--at", "b", stdin="one\n\ntwo\n")
        got = [until(listener, covey.Message).payload for _ in range(2)]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert got == [b"one", b"two"]
    assert "here: listener@a poet@b" in ran.stdout
    assert "poet@b: two" in ran.stdout


def test_a_chat_leaves_out_a_line_that_is_not_utf_8_and_goes_on(cluster: LocalCluster) -> None:
    ran = subprocess.run(
        [*COVEY, "chat", "latin", "--name", "poet"], cwd=cluster.directory, input=b"one\ncaf\xe9\ntwo\n",
        capture_output=True, timeout=WITHIN_S, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"nobody was told this line, it is not UTF-8 text: 'caf\\udce9'" in ran.stdout
    assert b"poet@a: two" in ran.stdout


def test_a_chat_with_json_prints_objects_only(cluster: LocalCluster) -> None:
    ran = run(cluster, "chat", "objects", "--name", "printer", "--json", stdin="hi\n")
    assert [event["kind"] for event in objects(ran.stdout)] == ["view", "message"]


def test_a_chat_on_a_terminal(cluster: LocalCluster) -> None:
    with Terminal(cluster, "chat", "talk", "--name", "alice", "--at", "a") as chat:
        chat.until("you are alice@a, in talk")
        chat.until("we are in")
        with member(cluster, "bob", "talk", "b") as bob:
            chat.until("bob@b joined")
            chat.type("helo\x7flo\r")
            assert until(bob, covey.Message).payload == b"hello"
            bob.send("talk", b"hi \x1b[2J alice")
            chat.until(r"bob@b: hi \x1b[2J alice")
            chat.type("/who\r")
            chat.until("here: alice@a bob@b")
            chat.type("/to bob@b psst\r")
            assert [until(bob, covey.Message).groups for _ in range(2)] == [("talk",), ("bob@b",)]
            chat.type("/nonsense\r")
            chat.until("/quit ends")
        chat.until("bob@b disconnected")
        chat.type("\x04")
        assert chat.wait() == 0


# --- groups, status, top


def test_groups_tells_who_is_where(cluster: LocalCluster) -> None:
    with (
        member(cluster, "ann", "listed"),
        member(cluster, "ben", "listed", "b"),
        member(cluster, "ann", "listing", "b"),
    ):
        text = run(cluster, "groups", "--group", "list*").stdout
        (told,) = objects(run(cluster, "groups", "--group", "listed", "--json", "--at", "c").stdout)
    assert [line.split() for line in text.splitlines()] == [
        ["group", "members", "at"],
        ["listed", "2", "a:", "ann;", "b:", "ben"],
        ["listing", "1", "b:", "ann"],
    ]
    assert told["daemons"] == ["a", "b", "c"]
    assert [(group["group"], group["size"]) for group in told["groups"]] == [("listed", 2)]
    assert "nobody is in listed" in run(cluster, "groups", "--group", "listed").stdout


def test_status_says_how_to_start_who_does_not_run(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 2, run="partly", traced=False) as cluster:
        none = run(cluster, "status")
        cluster.start("a")
        partly = run(cluster, "status")
    assert (none.returncode, partly.returncode) == (1, 1)
    assert "not running: a b. Start with `covey up`" in none.stderr
    assert "not running: b. Start with `covey daemon b`" in partly.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["status", "--config", "q.toml"], "not running: a b. Start with `covey up --config q.toml`"),
        (["groups", "--config", "q.toml"], "no daemon answers of a b: start daemons with: covey up --config q.toml"),
        (["top", "--config", "q.toml"], "no daemon answers of a b: start daemons with: covey up --config q.toml"),
        (["groups", "--at", "unix:/x"], "no daemon answers of unix:/x: start daemons with: covey up\n"),
    ],
)
def test_advice_names_the_file_that_was_asked_for(tmp_path: Path, arguments: list[str], text: str) -> None:
    members = tuple(DaemonConfig(name, 0, "127.0.0.1", 4801 + at) for at, name in enumerate("ab"))
    (tmp_path / "q.toml").write_text(render(Cluster("q", members), "loopback"))
    ran = subprocess.run(
        [*COVEY, *arguments], cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True,
        text=True, timeout=WITHIN_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    assert text in ran.stderr


def test_status_tells_of_programs_and_what_waits_for_them(cluster: LocalCluster) -> None:
    with member(cluster, "counted", "status", "b") as session:
        session.send("status", b"x" * 100)
        until(session, covey.Message)
        told = {one["name"]: one for one in objects(run(cluster, "status", "--json").stdout)}
        text = run(cluster, "status").stdout
    assert all(one["running"] and one["members"] == ["a", "b", "c"] for one in told.values())
    (listed,) = [one for one in told["b"]["clients"]["sessions"] if one["name"] == "counted"]
    assert (listed["delivered"], listed["backlog_bytes"], listed["policy"]) == (1, 0, "disconnect")
    assert told["a"]["clients"]["groups"]["status"] == 1
    assert told["a"]["recent_views"][0]["members"] == ["a", "b", "c"]
    assert any(line.split()[:2] == ["counted@b", "1"] for line in text.splitlines() if line.strip())


def test_top_shows_one_picture_to_a_script(cluster: LocalCluster) -> None:
    with member(cluster, "seen", "pictured"):
        (picture,) = objects(run(cluster, "top", "--once", "--json").stdout)
        text = run(cluster, "top", "--once").stdout
    assert [daemon["name"] for daemon in picture["daemons"]] == ["a", "b", "c"]
    assert picture["groups"]["pictured"] == 1
    assert "seen@a" in {receiver["name"] for receiver in picture["receivers"]}
    assert "3 of 3 daemons" in text
    assert "seen@a" in text


@pytest.mark.parametrize("columns", [60, 140])
def test_top_on_a_terminal_pauses_and_ends_by_keys(cluster: LocalCluster, columns: int) -> None:
    with Terminal(cluster, "top", "--every", "0.2", columns=columns) as top:
        top.until("3 of 3 daemons")
        top.type("p")
        top.until("paused")
        top.type("p")
        top.until("q ends")
        top.type("q")
        assert top.wait() == 0


def test_a_terminal_that_cannot_move_its_cursor_gets_one_picture(cluster: LocalCluster) -> None:
    with Terminal(cluster, "top", columns=80, term="dumb") as top:
        assert "\x1b" not in top.until("3 of 3 daemons")
        assert top.wait() == 0


def test_a_chat_on_a_terminal_that_cannot_move_its_cursor(cluster: LocalCluster) -> None:
    with Terminal(cluster, "chat", "plain", "--name", "plain", "--at", "a", term="dumb") as chat:
        chat.until("we are in")
        chat.type("hello\n")
        assert "\x1b" not in chat.until("plain@a: hello")
        chat.type("\x04")
        assert chat.wait() == 0


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["send", "comp"], ["completed"]),
        (["tail", "nothing-like-this"], []),
        (["status", ""], ["a", "b", "c"]),
        (["send", "room", "hi", "--at", "b"], ["b"]),
        (["send", "room", "hi", "--service", "s"], ["safe"]),
    ],
)
def test_the_shell_completes_groups_daemons_and_services(
    cluster: LocalCluster, words: list[str], completed: list[str]
) -> None:
    asked = {
        "_COVEY_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["covey", *words]),
        "COMP_CWORD": str(len(words)),
    }
    with member(cluster, "completer", "completed"):
        ran = subprocess.run(
            [Path(sys.executable).with_name("covey")], cwd=cluster.directory, env={**os.environ, **asked},
            capture_output=True, text=True, timeout=WITHIN_S, check=True,
        )  # fmt: skip
    assert ran.stdout.split() == completed


# --- a network in parts


def test_a_cluster_in_parts_tells_of_each_part_by_itself(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, run="parts", traced=False) as cluster:
        cluster.start("a", "b", "c")
        cluster.wait_for_view("a", "b", "c")
        cluster.part("ab", "c")
        cluster.wait_for_view("a", "b")
        cluster.wait_for_view("c")
        views = objects(run(cluster, "groups", "--json").stdout)
        assert sorted(view["daemons"] for view in views) == [["a", "b"], ["c"]]
        cluster.heal()
        cluster.wait_for_view("a", "b", "c")
        (view,) = objects(run(cluster, "groups", "--json").stdout)
        assert view["daemons"] == ["a", "b", "c"]


# --- Ctrl-C


def test_a_swarm_ends_at_once_and_without_a_word() -> None:
    swarm = subprocess.Popen(
        [*COVEY, "sim", "swarm", "--seeds", "0:4000", "--jobs", "2", "--daemons", "2", "--seconds", "1", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert swarm.stdout is not None
    assert json.loads(swarm.stdout.readline())["seed"] == 0
    os.killpg(swarm.pid, signal.SIGINT)
    _, errors = swarm.communicate(timeout=WITHIN_S)
    assert swarm.returncode == 130
    assert "Traceback" not in errors


# --- the demonstration


def test_the_demonstration_keeps_every_promise_and_shows_each_of_them(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    ran = subprocess.run(
        [*COVEY, "demo", "--json", "--seconds", "0.2", "--keep", str(kept)], capture_output=True, text=True,
        timeout=3 * WITHIN_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = objects(ran.stdout)
    guarantees = {one["guarantee"]: one for one in told if one["kind"] == "guarantee"}
    assert [name for name, one in guarantees.items() if one["violations"] or not one["rows_checked"]] == []
    views = [one for one in told if one["kind"] == "view" and one["act"] == "merge" and one["group"] == "euros"]
    assert sorted(view["transitional"] for view in views) == [["anna@a", "ben@b"], ["carl@c", "dora@d"]]
    lost = [one for one in told if one["kind"] == "view" and one["group"] == "daemons" and one["cause"] == "loss"]
    assert {name for view in lost if view["act"] == "crash" for name in view["gone"]} >= {"c"}
    assert not any({*view["gone"]} & {*view["members"]} for view in lost)
    equal = {one["act"]: 0 for one in told if one["kind"] == "ledger"}
    for one in told:
        if one["kind"] == "ledger" and one["group"] == "euros":
            equal[one["act"]] += 1
    assert equal == {"start": 1, "partition": 2, "merge": 1, "crash": 1, "restart": 1, "program": 1}
    assert "Every promise was kept." in ran.stderr
    assert (kept / "trace").is_dir()
