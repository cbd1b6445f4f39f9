"""What sessions have joined, on its way to strangers: in pages, in parts that fit, and put together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.ids import Ballot
from covey.protocol.effects import Stamped
from covey.protocol.groups.declared import Declared
from covey.protocol.groups.exchange import PAGE_BYTES, Collected, StayTables, batch_parts
from covey.protocol.values import Bundle, Kind, Place, Service, Stay
from covey.protocol.wire.bodies import sender_prefix
from tests.unit.protocol.builders import A, B

VIEW = Ballot(7, 0, 1)


class Book:
    """Joins and leaves as they are stamped, and the stays that they must leave."""

    def __init__(self) -> None:
        self.declared = Declared()
        self.stays: dict[tuple[int, str], Stay] = {}
        self._stamp = 0

    def on(self, kind: Kind, session: int, group: str = "") -> None:
        self._stamp += 1
        process = f"p{session}@a:1.{session}"
        payload, groups = sender_prefix(process), (group,) if kind is not Kind.DISCONNECT else ()
        stamp = self._stamp
        bundle = Bundle(0, stamp, stamp, A, session, 1, 1, 1, Service.AGREED, 0, 1, groups, payload, kind)
        self.declared.on_stamped(Stamped(VIEW, bundle, (payload,)))
        if kind is Kind.JOIN:
            self.stays.setdefault((session, group), Stay(session, process, group, Place(VIEW, stamp, 0)))
        elif kind is Kind.LEAVE:
            self.stays.pop((session, group), None)
        else:
            self.stays = {key: stay for key, stay in self.stays.items() if key[0] != session}


def many(count: int, length: int = 105) -> Book:
    book = Book()
    for number in range(count):
        book.on(Kind.JOIN, number % 10, f"{number:0{length}}")
    book.declared.check()
    return book


def received(book: Book, part_bytes: int) -> Collected:
    """All parts, handed over as they are asked for."""
    frozen = book.declared.frozen(part_bytes)
    collected = Collected(frozen.version, frozen.count)
    while wanted := collected.ask(batch_parts(part_bytes)):
        for number in reversed(wanted):
            part = frozen.part(number)
            assert 0 < len(part.data) <= part_bytes
            assert collected.add(number, *part)
            assert not collected.add(number, *part)
        assert collected.is_answered()
    return collected


def stays_of(collected: Collected) -> list[Stay]:
    return sorted(stay for page in collected.pages for stay in page)


# --- pages


CHANGE = st.tuples(
    st.sampled_from((Kind.JOIN, Kind.JOIN, Kind.JOIN, Kind.LEAVE, Kind.DISCONNECT)),
    st.integers(1, 5),
    st.text("äab\U0001f600", min_size=1, max_size=3).map(lambda text: text * 40),
)


@given(st.lists(CHANGE, max_size=60), st.integers(20, 3_000))
def test_the_parts_of_any_history_put_together_are_its_stays(
    changes: list[tuple[Kind, int, str]], part_bytes: int
) -> None:
    book = Book()
    for change in changes:
        book.on(*change)
        book.declared.check()
    assert len(book.declared) == len(book.stays)
    collected = received(book, part_bytes)
    assert collected.is_complete
    assert collected.problem is None
    assert stays_of(collected) == sorted(book.stays.values())


def test_many_stays_make_many_pages_of_bounded_size() -> None:
    collected = received(many(2_000), 1_300)
    assert len(collected.pages) > 5
    assert len(stays_of(collected)) == 2_000


def test_leaves_and_joins_do_not_leave_many_pages_that_are_almost_empty() -> None:
    book = many(1_000)
    for turn in range(1, 20):
        for number in range(1_000):
            book.on(Kind.LEAVE, number % 10, f"{number:0105}" if turn == 1 else f"{turn - 1} {number:0105}")
            book.on(Kind.JOIN, number % 10, f"{turn} {number:0105}")
    book.declared.check()
    assert len(received(book, 1_300).pages) <= 4 * len(received(many(1_000), 1_300).pages)


def test_nothing_joined_needs_no_part() -> None:
    frozen = Declared().frozen(1_300)
    assert frozen.count == 0
    collected = Collected(0, 0)
    assert collected.is_complete
    assert collected.ask(9) == ()
    assert collected.pages == []


def test_each_change_makes_another_version_and_nothing_else_does() -> None:
    book = Book()
    versions = [book.declared.version]
    for kind, group in (
        (Kind.JOIN, "a"),
        (Kind.JOIN, "a"),
        (Kind.LEAVE, "b"),
        (Kind.LEAVE, "a"),
        (Kind.DISCONNECT, ""),
    ):
        book.on(kind, 1, group)
        versions.append(book.declared.version)
    assert versions == [0, 1, 1, 1, 2, 2]


def test_a_page_of_another_size_than_noted_breaks_a_rule() -> None:
    book = many(3)
    next(iter(book.declared._pages.values())).size += 1
    with pytest.raises(AssertionError, match="D1"):
        book.declared.check()


def test_a_stay_that_no_page_has_breaks_a_rule() -> None:
    book = many(3)
    book.declared._page_of[7] = {"nowhere": 1}
    with pytest.raises(AssertionError, match="D2"):
        book.declared.check()


# --- parts as they come


def test_parts_are_asked_for_a_few_at_a_time() -> None:
    assert Collected(1, 100).ask(32) == tuple(range(32))


def test_what_has_come_is_not_asked_for_again() -> None:
    frozen = many(300).declared.frozen(1_300)
    collected = Collected(frozen.version, frozen.count)
    for number in (0, 2):
        collected.add(number, *frozen.part(number))
    assert collected.ask(3) == (1, 3, 4)
    assert not collected.is_answered()


def test_a_page_without_end_is_a_problem_and_keeps_no_memory() -> None:
    collected = Collected(1, 1_000)
    for number in range(1_000):
        if collected.problem is not None:
            break
        collected.add(number, bytes(1_300), ends_page=False)
    assert collected.problem is not None
    assert number * 1_300 <= PAGE_BYTES + 2 * 1_300


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91\x01"])
def test_a_page_that_is_none_is_a_problem(data: bytes) -> None:
    collected = Collected(1, 1)
    collected.add(0, data, ends_page=True)
    assert collected.problem is not None


# --- across attempts


def test_what_has_come_is_kept_from_one_attempt_to_the_next() -> None:
    frozen, tables = many(300).declared.frozen(1_300), StayTables()
    for number in range(5):
        tables.of(B, frozen.version, frozen.count).add(number, *frozen.part(number))
    assert tables.of(B, frozen.version, frozen.count).ask(1) == (5,)


def test_another_life_or_version_begins_anew() -> None:
    frozen, tables = many(300).declared.frozen(1_300), StayTables()
    first = tables.of(B, frozen.version, frozen.count)
    assert tables.of(B, frozen.version, frozen.count) is first
    assert tables.of(B, frozen.version + 1, frozen.count) is not first
    later = tables.of(B, frozen.version, frozen.count)
    assert tables.of(B._replace(boot=B.boot + 1), frozen.version, frozen.count) is not later


def test_a_problem_is_forgotten_in_the_next_attempt() -> None:
    tables = StayTables()
    tables.of(B, 1, 1).add(0, b"\xc1", ends_page=True)
    assert tables.of(B, 1, 1).problem is None


def test_a_new_view_needs_no_tables() -> None:
    tables = StayTables()
    first = tables.of(B, 1, 1)
    tables.clear()
    assert tables.of(B, 1, 1) is not first
