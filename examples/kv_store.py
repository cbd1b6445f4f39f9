"""A table that every member holds: written by safe messages, handed to newcomers, merged after a partition.

    python -m examples.kv_store ann
    python -m examples.kv_store ben    # in another terminal

Type `put KEY VALUE`, `del KEY`, `get KEY`, `show`. Both parts of a partition go on working. When they meet, the last
write of each key wins, and each write that was lost to another one unseen is reported.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import msgspec

import covey
from examples.replica import Processes, Replica
from examples.terminal import lines, run, until_one_ends

GROUP = "table"
HELP = "type: put KEY VALUE | del KEY | get KEY | show"


class Put(msgspec.Struct, frozen=True):
    key: str
    value: str | None
    """None: it is gone."""


class Entry(msgspec.Struct, frozen=True):
    value: str | None
    """None: it is gone. That must be remembered: a part that has not heard of it still has a value."""
    place: tuple[int, ...]
    """Of the write in the agreed order. No two writes have the same."""
    writer: str
    seen_by: Processes


class Conflict(msgspec.Struct, frozen=True):
    """Two writes of a key, neither of whose parts had seen the other."""

    key: str
    kept: Entry
    lost: Entry


Table = dict[str, Entry]


def place_of(message: covey.Message) -> tuple[int, ...]:
    """Stamps are close to the time, and grow along the stream of every member; the rest makes the place unique."""
    assert message.order is not None, "safe messages have one"
    order = message.order
    return (order.stamp, order.site, order.index, *order.view)


def merged(key: str, entries: Sequence[Entry], seen_by: Processes) -> tuple[Entry, list[Conflict]]:
    """The last write wins; it was made in ignorance of another if nobody had seen both."""
    kept = max(entries, key=lambda entry: entry.place)
    others = {entry.place: entry for entry in entries if entry.place != kept.place}
    conflicts = [Conflict(key, kept, lost) for lost in others.values() if lost.seen_by.isdisjoint(kept.seen_by)]
    known_to = seen_by.union(*(entry.seen_by for entry in entries if entry.place == kept.place))
    return msgspec.structs.replace(kept, seen_by=known_to), conflicts


class Store(Replica):
    def __init__(self, session: covey.Session) -> None:
        super().__init__(session, GROUP)
        self.table: Table = {}
        self.conflicts: list[Conflict] = []

    def get(self, key: str) -> str | None:
        return self.table[key].value if key in self.table else None

    def items(self) -> dict[str, str]:
        return {key: entry.value for key, entry in sorted(self.table.items()) if entry.value is not None}

    async def put(self, key: str, value: str | None) -> None:
        """Safe: what we see of our write is seen by all members of the view, or all who move on with us."""
        await self.session.send(self.group, msgspec.json.encode(Put(key, value)), covey.SAFE)

    # --- the state

    def apply(self, message: covey.Message, seen_by: Processes) -> None:
        put = msgspec.json.decode(message.payload, type=Put)
        self.table[put.key] = Entry(put.value, place_of(message), message.sender, seen_by)

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.table)

    def merge(self, states: Sequence[bytes], seen_by: Processes) -> None:
        tables = [msgspec.msgpack.decode(state, type=Table) for state in states]
        self.table = {}
        for key in sorted({key for table in tables for key in table}):
            entries = [table[key] for table in tables if key in table]
            self.table[key], conflicts = merged(key, entries, seen_by)
            self.conflicts += conflicts


class Shell(Store):
    """The store at a keyboard: everything that happens to it is shown."""

    def apply(self, message: covey.Message, seen_by: Processes) -> None:
        super().apply(message, seen_by)
        put = msgspec.json.decode(message.payload, type=Put)
        print(f"{put.key} = {put.value} (by {message.sender})")

    def merge(self, states: Sequence[bytes], seen_by: Processes) -> None:
        known = len(self.conflicts)
        super().merge(states, seen_by)
        print(f"{len(states)} states merged: {len(self.items())} keys")
        for one in self.conflicts[known:]:
            print(
                f"! {one.key}: kept {one.kept.value} by {one.kept.writer}, lost {one.lost.value} by {one.lost.writer}"
            )

    async def on_event(self, event: covey.Event) -> None:
        if isinstance(event, covey.View):
            print(f"members: {' '.join(event.members)} ({event.cause}); with us: {' '.join(event.transitional)}")
        await super().on_event(event)

    async def obey(self) -> None:
        async for line in lines():
            try:
                await self.on_line(line)
            except covey.SessionOverError as error:
                print(f"! {error}")

    async def on_line(self, line: str) -> None:
        match line.split(maxsplit=2):
            case ["put", key, value]:
                await self.put(key, value)
            case ["del", key]:
                await self.put(key, None)
            case ["get", key]:
                print(self.get(key))
            case ["show"]:
                print("\n".join(f"{key} = {value}" for key, value in self.items().items()) or "(empty)")
            case [_, *_]:
                print(HELP)


async def shell(name: str, address: str | None) -> None:
    async with covey.connect(name, address, reconnect=True) as session:
        program = Shell(session)
        print(HELP)
        await until_one_ends(program.run(), program.obey())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.kv_store", description="One replica of a table.")
    parser.add_argument("name", help="what others call you")
    parser.add_argument("--address", help="a daemon: its name, unix:/path or tcp://host:port; the nearest if not given")
    arguments = parser.parse_args()
    run(shell(arguments.name, arguments.address))


if __name__ == "__main__":
    main()
