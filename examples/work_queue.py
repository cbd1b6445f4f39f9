"""A queue of jobs that survives the workers who take them. Each job is done at least once.

    python -m examples.work_queue worker ann
    python -m examples.work_queue worker ben
    python -m examples.work_queue submit cem 20     # twenty jobs; end a worker meanwhile

No worker asks for a job, and nobody hands them out: all workers know the open jobs and the members of the view, and
whose job it is follows from both. When a worker goes, its jobs are somebody else's in the next view.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b

import msgspec

import covey
from examples.replica import Processes, Replica
from examples.terminal import run, until_one_ends

WORKERS = "workers"
RESULTS = "results"


class Job(msgspec.Struct, frozen=True, tag=True):
    id: str
    """Chosen by who submits it. The same id is the same job, however often it is submitted."""
    text: str


class Done(msgspec.Struct, frozen=True, tag=True):
    id: str
    result: str


Word = Job | Done


def taker(job_id: str, workers: Iterable[str]) -> str:
    """Whose job it is, so that a worker who goes or comes changes nothing but its own share.

    >>> everyone = ["ann@a:1.3", "ben@b:1.3", "cem@c:1.3"]
    >>> left = everyone[:2]
    >>> all(taker(job, left) == taker(job, everyone) for job in "abcdefgh" if taker(job, everyone) in left)
    True
    """
    return max(workers, key=lambda worker: blake2b(f"{job_id} {worker}".encode()).digest())


class Queue(msgspec.Struct):
    open: dict[str, Job]
    done: dict[str, str]
    """Results by id: a job that is submitted again is answered, not done again."""


class Worker(Replica):
    def __init__(self, session: covey.Session) -> None:
        super().__init__(session, WORKERS)
        self.queue = Queue({}, {})
        self._news = asyncio.Event()
        self._told: set[str] = set()
        """Jobs of ours whose end is announced and not yet delivered."""

    # --- the state

    def apply(self, message: covey.Message, seen_by: Processes) -> None:
        match msgspec.json.decode(message.payload, type=Word):
            case Job() as job:
                self.queue.open.setdefault(job.id, job)
            case Done(id=number, result=result):
                self.queue.open.pop(number, None)
                self.queue.done.setdefault(number, result)
                self._told.discard(number)

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.queue)

    def merge(self, states: Sequence[bytes], seen_by: Processes) -> None:
        """What is open in one part is open, also if another part has done it: its result must be announced here."""
        queues = [msgspec.msgpack.decode(state, type=Queue) for state in states]
        self.queue = Queue({}, {})
        for one in queues:
            self.queue.open = one.open | self.queue.open
            self.queue.done = one.done | self.queue.done

    def changed(self) -> None:
        self._news.set()

    async def on_event(self, event: covey.Event) -> None:
        if isinstance(event, covey.Reconnected):
            self._told.clear()  # Who knows what was sent.
        await super().on_event(event)

    # --- the work

    def next_job(self) -> Job | None:
        if not self.is_ready:
            return None
        ours = (job for job in self.queue.open.values() if taker(job.id, self.members) == self.session.process)
        return next((job for job in ours if job.id not in self._told), None)

    async def work(self) -> None:
        while True:
            self._news.clear()
            job = self.next_job()
            if job is None:
                await self._news.wait()
                continue
            result = self.queue.done[job.id] if job.id in self.queue.done else await self.do(job)
            self._told.add(job.id)
            with suppress(covey.SessionOverError):  # The next events tell, and how it goes on.
                await self.session.send([WORKERS, RESULTS], msgspec.json.encode(Done(job.id, result)))

    async def do(self, job: Job) -> str:
        await asyncio.sleep(0.2)
        print(f"did {job.text}")
        return job.text.upper()


async def worker(name: str, address: str | None) -> None:
    async with covey.connect(name, address, reconnect=True) as session:
        program = Worker(session)
        await until_one_ends(program.work(), program.run())


async def submit(session: covey.Session, jobs: Sequence[Job], retry_s: float = 2.0) -> dict[str, str]:
    """The results, when all jobs are done. What may have been lost is submitted again: ids make that harmless."""
    results: dict[str, str] = {}
    await session.join(RESULTS)
    while missing := [job for job in jobs if job.id not in results]:
        try:
            event = await session.receive(retry_s)
        except TimeoutError:
            event = None  # Perhaps nobody is there, or nobody is left who knows of our jobs.
        with suppress(covey.SessionOverError):
            match event:
                case covey.Message(payload=payload):
                    done = msgspec.json.decode(payload, type=Done)
                    results[done.id] = done.result
                case covey.Reconnected():
                    await session.join(RESULTS)
                case covey.View() | None:
                    await session.send_many(WORKERS, [msgspec.json.encode(job) for job in missing])
    return results


async def submit_some(name: str, count: int, address: str | None) -> None:
    async with covey.connect(name, address, reconnect=True) as session:
        jobs = [Job(f"{session.process}/{number}", f"job {number}") for number in range(count)]
        results = await submit(session, jobs)
        for job in jobs:
            print(job.text, "->", results[job.id])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.work_queue", description="Do jobs, or submit some.")
    parser.add_argument("--address", help="a daemon: its name, unix:/path or tcp://host:port; the nearest if not given")
    roles = parser.add_subparsers(dest="role", required=True)
    roles.add_parser("worker", help="do jobs until Ctrl-C").add_argument("name")
    submitting = roles.add_parser("submit", help="submit jobs and wait for their results")
    submitting.add_argument("name")
    submitting.add_argument("count", type=int)
    arguments = parser.parse_args()
    if arguments.role == "worker":
        run(worker(arguments.name, arguments.address))
    else:
        run(submit_some(arguments.name, arguments.count, arguments.address))


if __name__ == "__main__":
    main()
