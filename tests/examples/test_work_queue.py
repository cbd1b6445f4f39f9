"""The work queue: each job is done at least once, whoever crashes, and all workers end with the same queue."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import covey
from covey.lab.cluster import LocalCluster
from examples.work_queue import Job, Worker, submit
from tests.examples.crew import Crew, address, addresses, crew, heard, process, run, three
from tests.examples.crew import three_that_can_be_parted as parted

pytestmark = pytest.mark.live


class Watched(Worker):
    def __init__(self, session: covey.Session, crew: Crew) -> None:
        super().__init__(session)
        self.crew = crew
        self.did: list[str] = []

    def changed(self) -> None:
        super().changed()
        self.crew.news.set()

    async def do(self, job: Job) -> str:
        await asyncio.sleep(0.002)
        self.did.append(job.id)
        return job.text.upper()


async def workers(crew: Crew, cluster: LocalCluster, *daemons: str) -> list[Watched]:
    made = [Watched(await crew.session(f"at-{one}", addresses(cluster, one)), crew) for one in daemons]
    for one in made:
        crew.go(one.run(), one.work())
    await crew.until(lambda: all(one.is_ready and len(one.members) == len(made) for one in made))
    return made


def some(count: int, name: str = "job") -> list[Job]:
    return [Job(f"{name}-{number}", f"{name} {number}") for number in range(count)]


def expected(jobs: list[Job]) -> dict[str, str]:
    return {job.id: job.text.upper() for job in jobs}


def test_jobs_are_shared_and_each_is_done_once_while_nothing_happens(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with crew() as people:
            everyone = await workers(people, cluster, *"abc")
            jobs = some(60)
            assert await submit(await people.session("boss", address(cluster, "b")), jobs) == expected(jobs)
            assert sorted(job for one in everyone for job in one.did) == sorted(job.id for job in jobs)
            assert all(one.did for one in everyone)

    with three(tmp_path) as cluster:
        run(program(cluster))


def test_workers_and_daemons_die_and_every_job_is_done(tmp_path: Path) -> None:
    """One worker is a process that is killed in the middle of a job; then the daemon of another and of the boss is."""

    async def program(cluster: LocalCluster) -> None:
        async with (
            crew() as people,
            process("work_queue", "--address", address(cluster, "b"), "worker", "doomed") as doomed,
        ):
            everyone = await workers_beside(people, cluster)
            jobs = some(150)
            boss = await people.session("boss", addresses(cluster, "c"))
            results = asyncio.create_task(submit(boss, jobs, retry_s=0.3))
            await heard(doomed, "job")
            doomed.kill()
            await people.until(lambda: len(everyone[0].members) == 2)
            cluster.kill("c")
            assert await results == expected(jobs)
            await people.until(lambda: all(one.is_ready and not one.queue.open for one in everyone))
            assert everyone[0].queue.done == everyone[1].queue.done == expected(jobs)

    async def workers_beside(people: Crew, cluster: LocalCluster) -> list[Watched]:
        made = [Watched(await people.session(f"at-{one}", addresses(cluster, one)), people) for one in "ac"]
        for one in made:
            people.go(one.run(), one.work())
        await people.until(lambda: all(one.is_ready and len(one.members) == 3 for one in made))
        return made

    with three(tmp_path) as cluster:
        run(program(cluster))


def test_jobs_that_nobody_was_there_to_hear_are_done_when_somebody_is(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with crew() as people:
            jobs = some(5)
            boss = await people.session("boss", address(cluster, "a"))
            results = asyncio.create_task(submit(boss, jobs, retry_s=0.1))
            (first,) = await workers(people, cluster, "b")
            assert await results == expected(jobs)
            # Asked again, it answers from memory.
            again = await people.session("again", address(cluster, "c"))
            assert await submit(again, jobs) == expected(jobs)
            assert sorted(first.did) == sorted(job.id for job in jobs)

    with three(tmp_path) as cluster:
        run(program(cluster))


def test_both_parts_go_on_and_know_all_results_when_they_meet(tmp_path: Path) -> None:
    with parted(tmp_path) as (cluster, net):

        async def program() -> None:
            async with crew() as people:
                everyone = await workers(people, cluster, *"abc")
                left = await people.session("left", address(cluster, "a"))
                right = await people.session("right", address(cluster, "c"))
                net.partition([[1], [2, 3]])
                await people.until(lambda: [len(one.members) for one in everyone] == [1, 2, 2])
                jobs, others = some(20, "left"), some(20, "right")
                same = some(10, "both")
                done = tuple(await asyncio.gather(submit(left, jobs + same), submit(right, others + same)))
                assert done == (expected(jobs + same), expected(others + same))
                net.heal()
                await people.until(lambda: all(one.is_ready and len(one.members) == 3 for one in everyone))
                await people.until(lambda: all(not one.queue.open for one in everyone))
                assert all(one.queue.done == expected(jobs + others + same) for one in everyone)

        run(program())
