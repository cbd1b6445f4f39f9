"""What waits for sessions: whole frames, counted for each, and once for the daemon however many wait for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.protocol.dialects.entries import Entry
from covey.protocol.dialects.native import NATIVE, ViewsEntry
from covey.protocol.effects import Deliver
from covey.protocol.notices import DaemonSpoke, Difference, GroupSignalled, Run, Views
from covey.protocol.session.outbox import USER_BYTES, SessionOutbox, Total
from covey.protocol.wire.session import Splitter, encode_word, read_from_daemon
from covey.protocol.wire.words import Arrived, FromDaemon, GroupDifferences, GroupSignal
from tests.unit.protocol.builders import VIEW, bundle


def read(parts: tuple[bytes | memoryview, ...]) -> list[FromDaemon]:
    return [read_from_daemon(code, body) for code, body in Splitter(1 << 20).feed(b"".join(parts))]


def difference(stamp: int, *came: str) -> Difference:
    return Difference(VIEW, stamp, 0, came, (), (), "join", "")


# --- entries


def test_a_word_is_as_long_as_its_frame() -> None:
    entry = NATIVE.entry(GroupSignalled("room"))
    assert entry.parts() == (encode_word(GroupSignal("room")),)
    assert entry.size == len(entry.parts()[0])


def test_messages_are_as_long_as_their_frame_before_and_after_it_is_made() -> None:
    one = bundle(3, groups=("room", "hall"))
    entry = NATIVE.entry(Deliver(VIEW, one, (b"abc", b"defg")))
    before = entry.size
    assert sum(map(len, entry.parts())) == sum(map(len, entry.parts())) == before == entry.size
    [word] = read(entry.parts())
    assert isinstance(word, Arrived)
    assert (bytes(word.body), word.groups, word.stamp) == (b"abcdefg", ("room", "hall"), one.stamp)


@given(st.integers(1, 40), st.data())
def test_any_part_of_a_run_of_views_is_one_frame_as_long_as_it_said(count: int, data: st.DataObject) -> None:
    run = Run("room")
    for number in range(count):
        run.add(difference(number, f"p{number}@a:1.{number}"), {})
    start = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(start + 1, count))
    entry = NATIVE.entry(Views(run, start, stop))
    assert isinstance(entry, ViewsEntry)
    assert sum(map(len, entry.parts())) == entry.size
    assert read(entry.parts()) == [GroupDifferences("room", tuple(run.differences[start:stop]))]


def test_who_is_told_the_same_views_gets_the_same_bytes() -> None:
    run = Run("room")
    run.add(difference(1, "p1"), {})
    run.add(difference(2, "p2"), {})
    [one], [other] = (NATIVE.entry(Views(run, 0, 2)).parts() for _ in range(2))
    assert one is other


def test_a_small_slice_is_copied_and_a_large_one_is_not() -> None:
    packet = memoryview(bytes(1_000))
    small = NATIVE.entry(Deliver(VIEW, bundle(1), (packet[:499],))).parts()[1]
    large = NATIVE.entry(Deliver(VIEW, bundle(1), (packet[:500],))).parts()[1]
    assert isinstance(small, bytes)
    assert isinstance(large, memoryview)
    assert large.obj is packet.obj


# --- outboxes


def test_what_waits_for_several_counts_whole_for_each_and_once_for_all() -> None:
    total = Total()
    boxes, entry = [SessionOutbox(total) for _ in range(3)], Entry(DaemonSpoke(), 100, (bytes(100),))
    for box in boxes:
        box.put(entry, 0)
    assert [box.size for box in boxes] == [100] * 3
    assert total.size == entry.weight + 3 * USER_BYTES
    boxes[0].pull(1)
    boxes[1].clear()
    assert total.size == entry.weight + USER_BYTES
    boxes[2].pull(1)
    assert total.size == 0


def test_a_pull_gives_whole_frames_and_at_least_one() -> None:
    box = SessionOutbox(Total())
    for letter in (b"aaa", b"bbb", b"ccc"):
        box.put(Entry(DaemonSpoke(), 3, (letter,)), 0)
    assert box.pull(0) == [b"aaa"]
    assert box.pull(4) == [b"bbb", b"ccc"]
    assert box.pull(4) == []


def test_lag_is_that_of_the_oldest_and_span_that_to_the_newest() -> None:
    box = SessionOutbox(Total())
    assert (box.lag_us(9), box.span_us()) == (0, 0)
    for now_us in (1, 3, 8):
        box.put(Entry(DaemonSpoke(), 1, (b"x",)), now_us)
    assert (box.lag_us(10), box.span_us()) == (9, 7)
    box.pull(1)
    assert (box.lag_us(10), box.span_us()) == (7, 5)


OPERATION = st.tuples(st.sampled_from(("new", "same", "pull", "clear")), st.integers(0, 2), st.integers(0, 50))


@given(st.lists(OPERATION, max_size=40))
def test_sizes_are_right_whatever_happens(operations: list[tuple[str, int, int]]) -> None:
    total, entry = Total(), Entry(DaemonSpoke(), 7, (bytes(7),))
    boxes = [SessionOutbox(total) for _ in range(3)]
    for what, number, size in operations:
        if what in ("new", "same"):
            entry = Entry(DaemonSpoke(), size, (bytes(size),)) if what == "new" else entry
            boxes[number].put(entry, 0)
        elif what == "pull":
            boxes[number].pull(size)
        else:
            boxes[number].clear()
        for box in boxes:
            box.check()  # X1
        waiting = [one for box in boxes for one in box.entries()]
        assert total.size == sum(one.weight for one in set(waiting)) + USER_BYTES * len(waiting)  # X2


def test_a_small_message_does_not_keep_the_whole_read_that_it_came_in() -> None:
    read = bytes(60_000)
    one = bundle(1, payload=memoryview(read)[:100])
    entry = NATIVE.entry(Deliver(VIEW, one, (one.payload,)))
    notice = entry.notice
    assert isinstance(notice, Deliver)
    assert bytes(notice.bundle.payload) == bytes(100)
    assert not isinstance(notice.bundle.payload, memoryview)
    assert not any(isinstance(part, memoryview) for part in entry.parts())
