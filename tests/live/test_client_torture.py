"""Programs that break every rule, at daemons that serve a pair of well-behaved ones at the same time.

In:   three real daemons, reached over their real sockets with bytes of our own making.
Out:  each breach is answered by name; nothing of it stays; the pair notices nothing.
Not here: what well-behaved programs do (test_clients.py), wrong datagrams (test_fuzz.py).
"""

from __future__ import annotations

import os
import random
import resource
import socket
import struct
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

import covey
from covey.client.address import socket_path
from covey.config import FRAME_SLACK, Settings
from covey.errors import MessageTooLargeError
from covey.lab.cluster import LocalCluster
from covey.protocol.asked import Sending
from covey.protocol.counters import Counted, Family
from covey.protocol.values import Payload, Service
from covey.protocol.wire.bodies import record_parts, sender_prefix
from covey.protocol.wire.session import HELLO_BYTES_MAX, Splitter, encode_word, read_from_daemon, sending_parts
from covey.protocol.wire.words import MAGIC, VERSION, Bye, Ended, FromDaemon, Hello, JoinGroup, Rejected, Welcome

pytestmark = pytest.mark.live

WITHIN_S: Final = 30.0
CYCLES: Final = int(os.environ.get("COVEY_TORTURE_CYCLES", "2000"))
CROWD: Final = 6_000
CROWD_DESCRIPTORS: Final = 10_000
EXCHANGES: Final = 20
"""What the pair must manage after each test."""
GROWTH_KB_MAX: Final = 24_000
LARGE: Final = Settings().message_bytes_max
LARGE_SENDERS: Final = 10
SHORT_PATIENCE: Final = """
[settings]
hello_timeout_ms = 1_500
"""


class Pair:
    """Two programs at two daemons that send a number to and fro; whatever else they see is a problem."""

    def __init__(self, addresses: tuple[str, str]) -> None:
        self._sessions = [covey.blocking.connect(f"pair{at}", address) for at, address in enumerate(addresses)]
        self._changed = threading.Condition()
        self._exchanged = 0
        self._problem = ""
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        for session in self._sessions:
            session.join("pair")
        for session in self._sessions:
            while not (isinstance(view := session.receive(WITHIN_S), covey.View) and len(view.members) == 2):
                pass
        self._thread.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over = True
        self._thread.join()
        for session in self._sessions:
            session.disconnect()

    def go_on(self, exchanges: int) -> None:
        """Until they have exchanged so many more."""
        with self._changed:
            wanted = self._exchanged + exchanges
            came = self._changed.wait_for(lambda: self._problem or self._exchanged >= wanted, WITHIN_S)
        assert not self._problem
        assert came, "the pair exchanges nothing any more"

    def _run(self) -> None:
        number = 0
        while not self._is_over and not self._problem:
            number += 1
            for sender, receiver in (self._sessions, self._sessions[::-1]):
                problem = _passed_on(sender, receiver, b"%d" % number)
                with self._changed:
                    self._problem = self._problem or problem
                    self._exchanged += 1
                    self._changed.notify_all()


def _passed_on(sender: covey.blocking.Session, receiver: covey.blocking.Session, payload: bytes) -> str:
    try:
        sender.send("pair", payload, self_discard=True)
        event = receiver.receive(WITHIN_S)
    except (covey.CoveyError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"
    return "" if isinstance(event, covey.Message) and event.payload == payload else f"{receiver.name} saw {event}"


class Raw:
    """A connection that says whatever it is told to."""

    def __init__(self, path: Path) -> None:
        self._splitter = Splitter(LARGE + FRAME_SLACK)
        self._words: list[FromDaemon] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(WITHIN_S)
        self._socket.connect(str(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._socket.close()

    def say(self, *parts: Payload) -> None:
        """The daemon may have had enough before all is said."""
        try:
            for part in parts:
                self._socket.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            return

    def say_no_more(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def word(self) -> FromDaemon | None:
        """The next word, or None at the end of the stream."""
        while not self._words:
            try:
                data = self._socket.recv(100_000)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self._words += [read_from_daemon(kind, body) for kind, body in self._splitter.feed(data)]
        return self._words.pop(0)

    def enter(self, name: str) -> str:
        """Say HELLO; the process that we are."""
        self.say(hello(name))
        welcome = self.word()
        assert isinstance(welcome, Welcome), welcome
        return welcome.process

    def last_words(self) -> str:
        """The reason with which the daemon ended the stream."""
        last: FromDaemon | None = None
        while (word := self.word()) is not None:
            last = word
        assert isinstance(last, Ended | Rejected), last
        return last.reason


def hello(name: str, magic: str = MAGIC, version: int = VERSION) -> bytes:
    return encode_word(Hello(magic, version, name, 1, "disconnect"))


def sending(process: str, payload: bytes, group: str = "torture", seq: int = 1) -> bytes:
    body = b"".join([sender_prefix(process), *record_parts(0, payload)])
    return b"".join(sending_parts(Sending(Service.AGREED, 0, 1, seq, (group,), body)))


def frame(kind: int, body: bytes, size: int | None = None) -> bytes:
    return struct.pack("<IB", len(body) if size is None else size, kind) + body


# --- the daemons


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # Daemons inherit it.
    directory = tmp_path_factory.mktemp("torture")
    with LocalCluster(directory, run=directory.name, traced=False) as made:
        made.file.write_text(made.file.read_text() + SHORT_PATIENCE)
        made.start("a", "b", "c")
        made.wait_for_view("a", "b", "c")
        yield made
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def pair(cluster: LocalCluster) -> Iterator[Pair]:
    with Pair((address(cluster, "a"), address(cluster, "b"))) as made:
        yield made


@pytest.fixture(autouse=True)
def unharmed(cluster: LocalCluster, pair: Pair) -> Iterator[None]:
    """Around each test: the pair goes on, in the same views, and the daemon gives back what it took."""
    pair.go_on(EXCHANGES)
    before, views = descriptors(cluster), [child.view for child in cluster.living()]
    yield
    pair.go_on(EXCHANGES)
    cluster.wait_until(lambda: descriptors(cluster) <= before, f"{before} descriptors again")
    assert [child.view for child in cluster.living()] == views


@pytest.fixture
def path(cluster: LocalCluster) -> Path:
    """Where the daemon that is tortured listens."""
    return socket_path(cluster.cluster.digest(), "a")


def address(cluster: LocalCluster, daemon: str) -> str:
    return f"unix:{socket_path(cluster.cluster.digest(), daemon)}"


def descriptors(cluster: LocalCluster) -> int:
    return sum(1 for _ in Path(f"/proc/{cluster.child('a').pid}/fd").iterdir())


def counted(cluster: LocalCluster, counter: Counted) -> int:
    """How often, as the daemon tells it."""
    (status,) = (one for one in cluster.statuses() if one.process.startswith("a:"))
    count = status.snapshot["count"]
    assert isinstance(count, dict)
    return int(count.get(counter.value, 0))


# --- before the HELLO


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"\xff" * 64, "frame too large"),
        (b"GET / HTTP/1.1\r\n\r\n", "frame too large"),
        (frame(1, b"", HELLO_BYTES_MAX + 1), "frame too large"),
        (frame(99, b"x"), "unknown frame kind"),
        (frame(1, b""), "malformed frame"),
        (frame(1, b"\x91" * 2_000), "malformed frame"),
        (frame(32, b"\x00" * 4), "malformed frame"),
        (hello("eve", magic="spread"), "say HELLO first"),
        (hello("eve", version=VERSION + 1), "version"),
        (hello("e@ve"), "@"),
        (hello(""), "name"),
        (encode_word(JoinGroup("torture")), "say HELLO first"),
        (sending("eve@a:1.1", b"x"), "say HELLO first"),
    ],
    ids=range(13),
)
def test_what_is_no_hello_is_answered_by_name(path: Path, said: bytes, answer: str) -> None:
    with Raw(path) as raw:
        raw.say(said)
        assert answer in raw.last_words()


def test_any_bytes_are_survived(path: Path) -> None:
    chance = random.Random(0)
    for number in range(300):
        with Raw(path) as raw:
            if number % 2:
                raw.enter(f"noise{number}")
            raw.say(chance.randbytes(chance.choice((1, 4, 5, 100, 3_000))))
            raw.say_no_more()
            while raw.word() is not None:
                pass


def test_a_hello_may_come_in_many_pieces(path: Path) -> None:
    with Raw(path) as raw:
        *first, last = hello("drop").partition(b"drop")
        raw.say(*(bytes([one]) for one in b"".join(first)))
        raw.say(*(bytes([one]) for one in last))
        assert isinstance(raw.word(), Welcome)


def test_who_says_nothing_is_told_to_speak(path: Path) -> None:
    with Raw(path) as silent, Raw(path) as half:
        half.say(hello("half")[:-1])
        for raw in (silent, half):
            assert "said nothing for too long" in raw.last_words()


# --- in an open session


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (frame(32, b"", LARGE + FRAME_SLACK + 1), "frame too large"),
        (frame(99, b"x"), "unknown frame kind"),
        (frame(2, b"\xc1"), "malformed frame"),
        (frame(32, b"\x03\x00"), "malformed frame"),
        (hello("mallory"), "HELLO twice"),
        (sending("pair0@a:1.101", b"x"), "in another's name"),
        (sending("", b"x", seq=7), "not the next"),
    ],
    ids=range(7),
)
def test_a_session_that_breaks_the_rules_is_ended_by_name(path: Path, said: bytes, answer: str) -> None:
    with Raw(path) as raw:
        raw.enter("breaker" + "".join(filter(str.isalnum, answer)))
        raw.say(said)
        assert answer in raw.last_words()


def test_what_was_ended_is_counted_by_name(cluster: LocalCluster, path: Path) -> None:
    before = counted(cluster, Family.CLIENT_ENDED.of("unknown frame kind"))
    with Raw(path) as raw:
        raw.say(frame(77, b""))
        raw.last_words()
    assert counted(cluster, Family.CLIENT_ENDED.of("unknown frame kind")) == before + 1


def test_half_a_message_is_no_message(cluster: LocalCluster, path: Path) -> None:
    with covey.blocking.connect("observer", address(cluster, "b")) as observer:
        observer.join("half")
        assert members(observer) == 1
        with Raw(path) as raw:
            process = raw.enter("halfway")
            whole = sending(process, bytes(1_000_000), "half")
            raw.say(encode_word(JoinGroup("half")), whole[:500_000])
            assert members(observer) == 2
        assert members(observer) == 1


def test_a_program_killed_in_the_middle_of_a_frame_leaves_alone(cluster: LocalCluster, path: Path) -> None:
    begun = hello("victim") + encode_word(JoinGroup("killed")) + frame(32, b"", 1_000_000)
    code = f"""
        import socket, sys
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.connect({str(path)!r})
        stream.sendall({begun!r} + bytes(70_000))
        print(flush=True)
        sys.stdin.readline()
    """
    with covey.blocking.connect("witness", address(cluster, "c")) as witness:
        witness.join("killed")
        assert members(witness) == 1
        command = [sys.executable, "-S", "-c", textwrap.dedent(code)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
            try:
                assert victim.stdout is not None
                assert victim.stdout.readline()
                assert members(witness) == 2
            finally:
                victim.kill()
        assert members(witness) == 1


def members(session: covey.blocking.Session) -> int:
    """How many are in the view that comes next; no message may come before it."""
    view = session.receive(WITHIN_S)
    assert isinstance(view, covey.View)
    return len(view.members)


# --- many, and much


def test_sessions_that_come_and_go_leave_nothing_behind(cluster: LocalCluster, path: Path) -> None:
    cycle(path, 0, 200)
    before_kb = cluster.child("a").resident_kb()
    cycle(path, 200, CYCLES)
    grown_kb = cluster.child("a").resident_kb() - before_kb
    assert grown_kb < GROWTH_KB_MAX, f"{grown_kb} kB for {CYCLES} sessions"
    cluster.wait_until(lambda: names(cluster) == ["pair0"], "the names of the pair and no others")


def test_a_crowd_that_leaves_at_once_disturbs_nobody(path: Path) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < CROWD_DESCRIPTORS:
        pytest.skip(f"needs {CROWD_DESCRIPTORS} descriptors")
    with ExitStack() as crowd:
        for number in range(CROWD):
            crowd.enter_context(Raw(path)).enter(f"crowd{number}")


def cycle(path: Path, first: int, count: int) -> None:
    """Sessions that end in different ways: at once, with a goodbye, in a group, in the middle of a word."""
    ends = (b"", encode_word(Bye()), encode_word(JoinGroup("cycle")), hello("x")[:7])
    for number in range(first, first + count):
        with Raw(path) as raw:
            raw.enter(f"cycle{number}")
            raw.say(ends[number % len(ends)])


def names(cluster: LocalCluster) -> list[str]:
    (status,) = (one for one in cluster.statuses() if one.process.startswith("a:"))
    clients = status.snapshot["clients"]
    assert isinstance(clients, dict)
    return [session["name"] for session in clients["sessions"]]


def test_the_largest_messages_of_ten_programs_at_once(cluster: LocalCluster) -> None:
    before_kb = cluster.child("a").resident_kb()
    with ThreadPoolExecutor(LARGE_SENDERS) as threads:
        large = [threads.submit(to_itself_and_back, cluster, number) for number in range(LARGE_SENDERS)]
        assert all(one.result() for one in large)
    assert cluster.child("a").resident_kb() - before_kb < 3 * LARGE_SENDERS * LARGE // 1_000


def to_itself_and_back(cluster: LocalCluster, number: int) -> bool:
    payload = bytes([number]) * LARGE
    with covey.blocking.connect(f"large{number}", address(cluster, "abc"[number % 3])) as session:
        with pytest.raises(MessageTooLargeError):
            session.send(session.name, payload + b"!")
        session.send(session.name, payload)
        event = session.receive(3 * WITHIN_S)
        return isinstance(event, covey.Message) and event.payload == payload
