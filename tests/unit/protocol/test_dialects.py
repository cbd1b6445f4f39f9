"""What is told has no dialect: each makes its own bytes of it, once, from differences or from whole lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.ids import Life
from covey.protocol.dialects.dialect import Shared
from covey.protocol.dialects.native import BLOCK, NATIVE
from covey.protocol.notices import GroupSignalled, GrowingRoll, Listed, Run, Views, WholeView
from covey.protocol.values import Kind
from covey.protocol.wire.session import Splitter, read_from_daemon
from covey.protocol.wire.words import GroupView
from tests.unit.protocol.builders import VIEW, A, B
from tests.unit.protocol.grouphouse import House
from tests.unit.protocol.line_dialect import LINES, lines_of


def test_an_entry_is_made_once_for_each_dialect() -> None:
    shared = Shared(GroupSignalled("room"))
    assert shared.entry(NATIVE) is shared.entry(NATIVE)
    assert shared.entry(LINES) is shared.entry(LINES)
    assert shared.entry(LINES) is not shared.entry(NATIVE)


def test_what_waits_can_be_looked_at() -> None:
    assert NATIVE.entry(GroupSignalled("room")).notice == GroupSignalled("room")


CHANGES = st.lists(
    st.tuples(
        st.sampled_from((Kind.JOIN, Kind.JOIN, Kind.LEAVE, Kind.DISCONNECT)),
        st.sampled_from((A, B)),
        st.integers(1, 4),
    ),
    max_size=25,
)


@given(CHANGES, st.integers(1, 4))
def test_lists_and_differences_tell_the_same(changes: list[tuple[Kind, Life, int]], together: int) -> None:
    """Sessions of both dialects in one group: what one is told in differences the other is told in lists."""
    house = House()
    known: dict[int, set[str]] = {}
    effects = [
        house.effect(kind, life, one, *(("room",) if kind is not Kind.DISCONNECT else ()))
        for kind, life, one in changes
    ]
    for at in range(0, len(effects), together):
        run = [one for one in effects[at : at + together] if one.bundle.kind is not Kind.DISCONNECT]
        rest = [one for one in effects[at : at + together] if one.bundle.kind is Kind.DISCONNECT]
        for some in ([run] if run else []) + [[one] for one in rest]:
            for out in filter(None, house.groups.changed(some)):
                told = [set(line.split()[2:]) for line in lines_of(out.what)]
                for session in out.sessions:
                    if isinstance(out.what, WholeView):
                        known[session] = set(out.what.names())
                        assert told == [known[session]]
                    elif isinstance(out.what, Views):
                        views = []
                        for one in out.what.differences:
                            known[session] = (known[session] - set(one.gone)) | set(one.came)
                            views.append(known[session])
                        assert told == views


@given(st.integers(32, 3 * BLOCK), st.integers(0, 3 * BLOCK), st.data())
def test_the_members_of_a_roll_at_any_time(first: int, more: int, data: st.DataObject) -> None:
    names = [f"p{number}@a:1.{number}" for number in range(first + more)]
    roll = GrowingRoll(names[:first])
    for upto in (first, first + more, data.draw(st.integers(first, first + more))):
        roll.names += names[len(roll.names) : max(upto, len(roll.names))]
        entry = NATIVE.entry(WholeView("room", VIEW, 5, 0, Listed(roll, upto), ("x",), "join", "x"))
        data_bytes = b"".join(entry.parts())
        assert len(data_bytes) == entry.size
        [frame] = Splitter(1 << 24).feed(data_bytes)
        word = read_from_daemon(*frame)
        assert isinstance(word, GroupView)
        assert list(word.members) == names[:upto]


def test_a_run_knows_its_views_as_lists_at_every_point() -> None:
    assert Views(Run("room"), 0, 0).lists() == []
