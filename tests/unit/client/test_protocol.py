"""A session without a socket: what it asks, what it understands, what it refuses, and how it ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import covey
from covey.client.events import Batch, Disconnected, Failure, Order, SelfLeave, Transitional, View
from covey.client.options import SendOptions
from covey.client.protocol import ClientProtocol
from covey.client.routes import BATCH_BUNDLES
from covey.errors import (
    ArgumentError,
    CoveyError,
    LocalProtocolError,
    MembershipError,
    MessageTooLargeError,
    SessionOverError,
)
from covey.protocol.asked import Sending
from covey.protocol.notices import NET
from covey.protocol.values import Service
from covey.protocol.wire.bodies import SELF_DISCARD, sender_prefix
from covey.protocol.wire.session import encode_word
from covey.protocol.wire.words import (
    Bye,
    Ended,
    Failed,
    GroupLeft,
    GroupSignal,
    GroupView,
    Hello,
    JoinGroup,
    LeaveGroup,
    Rejected,
    Welcome,
    Word,
)
from tests.unit.client.fake_daemon import (
    BALLOT,
    BUNDLE_BYTES,
    MESSAGE_BYTES_MAX,
    FakeSession,
    body_of,
    data_frame,
    welcome,
    welcomed,
    words_of,
)

ROOM = 1 << 20
ME = "alice@a:7.3"


def shown(members: tuple[str, ...] = (ME,), stamp: int = 1_100, site: int = 1, group: str = "room") -> Word:
    return GroupView(group, BALLOT, stamp, site, members, (ME,), "join", "bob@b:2.9")


def tell(client: ClientProtocol, *words: Word) -> list[covey.Event]:
    return client.feed(b"".join(map(encode_word, words)))


# --- the beginning


def test_it_begins_with_hello_and_says_nothing_more_until_it_is_let_in() -> None:
    client = ClientProtocol("alice", priority=0, policy="block")
    client.join("room")
    assert words_of(client.take(ROOM)) == [Hello("covey", 2, "alice", 0, "block")]
    assert client.take(ROOM) == []
    assert (client.process, client.name, client.is_open, client.is_over) == (None, "alice", False, False)
    assert tell(client, welcome()) == []
    assert (client.process, client.name, client.is_open) == (ME, "alice@a", True)
    assert words_of(client.take(ROOM)) == [JoinGroup("room")]


def test_a_name_with_a_colon_keeps_it() -> None:
    client = ClientProtocol("a:b")
    tell(client, welcome("a:b@c:7.3"))
    assert client.name == "a:b@c"


def test_a_refusal_is_told_and_ends_it() -> None:
    client = ClientProtocol("alice")
    client.take(ROOM)
    assert tell(client, Rejected("the name is taken")) == [Disconnected("the name is taken")]
    assert (client.refusal, client.is_over) == ("the name is taken", True)


def test_another_version_ends_it() -> None:
    client = ClientProtocol("alice")
    (event,) = tell(client, Welcome(3, ME, 100, 100))
    assert isinstance(event, Disconnected)
    assert "install the same Covey" in event.reason


@pytest.mark.parametrize("word", [shown(), GroupSignal("room"), Failed("join room", "no")])
def test_nothing_comes_before_the_welcome(word: Word) -> None:
    client = ClientProtocol("alice")
    (event,) = tell(client, word)
    assert isinstance(event, Disconnected)
    assert "before its welcome" in event.reason


def test_no_message_comes_before_the_welcome() -> None:
    client = ClientProtocol("alice")
    assert isinstance(client.feed(data_frame(body_of("bob@b:2.9", (0, b"x")), 1))[0], Disconnected)


def test_a_stranger_cannot_make_it_keep_much_before_the_welcome() -> None:
    client = ClientProtocol("alice")
    (event,) = client.feed(b"HTTP/1.1 400 Bad Request")
    assert isinstance(event, Disconnected)
    assert "frame too large" in event.reason


def test_the_welcome_may_come_together_with_what_only_an_open_session_may_get() -> None:
    client = ClientProtocol("alice")
    large = data_frame(body_of("bob@b:2.9", (0, bytes(50_000))), 1)
    (event,) = client.feed(encode_word(welcome()) + large)
    assert isinstance(event, Batch)


# --- messages in


def test_messages_come_as_a_batch() -> None:
    body = body_of("bob@b:2.9", (0, b"one"), (7, b"three"))
    (batch,) = welcomed().feed(data_frame(body, 2))
    assert isinstance(batch, Batch)
    assert (batch.sender, batch.process, batch.groups) == ("bob@b", "bob@b:2.9", ("room",))
    assert (len(batch), batch.payloads()) == (2, [b"one", b"three"])
    assert [(one.payload, one.kind, one.session_seq, one.order) for one in batch] == [
        (b"one", 0, 10, Order(BALLOT, 1_200, 1, 0)),
        (b"three", 7, 11, Order(BALLOT, 1_200, 1, 1)),
    ]
    assert repr(batch) == "Batch(2 messages from 'bob@b' to ('room',), agreed)"


def test_an_unreliable_message_has_no_place_in_the_order() -> None:
    (batch,) = welcomed().feed(data_frame(body_of("bob@b:2.9", (0, b"x")), 1, Service.UNRELIABLE, stamp=0))
    assert isinstance(batch, Batch)
    assert [message.order for message in batch] == [None]


@pytest.mark.parametrize(
    ("body", "messages", "sender"),
    [
        (body_of("bob@b:2.9", (0, b"x")) + b"?", 1, "bob@b"),
        (body_of("bob@b:2.9", (0, b"x")), 2, "bob@b"),
        (body_of("bob@b:2.9"), 0, "bob@b"),
        (b"\xff\xff", 1, "a sender without a name"),
        (b"", 1, "a sender without a name"),
        (b"\x01\x00\xff", 1, "a sender without a name"),
    ],
)
def test_a_malformed_bundle_is_dropped_whole_and_its_sender_named(body: bytes, messages: int, sender: str) -> None:
    client = welcomed()
    (failure,) = client.feed(data_frame(body, messages))
    assert isinstance(failure, Failure)
    assert failure.asked == f"messages from {sender}"
    assert failure.reason.startswith("dropped: malformed body")
    assert client.is_open
    assert isinstance(client.feed(data_frame(body_of("bob@b:2.9", (0, b"x")), 1))[0], Batch)


# --- groups


def test_a_view_tells_who_is_there_by_name() -> None:
    client = welcomed()
    client.join("room")
    (view,) = tell(client, shown(("zoe@a:7.9", "bob@b:2.9", ME)))
    assert isinstance(view, View)
    assert (view.id, view.members, view.transitional) == (
        "7.0.3/1100.1",
        ("alice@a", "bob@b", "zoe@a"),
        ("alice@a",),
    )
    assert (view.processes, view.transitional_processes) == ((ME, "bob@b:2.9", "zoe@a:7.9"), (ME,))
    assert (view.cause, view.order, view.rank) == ("join", Order(BALLOT, 1_100, 1), (7, 0, 3, 1_100, 1))
    assert client.views == {"room": "7.0.3/1100.1"}


def test_a_network_view_has_no_place_in_the_order() -> None:
    (view,) = tell(welcomed(), shown(stamp=NET[0], site=NET[1]))
    assert isinstance(view, View)
    assert (view.id, view.order) == ("7.0.3/net", None)


def test_signal_and_self_leave() -> None:
    client = welcomed()
    client.join("room")
    tell(client, shown())
    client.leave("room")
    assert tell(client, GroupSignal("room"), GroupLeft("room", BALLOT, 1_300, 1)) == [
        Transitional("room"),
        SelfLeave("room", Order(BALLOT, 1_300, 1)),
    ]
    assert (client.views, client.groups) == ({}, ())


def test_joining_twice_and_leaving_what_was_not_joined_are_errors() -> None:
    client = welcomed()
    client.join("room")
    with pytest.raises(MembershipError, match="joined already"):
        client.join("room")
    with pytest.raises(MembershipError, match="was not joined"):
        client.leave("hall")
    client.leave("room")
    with pytest.raises(MembershipError, match="was not joined"):
        client.leave("room")
    client.join("room")
    assert words_of(client.take(ROOM)) == [JoinGroup("room"), LeaveGroup("room"), JoinGroup("room")]


def test_a_join_that_failed_can_be_asked_again() -> None:
    client = welcomed()
    client.join("room")
    assert tell(client, Failed("join room", "too many groups")) == [Failure("join room", "too many groups")]
    assert client.groups == ()
    client.join("room")


def test_another_failure_changes_no_membership() -> None:
    client = welcomed()
    client.join("room")
    tell(client, shown(), Failed("send 5", "the daemon is stopping"), Failed("join room", "it is a member already"))
    assert client.groups == ("room",)


# --- messages out


def test_messages_and_requests_keep_their_order() -> None:
    client = welcomed()
    assert (client.send("room", b"one"), client.send_many("room", [b"two", b"three"])) == (1, 2)
    client.join("room")
    client.send(["room", "bob@b"], b"four", SendOptions(covey.SAFE, kind=9, self_discard=True))
    client.bye()
    first, join, second, bye = words_of(client.take(ROOM))
    assert isinstance(first, Sending)
    assert isinstance(second, Sending)
    assert (first.messages, first.session_seq, first.groups, first.flags) == (3, 1, ("room",), 0)
    assert (second.messages, second.session_seq, second.groups) == (1, 4, ("room", "bob@b"))
    assert (second.service, second.flags) == (Service.SAFE, SELF_DISCARD)
    assert (join, bye) == (JoinGroup("room"), Bye())
    assert (client.waiting_bytes, client.is_over) == (0, True)


@pytest.mark.parametrize("payload", [bytearray(b"abc"), memoryview(b"abc"), memoryview(b"aXbXcX")[::2]])
def test_any_buffer_can_be_sent_and_is_copied(payload: bytearray | memoryview) -> None:
    client = welcomed()
    client.send("room", payload)
    if isinstance(payload, bytearray):
        payload[:] = b"xyz"
    (word,) = words_of(client.take(ROOM))
    assert isinstance(word, Sending)
    assert bytes(word.body).endswith(b"abc")


def test_a_destination_named_twice_counts_once() -> None:
    client = welcomed()
    client.send(["room", "hall", "room"], b"x")
    (word,) = words_of(client.take(ROOM))
    assert isinstance(word, Sending)
    assert word.groups == ("room", "hall")


def test_the_largest_message_travels_alone_and_a_larger_one_not_at_all() -> None:
    client = welcomed()
    client.send("room", b"small")
    client.send("room", bytes(MESSAGE_BYTES_MAX))
    client.send("room", b"small")
    assert [word.messages for word in words_of(client.take(ROOM)) if isinstance(word, Sending)] == [1, 1, 1]
    with pytest.raises(MessageTooLargeError, match="message_bytes_max") as caught:
        client.send("room", bytes(MESSAGE_BYTES_MAX + 1))
    assert (caught.value.size, caught.value.limit) == (MESSAGE_BYTES_MAX + 1, MESSAGE_BYTES_MAX)


def test_an_unreliable_message_fits_one_bundle() -> None:
    client = welcomed()
    largest = BUNDLE_BYTES - len(sender_prefix(ME)) - 6
    client.send("room", bytes(largest), SendOptions(covey.UNRELIABLE))
    (word,) = words_of(client.take(ROOM))
    assert isinstance(word, Sending)
    assert len(word.body) == BUNDLE_BYTES
    with pytest.raises(MessageTooLargeError, match="one bundle") as caught:
        client.send("room", bytes(largest + 1), SendOptions(covey.UNRELIABLE))
    assert caught.value.limit == largest


@pytest.mark.parametrize(("service", "bundles"), [(covey.AGREED, BATCH_BUNDLES), (covey.UNRELIABLE, 1)])
def test_what_waits_travels_in_runs_of_some_bundles_but_unreliable_in_one(service: Service, bundles: int) -> None:
    client = welcomed()
    payloads = [bytes(100)] * (3 * BATCH_BUNDLES * BUNDLE_BYTES // 100)
    client.send_many("room", payloads, SendOptions(service))
    words = [word for word in words_of(client.take(len(payloads) * 200)) if isinstance(word, Sending)]
    assert sum(word.messages for word in words) == len(payloads)
    sizes = [len(word.body) for word in words[:-1]]
    assert all(bundles * BUNDLE_BYTES - 106 < size <= bundles * BUNDLE_BYTES for size in sizes)


def test_a_run_is_no_larger_than_the_largest_message() -> None:
    client = welcomed(bundle_bytes=MESSAGE_BYTES_MAX)
    client.send_many("room", [bytes(1_000)] * (2 * MESSAGE_BYTES_MAX // 1_000))
    words = [word for word in words_of(client.take(4 * MESSAGE_BYTES_MAX)) if isinstance(word, Sending)]
    assert max(len(word.body) for word in words) <= MESSAGE_BYTES_MAX


def test_many_are_sent_whole_or_not_at_all() -> None:
    client = welcomed()
    with pytest.raises(MessageTooLargeError):
        client.send_many("room", [b"one", bytes(MESSAGE_BYTES_MAX + 1)])
    assert (client.waiting_bytes, client.take(ROOM)) == (0, [])
    assert client.send_many("room", []) == client.send("room", b"x") == 1


Act = Callable[[ClientProtocol], object]


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda client: client.send("", b""), "must not be empty"),
        (lambda client: client.send([], b""), "1 to 100 destinations"),
        (lambda client: client.send([f"g{n}" for n in range(101)], b""), "1 to 100 destinations"),
        (lambda client: client.send([f"{n:0128}" for n in range(64)], b""), "take 8320 bytes, 2 of them beside each"),
        (lambda client: client.send(["é" * 120 + str(n) for n in range(40)], b""), "to fewer at a time"),
        (lambda client: client.send("bob@", b""), "no daemon"),
        (lambda client: client.send("a\nb", b""), "control characters"),
        (lambda client: client.send([7], b""), "as str"),
        (lambda client: client.send([["room"]], b""), "as str"),
        (lambda client: client.send(None, b""), "as str"),
        (lambda client: client.send(b"room", b""), "as str"),
        (lambda client: client.send("room", "text"), "encode"),
        (lambda client: client.send("room", 7), "encode"),
        (lambda client: client.send("room", b"", SendOptions(service=9)), "covey.SAFE"),  # type: ignore[arg-type]
        (lambda client: client.send("room", b"", SendOptions(kind=65_536)), "0 to 65535"),
        (lambda client: client.send("room", b"", SendOptions(kind=-1)), "0 to 65535"),
        (lambda client: client.send_many("room", [b"", None]), "encode"),
        (lambda client: client.join("a@b"), "'@'"),
        (lambda client: client.join("x" * 129), "at most 128"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy_and_leaves_nothing_behind(act: Act, text: str) -> None:
    client = welcomed()
    with pytest.raises(ArgumentError, match=text):
        act(client)
    assert (client.waiting_bytes, client.groups) == (0, ())


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ClientProtocol(""), "must not be empty"),
        (lambda: ClientProtocol("a@b"), "'@'"),
        (lambda: ClientProtocol("alice", priority=3), "0 .first., 1 or 2"),
        (lambda: ClientProtocol("alice", policy="wait"), "'disconnect', or 'block'"),  # type: ignore[arg-type]
    ],
)
def test_impossible_sessions_are_refused(make: Callable[[], ClientProtocol], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        make()


def test_nothing_is_sent_before_the_limits_are_known() -> None:
    with pytest.raises(LocalProtocolError, match="is_open"):
        ClientProtocol("alice").send("room", b"x")


# --- the end

ENDS: list[Act] = [
    lambda client: client.bye(),
    lambda client: client.lost("gone"),
    lambda client: tell(client, Ended("it reads too slowly", 5, 6)),
    lambda client: client.feed(b"\xff" * 20),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.send("room", b"x"),
        lambda client: client.send_many("room", [b"x"]),
        lambda client: client.join("hall"),
        lambda client: client.leave("room"),
    ],
)
def test_nothing_can_be_asked_after_the_end(end: Act, act: Act) -> None:
    client = welcomed()
    client.join("room")
    end(client)
    with pytest.raises(SessionOverError, match="connect again"):
        act(client)


@pytest.mark.parametrize("end", ENDS)
def test_nothing_happens_after_the_end(end: Act) -> None:
    client = welcomed()
    end(client)
    client.take(ROOM)
    assert client.feed(data_frame(body_of("bob@b:2.9", (0, b"x")), 1)) == []
    assert client.lost("gone") == []
    client.bye()
    assert (client.take(ROOM), client.is_over, client.waiting_bytes) == ([], True, 0)
    client.check()


def test_the_end_says_why_how_far_behind_and_which_groups_are_lost() -> None:
    client = welcomed()
    client.join("room")
    client.join("hall")
    events = tell(client, Ended("it reads too slowly", 5_000, 2_500_000), shown())
    assert events == [Disconnected("it reads too slowly", 5_000, 2.5, ("hall", "room"))]


def test_a_stream_that_broke_is_told() -> None:
    client = welcomed()
    client.join("room")
    assert client.lost("the daemon closed the connection") == [
        Disconnected("the daemon closed the connection", 0, 0.0, ("room",))
    ]


@pytest.mark.parametrize("word", [welcome(), Rejected("no")])
def test_a_second_greeting_ends_it(word: Word) -> None:
    (event,) = tell(welcomed(), word)
    assert isinstance(event, Disconnected)
    assert "in an open session" in event.reason


def test_an_unknown_frame_ends_it_after_the_events_before_it() -> None:
    events = welcomed().feed(encode_word(shown()) + b"\x00\x00\x00\x00\x63")
    assert [type(event) for event in events] == [View, Disconnected]
    assert isinstance(events[1], Disconnected)
    assert "unknown frame kind" in events[1].reason


def test_what_was_sent_before_goodbye_is_written_before_it() -> None:
    client = welcomed()
    client.send("room", bytes(1_000))
    client.bye()
    assert not client.is_over
    assert [type(word) for word in words_of(client.take(1))] == [Sending]
    assert not client.is_over
    assert words_of(client.take(1)) == [Bye()]
    assert client.is_over


def test_leaving_before_being_let_in_says_nothing() -> None:
    client = ClientProtocol("alice")
    client.bye()
    assert (client.take(ROOM), client.is_over) == ([], True)


def test_every_error_is_one_of_ours() -> None:
    assert all(issubclass(one, CoveyError) for one in (ArgumentError, MembershipError, SessionOverError))


def test_a_whole_conversation() -> None:
    client, daemon = ClientProtocol("alice"), FakeSession()
    events: list[covey.Event] = []

    def exchange() -> None:
        while parts := client.take(100):
            events.extend(client.feed(daemon.feed(b"".join(parts))))

    exchange()
    client.join("room")
    client.send_many("room", [b"one", b"two"])
    client.send("room", b"three", SendOptions(covey.SAFE, self_discard=True))
    client.leave("room")
    exchange()
    client.bye()
    exchange()
    assert [type(event) for event in events] == [View, Batch, SelfLeave]
    assert daemon.is_over
