"""All troubles that legal programs and a bad link make, each with the daemons it needs; and the bad link itself.

In:        a HostilePlan.  Out: acts, and the terms of the stages they play on.
Not here:  trouble by sessions (crowds.py) and by messages (messages.py), the stage (stage.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from covey.config_file import Preset

from .crowds import blocker, groups, silent, storm
from .messages import large, long_names, many_names
from .plan import HostilePlan
from .stage import FARTHEST, OTHER, TROUBLED, Act, HostileStage, Terms

SMALL_BUFFERS: Final = {"message_bytes_max": 100_000, "session_receive_bytes": 1_000_000}
FLAP_S: Final = 1.0
WINDOW_S: Final = 5.0


class Scenario(NamedTuple):
    """A trouble, and the stages it needs: one after the other, each with its own terms."""

    meaning: str
    acts: tuple[tuple[Callable[[HostilePlan, HostileStage], None], Callable[[HostilePlan], Terms]], ...]

    def stages(self, plan: HostilePlan) -> list[tuple[Act, Terms]]:
        return [(_act(act, plan), terms(plan)) for act, terms in self.acts]


def _act(act: Callable[[HostilePlan, HostileStage], None], plan: HostilePlan) -> Act:
    return lambda stage: act(plan, stage)


def _usual(plan: HostilePlan) -> Terms:
    return Terms(preset=plan.preset, settings=plan.settings, later_s=plan.later_s)


def _with(
    settings: dict[str, int] | None = None, *, preset: Preset | None = None, may_miss: bool = False
) -> Callable[[HostilePlan], Terms]:
    def made(plan: HostilePlan) -> Terms:
        usual = _usual(plan)
        return msgspec.structs.replace(
            usual, preset=preset or usual.preset, may_miss=may_miss, settings=(settings or {}) | usual.settings
        )

    return made


# --- a bad link


def flap_one(plan: HostilePlan, stage: HostileStage) -> None:
    """The link of one daemon goes down and up once a second."""
    stage.details["views_per_s"] = _flap(plan, stage, (TROUBLED, OTHER))


def flap_pair(plan: HostilePlan, stage: HostileStage) -> None:
    """So does one between two daemons, both of which hear the third."""
    stage.details["views_per_s_of_a_pair"] = _flap(plan, stage, (OTHER,))


def _flap(plan: HostilePlan, stage: HostileStage, near: tuple[str, ...]) -> list[float]:
    started_ns, end = time.time_ns(), time.monotonic() + plan.flap_seconds
    while time.monotonic() < end:
        stage.cluster.part(near, (FARTHEST,))
        stage.wait(FLAP_S / 2)
        stage.cluster.heal()
        stage.wait(FLAP_S / 2)
    rates = _rates(stage, started_ns, plan.flap_seconds)
    stage.cluster.wait_for_view(TROUBLED, OTHER, FARTHEST, within_s=plan.patience_s)
    return rates


def _rates(stage: HostileStage, started_ns: int, seconds: float) -> list[float]:
    """Views a second in each five seconds, at the daemon with most in all."""
    times = [view.time_ns for view in max(stage.views().values(), key=len)]
    windows = max(1, round(seconds / WINDOW_S))
    window_of_each = [int((at - started_ns) / 1e9 // WINDOW_S) for at in times if at >= started_ns]
    return [round(window_of_each.count(window) / WINDOW_S, 2) for window in range(windows)]


# --- all of them

SCENARIOS: Final = {
    "storm": Scenario("sessions that join one group at once, then leave", ((storm, _usual),)),
    "groups": Scenario("ten sessions that join very many groups, then leave", ((groups, _usual),)),
    "silent": Scenario("members that never read, beside a fast sender", ((silent, _usual),)),
    "flap": Scenario(
        "a link that goes down and up once a second", ((flap_one, _usual), (flap_pair, _with(may_miss=True)))
    ),
    "large": Scenario(
        "a large message beside many small ones", ((large, _with({"submit_queue_bytes": 220_000}, preset="lan")),)
    ),
    "names": Scenario(
        "messages to several groups with long names",
        ((long_names, _with(preset="lan")), (many_names, _with(preset="loopback"))),
    ),
    "blocker": Scenario("members that make senders wait, and never read", ((blocker, _with(SMALL_BUFFERS)),)),
}  # fmt: skip
