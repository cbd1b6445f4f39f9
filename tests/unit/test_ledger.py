"""The replicated ledger of the demonstration: equal among those who move together, whole again after a merge."""

from __future__ import annotations

from covey.lab.demo.ledger import Ledger, LedgerEntry, LedgerState


class House:
    """Ledgers, and a group that delivers the same to everyone of one side."""

    def __init__(self, *names: str) -> None:
        self.ledgers = {name: Ledger(name) for name in names}
        self._views = 0

    def view(self, *sides: str) -> None:
        """A view of all these; those of one word came together. States go around at once."""
        self._views += 1
        members = [name for side in sides for name in side]
        states = [
            self.ledgers[name].on_view(f"v{self._views}", members, side) for side in sides for name in side
        ]  # fmt: skip
        self.pending = [state for state in states if state is not None]
        self.members = members

    def exchange(self) -> None:
        for state in self.pending:
            for name in self.members:
                self.ledgers[name].on_state(state)
        self.pending = []

    def book(self, to: str, *ids: str) -> None:
        for entry in ids:
            for name in to:
                self.ledgers[name].on_entry(LedgerEntry(entry, 1))

    def ids(self, name: str) -> list[str]:
        return [entry.id for entry in self.ledgers[name].entries]


def test_who_moves_together_exchanges_nothing() -> None:
    house = House("a", "b", "c")
    house.view("a", "b", "c")
    house.exchange()
    house.book("abc", "1")
    house.view("ab")
    assert house.pending == []
    assert house.ids("a") == house.ids("b") == ["1"]


def test_after_a_merge_everyone_has_what_both_sides_booked() -> None:
    house = House("a", "b", "c", "d")
    house.view("a", "b", "c", "d")
    house.exchange()
    house.book("abcd", "1")
    house.view("ab")
    house.view("cd")
    house.book("ab", "2", "3")
    house.book("cd", "4")
    assert house.ledgers["a"].digest() == house.ledgers["b"].digest() != house.ledgers["c"].digest()
    house.view("ab", "cd")
    assert [state.equals for state in house.pending] == [("a", "b"), ("c", "d")]
    house.book("abcd", "5")
    house.exchange()
    assert all(house.ids(name) == ["1", "2", "3", "4", "5"] for name in "abcd")
    assert all(ledger.is_whole and ledger.balance == 5 for ledger in house.ledgers.values())


def test_a_merge_that_is_broken_off_leaves_the_sides_as_they_were() -> None:
    house = House("a", "b", "c", "d")
    house.view("a", "b")
    house.exchange()
    house.view("c", "d")
    house.exchange()
    house.book("ab", "1")
    house.book("cd", "2")
    house.view("ab", "cd")
    house.book("abcd", "3")
    lost = house.pending
    house.view("abcd")  # They moved together, but had not put their states together yet.
    assert [state.equals for state in house.pending] == [("a", "b"), ("c", "d")]
    for state in lost:
        house.ledgers["a"].on_state(state)
    assert not house.ledgers["a"].is_whole, "a state of another view does not count"
    house.exchange()
    assert all(house.ids(name) == ["1", "3", "2"] for name in "abcd")


def test_a_newcomer_gets_everything_and_brings_nothing() -> None:
    house = House("a", "b")
    house.view("a")
    house.book("a", "1", "2")
    house.view("a", "b")
    assert house.pending == [
        LedgerState("v2", ("a",), (LedgerEntry("1", 1), LedgerEntry("2", 1))),
        LedgerState("v2", ("b",), ()),
    ]
    house.exchange()
    assert house.ids("b") == ["1", "2"]
