"""Views as values: what a program may do with them, however they came."""

from __future__ import annotations

import copy
import pickle

import pytest

import covey
from covey.client.events import Disconnected, Order, View
from covey.client.protocol import ClientProtocol
from covey.client.recording import Recording
from covey.client.roll import name_of
from covey.client.view import FIELDS, next_view, view_of
from covey.errors import FrameError
from covey.protocol.notices import NET, Difference
from covey.protocol.wire.session import difference_piece, differences_frame, encode_word
from covey.protocol.wire.words import GroupDifferences, GroupLeft, GroupView
from covey.trace.client import ClientRecorder
from covey.trace.record import Row
from tests.unit.client.fake_daemon import BALLOT, welcome, welcomed

ME, BOB, ZOE = "alice@a:7.3", "bob@b:2.9", "zoe@a:7.9"


def whole(*members: str, stamp: int = 1_100) -> GroupView:
    return GroupView("room", BALLOT, stamp, 1, members, (ME,), "join", BOB)


def difference(
    stamp: int, came: tuple[str, ...] = (), gone: tuple[str, ...] = (), apart: tuple[str, ...] = (), cause: str = "join"
) -> Difference:
    site = NET[1] if stamp == NET[0] else 1
    return Difference(BALLOT, stamp, site, came, gone, apart, cause, "")


def changed(*differences: Difference, group: str = "room") -> bytes:
    return differences_frame(group, [difference_piece(one) for one in differences])


# --- differences


def test_each_change_is_a_view_of_its_own() -> None:
    client = welcomed()
    client.join("room")
    client.feed(encode_word(whole(ME)))
    views = client.feed(
        changed(
            difference(1_200, came=(ZOE, BOB)),
            difference(1_300, gone=(BOB,), cause="leave"),
            difference(NET[0], gone=(), came=(BOB,), apart=(ZOE,), cause="network"),
        )
    )
    told = [(one.id, one.members, one.transitional, one.detail) for one in views if isinstance(one, View)]
    assert told == [
        ("7.0.3/1200.1", ("alice@a", "bob@b", "zoe@a"), ("alice@a",), f"{ZOE} {BOB}"),
        ("7.0.3/1300.1", ("alice@a", "zoe@a"), ("alice@a", "zoe@a"), BOB),
        ("7.0.3/net", ("alice@a", "bob@b", "zoe@a"), ("alice@a",), BOB),
    ]
    assert [one.order for one in views if isinstance(one, View)] == [
        Order(BALLOT, 1_200, 1),
        Order(BALLOT, 1_300, 1),
        None,
    ]
    assert client.views == {"room": "7.0.3/net"}
    client.check()


def test_a_difference_is_the_same_view_as_the_whole_one() -> None:
    (told,) = (event for event in told_whole(whole(ME), whole(ME, ZOE, stamp=1_200))[1:])
    client = welcomed()
    client.feed(encode_word(whole(ME)))
    (made,) = client.feed(changed(Difference(BALLOT, 1_200, 1, (ZOE,), (), (), "join", BOB)))
    assert made == told
    assert repr(made) == repr(told)
    assert hash(made) == hash(told)


def told_whole(*words: GroupView) -> list[covey.Event]:
    return welcomed().feed(b"".join(map(encode_word, words)))


def test_changes_of_a_group_without_a_view_end_the_session() -> None:
    client = welcomed()
    client.feed(encode_word(whole(ME)))
    (event,) = client.feed(changed(difference(1_200, came=(BOB,)), group="hall"))
    assert isinstance(event, Disconnected)
    assert event.reason == "the daemon broke the protocol: changes of 'hall', of which we have no view"
    client.check()


def test_leaving_forgets_who_was_there_and_coming_back_begins_with_a_whole_view() -> None:
    client = welcomed()
    client.join("room")
    client.feed(encode_word(whole(ME, BOB)))
    client.leave("room")
    client.feed(encode_word(GroupLeft("room", BALLOT, 1_300, 1)))
    client.check()
    client.join("room")
    client.feed(encode_word(whole(ME, stamp=1_400)))
    (view,) = client.feed(changed(difference(1_500, came=(ZOE,))))
    assert isinstance(view, View)
    assert view.members == ("alice@a", "zoe@a")


def test_a_whole_view_may_come_between_differences() -> None:
    client = welcomed()
    client.feed(
        encode_word(whole(ME)) + changed(difference(1_200, came=(BOB,))) + encode_word(whole(ME, ZOE, stamp=1_300))
    )
    (view,) = client.feed(changed(difference(1_400, gone=(ZOE,))))
    assert isinstance(view, View)
    assert view.processes == (ME,)


def test_no_changes_are_no_views() -> None:
    client = welcomed()
    client.feed(encode_word(whole(ME)))
    assert client.feed(encode_word(GroupDifferences("room", ()))) == []
    assert client.views == {"room": "7.0.3/1100.1"}


def test_nothing_is_listed_before_somebody_looks() -> None:
    client = welcomed()
    client.feed(encode_word(whole(ME, *(f"p{number}@a:7.{number}" for number in range(100)))))
    (view,) = client.feed(changed(difference(1_200, came=(BOB,))))
    assert isinstance(view, View)
    assert (view._roll.is_made, view._with_us.is_made) == (False, False)
    assert len(view.transitional) == 101
    assert len(view.members) == 102
    assert (view._roll.is_made, view._with_us.is_made) == (True, True)


def test_recorded_views_name_everybody() -> None:
    rows: list[Row] = []
    client = ClientProtocol("alice", observer=Recording(ClientRecorder("live", rows.append)))
    client.feed(encode_word(welcome()) + encode_word(whole(ME)) + changed(difference(1_200, came=(BOB,))))
    assert [(row.event, row.members, row.transitional) for row in rows[1:]] == [
        ("view", (ME,), (ME,)),
        ("view", (ME, BOB), (ME,)),
    ]


# --- values


def view(*members: str, id: str = "1.0.1/7.0") -> View:  # noqa: A002 - as the field
    names = tuple(map(name_of, members))
    return View("room", id, names, names[:1], "join", "", members, members[:1], None, (1, 0, 1, 7, 0))


def test_views_compare_by_value() -> None:
    assert view(ME, BOB) == view(ME, BOB)
    assert len({view(ME, BOB), view(ME, BOB), view(ME)}) == 2
    assert view(ME) != view(ME, id="1.0.1/8.0")
    assert view(ME) != "a view"


def test_a_view_matches_by_name_and_by_place() -> None:
    match view(ME, BOB):
        case covey.View("room", _, members, transitional=(one,)):
            assert (members, one) == (("alice@a", "bob@b"), "alice@a")
        case _:
            pytest.fail("no match")
    assert View.__match_args__ == FIELDS


def test_a_view_does_not_change() -> None:
    one = view(ME)
    for name in ("members", "group", "_roll", "other"):
        with pytest.raises(AttributeError):
            setattr(one, name, ())
        with pytest.raises(AttributeError):
            delattr(one, name)


def test_a_view_can_be_copied_and_stored_and_shows_all_of_itself() -> None:
    first, roll = view_of(whole(ME, BOB))
    second, _ = next_view("room", roll, difference(1_200, came=(ZOE,)))
    for one in (first, second):
        assert copy.copy(one) == copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
        assert eval(repr(one), {"View": View, "Order": Order, "Ballot": type(BALLOT)}) == one
    assert repr(view(ME)) == (
        "View(group='room', id='1.0.1/7.0', members=('alice@a',), transitional=('alice@a',), cause='join', detail='', "
        "processes=('alice@a:7.3',), transitional_processes=('alice@a:7.3',), order=None, rank=(1, 0, 1, 7, 0))"
    )


def test_a_malformed_frame_of_changes_ends_the_session() -> None:
    client = welcomed()
    client.feed(encode_word(whole(ME)))
    (event,) = client.feed(differences_frame("room", [b"\x90"]))
    assert isinstance(event, Disconnected)
    assert FrameError("malformed frame").reason in event.reason
