"""Systems in turn, round by round: start one, let its programs send and receive, judge, and end everything again.

In:        a PeersPlan.
Out:       one PeerSample for each turn, as they come; LiveError, which names system and case, if a message is not what
           it must be.
Not here:  what is made of the samples (statistics.py), what a program does (program.py), the systems (systems/).

Every process is in a session of its own. In one session with others, it would share their part of the processors
(the scheduler's autogroups), and systems of many processes would lose to those of few.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from covey.lab.cluster import LiveError
from covey.lab.helper_process import PATIENCE_S, HelperProcess
from covey.lab.processor_time import cpu_seconds
from covey.lab.traffic.measure import check_problems, judge, percentiles_us, slowest_per_s
from covey.lab.traffic.task import TrafficResult

from .plan import RECEIVERS, START_S, PeerCase, PeersPlan, turns
from .system import PeerSystem, RunningSystem, system_named
from .task import PeerTask, Role

PROGRAM = f"{__package__}.program"
MEGA = 1_000_000


class PeerSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One system, one case, one round. What the case does not show is None."""

    round: int
    workload: str
    size: int
    system: str
    messages_per_s: float | None = None
    """At the slowest receiver."""
    mb_per_s: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    server_cpu_us: float | None = None
    """Of all servers together, for each message sent."""
    program_cpu_us: float | None = None
    """Of all senders and receivers together, for each message sent."""
    idle_cpu_percent: float | None = None
    """Of one core, all servers together."""


def skipped(plan: PeersPlan) -> dict[str, str]:
    """Systems that cannot run here, each with the reason."""
    reasons = {name: system_named(name).unavailable() for name in plan.systems}
    return {name: reason for name, reason in reasons.items() if reason}


def measure_peers(plan: PeersPlan, systems: Sequence[str]) -> Iterator[PeerSample]:
    """The turns of these systems; those that do not offer what a case needs sit out."""
    for number, case, name in _turns(plan, systems):
        yield _one(number, case, name, plan.seconds)


def count_turns(plan: PeersPlan, systems: Sequence[str]) -> int:
    return sum(1 for _ in _turns(plan, systems))


def expected_s(plan: PeersPlan, systems: Sequence[str]) -> float:
    """How long the whole takes, more or less."""
    return sum(plan.seconds + START_S[name] for _, _, name in _turns(plan, systems))


def _turns(plan: PeersPlan, systems: Sequence[str]) -> Iterator[tuple[int, PeerCase, str]]:
    for number, case, name in turns(plan.cases(), systems, plan.rounds):
        if offers(system_named(name), case):
            yield number, case, name


def offers(system: PeerSystem, case: PeerCase) -> bool:
    """Without servers there is nothing that could be idle."""
    return case.work.service in system.services and (system.has_servers or not case.work.is_idle)


def _one(number: int, case: PeerCase, name: str, seconds: float) -> PeerSample:
    system = system_named(name)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="covey-peers-") as directory,
            system.running(Path(directory), case) as running,
        ):
            figures = Trial(system, running, case, name, seconds).figures()
    except LiveError as error:
        raise LiveError(f"{name}, {case.title()}, round {number}: {error}") from None
    return PeerSample(round=number, workload=case.workload, size=case.size, system=name, **figures)


class Trial:
    """The programs of one turn."""

    def __init__(self, system: PeerSystem, running: RunningSystem, case: PeerCase, name: str, seconds: float) -> None:
        self._system = system
        self._running = running
        self._case = case
        self._name = name
        self._seconds = seconds

    def figures(self) -> dict[str, float | None]:
        with ExitStack() as programs:
            receivers = self._start("receive", RECEIVERS, programs)
            if self._case.work.is_idle:
                return self._idle()
            senders = self._start("send", self._case.work.senders, programs)
            return self._traffic(senders, receivers)

    def _start(self, role: Role, count: int, programs: ExitStack) -> list[HelperProcess]:
        """Programs that are ready."""
        started = []
        for number in range(count):
            task = self._task(role, number)
            command = self._running.command(task) if self._running.command else ()
            started.append(HelperProcess(PROGRAM, task, command))
            programs.callback(started[-1].close)
        for one in started:
            one.ready()
        return started

    def _task(self, role: Role, number: int) -> PeerTask:
        work = self._case.work
        return PeerTask(
            system=self._name,
            role=role,
            name=f"{role}{number}",
            number=number,
            addresses=self._running.addresses(role, number),
            size=self._case.size,
            seconds=self._seconds,
            rate=work.rate,
            singly=work.singly,
            service=work.service,
            is_agreed=self._system.is_agreed,
            senders=work.senders,
            receivers=RECEIVERS,
        )

    def _traffic(self, senders: list[HelperProcess], receivers: list[HelperProcess]) -> dict[str, float | None]:
        within_s = self._seconds + PATIENCE_S
        before = self._server_cpu()
        for sender in senders:
            sender.tell("go")
        try:
            sent = [sender.answer(TrafficResult, within_s) for sender in senders]
        except LiveError:
            raise_problems(receivers)
            raise
        received = [receiver.answer(TrafficResult, within_s) for receiver in receivers]
        used = self._server_cpu() - before
        judge(sent, received, may_miss=False, ordered=self._system.is_agreed)
        return self._figures_of(sent, received, used)

    def _figures_of(
        self, sent: list[TrafficResult], received: list[TrafficResult], server_cpu: float
    ) -> dict[str, float | None]:
        messages = sum(one.messages for one in sent)
        if not messages:
            raise LiveError("nothing was sent in that time: measure for longer")
        rate, (p50_us, p99_us) = slowest_per_s(received), percentiles_us(received)
        programs = sum(one.cpu_seconds for one in [*sent, *received])
        return {
            "messages_per_s": round(rate, 1),
            "mb_per_s": round(rate * self._case.size / MEGA, 3),
            "p50_us": p50_us,
            "p99_us": p99_us,
            "server_cpu_us": round(server_cpu * MEGA / messages, 3) if self._running.servers else None,
            "program_cpu_us": round(programs * MEGA / messages, 3),
        }

    def _idle(self) -> dict[str, float | None]:
        before, started = self._server_cpu(), time.monotonic()
        time.sleep(self._seconds)
        share = (self._server_cpu() - before) / (time.monotonic() - started)
        return {"idle_cpu_percent": round(100 * share, 2)}

    def _server_cpu(self) -> float:
        return sum(map(cpu_seconds, self._running.servers))


class Answers(Protocol):
    def answer(self, wanted: type[TrafficResult], within_s: float) -> TrafficResult: ...


def raise_problems(receivers: Sequence[Answers]) -> None:
    """A receiver that has found a problem reads no more, and its sender waits for it: the cause is the one to tell."""
    said = []
    for receiver in receivers:
        with suppress(LiveError):
            said.append(receiver.answer(TrafficResult, within_s=0))
    check_problems(said)
