"""The socket at which a daemon is asked how it is: questions, large answers, and people who ask and do not listen."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from covey.drivers.live.status import ASKERS_MAX, NotRunningError, Question, StatusSocket, ask

LARGE = "x" * 2_000_000


class Daemon:
    """Answers until it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.questions: list[Question] = []
        self._socket = StatusSocket(path, self._answer)
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _answer(self, question: Question) -> dict[str, Any]:
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
