"""The replicated table: replicas are equal, whatever happened to daemons, members and the network."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest

import covey
from covey.lab.cluster import LocalCluster
from examples.kv_store import Entry, Put, Store, merged, place_of
from examples.replica import Processes
from tests.examples.crew import Crew, address, addresses, crew, heard, process, run, say, three
from tests.examples.crew import three_that_can_be_parted as parted

pytestmark = pytest.mark.live


class Watched(Store):
    def __init__(self, session: covey.Session, crew: Crew) -> None:
        super().__init__(session)
        self.crew = crew
        self.last: dict[str, tuple[int, ...]] = {}
        """The place of the last write of each key that came here."""

    def apply(self, message: covey.Message, seen_by: Processes) -> None:
        super().apply(message, seen_by)
        key, place = msgspec.json.decode(message.payload, type=Put).key, place_of(message)
        assert place > self.last.get(key, ())
        self.last[key] = place

    def changed(self) -> None:
        self.crew.news.set()


async def stores(crew: Crew, cluster: LocalCluster, *daemons: str, moving: bool = True) -> list[Watched]:
    """One replica at each of these daemons; if it is a moving one, it goes to another when its own dies."""
    made = []
    for number, daemon in enumerate(daemons):
        where = addresses(cluster, daemon) if moving else address(cluster, daemon)
        made.append(Watched(await crew.session(f"at-{daemon}-{number}", where), crew))
    crew.go(*(store.run() for store in made))
    await crew.until(lambda: all(store.is_ready and len(store.members) == len(made) for store in made))
    return made


def equal(replicas: list[Watched]) -> bool:
    """They are in one view, and none of them waits for anything."""
    together = len({store.members for store in replicas}) == 1 and len(replicas[0].members) == len(replicas)
    return together and all(store.is_ready for store in replicas)


def state(store: Store) -> bytes:
    return msgspec.json.encode(store.table, order="deterministic")


def test_a_newcomer_gets_the_state_and_what_comes_while_it_does(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with crew() as people:
            first, second = await stores(people, cluster, "a", "b")
            for number in range(50):
                await first.put(f"key {number}", "old")
            await people.until(lambda: "key 49" in second.table)
            third = Watched(await people.session("late", address(cluster, "c")), people)
            people.go(third.run())
            for number in range(40, 90):
                await second.put(f"key {number}", "new" if number % 10 else None)
            everyone = [first, second, third]
            await people.until(lambda: equal(everyone) and all("key 89" in one.table for one in everyone))
            assert state(first) == state(second) == state(third)
            assert len(first.table) == 90
            assert len(third.items()) == 85
            assert first.get("key 39") == "old"
            assert third.get("key 41") == "new"
            assert not [conflict for store in everyone for conflict in store.conflicts]

    with three(tmp_path) as cluster:
        run(program(cluster))


def test_a_replica_whose_daemon_dies_comes_back_with_what_it_had(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with crew() as people:
            everyone = await stores(people, cluster, *"abc")
            for number in range(30):
                await everyone[number % 3].put(f"key {number}", f"{number}")
            await people.until(lambda: all(len(store.table) == 30 for store in everyone))
            cluster.kill("c")
            await everyone[0].put("after", "the kill")
            await people.until(lambda: equal(everyone) and all(store.get("after") for store in everyone))
            assert state(everyone[0]) == state(everyone[1]) == state(everyone[2])
            assert len(everyone[2].items()) == 31
            assert not [conflict for store in everyone for conflict in store.conflicts]
            assert everyone[2].session.name == "at-c-2@a"

    with three(tmp_path) as cluster:
        run(program(cluster))


def test_both_parts_work_and_meet_with_every_conflict_told(tmp_path: Path) -> None:
    with parted(tmp_path) as (cluster, net):

        async def program() -> None:
            async with crew() as people:
                everyone = await stores(people, cluster, *"abc")
                alone, *others = everyone
                await alone.put("old", "from before")
                await alone.put("both", "from before")
                await people.until(lambda: all(store.get("both") for store in everyone))
                net.partition([[1], [2, 3]])
                await people.until(lambda: alone.is_ready and len(alone.members) == 1 and equal(others))
                await alone.put("mine", "of one")
                await alone.put("both", "of one")
                await alone.put("old", "changed by one")
                await people.until(lambda: alone.get("old") == "changed by one")
                await others[0].put("ours", "of two")
                await others[1].put("both", "of two")
                await people.until(lambda: all(store.get("both") == "of two" for store in others))
                assert alone.get("ours") is None
                net.heal()
                await people.until(lambda: equal(everyone))
                assert len({state(store) for store in everyone}) == 1
                assert alone.items() == {
                    "both": "of two", "mine": "of one", "old": "changed by one", "ours": "of two",
                }  # fmt: skip
                for store in everyone:
                    (conflict,) = store.conflicts
                    assert (conflict.key, conflict.kept.value, conflict.lost.value) == ("both", "of two", "of one")

        run(program())


@pytest.mark.parametrize("seed", [0, 1])
def test_after_any_trouble_replicas_are_equal_and_no_write_is_lost_but_to_a_later_one(
    tmp_path: Path, seed: int
) -> None:
    """Parts, meetings, newcomers and members that vanish, all in the middle of writing."""
    with parted(tmp_path) as (cluster, net):

        async def program() -> None:
            random = Random(seed)
            async with crew() as people:
                everyone = await stores(people, cluster, *"aabbcc", moving=False)
                for act in range(24):
                    for _ in range(10):
                        store = random.choice(everyone)
                        await store.put(f"key {random.randrange(12)}", random.choice([f"{act}", None]))
                    await trouble(random, act, people, everyone)
                net.heal()
                await everyone[0].put("end", "x")
                await people.until(lambda: equal(everyone) and all(one.get("end") for one in everyone))
                assert len({state(store) for store in everyone}) == 1
                for key, entry in everyone[0].table.items():
                    assert entry.place == max(store.last.get(key, ()) for store in everyone)

        async def trouble(random: Random, act: int, people: Crew, everyone: list[Watched]) -> None:
            match random.choice(["part", "heal", "come", "vanish", "rest"]):
                case "part":
                    net.partition(random.choice([[[1], [2, 3]], [[1, 2], [3]], [[1], [2], [3]]]))
                case "heal":
                    net.heal()
                case "come":
                    session = await people.session(f"new-{act}", address(cluster, random.choice("abc")))
                    everyone.append(Watched(session, people))
                    people.go(everyone[-1].run())
                case "vanish" if len(everyone) > 3:
                    everyone.pop(random.randrange(len(everyone))).session._close()
                case _:
                    pass
            await asyncio.sleep(random.choice([0, 0, 0.02, 0.7]))  # A part is noticed after half a second.

        run(program())


def entry(value: str, place: int, seen_by: str) -> Entry:
    return Entry(value, (place,), "somebody", frozenset(seen_by))


@pytest.mark.parametrize(
    ("entries", "kept", "lost"),
    [
        ([entry("x", 1, "ab"), entry("x", 1, "ab")], "x", []),
        ([entry("x", 1, "abc"), entry("y", 2, "ab")], "y", []),  # y was written where x had been seen
        ([entry("y", 2, "ab"), entry("x", 1, "c")], "y", ["x"]),
        ([entry("x", 1, "ab"), entry("y", 2, "c"), entry("z", 3, "d")], "z", ["x", "y"]),
        ([entry("x", 1, "ab"), entry("w", 2, "bc")], "w", []),  # b has met both: it was told then
    ],
)
def test_the_last_write_wins_and_what_nobody_overwrote_knowingly_is_told(
    entries: list[Entry], kept: str, lost: list[str]
) -> None:
    winner, conflicts = merged("key", entries, frozenset("abcd"))
    assert (winner.value, [conflict.lost.value for conflict in conflicts]) == (kept, lost)
    assert winner.seen_by == frozenset("abcd")


def test_it_runs_at_a_keyboard(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        arguments = ("--address", address(cluster, "a"))
        async with process("kv_store", "ann", *arguments) as ann, process("kv_store", "ben", *arguments) as ben:
            await heard(ann, "ben@a")
            await heard(ben, "2 states merged")
            say(ann, "put colour light green")
            assert await heard(ben, "colour") == "colour = light green (by ann@a)"
            say(ben, "get colour")
            assert await heard(ben, "green") == "light green"

    with three(tmp_path) as cluster:
        run(program(cluster))
