"""The troubles: what legal programs do to a daemon, each within every documented limit.

In:        a Plan and a stage.  Out: what there is to say of this trouble alone, in the stage's details.
Not here:  the stage, the bystander, what is measured in every scenario (stage.py).

Each is bounded in time, also where daemons are overwhelmed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from covey.config_file import Preset

from .programs import Program
from .stage import FARTHEST, OTHER, TROUBLED, Act, Stage, Terms
from .task import CrowdTask, SenderResult, SenderTask, Tally, own_group

GROUP: Final = "crowd"
GROUPS_SESSIONS: Final = 10
QUIET_S: Final = 0.5
"""A crowd to which nothing came for so long has all that there is."""
SMALL_BUFFERS: Final = {"message_bytes_max": 100_000, "session_receive_bytes": 1_000_000}
FLAP_S: Final = 1.0
WINDOW_S: Final = 5.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much trouble."""

    preset: Preset = "loopback"
    sessions: int = 4_000
    groups: int = 100_000
    silent: int = 20
    seconds: float = 10.0
    """How long senders send."""
    flap_seconds: float = 30.0
    block_every_s: float = 10.0
    patience_s: float = 60.0
    """How long a crowd may take to get what it asked for."""
    later_s: float = 5.0
    settings: dict[str, int] = {}
    """Besides those that a scenario needs."""


# --- crowds


def storm(plan: Plan, stage: Stage) -> None:
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


def groups(plan: Plan, stage: Stage) -> None:
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


def silent(plan: Plan, stage: Stage) -> None:
    """Members that never read, each of a group of its own, while somebody sends to them all as fast as is usual."""
    task = CrowdTask(name="q", path=stage.path(), sessions=plan.silent, reads=False, group_characters=20)
    crowd = _entered(stage, task)
    crowd.tell("go")
    stage.wait(plan.patience_s, lambda: stage.status(FARTHEST)["clients"]["group_count"] > plan.silent)
    names = tuple(own_group(task.name, session, 0, task.group_characters) for session in range(plan.silent))
    flood = _flood(stage, "flood", names, together=100, in_turn=True, rate=1_000.0)
    sent = _for_a_while(stage, plan.seconds, flood)
    stage.details["sent_mb"] = round(sent[0].messages / 1_000, 1)
    _leave(stage, crowd, plan.silent)


# --- the network


def flap(plan: Plan, stage: Stage) -> None:
    """One link that goes down and up once a second."""
    started_ns, end = time.time_ns(), time.monotonic() + plan.flap_seconds
    while time.monotonic() < end:
        stage.cluster.part((OTHER,), (FARTHEST,))
        stage.wait(FLAP_S / 2)
        stage.cluster.heal()
        stage.wait(FLAP_S / 2)
    stage.details["views_per_s"] = _rates(stage, started_ns, plan.flap_seconds)
    stage.cluster.wait_for_view(TROUBLED, OTHER, FARTHEST, within_s=plan.patience_s)


def _rates(stage: Stage, started_ns: int, seconds: float) -> list[float]:
    """Views a second in each five seconds, at the daemon with most in all."""
    times = [view.time_ns for view in max(stage.views().values(), key=len)]
    windows = max(1, round(seconds / WINDOW_S))
    placed = [int((at - started_ns) / 1e9 // WINDOW_S) for at in times if at >= started_ns]
    return [round(placed.count(window) / WINDOW_S, 2) for window in range(windows)]


# --- messages


def large(plan: Plan, stage: Stage) -> None:
    """A large message beside small ones that keep the queue of the daemon full."""
    floods = [_burst(stage, f"small{number}", ("small", "little"), 1_000, 1_000) for number in range(4)]
    echo = stage.sender(
        SenderTask(role="echo", name="large", address=stage.address(), groups=("large",), size_max=200_000)
    )
    echo.ready()
    echo.tell("go")
    *small, big = _for_a_while(stage, plan.seconds, *floods, echo)
    stage.details["small_messages"] = sum(one.messages for one in small)
    stage.details["large_messages"] = big.messages
    stage.details["large_longest_wait_ms"] = big.longest_wait_ms
    stage.details["large_is_waiting"] = big.is_waiting


def long_names(plan: Plan, stage: Stage) -> None:
    """Small messages to three groups of 41 characters, while the other daemons have much to send too."""
    load = [_flood(stage, f"load{daemon}", ("load",), at=daemon, together=100) for daemon in (OTHER, FARTHEST)]
    named = _burst(stage, "named", _names(3, 41), 20, 250)
    stage.details["long_names_sent"] = _for_a_while(stage, plan.seconds, *load, named)[-1].messages


def many_names(plan: Plan, stage: Stage) -> None:
    """Messages of up to 56 KB to 90 groups of 78 characters."""
    named = _burst(stage, "named", _names(90, 78), 1_000, 56_000)
    stage.details["many_names_sent"] = _for_a_while(stage, plan.seconds, named)[0].messages


def _names(count: int, characters: int) -> tuple[str, ...]:
    return tuple(f"{number}".ljust(characters, "n") for number in range(count))


def blocker(plan: Plan, stage: Stage) -> None:
    """A new member that makes senders wait and never reads, again and again."""
    count = stage.sender(SenderTask(role="count", name="count", address=stage.address(OTHER), groups=(GROUP,)))
    count.ready()
    flood = _flood(stage, "paced", (GROUP,), rate=2_000.0)
    flood.tell("go")
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
    [counted] = _stopped(count)
    _stopped(flood)
    stage.details["group_messages_per_s"] = _rate(counted, phases[0], phases[1])
    stage.details["group_messages_per_s_blocked"] = _rate(counted, phases[1], phases[2])


def _rate(counted: SenderResult, since: float, until: float) -> float:
    found = sum(messages for at, messages in counted.arrivals.items() if since * 10 <= at < until * 10)
    return round(found / (until - since), 1)


# --- helpers


def _entered(stage: Stage, task: CrowdTask) -> Program:
    return _ready(stage.crowd(task))


def _tally(crowd: Program) -> Tally:
    crowd.tell("how")
    return crowd.answer(Tally)


def _members(stage: Stage) -> int:
    """As the daemon farthest from the trouble knows them."""
    return int(stage.status(FARTHEST)["clients"]["groups"].get(GROUP, 0))


def _leave(stage: Stage, crowd: Program, sessions: int) -> None:
    crowd.tell("leave")
    tally = crowd.answer(Tally)
    stage.details["ended_by_daemon"] = sessions - tally.open
    stage.details["crowd_read_mb"] = round(tally.bytes_read / 1_000_000, 1)


def _flood(
    stage: Stage,
    name: str,
    to: tuple[str, ...],
    *,
    at: str = TROUBLED,
    in_turn: bool = False,
    together: int = 1,
    rate: float = 0.0,
) -> Program:
    """Messages of 1,000 bytes, one call after the other."""
    task = SenderTask(
        role="flood", name=name, address=stage.address(at), groups=to, in_turn=in_turn, together=together, rate=rate
    )
    return _ready(stage.sender(task))


def _burst(stage: Stage, name: str, to: tuple[str, ...], size_min: int, size_max: int) -> Program:
    """As many frames as the library writes, with one message each."""
    task = SenderTask(
        role="burst", name=name, address=stage.address(), groups=to, size_min=size_min, size_max=size_max
    )  # fmt: skip
    return _ready(stage.sender(task))


def _ready(program: Program) -> Program:
    program.ready()
    return program


def _for_a_while(stage: Stage, seconds: float, *programs: Program) -> list[SenderResult]:
    for program in programs:
        program.tell("go")
    stage.wait(seconds)
    return _stopped(*programs)


def _stopped(*programs: Program) -> list[SenderResult]:
    for program in programs:
        program.tell("stop")
    return [program.answer(SenderResult) for program in programs]


# --- all of them


class Scenario(NamedTuple):
    """A trouble, and the stages it needs: one after the other, each with its own terms."""

    meaning: str
    acts: tuple[tuple[Callable[[Plan, Stage], None], Callable[[Plan], Terms]], ...]

    def stages(self, plan: Plan) -> list[tuple[Act, Terms]]:
        return [(_act(act, plan), terms(plan)) for act, terms in self.acts]


def _act(act: Callable[[Plan, Stage], None], plan: Plan) -> Act:
    return lambda stage: act(plan, stage)


def _usual(plan: Plan) -> Terms:
    return Terms(preset=plan.preset, settings=plan.settings, later_s=plan.later_s)


def _with(
    settings: dict[str, int] | None = None, *, preset: Preset | None = None, may_miss: bool = False
) -> Callable[[Plan], Terms]:
    def made(plan: Plan) -> Terms:
        usual = _usual(plan)
        return msgspec.structs.replace(
            usual, preset=preset or usual.preset, may_miss=may_miss, settings=(settings or {}) | usual.settings
        )

    return made


SCENARIOS: Final = {
    "storm": Scenario("sessions that join one group at once, then leave", ((storm, _usual),)),
    "groups": Scenario("ten sessions that join very many groups, then leave", ((groups, _usual),)),
    "silent": Scenario("members that never read, beside a fast sender", ((silent, _usual),)),
    "flap": Scenario("one link that goes down and up once a second", ((flap, _with(may_miss=True)),)),
    "large": Scenario(
        "a large message beside many small ones", ((large, _with({"submit_queue_bytes": 220_000}, preset="lan")),)
    ),
    "names": Scenario(
        "messages to several groups with long names",
        ((long_names, _with(preset="lan")), (many_names, _with(preset="loopback"))),
    ),
    "blocker": Scenario("members that make senders wait, and never read", ((blocker, _with(SMALL_BUFFERS)),)),
}  # fmt: skip
