"""A cluster, senders and receivers: how much arrives, how fast, and whether all saw the same.

In:        a TrafficPlan.  Out: a Measurement; LiveError if the programs did not see what they must.
Not here:  what a program does (program.py), how it is shown (cli/bench.py).
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import quantiles

import msgspec

from covey.client.address import socket_path
from covey.cluster import daemon_name
from covey.lab.cluster import LiveError, LocalCluster
from covey.lab.helper_process import PATIENCE_S, HelperProcess
from covey.lab.processor_time import cpu_seconds

from .task import TrafficResult, TrafficTask

PROGRAM = f"{__package__}.program"
ORDERED = ("causal", "agreed", "safe")
COMMON = ("size", "service", "seconds", "rate", "senders", "receivers", "one_by_one")
"""What the plan tells every program."""

PATIENT = """
[settings]
block_percent = 100
block_max_ms = 600_000
"""
"""As fast as can be is as fast as the slowest receiver reads: it may make the senders wait for as long as it must."""


class TrafficPlan(msgspec.Struct, frozen=True, kw_only=True):
    daemons: int = 3
    senders: int = 1
    receivers: int = 3
    size: int = 1_000
    service: str = "agreed"
    seconds: float = 3.0
    rate: float = 0.0
    one_by_one: bool = False


class Measurement(msgspec.Struct, frozen=True):
    messages_per_s: float
    """At the slowest receiver."""
    mb_per_s: float
    cpu_share: dict[str, float]
    """Of one core, by process, while messages flowed."""
    p50_us: float | None
    p99_us: float | None


def measure(plan: TrafficPlan) -> Measurement:
    with (
        tempfile.TemporaryDirectory(prefix="covey-bench-") as directory,
        LocalCluster(Path(directory), plan.daemons, run="bench", traced=False) as cluster,
    ):
        if not plan.rate:
            cluster.file.write_text(cluster.file.read_text() + PATIENT)
        names = [daemon_name(rank) for rank in range(plan.daemons)]
        cluster.start(*names)
        cluster.wait_for_view(*names)
        return _run(plan, cluster)


def _run(plan: TrafficPlan, cluster: LocalCluster) -> Measurement:
    receivers = [HelperProcess(PROGRAM, _task(plan, cluster, "receive", number)) for number in range(plan.receivers)]
    senders = [HelperProcess(PROGRAM, _task(plan, cluster, "send", number)) for number in range(plan.senders)]
    programs = [*receivers, *senders]
    within_s = plan.seconds + PATIENCE_S
    try:
        for program in programs:
            program.ready()
        before, started = _daemon_cpu(cluster), time.monotonic()
        for sender in senders:
            sender.tell("go")
        sent = [sender.answer(TrafficResult, within_s) for sender in senders]
        check_problems(sent)
        received = [receiver.answer(TrafficResult, within_s) for receiver in receivers]
        daemons = _shares(before, _daemon_cpu(cluster), time.monotonic() - started)
    finally:
        for program in programs:
            program.close()
    judge(sent, received, may_miss=plan.service == "unreliable", ordered=plan.service in ORDERED)
    return _measurement(plan, sent, received, daemons)


def _task(plan: TrafficPlan, cluster: LocalCluster, role: str, number: int) -> TrafficTask:
    daemon = daemon_name(number % plan.daemons)
    return msgspec.convert(
        {
            "role": role,
            "name": f"{role}{number}",
            "address": f"unix:{socket_path(cluster.cluster.digest(), daemon)}",
            **{field: getattr(plan, field) for field in COMMON},
        },
        TrafficTask,
    )


def judge(sent: list[TrafficResult], received: list[TrafficResult], *, may_miss: bool, ordered: bool) -> None:
    """Every receiver got everything, once, and, where there is an order, all in the same; LiveError if not."""
    total = sum(result.messages for result in sent)
    check_problems([*sent, *received])
    for result in received:
        if result.messages != total and not (may_miss and result.messages < total):
            raise LiveError(f"{result.name} got {result.messages:,} of {total:,} messages")
    if ordered and len({result.order for result in received}) > 1:
        raise LiveError("the receivers did not get the messages in the same order")


def check_problems(results: list[TrafficResult]) -> None:
    for result in results:
        if result.problem:
            raise LiveError(f"{result.name}: {result.problem}")


def _measurement(
    plan: TrafficPlan, sent: list[TrafficResult], received: list[TrafficResult], daemons: dict[str, float]
) -> Measurement:
    slowest = slowest_per_s(received)
    programs = {result.name: round(result.cpu_seconds / max(result.seconds, 0.001), 3) for result in [*sent, *received]}
    p50_us, p99_us = percentiles_us(received)
    return Measurement(
        messages_per_s=round(slowest, 1),
        mb_per_s=round(slowest * plan.size / 1_000_000, 3),
        cpu_share=daemons | programs,
        p50_us=p50_us,
        p99_us=p99_us,
    )


def slowest_per_s(received: list[TrafficResult]) -> float:
    """Messages a second at the slowest receiver."""
    return min(result.messages / result.seconds for result in received if result.seconds > 0)


def percentiles_us(received: list[TrafficResult]) -> tuple[float | None, float | None]:
    """How long half of all messages took at most, and 99 of 100; None where nobody looked."""
    latencies = sorted(itertools.chain.from_iterable(result.latencies_us for result in received))
    if len(latencies) < 2:
        return None, None
    cuts = quantiles(latencies, n=100)
    return round(cuts[49], 1), round(cuts[98], 1)


def _daemon_cpu(cluster: LocalCluster) -> dict[str, float]:
    """Seconds of processor time of each daemon."""
    return {child.name: cpu_seconds(child.pid) for child in cluster.living()}


def _shares(before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
    return {name: round((after[name] - before[name]) / seconds, 3) for name in _common(before, after)}


def _common(before: Iterable[str], after: Iterable[str]) -> list[str]:
    return sorted(set(before) & set(after))
