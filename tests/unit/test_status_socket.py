"""The socket at which a daemon is asked how it is: questions, large answers, and people who ask and do not listen."""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from covey.drivers.live.status import ASKERS_MAX, NotRunningError, Question, StatusSocket, ask
from covey.protocol.counters import Family

LARGE = "x" * 2_000_000
FILES_MAX = 200


class Daemon:
    """Answers until it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.questions: list[Question] = []
        self._socket = StatusSocket(path, self._answer)
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _answer(self, question: Question) -> Any:
        self.questions.append(question)
        return {"answer": LARGE if question.ask == "groups" else "well"}

    def _run(self) -> None:
        while self._running:
            self._socket.answer()

    def close(self) -> None:
        self._running = False
        self._thread.join()
        self._socket.close()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path / "a")
    yield made
    made.close()


def test_a_question_is_answered(daemon: Daemon) -> None:
    assert ask(daemon.path) == {"answer": "well"}
    assert daemon.questions == [Question()]


def test_a_large_answer_comes_whole(daemon: Daemon) -> None:
    assert ask(daemon.path, Question("groups", "room*"))["answer"] == LARGE
    assert daemon.questions == [Question("groups", "room*")]


@pytest.mark.parametrize("said", [b"\n", b"", b"{}\n", b"{}"])
def test_saying_nothing_is_a_question_too(daemon: Daemon, said: bytes) -> None:
    assert spoken(daemon, said) == {"answer": "well"}


@pytest.mark.parametrize("said", [b"hello\n", b'{"ask": "money"}\n', b"\xff\n"])
def test_what_is_no_question_is_told_so(daemon: Daemon, said: bytes) -> None:
    assert "no question" in spoken(daemon, said)["error"]


def spoken(daemon: Daemon, said: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(daemon.path))
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        parts = iter(lambda: connection.recv(65_536), b"")
        found: dict[str, Any] = json.loads(b"".join(parts))
        return found


def test_a_question_without_end_is_not_kept(daemon: Daemon) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(daemon.path))
        with pytest.raises(OSError, match=r"pipe|reset"):
            connection.sendall(b"x" * 10_000_000)
    assert ask(daemon.path) == {"answer": "well"}


def test_who_asks_and_does_not_listen_holds_up_nobody(daemon: Daemon) -> None:
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(3 * ASKERS_MAX)]
    for number, one in enumerate(silent):
        one.connect(str(daemon.path))
        one.sendall(b'{"ask": "groups"}\n' if number % 2 else b"{")
        assert ask(daemon.path) == {"answer": "well"}
    for one in silent:
        one.close()


def test_nobody_answers_where_nobody_is(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError):
        ask(tmp_path / "nobody")


# --- answers in portions


class Portions:
    """Answers that take some turns; which of them was worked on, in order."""

    def __init__(self, path: Path, turns: int) -> None:
        self.made: list[str] = []
        self._turns = turns
        self.socket = StatusSocket(path, self._answer)
        self.ready = select.epoll()
        self.ready.register(self.socket.fileno(), select.EPOLLIN)

    def _answer(self, question: Question) -> Any:
        for _ in range(self._turns):
            self.made.append(question.group)
            yield None
        yield {"answer": question.group}

    def turn(self) -> int:
        """How many portions were made in it. The loop must not have had to wait for it."""
        before = len(self.made)
        assert self.ready.poll(0)
        self.socket.answer()
        return len(self.made) - before

    def close(self) -> None:
        self.ready.close()
        self.socket.close()


def asking(path: Path, group: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(path))
    connection.sendall(json.dumps({"ask": "groups", "group": group}).encode() + b"\n")
    return connection


def test_a_long_answer_is_made_a_portion_a_turn_and_the_loop_does_not_wait_meanwhile(tmp_path: Path) -> None:
    daemon = Portions(tmp_path / "a", turns=3)
    with asking(daemon.socket._path, "one") as one, asking(daemon.socket._path, "two") as two:
        assert max(daemon.turn() for _ in range(8)) == 1
        assert sorted(daemon.made) == ["one"] * 3 + ["two"] * 3
        assert daemon.made[-1] == "two"
        assert daemon.made.index("two") < 3, "each in its turn"
        assert json.loads(one.recv(100)) == {"answer": "one"}
        assert json.loads(two.recv(100)) == {"answer": "two"}
    assert not daemon.ready.poll(0)
    daemon.close()


def test_who_makes_room_for_others_is_not_worked_for_any_more(tmp_path: Path) -> None:
    daemon = Portions(tmp_path / "a", turns=1_000_000)
    with ExitStack() as stack:
        first = stack.enter_context(asking(daemon.socket._path, "first"))
        daemon.turn()
        for _ in range(ASKERS_MAX):
            stack.enter_context(asking(daemon.socket._path, "more"))
            daemon.turn()
        daemon.turn()
        assert first.recv(100) == b""
        before = daemon.made.count("first")
        for _ in range(2 * ASKERS_MAX):
            daemon.turn()
        assert daemon.made.count("first") == before
    daemon.close()


# --- no more files


@contextmanager
def all_files_open() -> Iterator[list[int]]:
    """This process may open no file more, as the system sees it; what is in the way, to be closed."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MAX, limits[1]))
    held: list[int] = []
    try:
        try:
            while True:
                held.append(os.dup(0))
        except OSError:
            yield held
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class House:
    """A daemon's socket, and clients that are made in time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        well: Any = {"answer": "well"}
        self.status = StatusSocket(path, lambda _: well)
        self.ready = select.epoll()
        self.ready.register(self.status.fileno(), select.EPOLLIN)
        self.clients = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(3)]

    def turns(self) -> int:
        """How often the loop is woken, of fifty times that it could be."""
        woken = 0
        for _ in range(50):
            if self.ready.poll(0):
                woken += 1
                self.status.answer()
        return woken

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.ready.close()
        self.status.close()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "a")
    yield made
    made.close()


def test_a_daemon_that_may_open_no_more_files_tells_how_it_is(house: House) -> None:
    with all_files_open():
        for client in house.clients:
            client.connect(str(house.path))
            client.sendall(b"{}\n")
            assert house.turns() < 5
            assert json.loads(client.recv(100)) == {"answer": "well"}
    assert house.status.count == {Family.NO_DESCRIPTOR.of("EMFILE"): 3}


def test_who_holds_the_last_descriptor_and_does_not_ask_makes_room(house: House) -> None:
    silent, first, second = house.clients
    with all_files_open():
        silent.connect(str(house.path))
        assert house.turns() < 5
        first.connect(str(house.path))
        first.sendall(b"{}\n")
        assert house.turns() < 5
        assert json.loads(first.recv(100)) == {"answer": "well"}
        assert silent.recv(100) == b""
        second.connect(str(house.path))
        second.sendall(b"{}\n")
        assert house.turns() < 5
        assert json.loads(second.recv(100)) == {"answer": "well"}


def test_without_any_descriptor_a_question_waits_and_the_loop_does_not_spin(house: House) -> None:
    house.status._give_spare()  # As if another process had taken it: the system's limit is for all.
    first, second, _ = house.clients
    with all_files_open() as held:
        first.connect(str(house.path))
        first.sendall(b"{}\n")
        assert house.turns() < 5
        os.close(held.pop())
        os.close(held.pop())
        second.connect(str(house.path))
        second.sendall(b"{}\n")
        assert house.turns() < 10
        assert [json.loads(one.recv(100)) for one in (first, second)] == [{"answer": "well"}] * 2
