"""A daemon that speaks two dialects: programs of both are in one group, and none can tell what the others speak."""

from __future__ import annotations

import pytest

from covey.errors import LocalProtocolError
from covey.protocol.dialects.known import DIALECTS
from covey.protocol.effects import ClientClosed
from covey.protocol.inputs import ClientBytes, ClientConnected, ClientGone, Stop
from covey.protocol.wire.words import Arrived, JoinGroup, LeaveGroup
from tests.unit.protocol.line_dialect import HELLO_BYTES_MAX, LINES
from tests.unit.protocol.peers import Seen
from tests.unit.protocol.solo_house import SoloHouse

NATIVE_ONE, LINE_ONE, LINE_TWO = 1, 2, 3


class House(SoloHouse):
    """Two programs, let in: `al` speaks the native dialect, `bo` speaks lines."""

    def __init__(self) -> None:
        super().__init__({**DIALECTS, "lines": LINES})
        self.al = self.peer(NATIVE_ONE, "al")
        self.open(LINE_ONE)
        [welcome] = self.say("hello bo")
        self.bo = welcome.removeprefix("welcome ")

    def open(self, connection: int) -> None:
        self.give(0, ClientConnected(connection, dialect="lines"))

    def say(self, *lines: str, connection: int = LINE_ONE) -> list[str]:
        """What it is told after it."""
        self.give(0, ClientBytes(connection, "".join(f"{line}\n" for line in lines).encode()))
        return self.told(connection)

    def told(self, connection: int = LINE_ONE) -> list[str]:
        self.run(50_000)
        return b"".join(self.daemons[0].pull(connection, 1 << 30)).decode().splitlines()

    def seen(self) -> tuple[list[tuple[str, ...]], list[bytes]]:
        """The members of each view that the native one is shown, and the bodies of the messages."""
        words, seen = self.al.read(), Seen()
        for word in words:
            seen.see(word)
        return [members for _, members, _ in seen.views], [bytes(one.body) for one in words if isinstance(one, Arrived)]


@pytest.fixture
def house() -> House:
    return House()


def test_both_get_the_messages_and_the_views_of_their_group(house: House) -> None:
    al, bo = house.al.process, house.bo
    house.al.say(JoinGroup("room"))
    assert house.say("join room") == [f"view room: {al} {bo}"]
    house.al.send("room", payload=b"good morning")
    assert house.told() == [f"{al} to room: good morning"]
    assert house.say("send room hello to all") == [f"{bo} to room: hello to all"]
    views, bodies = house.seen()
    assert views == [(al,), (al, bo)]
    assert [body.split(b"\0")[-1] for body in bodies] == [b"good morning", b"hello to all"]
    house.al.say(LeaveGroup("room"))
    assert house.told() == [f"view room: {bo}"]
    assert house.say("leave room") == ["left room"]


def test_a_program_that_is_gone_is_gone_for_the_other_dialect(house: House) -> None:
    house.al.say(JoinGroup("room"))
    house.say("join room")
    house.give(0, ClientGone(LINE_ONE))
    views, _ = house.seen()
    assert views[-1] == (house.al.process,)


def test_many_lines_at_once_are_worked_off_in_turns(house: House) -> None:
    house.say("join room")
    texts = [f"{number:05} {'x' * 3_000}" for number in range(2_000)]
    told = house.say(*(f"send room {text}" for text in texts))
    while some := house.told():
        told += some
    assert told == [f"{house.bo} to room: {text}" for text in texts]


def test_who_errs_is_told_in_its_own_words(house: House) -> None:
    house.say("join room")
    assert house.say("join room") == ["failed join room: it is a member already"]
    assert house.say("hello again") == ["over: one hello is enough"]
    house.open(LINE_TWO)
    assert house.say("join room", connection=LINE_TWO) == ["over: say hello first"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("hello", "say hello, and your name"),
        ("HELLO bo", "nobody here knows what that means (unknown verb: HELLO)"),
        ("x" * HELLO_BYTES_MAX, "nobody here knows what that means (unknown verb: " + "x" * HELLO_BYTES_MAX + ")"),
    ],
)
def test_a_greeting_that_is_none(house: House, line: str, reason: str) -> None:
    house.open(LINE_TWO)
    assert house.say(line, connection=LINE_TWO) == [f"over: {reason}"]


def test_a_line_without_end(house: House) -> None:
    house.open(LINE_TWO)
    house.give(0, ClientBytes(LINE_TWO, b"x" * (HELLO_BYTES_MAX + 1)))
    assert house.told(LINE_TWO) == ["over: nobody here knows what that means (line too long)"]


def test_who_says_nothing_is_told_how_to_begin(house: House) -> None:
    house.open(LINE_TWO)
    house.run(1_000 * house.daemons[0].kit.settings.hello_timeout_ms)
    house.run(1_000_000)
    assert house.told(LINE_TWO) == ["over: say hello within a while"]


def test_all_are_told_that_the_daemon_stops(house: House) -> None:
    house.give(0, Stop())
    closed = [one.connection for one in house.effects[0] if isinstance(one, ClientClosed)]
    assert closed == [NATIVE_ONE, LINE_ONE]
    assert house.told() == ["over: the daemon stops"]


def test_a_dialect_that_the_daemon_was_not_given_is_the_drivers_mistake(house: House) -> None:
    with pytest.raises(LocalProtocolError, match="no dialect 'latin', but native, lines"):
        house.give(0, ClientConnected(9, dialect="latin"))
