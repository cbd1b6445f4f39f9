"""Trouble by messages: large beside small ones, and long names; and the senders that other troubles use.

In:        a HostilePlan and a stage.  Out: what there is to say of this trouble alone, in the stage's details.
Not here:  crowds of sessions (crowds.py), what is measured in every scenario (stage.py).
"""

from __future__ import annotations

from covey.lab.helper_process import HelperProcess

from .plan import HostilePlan
from .stage import FARTHEST, LEAD_S, OTHER, TROUBLED, HostileStage
from .task import SenderResult, SenderTask


def large(plan: HostilePlan, stage: HostileStage) -> None:
    """A large message beside small ones that keep the queue of the daemon full."""
    floods = [burst(stage, f"small{number}", ("small", "little"), 1_000, 1_000) for number in range(4)]
    echo = stage.sender(
        SenderTask(role="echo", name="large", address=stage.address(), groups=("large",), size_max=200_000)
    )
    echo.ready()
    for one in floods:
        one.tell("go")
    stage.wait(LEAD_S)
    [big] = for_a_while(stage, plan.seconds, echo)
    small = stopped(*floods)
    stage.details["small_messages"] = sum(one.messages for one in small)
    stage.details["large_messages"] = big.messages
    stage.details["large_longest_wait_ms"] = big.longest_wait_ms
    stage.details["large_is_waiting"] = big.is_waiting


def long_names(plan: HostilePlan, stage: HostileStage) -> None:
    """Small messages to three groups of 41 characters, while the other daemons have much to send too."""
    load = [flood(stage, f"load{daemon}", ("load",), at=daemon, together=100) for daemon in (OTHER, FARTHEST)]
    named = [burst(stage, f"named{number}", _names(3, 41), 20, 250) for number in range(3)]
    sent = for_a_while(stage, plan.seconds, *load, *named)
    stage.details["long_names_sent"] = sum(one.messages for one in sent[len(load) :])


def many_names(plan: HostilePlan, stage: HostileStage) -> None:
    """Messages of up to 56 KB to 90 groups of 78 characters."""
    named = burst(stage, "named", _names(90, 78), 1_000, 56_000)
    stage.details["many_names_sent"] = for_a_while(stage, plan.seconds, named)[0].messages


def _names(count: int, characters: int) -> tuple[str, ...]:
    return tuple(f"{number}".ljust(characters, "n") for number in range(count))


# --- senders


def flood(
    stage: HostileStage,
    name: str,
    to: tuple[str, ...],
    *,
    at: str = TROUBLED,
    in_turn: bool = False,
    together: int = 1,
    rate: float = 0.0,
) -> HelperProcess:
    """Messages of 1,000 bytes, one call after the other."""
    task = SenderTask(
        role="flood", name=name, address=stage.address(at), groups=to, in_turn=in_turn, together=together, rate=rate
    )
    return ready(stage.sender(task))


def burst(stage: HostileStage, name: str, to: tuple[str, ...], size_min: int, size_max: int) -> HelperProcess:
    """As many frames as the library writes, with one message each."""
    task = SenderTask(
        role="burst", name=name, address=stage.address(), groups=to, size_min=size_min, size_max=size_max
    )  # fmt: skip
    return ready(stage.sender(task))


def ready(program: HelperProcess) -> HelperProcess:
    program.ready()
    return program


def for_a_while(stage: HostileStage, seconds: float, *programs: HelperProcess) -> list[SenderResult]:
    for program in programs:
        program.tell("go")
    stage.wait(seconds)
    return stopped(*programs)


def stopped(*programs: HelperProcess) -> list[SenderResult]:
    for program in programs:
        program.tell("stop")
    return [program.answer(SenderResult) for program in programs]
