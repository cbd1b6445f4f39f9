"""The history of a client: one row for what it asked and for what happened, with every column that the schema wants."""

from __future__ import annotations

from pathlib import Path

import msgspec

import covey
from covey.client.options import SendOptions
from covey.client.protocol import ClientProtocol
from covey.client.recording import Recording
from covey.protocol.notices import NET
from covey.protocol.values import Service
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import Ended, GroupSignal, GroupView, Rejected, Word
from covey.trace.client import ClientRecorder
from covey.trace.reading import read_rows
from covey.trace.record import Row, payload_digest
from covey.trace.segments import SegmentWriter
from tests.unit.client.fake_daemon import BALLOT, FakeSession, body_of, data_frame, welcome

ME, BOB = "alice@a:7.3", "bob@b:2.9"


class Recorded:
    """A client, its daemon, and what was written down; time passes with each reading of the clock."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.step = 0
        self.daemon = FakeSession()
        self.client = ClientProtocol("alice", observer=Recording(ClientRecorder("run", self.rows.append), self._clock))

    def _clock(self) -> tuple[int, int | None]:
        self.step += 1
        return 1_000 * self.step, self.step

    def exchange(self) -> None:
        while parts := self.client.take(1 << 20):
            self.client.feed(self.daemon.feed(b"".join(parts)))

    def tell(self, *words: Word) -> None:
        self.client.feed(b"".join(map(encode_word, words)))

    def last(self) -> dict[str, object]:
        return columns(self.rows[-1])


def opened() -> Recorded:
    recorded = Recorded()
    recorded.exchange()
    return recorded


COMMON = {"schema", "run", "level", "process", "name", "daemon", "index", "step", "time_ns"}


def columns(row: Row) -> dict[str, object]:
    """What is set in it, but for what every row has."""
    return {
        name: value
        for name, value in msgspec.structs.asdict(row).items()
        if name not in COMMON and value not in (None, ())
    }


def test_every_row_says_whose_it_is() -> None:
    recorded = opened()
    recorded.client.join("room")
    assert [(row.run, row.level, row.process, row.name, row.daemon) for row in recorded.rows] == [
        ("run", "C", ME, "alice@a", "a:7")
    ] * 2
    assert [(row.index, row.step, row.time_ns) for row in recorded.rows] == [(0, 1, 1_000), (1, 2, 2_000)]


def test_connect_join_and_the_first_view_of_a_stay() -> None:
    recorded = opened()
    recorded.client.join("room")
    recorded.exchange()
    assert [columns(row) for row in recorded.rows] == [
        {"event": "connect"},
        {"event": "join", "group": "room"},
        {
            "event": "view", "group": "room", "view_new": "7.0.3/1002.0", "view_rank": (7, 0, 3, 1_002, 0),
            "members": (ME,), "transitional": (ME,), "cause": "join",
            "order_view": "7.0.3", "order_stamp": 1_002, "order_site": 0,
        },
    ]  # fmt: skip


def test_a_network_view_names_the_previous_one_and_has_no_order() -> None:
    recorded = opened()
    recorded.client.join("room")
    recorded.exchange()
    recorded.tell(GroupSignal("room"), GroupView("room", BALLOT, *NET, (BOB, ME), (ME,), "network", "they met"))
    assert columns(recorded.rows[-2]) == {"event": "transitional", "group": "room", "view": "7.0.3/1002.0"}
    assert recorded.last() == {
        "event": "view", "group": "room", "view": "7.0.3/1002.0", "view_new": "7.0.3/net",
        "view_rank": (7, 0, 3, 0, 0), "members": (ME, BOB), "transitional": (ME,), "cause": "network",
        "detail": "they met",
    }  # fmt: skip


def test_a_leave_ends_the_stay() -> None:
    recorded = opened()
    recorded.client.join("room")
    recorded.exchange()
    recorded.client.leave("room")
    assert recorded.last() == {"event": "leave", "group": "room", "view": "7.0.3/1002.0"}
    recorded.exchange()
    assert recorded.last() == {
        "event": "self_leave", "group": "room", "view": "7.0.3/1002.0",
        "order_view": "7.0.3", "order_stamp": 1_003, "order_site": 0,
    }  # fmt: skip
    recorded.client.join("room")
    recorded.exchange()
    assert "view" not in recorded.last()


def test_messages_sent_and_delivered() -> None:
    recorded = opened()
    recorded.client.join("room")
    recorded.exchange()
    recorded.client.send_many("room", [b"one", b"three"], SendOptions(covey.SAFE))
    recorded.exchange()
    shared = {
        "group": "room", "groups": ("room",), "view": "7.0.3/1002.0", "views": ("7.0.3/1002.0",), "count": 1,
        "sender": ME, "service": "safe",
    }  # fmt: skip
    one = {"message": f"{ME}#1", "session_seq": 1, "size": 3, "digest": payload_digest(b"one")}
    two = {"message": f"{ME}#2", "session_seq": 2, "size": 5, "digest": payload_digest(b"three")}
    order = {"order_view": "7.0.3", "order_stamp": 1_003, "order_site": 0}
    assert [columns(row) for row in recorded.rows[-4:]] == [
        {"event": "send"} | shared | one,
        {"event": "send"} | shared | two,
        {"event": "deliver"} | shared | one | order | {"order_index": 0},
        {"event": "deliver"} | shared | two | order | {"order_index": 1},
    ]


def test_several_groups_have_their_views_side_by_side() -> None:
    recorded = opened()
    recorded.client.join("room")
    recorded.exchange()
    recorded.client.send(["room", "hall", "room"], b"x")
    assert {key: recorded.last().get(key) for key in ("group", "groups", "view", "views")} == {
        "group": None, "groups": ("room", "hall"), "view": None, "views": ("7.0.3/1002.0", ""),
    }  # fmt: skip


def test_a_sender_outside_the_group_is_in_no_view() -> None:
    recorded = opened()
    recorded.client.send("room", b"x")
    last = recorded.last()
    assert (last["group"], last.get("view"), last["views"]) == ("room", None, ("",))


def test_a_private_message_names_no_group() -> None:
    recorded = opened()
    recorded.client.send("bob@b", b"x")
    last = recorded.last()
    assert {"group", "groups", "view", "views"}.isdisjoint(last)
    assert last["detail"] == "private, to bob@b"


def test_an_unreliable_delivery_has_no_order() -> None:
    recorded = opened()
    recorded.client.feed(data_frame(body_of(BOB, (0, b"x")), 1, Service.UNRELIABLE, stamp=0))
    last = recorded.last()
    assert (last["event"], last["sender"], last["message"]) == ("deliver", BOB, f"{BOB}#10")
    assert not any(name.startswith("order_") for name in last)


def test_what_was_asked_before_the_welcome_comes_after_it() -> None:
    recorded = Recorded()
    recorded.client.join("room")
    recorded.client.leave("room")
    recorded.exchange()
    assert [row.event for row in recorded.rows][:3] == ["connect", "join", "leave"]


def test_ends() -> None:
    left, lost, ended = opened(), opened(), opened()
    left.client.bye()
    left.exchange()
    lost.client.lost("the daemon closed the connection")
    lost.client.bye()
    ended.tell(Ended("it reads too slowly", 5, 6))
    assert [(one.rows[-1].event, one.rows[-1].cause) for one in (left, lost, ended)] == [
        ("disconnect", "the program left"),
        ("disconnect", "the daemon closed the connection"),
        ("disconnect", "it reads too slowly"),
    ]
    assert [len(one.rows) for one in (left, lost, ended)] == [2, 2, 2]


def test_a_refusal_is_a_history_of_its_own() -> None:
    recorded = Recorded()
    recorded.client.take(1)
    recorded.tell(Rejected("the name is taken"))
    (row,) = recorded.rows
    assert (row.process, row.name, row.daemon) == ("alice@?.refused1000", "alice@?", "?")
    assert (row.index, row.event, row.cause) == (0, "refused", "the name is taken")


def test_nothing_is_written_of_a_session_that_never_was() -> None:
    recorded = Recorded()
    recorded.client.lost("nobody answered")
    assert recorded.rows == []


def test_a_new_session_begins_a_new_history() -> None:
    rows: list[Row] = []
    recorder = ClientRecorder("run", rows.append)
    for process in (ME, "alice@b:2.1"):
        client = ClientProtocol("alice", observer=Recording(recorder))
        client.feed(encode_word(welcome(process)))
        client.lost("gone")
    assert [(row.process, row.index, row.event) for row in rows] == [
        (ME, 0, "connect"), (ME, 1, "disconnect"), ("alice@b:2.1", 0, "connect"), ("alice@b:2.1", 1, "disconnect"),
    ]  # fmt: skip


def test_other_events_of_a_simulator_have_their_row() -> None:
    rows: list[Row] = []
    recorder = ClientRecorder("run", rows.append)
    recorder.connect(ME, 1)
    recorder.event("calm", 2, 5, members=(ME,))
    assert (rows[1].event, rows[1].index, rows[1].step, rows[1].members) == ("calm", 1, 5, (ME,))


def test_histories_of_clients_can_be_stored(tmp_path: Path) -> None:
    recorded = opened()
    recorded.client.join("room")
    recorded.exchange()
    recorded.client.send(["room", "bob@b"], b"x", SendOptions(kind=7))
    recorded.exchange()
    with SegmentWriter(tmp_path, "alice") as writer:
        for row in recorded.rows:
            writer.append(row)
    assert list(read_rows(tmp_path)) == recorded.rows
