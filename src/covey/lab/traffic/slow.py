"""One receiver stops reading for a while: what do the others notice, and what does it cost the daemons?

In:        a SlowPlan.  Out: a SlowMeasurement, with what was not as it must be; LiveError if a program failed.
Not here:  what a program does (slow_program.py), how it is shown (cli/bench.py).

The sender and the first healthy receiver are at daemon a, the second at b, and the slow one at c. It is stopped by a
signal, as a debugger or a full machine would.
"""

from __future__ import annotations

import signal
import tempfile
import time
from pathlib import Path

import msgspec

from covey.client.address import socket_path
from covey.config import Settings
from covey.drivers.live.clients import LINGER_S
from covey.lab.cluster import LocalCluster
from covey.lab.helper_process import PATIENCE_S, HelperProcess
from covey.protocol.values import Policy

from .slow_program import SlowResult, SlowTask

DAEMONS = ("a", "b", "c")
LEAD_S = 1.0
"""How long all is well before the stall, and after it."""
PROGRAM = f"{__package__}.slow_program"
MEGA = 1_000_000


class SlowPlan(msgspec.Struct, frozen=True, kw_only=True):
    stall_s: float = 3.0
    mb_per_s: float = 40.0
    size: int = 1_000
    policy: Policy = "disconnect"

    def problem(self) -> str:
        """Why this cannot be measured, or nothing."""
        block_max_s = Settings().block_max_ms / 1_000
        if self.policy == "block" and self.stall_s >= block_max_s:
            return f"with the policy block a stall is shorter than {block_max_s:g} s: who blocks longer is ended"
        return ""


class SlowMeasurement(msgspec.Struct, frozen=True):
    healthy_longest_pause_ms: float
    """Between two arrivals at a receiver that reads."""
    sender_longest_pause_ms: float
    """In one call of `send_many`."""
    lost_not_obsolete: int
    """Messages that a receiver should have got and did not; an ended session should have got a prefix."""
    purged_share: float
    daemon_memory_mb: float
    """The most that any daemon ever held, as the system counts it."""
    sent_mb_per_s: float
    slow_messages_share: float
    """What the slow one got, of all that was sent."""
    slow_ended: str
    """Why its session was ended, if it was."""
    slow_lag_mb: float
    slow_lag_s: float
    problems: list[str]


def measure_slow_receiver(plan: SlowPlan) -> SlowMeasurement:
    with (
        tempfile.TemporaryDirectory(prefix="covey-bench-") as directory,
        LocalCluster(Path(directory), len(DAEMONS), run="bench", traced=False) as cluster,
    ):
        cluster.start(*DAEMONS)
        cluster.wait_for_view(*DAEMONS)
        sent, received = _run(plan, cluster)
        return _measurement(plan, sent, received, max(_peak_kb(child.pid) for child in cluster.living()))


def _run(plan: SlowPlan, cluster: LocalCluster) -> tuple[SlowResult, list[SlowResult]]:
    """What the sender and the receivers saw; the slow receiver is the last."""
    receivers = [HelperProcess(PROGRAM, _receiver(plan, cluster, daemon)) for daemon in DAEMONS]
    sender = HelperProcess(PROGRAM, _sender(plan, cluster))
    within_s = plan.stall_s + PATIENCE_S
    try:
        for program in (*receivers, sender):
            program.ready()
        sender.tell("go")
        time.sleep(LEAD_S)
        _stall(receivers[-1], plan.stall_s)
        sent, *received = (program.answer(SlowResult, within_s) for program in (sender, *receivers))
        return sent, received
    finally:
        for program in (*receivers, sender):
            program.close()


def _stall(process: HelperProcess, seconds: float) -> None:
    process.signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.signal(signal.SIGCONT)


def _receiver(plan: SlowPlan, cluster: LocalCluster, daemon: str) -> SlowTask:
    is_slow = daemon == DAEMONS[-1]
    return SlowTask(
        name="slow" if is_slow else "healthy",
        address=_address(cluster, daemon),
        size=plan.size,
        policy=plan.policy if is_slow else "disconnect",
    )


def _sender(plan: SlowPlan, cluster: LocalCluster) -> SlowTask:
    return SlowTask(
        name="sender",
        address=_address(cluster, DAEMONS[0]),
        size=plan.size,
        seconds=LEAD_S + plan.stall_s + LEAD_S,
        rate=plan.mb_per_s * MEGA / plan.size,
    )


def _address(cluster: LocalCluster, daemon: str) -> str:
    return f"unix:{socket_path(cluster.cluster.digest(), daemon)}"


def _peak_kb(pid: int) -> int:
    fields = Path(f"/proc/{pid}/status").read_text().split()
    return int(fields[fields.index("VmHWM:") + 1])


# --- judgement


def _measurement(plan: SlowPlan, sent: SlowResult, received: list[SlowResult], peak_kb: int) -> SlowMeasurement:
    *healthy, slow = received
    must_have_all = [one for one in received if one in healthy or plan.policy == "block" or not one.ended]
    return SlowMeasurement(
        healthy_longest_pause_ms=_ms(max(one.longest_pause_s for one in healthy)),
        sender_longest_pause_ms=_ms(sent.longest_pause_s),
        lost_not_obsolete=sum(sent.messages - one.messages for one in must_have_all),
        purged_share=0.0,
        daemon_memory_mb=round(peak_kb * 1_024 / MEGA, 1),
        sent_mb_per_s=round(sent.messages * plan.size / MEGA / sent.seconds, 1),
        slow_messages_share=round(slow.messages / sent.messages, 3),
        slow_ended=slow.ended,
        slow_lag_mb=round(slow.lag_bytes / MEGA, 1),
        slow_lag_s=round(slow.lag_seconds, 2),
        problems=problems(plan, sent, received),
    )


def problems(plan: SlowPlan, sent: SlowResult, received: list[SlowResult]) -> list[str]:
    """What is not as it must be, in words."""
    found = [f"{one.name}: {one.problem}" for one in received if one.problem]
    *_, slow = received
    for one in received:
        may_end = one is slow and plan.policy == "disconnect"
        if one.ended and not may_end:
            found.append(f"{one.name} was ended: {one.ended}")
        elif not one.ended and one.messages != sent.messages:
            found.append(f"{one.name} got {one.messages:,} of {sent.messages:,} messages")
    # Who does not read for longer than a closing stream lingers cannot be told any more.
    if slow.ended and not slow.lag_bytes and plan.stall_s < LINGER_S:
        found.append(f"{slow.name} was ended without its lag: {slow.ended}")
    return found


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 1)
