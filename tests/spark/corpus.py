"""Many small traces, good and bad: those of imaginary clusters that keep every promise, and the same with one damage.

In:   a number of seeds.
Out:  rows by run; each run is one trace, and its name says how it was made.

A damage is drawn blindly: a row is lost, repeated, moved or told wrong. Most break some guarantee, some break none, and
nobody knows beforehand which: that is for three opinions to agree on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from covey.trace.record import SERVICES, Row
from tests.unit.checkers.builder import renumbered
from tests.unit.checkers.clients.ideal import IdealClients
from tests.unit.checkers.ideal import IdealRun

Rows = list[Row]
Damage = Callable[[Rows, random.Random], Rows]

MESSAGES = ("send", "deliver", "discard")


def corpus(seeds: range) -> Iterator[tuple[str, Rows]]:
    """For each seed a good trace, and the same trace with each damage done to a row of its own choice."""
    for seed in seeds:
        good = _good(seed)
        yield f"{seed} good", _named(good, f"{seed} good")
        for name, damage in DAMAGES.items():
            run = f"{seed} {name}"
            chance = random.Random(run)
            yield run, _named(renumbered(damage(list(good), chance)), run)


def _good(seed: int) -> Rows:
    if seed % 2:
        return IdealClients(seed, daemons=2 + seed % 3, steps=12 + seed % 10).world.rows
    return IdealRun(seed, daemons=2 + seed % 4, steps=3 + seed % 3, batch=3).trace.rows


def _named(rows: Rows, run: str) -> Rows:
    return [msgspec.structs.replace(row, run=run) for row in rows]


# --------------------------------------------------------------------------------------------------------------- damage


def _pick(rows: Rows, chance: random.Random, *events: str) -> int:
    fitting = [at for at, row in enumerate(rows) if not events or row.event in events]
    return chance.choice(fitting) if fitting else chance.randrange(len(rows))


def _lost_of(service: str) -> Damage:
    """A delivery of this service is lost, at a client if there is one."""

    def damage(rows: Rows, chance: random.Random) -> Rows:
        fitting = [at for at, row in enumerate(rows) if (row.event, row.service) == ("deliver", service)]
        of_clients = [at for at in fitting if rows[at].level == "C"]
        if fitting:
            del rows[chance.choice(of_clients or fitting)]
        return rows

    return damage


def _repeated_unreliable(rows: Rows, chance: random.Random) -> Rows:
    fitting = [at for at, row in enumerate(rows) if (row.event, row.service) == ("deliver", "unreliable")]
    of_clients = [at for at in fitting if rows[at].level == "C"]
    if fitting:
        at = chance.choice(of_clients or fitting)
        rows.insert(at + 1, rows[at])
    return rows


def _overtaking(rows: Rows, chance: random.Random) -> Rows:
    """A fifo delivery comes before the last causal, agreed or safe one of its session, where there is one."""
    pairs = [
        (at, late)
        for at, early in enumerate(rows)
        for late in range(at + 1, len(rows))
        if early.event == rows[late].event == "deliver"
        and (early.process, early.sender) == (rows[late].process, rows[late].sender)
        and (early.level, rows[late].service) == (rows[late].level, "fifo")
        and early.service in SERVICES[3:]
    ]
    of_clients = [pair for pair in pairs if rows[pair[0]].level == "C"]
    if pairs:
        at, late = chance.choice(of_clients or pairs)
        rows.insert(at, rows.pop(late))
    return rows


def _circle(weakest: bool) -> Damage:
    """Each of two processes, clients if possible, delivers what the other one sends before it sends itself."""

    def damage(rows: Rows, chance: random.Random) -> Rows:
        sends = {row.message: row for row in rows if row.event == "send"}
        heard = {
            (row.process, sends[row.message].process): row
            for row in rows
            if row.event == "deliver" and row.message in sends and (row.service == "unreliable") == weakest
        }
        pairs = [pair for pair in heard if pair[0] < pair[1] and pair[::-1] in heard]
        of_clients = [pair for pair in pairs if heard[pair].level == "C"]
        if pairs:
            one, other = chance.choice(of_clients or pairs)
            for pair in ((one, other), (other, one)):
                rows.remove(heard[pair])
                rows.insert(rows.index(sends[heard[pair[::-1]].message]), heard[pair])
        return rows

    return damage


def _earlier_session(row: Row, rows: Rows, chance: random.Random) -> tuple[str, ...]:
    """One more member: another session of one that is there."""
    names = [name for name in row.members if "." in name]
    return tuple(sorted([*row.members, f"{chance.choice(names)}9"])) if names else row.members


def _lost(*events: str) -> Damage:
    def damage(rows: Rows, chance: random.Random) -> Rows:
        del rows[_pick(rows, chance, *events)]
        return rows

    return damage


def _repeated(rows: Rows, chance: random.Random) -> Rows:
    at = _pick(rows, chance, "deliver", "send", "transitional")
    rows.insert(_later(rows, at, chance), rows[at])
    return rows


def _moved(*events: str) -> Damage:
    """A row comes later, or earlier, than it did, at its own process."""

    def damage(rows: Rows, chance: random.Random) -> Rows:
        at = _pick(rows, chance, *events)
        row = rows.pop(at)
        mine = [other for other, one in enumerate(rows) if (one.process, one.level) == (row.process, row.level)]
        near = [other for other in mine if abs(other - at) < 60] or [at]
        rows.insert(min(chance.choice(near) + chance.randrange(2), len(rows)), row)
        return rows

    return damage


def _later(rows: Rows, at: int, chance: random.Random) -> int:
    mine = [other for other in range(at, len(rows)) if rows[other].process == rows[at].process]
    return chance.choice(mine) + 1


def _told(events: tuple[str, ...], change: Callable[[Row, Rows, random.Random], dict[str, Any]]) -> Damage:
    """A row says something else than what happened."""

    def damage(rows: Rows, chance: random.Random) -> Rows:
        at = _pick(rows, chance, *events)
        rows[at] = msgspec.structs.replace(rows[at], **change(rows[at], rows, chance))
        return rows

    return damage


def _other(rows: Rows, chance: random.Random, column: str, row: Row) -> Any:
    """The value that another row of this level has there."""
    values = {getattr(one, column) for one in rows if one.level == row.level} - {getattr(row, column), None, ()}
    return chance.choice(sorted(values)) if values else getattr(row, column)


def _strange_view(row: Row, rows: Rows, chance: random.Random) -> str | None:
    """The id of a view that this process never installed: one that came back could be read in two ways."""
    own = {one.view_new for one in rows if one.process == row.process}
    strange = sorted({one.view_new for one in rows if one.level == row.level and one.view_new} - own)
    return chance.choice([*strange, "v99"])


def _less(names: tuple[str, ...], chance: random.Random) -> tuple[str, ...]:
    kept = list(names)
    if kept:
        kept.remove(chance.choice(kept))
    return tuple(kept)


def _more(row: Row, rows: Rows, names: tuple[str, ...], chance: random.Random) -> tuple[str, ...]:
    others = sorted({one.process for one in rows if one.level == row.level} - set(names))
    return tuple(sorted([*names, chance.choice(others)])) if others else names


DAMAGES: dict[str, Damage] = {
    "lost delivery": _lost("deliver", "discard"),
    "lost safe delivery": _lost_of("safe"),
    "lost fifo delivery": _lost_of("fifo"),
    "lost reliable delivery": _lost_of("reliable"),
    "fifo too early": _overtaking,
    "unreliable repeated": _repeated_unreliable,
    "circle": _circle(weakest=False),
    "circle of unreliable ones": _circle(weakest=True),
    "a name twice": _told(("view",), lambda row, rows, chance: {"members": _earlier_session(row, rows, chance)}),
    "lost send": _lost("send"),
    "lost view": _lost("view"),
    "lost signal": _lost("transitional"),
    "lost leave": _lost("self_leave", "leave", "join"),
    "lost end": _lost("end", "crash", "disconnect", "stop", "calm"),
    "any row lost": _lost(),
    "repeated": _repeated,
    "moved delivery": _moved("deliver"),
    "moved send": _moved("send"),
    "moved signal": _moved("transitional"),
    "moved view": _moved("view"),
    "another digest": _told(("deliver",), lambda row, rows, chance: {"digest": (row.digest or 0) + 1}),
    "another service": _told(("deliver",), lambda row, rows, chance: {"service": chance.choice(SERVICES)}),
    "sent as another service": _told(("send",), lambda row, rows, chance: {"service": chance.choice(SERVICES)}),
    "another stamp": _told(
        ("deliver", "send"),
        lambda row, rows, chance: {"order_stamp": row.order_stamp and row.order_stamp + chance.choice([-3, -1, 1, 3])},
    ),
    "another order view": _told(
        MESSAGES, lambda row, rows, chance: {"order_view": _other(rows, chance, "order_view", row)}
    ),
    "another view named": _told(
        ("deliver", "send", "transitional"), lambda row, rows, chance: {"view": _other(rows, chance, "view", row)}
    ),
    "another view id": _told(("view",), lambda row, rows, chance: {"view_new": _strange_view(row, rows, chance)}),
    "another rank": _told(("view",), lambda row, rows, chance: {"view_rank": _other(rows, chance, "view_rank", row)}),
    "fewer members": _told(("view",), lambda row, rows, chance: {"members": _less(row.members, chance)}),
    "more members": _told(("view",), lambda row, rows, chance: {"members": _more(row, rows, row.members, chance)}),
    "a smaller set": _told(("view",), lambda row, rows, chance: {"transitional": _less(row.transitional, chance)}),
    "a larger set": _told(
        ("view",), lambda row, rows, chance: {"transitional": _more(row, rows, row.transitional, chance)}
    ),
    "another cause": _told(("view",), lambda row, rows, chance: {"cause": _other(rows, chance, "cause", row)}),
    "another connected set": _told(("calm",), lambda row, rows, chance: {"members": _less(row.members, chance)}),
    "fewer groups": _told(MESSAGES, lambda row, rows, chance: {"groups": row.groups[1:], "views": row.views[1:]}),
    "a place not told": _told(("self_leave",), lambda row, rows, chance: {"order_stamp": None}),
}
