"""Trouble by sessions: storms, very many groups, members that do not read, members that make senders wait.

In:        a HostilePlan and a stage.  Out: what there is to say of this trouble alone, in the stage's details.
Not here:  the crowd's own process (crowd.py), what is measured in every scenario (stage.py).

Each is bounded in time, also where daemons are overwhelmed.
"""

from __future__ import annotations

import time
from typing import Final

from covey.lab.helper_process import HelperProcess

from .messages import flood, for_a_while, ready, stopped
from .plan import HostilePlan
from .stage import FARTHEST, OTHER, HostileStage
from .task import CrowdTally, CrowdTask, SenderResult, SenderTask, own_group

GROUP: Final = "crowd"
GROUPS_SESSIONS: Final = 10
QUIET_S: Final = 0.5
"""A crowd to which nothing came for so long has all that there is."""


def storm(plan: HostilePlan, stage: HostileStage) -> None:
    """Sessions that join one group at once, and leave it at once."""
    crowd = _entered(stage, CrowdTask(name="s", path=stage.path(), sessions=plan.sessions, group=GROUP))
    started = time.monotonic()
    crowd.tell("go")
    stage.wait(plan.patience_s, lambda: _members(stage) >= plan.sessions)
    stage.details["joined"] = _members(stage)
    stage.details["join_s"] = round(time.monotonic() - started, 1)
    stage.wait(plan.patience_s, lambda: _tally(crowd).idle_s > QUIET_S)
    stage.details["told_s"] = round(time.monotonic() - started, 1)
    _leave(stage, crowd, plan.sessions)


def groups(plan: HostilePlan, stage: HostileStage) -> None:
    """Few sessions that join very many groups with long names, and leave."""
    each = plan.groups // GROUPS_SESSIONS
    crowd = _entered(
        stage, CrowdTask(name="g", path=stage.path(), sessions=GROUPS_SESSIONS, groups_each=each)
    )  # fmt: skip
    started = time.monotonic()
    crowd.tell("go")
    wanted = each * GROUPS_SESSIONS
    stage.wait(plan.patience_s, lambda: _tally(crowd).frames_read >= wanted)
    stage.details["joined"] = _tally(crowd).frames_read
    stage.details["join_s"] = round(time.monotonic() - started, 1)
    _leave(stage, crowd, GROUPS_SESSIONS)


def silent(plan: HostilePlan, stage: HostileStage) -> None:
    """Members that never read, each of a group of its own, while somebody sends to them all as fast as is usual."""
    task = CrowdTask(name="q", path=stage.path(), sessions=plan.silent, reads=False, group_characters=20)
    crowd = _entered(stage, task)
    crowd.tell("go")
    stage.wait(plan.patience_s, lambda: stage.status(FARTHEST)["clients"]["group_count"] > plan.silent)
    names = tuple(own_group(task.name, session, 0, task.group_characters) for session in range(plan.silent))
    sender = flood(stage, "flood", names, together=100, in_turn=True, rate=1_000.0)
    sent = for_a_while(stage, plan.seconds, sender)
    stage.details["sent_mb"] = round(sent[0].messages / 1_000, 1)
    _leave(stage, crowd, plan.silent)


def blocker(plan: HostilePlan, stage: HostileStage) -> None:
    """A new member that makes senders wait and never reads, again and again."""
    count = stage.sender(SenderTask(role="count", name="count", address=stage.address(OTHER), groups=(GROUP,)))
    count.ready()
    sender = flood(stage, "paced", (GROUP,), rate=2_000.0)
    sender.tell("go")
    phases = [time.monotonic()]
    stage.wait(plan.seconds)
    phases.append(time.monotonic())
    for number in range(2):
        task = CrowdTask(
            name=f"b{number}", path=stage.path(), sessions=1, group=GROUP, reads=False, policy="block"
        )  # fmt: skip
        _entered(stage, task).tell("go")
        stage.wait(plan.block_every_s)
    phases.append(time.monotonic())
    [counted] = stopped(count)
    stopped(sender)
    stage.details["group_messages_per_s"] = _rate(counted, phases[0], phases[1])
    stage.details["group_messages_per_s_blocked"] = _rate(counted, phases[1], phases[2])


def _rate(counted: SenderResult, since: float, until: float) -> float:
    found = sum(messages for at, messages in counted.arrivals.items() if since * 10 <= at < until * 10)
    return round(found / (until - since), 1)


# --- helpers


def _entered(stage: HostileStage, task: CrowdTask) -> HelperProcess:
    return ready(stage.crowd(task))


def _tally(crowd: HelperProcess) -> CrowdTally:
    crowd.tell("how")
    return crowd.answer(CrowdTally)


def _members(stage: HostileStage) -> int:
    """As the daemon farthest from the trouble knows them."""
    return int(stage.status(FARTHEST)["clients"]["groups"].get(GROUP, 0))


def _leave(stage: HostileStage, crowd: HelperProcess, sessions: int) -> None:
    crowd.tell("leave")
    tally = crowd.answer(CrowdTally)
    stage.details["ended_by_daemon"] = sessions - tally.open
    stage.details["crowd_read_mb"] = round(tally.bytes_read / 1_000_000, 1)
