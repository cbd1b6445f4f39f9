"""Good traces with one thing wrong: rows of clients found, removed, changed, moved.

In:   the rows of a World, and what to do to them.
Out:  other rows, numbered afresh, and which guarantees the clients break in them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from covey.guarantees.checkers import Violation
from covey.trace.record import Row
from tests.unit.checkers.builder import renumbered, verdicts
from tests.unit.checkers.clients.world import World


def trio(*groups: str) -> World:
    """Three daemons with one client each, all of them members of the groups."""
    world = World("a b c")
    for name, daemon in (("x", "a"), ("y", "b"), ("z", "c")):
        world.connect(name, daemon)
        for group in groups or ("g",):
            world.join(name, group)
            world.flow()
    return world


def rows_of(world: World, name: str, **columns: Any) -> list[Row]:
    """The rows of one client that have these values, in their order."""
    client = next(client for client in reversed(world.all_clients) if client.name.startswith(f"{name}@"))
    mine = (row for row in world.client_rows if row.process == client.process)
    return [row for row in mine if all(getattr(row, column) == value for column, value in columns.items())]


def row_of(world: World, name: str, **columns: Any) -> Row:
    """The only such row."""
    (row,) = rows_of(world, name, **columns)
    return row


def without(world: World, *victims: Row) -> list[Row]:
    return renumbered([row for row in world.rows if row not in victims])


def changed(world: World, victim: Row, **columns: Any) -> list[Row]:
    return [msgspec.structs.replace(row, **columns) if row is victim else row for row in world.rows]


def moved(world: World, victim: Row, before: Row | None, **columns: Any) -> list[Row]:
    """The row taken out and put before another one of its process, or last, perhaps with other columns."""
    rows = [row for row in world.rows if row is not victim]
    at = next((i for i, row in enumerate(rows) if row is before), len(rows))
    rows.insert(at, msgspec.structs.replace(victim, **columns))
    return renumbered(rows)


def repeated(world: World, row: Row, before: Row | None = None, **columns: Any) -> list[Row]:
    """The row once more, before another one or last, perhaps with other columns."""
    rows = list(world.rows)
    at = next((i for i, other in enumerate(rows) if other is before), len(rows))
    rows.insert(at, msgspec.structs.replace(row, **columns))
    return renumbered(rows)


def violations(rows: list[Row]) -> list[Violation]:
    return [violation for verdict in verdicts(rows).values() for violation in verdict.violations]


def broken(rows: list[Row]) -> set[str]:
    """The guarantees that clients break; daemons must break none."""
    found = violations(rows)
    assert all("@" in violation.process for violation in found), found
    return {violation.guarantee for violation in found}


def assert_good(world: World, *tested: str) -> None:
    """Nothing is violated, and these guarantees had something to say about clients."""
    assert violations(world.rows) == []
    by_all, by_daemons = verdicts(world.rows), verdicts(world.daemons.rows)
    assert [one for one in tested if by_all[one].premises <= by_daemons[one].premises] == []
