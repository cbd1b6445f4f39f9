"""What commands show, without daemons: lines, the line being typed, pictures of a cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from covey.cli.chat import Prompt
from covey.cli.editor import EndOfInput, LineEditor
from covey.cli.groups import by_view
from covey.cli.lines import Changes, event_json, event_text, payload_text
from covey.cli.top_picture import Look, Picture, picture
from covey.cli.top_screen import screen
from covey.client.events import (
    Disconnected,
    Failure,
    Message,
    Reconnected,
    Reconnecting,
    SelfLeave,
    Single,
    Transitional,
    View,
    name_of,
)
from covey.cluster import daemon_name
from covey.protocol.values import Service

SECOND_NS = 1_000_000_000


def view(*members: str, together: tuple[str, ...] = (), cause: str = "join", detail: str = "x@a:1.1") -> View:
    processes = tuple(f"{name}:1.1" for name in members)
    transitional = tuple(f"{name}:1.1" for name in together)
    return View("room", "1.0.1/7.0", members, together, cause, detail, processes, transitional, None, (1, 0, 1, 7, 0))


def message(payload: bytes, service: Service = Service.AGREED, kind: int = 0) -> Message:
    return Message("bob@b", ("room",), payload, service, kind, 3, None, "bob@b:2.1")


# --- lines


def test_a_view_tells_what_changed_and_why() -> None:
    changes = Changes("alice@a")
    assert changes.text(view("alice@a")) == "we are in; here: alice@a"
    joined = view("alice@a", "bob@b", together=("alice@a",), detail="bob@b:1.1")
    assert changes.text(joined) == "bob@b joined; here: alice@a bob@b"
    lost = view("alice@a", "eve@c", together=("alice@a",), cause="network", detail="a member was not heard in time")
    assert changes.text(lost) == (
        "network: a member was not heard in time; gone: bob@b; new: eve@c; here: alice@a eve@c; with us: alice@a"
    )


def test_what_others_send_cannot_take_over_the_terminal() -> None:
    groups, text = event_text(message(b"\x1b[2J\x07hi\r\n\xe2\x80\xae"), Changes(""))
    assert groups == "room"
    assert text == r"bob@b: \x1b[2J\x07hi\r\n\u202e"
    assert "\x1b" not in payload_text(bytes(range(256)))


def test_a_line_says_which_service_and_kind_a_message_has() -> None:
    assert event_text(message(b"hi", Service.SAFE, 7), Changes(""))[1] == "bob@b: [safe] [kind 7] hi"


def test_long_messages_and_long_lists_are_cut() -> None:
    assert payload_text(b"x" * 5_000).endswith("… (5,000 bytes)")
    many = tuple(f"p{number}@a" for number in range(30))
    assert Changes("").text(view(*many)).endswith("and 10 more")


EVENTS: list[Single] = [
    message(b"hi"),
    message(b"\xff"),
    view("alice@a"),
    Transitional("room"),
    SelfLeave("room"),
    Failure("join room", "no"),
    Disconnected("too slow", 5, 1.5),
    Reconnecting(3, "nobody listens", 7.25),
    Reconnected("alice@b:1.1", "alice@b"),
]


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_has_a_line_and_an_object(event: Single) -> None:
    told = json.loads(json.dumps(event_json(event, 7)))
    assert told["time_ns"] == 7
    assert told["kind"]
    assert "\n" not in event_text(event, Changes(""))[1]


def test_text_is_told_as_text_and_the_rest_in_base64() -> None:
    assert event_json(message(b"hi"), 0)["payload"] == "hi"
    assert event_json(message(b"\xff"), 0)["payload_base64"] == "/w=="


# --- the line being typed


def test_lines_are_finished_by_return_and_may_come_in_pieces() -> None:
    editor = LineEditor()
    assert editor.feed("grü".encode()[:3]) == []
    assert editor.feed("grü".encode()[3:] + b"n\rnext") == ["grün"]
    assert editor.text == "next"


def test_keys_without_a_use_leave_no_trace() -> None:
    editor = LineEditor()
    editor.feed(b"a\x1b[A\x1b[3~\x1bOPb\x01")
    assert editor.text == "ab"


def test_words_and_lines_can_be_taken_back() -> None:
    editor = LineEditor()
    editor.feed(b"one two\x17")
    assert editor.text == "one "
    editor.feed(b"\x15")
    assert not editor.text
    with pytest.raises(EndOfInput):
        editor.feed(b"\x04")


def test_of_a_long_line_the_end_is_shown() -> None:
    editor = LineEditor()
    editor.feed("日本語".encode() * 40 + b"end")
    shown = editor.shown("> ", 20)
    assert shown.startswith("> ")
    assert shown.endswith("end")
    assert len(shown) <= 20


def test_a_line_appears_above_the_one_being_typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda: (40, 10))
    monkeypatch.setattr(Prompt, "_draw", lambda self: print(f"<{self._editor.text}>", end=""))
    prompt = Prompt()
    prompt.type(b"hel")
    prompt.line("10:00:00 bob@b: hi")
    assert capsys.readouterr().out.endswith("\r\x1b[K10:00:00 bob@b: hi\n<hel>")


# --- groups


def test_daemons_of_one_view_tell_the_same_groups_once() -> None:
    one: Any = {"name": "a", "view": "7.0.1", "daemons": ["a", "b"], "groups": [], "group_count": 0}
    told = by_view({"a": one, "b": one | {"name": "b"}, "c": one | {"name": "c", "view": "8.2.1", "daemons": ["c"]}})
    assert [answer["view"] for answer in told] == ["7.0.1", "8.2.1"]


# --- top


def answer(name: str, delivered: int, **changed: Any) -> Any:
    session = {
        "process": f"p@{name}:1.101", "policy": "block", "phase": "open", "groups": 1, "delivered": delivered,
        "backlog_bytes": 2_000_000, "lag_ms": 900, "blocking": True, "reading": True,
    }  # fmt: skip
    recent = {
        "time_ns": 0, "view": "7.0.1", "members": ["a", "b"], "transitional": ["a", "b"], "cause": "loss",
        "reason": "a member was not heard in time", "detail": "",
    }  # fmt: skip
    rates = {f"{what}_per_s": 9.0 for what in ("messages", "bytes_received", "bytes_sent")}
    counts = dict.fromkeys(("messages", "bytes_received", "bytes_sent"), delivered)
    clients = {
        "session_count": 1, "backlog_bytes": 2_000_000, "groups": {"room": 2, "hall": 5}, "group_count": 2,
        "sessions": [session],
    }  # fmt: skip
    return {
        "boot": 1, "cluster": "up", "state": "op", "working": True, "view": "7.0.1", "members": ["a", "b"],
        "uptime_s": 70.0, "longest_step_recent_ms": 3.0, "reason": "every member is done",
        "recent_views": [recent], "clients": clients, **rates, **counts, **changed,
    }  # fmt: skip


def two_looks() -> Picture:
    before = Look(0, {"a": answer("a", 100), "b": answer("b", 100), "c": None})
    now = Look(2 * SECOND_NS, {"a": answer("a", 300), "b": answer("b", 300, boot=2), "c": None})
    return picture(now, before)


def test_rates_are_taken_between_two_looks_at_the_same_life() -> None:
    found = two_looks()
    assert [daemon.messages_per_s for daemon in found.daemons] == [100.0, 9.0, 0]
    assert [daemon.running for daemon in found.daemons] == [True, True, False]
    assert found.receivers[0].messages_per_s == 100.0


def test_one_line_a_view_with_all_that_came_to_it_together() -> None:
    (line,) = two_looks().views
    assert (line.at, line.transitional, line.view) == (("a", "b"), ("a", "b"), "7.0")


def test_the_largest_groups_come_first() -> None:
    assert list(two_looks().groups) == ["hall", "room"]


@pytest.mark.parametrize(("columns", "rows"), [(60, 24), (80, 24), (140, 40), (60, 10), (40, 12)])
def test_the_screen_fits_the_terminal(columns: int, rows: int) -> None:
    console = Console(width=columns, height=rows, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(screen(two_looks(), columns, rows, "q ends"))
    plain = Text.from_ansi(capture.get()).plain
    assert all(len(line.rstrip()) <= columns for line in plain.splitlines())
    assert "down" in plain
    assert "makes" in plain or columns < 60
    codes = {code.partition("m")[0] for code in capture.get().split("\x1b[")[1:]}
    assert codes <= {"0", "1", "2", "1;31", "31", "2;31"}, "weight and red only"


def test_what_has_no_room_on_a_low_screen_is_counted() -> None:
    programs = answer("a", 1)
    one = programs["clients"]["sessions"][0]
    programs["clients"]["sessions"] = [one | {"process": f"p{number}@a:1.{number}"} for number in range(20)]
    programs["clients"]["session_count"] = 20
    programs["recent_views"] *= 8
    low = picture(Look(0, {"a": programs}), None)
    console = Console(width=80, height=16)
    with console.capture() as capture:
        console.print(screen(low, 80, 16))
    lines = capture.get().splitlines()
    assert len(lines) <= 16
    shown = sum(line.startswith("p") and "@a" in line for line in lines)
    assert any(line.startswith(f"program +{20 - shown}") for line in lines)


@pytest.mark.parametrize(("columns", "shown"), [(60, "loss: a member was not heard in ti…"), (80, "in time")])
def test_a_reason_without_room_ends_with_a_sign(columns: int, shown: str) -> None:
    assert shown in drawn(two_looks(), columns)


def test_long_lists_of_members_leave_room_for_the_reason() -> None:
    names = [f"daemon{number}" for number in range(9)]
    many = answer("a", 1)
    many["recent_views"][0] |= {"members": names, "transitional": names}
    text = drawn(picture(Look(0, {"a": many}), None), 60)
    assert "daemon0 daemon1…  daemon0 daemon1…  loss: a membe…" in text
    assert all(len(line) <= 60 for line in text.splitlines())


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
def test_many_daemons_in_a_view_do_not_squeeze_the_other_columns(columns: int) -> None:
    names = [daemon_name(rank) for rank in range(30)]
    shown = picture(Look(0, {name: answer(name, 1, members=names) for name in names}), None)
    heading, first = drawn(shown, columns).splitlines()[2:4]
    assert "…" not in heading
    assert heading.split()[-2:] == ["programs", "backlog"]
    assert first.split()[:2] == ["a", "op"]
    assert first.split()[-3:] == ["1", "2.0", "MB"]


def drawn(shown: Picture, columns: int) -> str:
    console = Console(width=columns, height=24)
    with console.capture() as capture:
        console.print(screen(shown, columns, 24))
    return capture.get()


def test_a_cluster_that_has_just_stopped_can_be_looked_at() -> None:
    text = drawn(picture(Look(2 * SECOND_NS, {"a": None, "b": None}), Look(0, {"a": answer("a", 1), "b": None})), 60)
    assert text.count("down") == 2


def test_a_daemon_that_does_not_work_is_not_hidden() -> None:
    answers = {name: answer(name, 1) for name in "abcdefghijklmnop"} | {"z": answer("z", 1, working=False)}
    shown = drawn(picture(Look(0, answers), None), 60)
    assert "\nz " in shown
    assert "\np " not in shown


def test_names_are_those_of_programs() -> None:
    assert name_of("p@a:1.101") == two_looks().receivers[0].name
