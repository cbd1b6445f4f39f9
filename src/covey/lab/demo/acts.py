"""The demonstration, act by act: what is shown, why it matters, what is done, and which views come of it.

In:        a local cluster of a, b, c and d; the programs.
Out:       values to show: a text before each act, then views, then what the programs have.
Not here:  how they are shown (cli/demo.py), judgement of the trace (guarantees/checkers).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from covey.drivers.live.events import DaemonView, GroupViewed
from covey.lab.cluster import LocalCluster

from .troupe import Role, Sides, Troupe

DAEMONS: Final = "daemons"
"""Stands where the name of a group would, for views of daemons."""

GROUPS: Final = ("euros", "points")
ROLES: Final = (
    Role("anna", "a", ("euros",), "b"),
    Role("ben", "b", ("euros", "points"), "a"),
    Role("carl", "c", ("euros",), "d"),
    Role("dora", "d", ("euros", "points"), "c"),
    Role("eve", "a", ("points",), "b"),
)


class ActStep(msgspec.Struct, frozen=True, tag_field="kind", tag="step"):
    """What is about to be shown, and why it matters. `since` says what the times of its views are counted from."""

    act: str
    text: str
    since: str = ""


class ShownView(msgspec.Struct, frozen=True, tag_field="kind", tag="view"):
    """One view, as those who moved into it together saw it; so many milliseconds after what the act is about."""

    act: str
    group: str
    after_ms: float
    view: str
    members: tuple[str, ...]
    transitional: tuple[str, ...]
    cause: str
    reason: str
    seen_by: tuple[str, ...]
    gone: tuple[str, ...] = ()
    """Who was with them in the view before, as far as that was shown."""


class Equals(msgspec.Struct, frozen=True, tag_field="kind", tag="ledger"):
    """Programs whose ledgers are equal, entry for entry."""

    act: str
    group: str
    programs: tuple[str, ...]
    entries: int
    state: str


class Merge(msgspec.Struct, frozen=True, tag_field="kind", tag="merge"):
    """A state transfer: the first of each side told what its side had."""

    act: str
    group: str
    sides: tuple[tuple[tuple[str, ...], int], ...]
    entries: int


class Lesson(msgspec.Struct, frozen=True, tag_field="kind", tag="lesson"):
    """What was to be seen."""

    act: str
    text: str


Shown = ActStep | ShownView | Equals | Merge | Lesson


class _Act(msgspec.Struct, frozen=True):
    name: str
    text: str
    since: str
    do: Callable[[LocalCluster, Troupe], int]
    """Gives the wall clock from which the views are counted."""
    daemons: tuple[str, ...]
    """Those that must end up in one view with each other."""
    sides: Sides
    lesson: str
    is_brief: bool = False
    """Of each group only the last view is shown."""


ALL: Final = {"euros": ("anna ben carl dora",), "points": ("ben dora eve",)}

PROLOGUE: Final = ActStep(
    "prologue",
    "Four daemons, a to d, and five programs, each a process of its own on this machine. The programs keep a ledger "
    "of euros (anna, ben, carl, dora) and one of points (ben, dora, eve). There is no database: each program has a "
    "copy, sends its bookings to the group, and books what arrives in the order in which it arrives. All the time "
    "everybody books something. Can the copies stay equal, whatever happens?",
)


def _start(cluster: LocalCluster, troupe: Troupe) -> int:
    at = cluster.start("a", "b", "c", "d")
    cluster.wait_for_view(*"abcd")
    troupe.start(*(role.name for role in ROLES))
    return at


def _come_and_go(_: LocalCluster, troupe: Troupe) -> int:
    at = troupe.kill("eve")
    troupe.wait_for_members({"points": ("ben dora",)})
    troupe.start("eve")
    troupe.wait_for_members({"points": ("ben dora eve",)})
    troupe.tell("leave points", "dora")
    return at


ACTS: Final = (
    _Act(
        "start",
        "Daemons find one another, programs connect and join. A view says who is in a group. It arrives in the "
        "stream of messages, at the same place for everybody.",
        "after the daemons were up",
        _start,
        ("abcd",),
        ALL,
        "One line is one ledger: the programs on it have the same entries in the same order. The state is a checksum.",
        is_brief=True,
    ),
    _Act(
        "partition",
        "The network is cut: a and b on one side, c and d on the other. A token goes around among daemons; now it does "
        "not come back. Nobody can know whether the others are dead or alive. Both sides go on working, each in a view "
        "of its own.",
        "after the cut",
        lambda cluster, _: cluster.part("ab", "cd"),
        ("ab", "cd"),
        {"euros": ("anna ben", "carl dora"), "points": ("ben eve", "dora")},
        "Copies differ now, exactly between those who did not move together. Within a side they are equal: also in "
        "what was under way when the network broke.",
    ),
    _Act(
        "merge",
        "The cable is back. Each program gets a view with everybody in it, and the set of those who came with it "
        "from its last view. Whoever is in that set has the same ledger. For the others, one of each side tells "
        "what its side has: nobody has to ask around or compare.",
        "after the network was whole",
        lambda cluster, _: cluster.heal(),
        ("abcd",),
        ALL,
        "One ledger again, with what both sides booked.",
    ),
    _Act(
        "crash",
        "Daemon c is killed (kill -9) in the middle of its work. The others agree which of its last messages count. "
        "carl loses his daemon, goes to d, and begins with an empty ledger.",
        "after the kill",
        lambda cluster, _: cluster.kill("c"),
        ("abd",),
        ALL,
        "anna, ben and dora moved together: they are equal without a word. carl came alone, so anna told him the "
        "state. Nobody of points was at c, so points did not notice.",
    ),
    _Act(
        "restart",
        "Daemon c is started again, and merged into the running view.",
        "after c was up",
        lambda cluster, _: cluster.start("c"),
        ("abcd",),
        ALL,
        "No group changed, so no program heard of it.",
    ),
    _Act(
        "program",
        "eve is killed (kill -9) and started again, then dora leaves points in good order. A program that comes or "
        "goes costs one ordered message. Daemons keep their view.",
        "after the kill",
        _come_and_go,
        ("abcd",),
        {"euros": ALL["euros"], "points": ("ben eve",)},
        "eve has her ledger back. Nobody of euros came or went, so euros went on without a pause.",
    ),
)

EPILOGUE: Final = ActStep(
    "check",
    "Everybody stops. Daemons and programs have written down what they sent, delivered and installed, the killed ones "
    "up to their last moment. Now each promise is checked on these traces alone, by code that knows nothing of the "
    "protocol.",
)


def play(cluster: LocalCluster, troupe: Troupe, seconds: float) -> Iterator[Shown]:
    """All acts, with this many seconds to read the text of each; then everybody comes to rest and ends."""
    yield PROLOGUE
    former = _Former()
    for act in ACTS:
        yield ActStep(act.name, act.text, act.since)
        time.sleep(seconds)
        begun = time.time_ns()
        at = act.do(cluster, troupe)
        for side in act.daemons:
            cluster.wait_for_view(*side)
        troupe.wait_for_members(act.sides)
        yield from _views(act, at, cluster.views_since(begun), troupe.views_since(begun), former)
        if act is ACTS[-1]:
            cluster.calm()
        time.sleep(max(0.3, seconds / 2))
        yield from _ledgers(act, troupe, begun)
    yield EPILOGUE
    troupe.finish()
    cluster.finish()
    troupe.close()
    troupe.record_crashes()


def _ledgers(act: _Act, troupe: Troupe, begun: int) -> Iterator[Shown]:
    """In a moment of silence: states that were told, and whose ledgers are equal."""
    troupe.tell("quiet")
    equals = troupe.wait_for_equals(act.sides)
    if not act.is_brief:
        for merged in troupe.merges_since(begun):
            yield Merge(act.name, merged.group, merged.sides, merged.entries)
    for one in equals:
        yield Equals(act.name, one.group, one.names, one.entries, one.state)
    yield Lesson(act.name, act.lesson)
    troupe.tell("speak")


class _Former:
    """The views so far, to tell who is gone in the next one."""

    def __init__(self) -> None:
        self._members: dict[str, list[tuple[str, ...]]] = {}

    def told(self, one: ShownView) -> ShownView:
        seen = self._members.setdefault(one.group, [])
        before = next((members for members in reversed(seen) if {*members} >= {*one.transitional}), ())
        seen.append(one.members)
        return msgspec.structs.replace(one, gone=tuple(name for name in before if name not in one.members))


def _views(
    act: _Act, at: int, daemons: list[DaemonView], programs: list[tuple[str, GroupViewed]], former: _Former
) -> list[ShownView]:
    """One for each set that moved together: all of them saw the same."""
    seen = [_of_daemon(act.name, view, at) for view in daemons]
    seen += [_of_program(act.name, name, view, at) for name, view in programs]
    found: dict[tuple[str, str, tuple[str, ...]], ShownView] = {}
    for one in seen:
        key = (one.group, one.view, one.transitional)
        known = found.get(key, one)
        found[key] = msgspec.structs.replace(known, seen_by=tuple(sorted({*known.seen_by, *one.seen_by})))
    told = [former.told(one) for one in sorted(found.values(), key=lambda one: one.after_ms)]
    shown = sorted(told, key=lambda one: (len(one.members), len(one.transitional)))
    if act.is_brief:
        shown = list({one.group: one for one in shown}.values())
    return sorted(shown, key=lambda one: (one.group != DAEMONS, one.group, one.after_ms))


def _of_daemon(act: str, view: DaemonView, at: int) -> ShownView:
    after = _ms(view.time_ns - at)
    return ShownView(
        act, DAEMONS, after, view.view, view.members, view.transitional, view.cause, view.reason, (view.name,)
    )  # fmt: skip


def _of_program(act: str, name: str, view: GroupViewed, at: int) -> ShownView:
    """A join, leave or disconnect is somebody's; the network's changes have the reason of the daemons."""
    reason = view.detail if view.cause == "network" else view.detail.rpartition(":")[0]
    return ShownView(
        act, view.group, _ms(view.time_ns - at), view.view, view.members, view.transitional, view.cause, reason, (name,)
    )


def _ms(nanoseconds: int) -> float:
    return round(nanoseconds / 1_000_000, 1)
