"""Leader election: one leader in each view, one in each part, and at most one where a quorum is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import covey
from covey.lab.cluster import LocalCluster
from examples.leader import Candidate
from tests.examples.crew import Crew, address, addresses, crew, heard, process, run, three
from tests.examples.crew import three_that_can_be_parted as parted

pytestmark = pytest.mark.live

PAUSE_S = 0.005

Ticks = dict[str, list[tuple[str, int]]]


class Watched(Candidate):
    def __init__(self, session: covey.Session, crew: Crew, quorum: int = 1) -> None:
        super().__init__(session, quorum)
        self.crew = crew
        self.ticks: Ticks = {}
        """Whose ticks counted, by view."""

    def on_view(self, view: covey.View) -> None:
        super().on_view(view)
        self.ticks.setdefault(view.id, [])
        self.crew.news.set()

    def on_tick(self, message: covey.Message) -> None:
        assert self.view is not None
        self.ticks[self.view.id].append((message.process, int(message.payload)))
        self.crew.news.set()

    @property
    def size(self) -> int:
        return len(self.view.members) if self.view else 0


async def candidates(crew: Crew, cluster: LocalCluster, quorum: int = 1) -> list[Watched]:
    made = [Watched(await crew.session(f"at-{one}", addresses(cluster, one)), crew, quorum) for one in "abc"]
    for one in made:
        crew.go(one.follow(), one.lead(PAUSE_S))
    await crew.until(lambda: all(one.size == 3 for one in made))
    return made


def check_ticks(everyone: list[Watched]) -> None:
    """In each view one leader is heard, and everyone has the same ticks, up to where it saw the view end."""
    for view in {view for one in everyone for view in one.ticks}:
        heard_by = sorted((one.ticks[view] for one in everyone if view in one.ticks), key=len)
        assert len({process for process, _ in heard_by[-1]}) <= 1
        assert all(heard_by[-1][: len(ticks)] == ticks for ticks in heard_by)


def test_when_the_daemon_of_the_leader_dies_the_next_one_goes_on_counting(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with crew() as people:
            everyone = await candidates(people, cluster)
            first, followers = everyone[0].session.process, everyone[1:]
            assert {one.leader for one in everyone} == {first}
            await people.until(lambda: all(one.count > 3 for one in everyone))
            cluster.kill("a")
            await people.until(lambda: all(one.size == 3 and one.leader != first for one in everyone))
            at_kill = max(one.count for one in followers)
            await people.until(lambda: all(one.count > at_kill for one in everyone))
            assert len({one.leader for one in everyone}) == 1
            for one in followers:
                counts = [count for ticks in one.ticks.values() for _, count in ticks]
                assert counts == sorted(counts)
            check_ticks(everyone)

    with three(tmp_path) as cluster:
        run(program(cluster))


@pytest.mark.parametrize("quorum", [1, 2])
def test_parts_have_a_leader_each_unless_a_quorum_is_asked_for(tmp_path: Path, quorum: int) -> None:
    with parted(tmp_path) as (cluster, net):

        async def program() -> None:
            async with crew() as people:
                everyone = await candidates(people, cluster, quorum)
                alone, *others = everyone
                net.partition([[1], [2, 3]])
                await people.until(lambda: alone.size == 1 and all(one.size == 2 for one in others))
                assert alone.leader == (alone.session.process if quorum == 1 else None)
                assert {one.leader for one in others} == {others[0].session.process}
                counts = [one.count for one in everyone]
                await people.until(lambda: others[1].count > counts[1] + 2)
                net.heal()
                await people.until(lambda: all(one.size == 3 for one in everyone))
                assert {one.leader for one in everyone} == {alone.session.process}
                check_ticks(everyone)

        run(program())


def test_it_runs_in_terminals(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with process("leader", "ben", "--address", address(cluster, "b")) as ben:
            await heard(ben, "leader is ben@b")
            async with process("leader", "ann", "--address", address(cluster, "a")) as ann:
                assert "(that is us)" in await heard(ann, "of ann@a ben@b (join): leader is ann@a")
                await heard(ben, "from ann@a")
            await heard(ben, "of ben@b (disconnect): leader is ben@b")
            await heard(ben, "from ben@b")

    with three(tmp_path) as cluster:
        run(program(cluster))
