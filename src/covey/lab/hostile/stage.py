"""Three daemons and a bystander, around a piece of trouble: who lives, what waits, what is remembered.

In:        settings; an act, which makes the trouble with the programs of the stage.
Out:       an Outcome. Whatever goes wrong on the stage is a problem in it, and never an exception.
Not here:  the acts (scenarios.py).

The trouble is at daemon a; the bystander sends there, and receives there and at b. While it lasts, nobody asks daemon a
anything.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, cast

import msgspec

from covey.client.address import socket_path
from covey.config_file import Preset
from covey.drivers.live.events import DaemonView, Status
from covey.drivers.live.told import LiveStatus
from covey.lab.child import Child
from covey.lab.cluster import LiveError, LocalCluster
from covey.lab.helper_process import PATIENCE_S, HelperProcess, NamedTask

from .outcome import Detail, Outcome
from .task import BystanderResult, BystanderTask, CrowdTask, SenderTask

DAEMONS: Final = ("a", "b", "c")
TROUBLED, OTHER, FARTHEST = DAEMONS
LEAD_S: Final = 0.5
"""How long all is well before the trouble."""
POLL_S: Final = 0.2


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage is made of."""

    preset: Preset = "loopback"
    settings: dict[str, int] = {}
    later_s: float = 5.0
    """How long after the trouble its memory is looked at."""
    may_miss: bool = False
    """The network is cut: who is at another daemon need not get everything."""


class HostileStage:
    """What an act works with."""

    def __init__(self, cluster: LocalCluster, stack: ExitStack) -> None:
        self.cluster = cluster
        self.since_ns = time.time_ns()
        self.details: dict[str, Detail] = {}
        self._stack = stack

    def path(self, daemon: str = TROUBLED) -> str:
        return str(socket_path(self.cluster.cluster.digest(), daemon))

    def address(self, daemon: str = TROUBLED) -> str:
        return f"unix:{self.path(daemon)}"

    def crowd(self, task: CrowdTask) -> HelperProcess:
        return self.started("crowd", task)

    def sender(self, task: SenderTask) -> HelperProcess:
        return self.started("sender", task)

    def started(self, module: str, task: NamedTask) -> HelperProcess:
        program = HelperProcess(f"{__package__}.{module}", task)
        self._stack.callback(program.close)
        return program

    def bystanders(self, may_miss: bool) -> list[HelperProcess]:
        """The sender, then the receivers."""
        tasks = [
            BystanderTask(role="send", name="sender", address=self.address()),
            BystanderTask(role="receive", name="near", address=self.address()),
            BystanderTask(role="receive", name="far", address=self.address(OTHER), may_miss=may_miss),
        ]
        return [self.started("bystander", task) for task in tasks]

    def status(self, daemon: str, within_s: float = PATIENCE_S) -> LiveStatus:
        """What a daemon says of itself, as soon as it can."""
        child = self.cluster.child(daemon)
        at = len(child.events)

        def answers() -> list[Status]:
            return [event for event in child.events[at:] if isinstance(event, Status)]

        child.command("status")
        self.cluster.poll(lambda: bool(answers()) or bool(self.dead()), f"the status of {daemon}", within_s)
        if not answers():
            raise LiveError("a daemon died")
        return cast("LiveStatus", answers()[0].snapshot)

    def dead(self) -> list[Child]:
        return [child for child in self.cluster.living() if child.exit_code is not None]

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Until it holds, or so long; LiveError as soon as a daemon has died."""
        deadline = time.monotonic() + seconds
        while not self.dead():
            if until():
                return True
            if (left := deadline - time.monotonic()) <= 0:
                return False
            time.sleep(min(left, POLL_S))
        raise LiveError("a daemon died")

    def views(self) -> dict[str, list[DaemonView]]:
        """Since the common one, by daemon."""
        return {
            child.name: [
                event for event in child.events if isinstance(event, DaemonView) and event.time_ns > self.since_ns
            ]
            for child in self.cluster.living()
        }


Act = Callable[[HostileStage], None]


def play(act: Act, terms: Terms) -> Outcome:
    """An act on a stage of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="covey-bench-") as directory,
        LocalCluster(Path(directory), len(DAEMONS), run="hostile", traced=False, preset=terms.preset) as cluster,
        ExitStack() as stack,
    ):
        lines = ["[settings]", *(f"{name} = {value}" for name, value in terms.settings.items())]
        cluster.file.write_text(cluster.file.read_text() + "\n" + "\n".join(lines) + "\n")
        cluster.start(*DAEMONS)
        cluster.wait_for_view(*DAEMONS)
        return _Play(HostileStage(cluster, stack), terms).outcome(act)


class _Play:
    """The act, what is found after it, and all that went wrong."""

    def __init__(self, stage: HostileStage, terms: Terms) -> None:
        self._stage = stage
        self._terms = terms
        self._problems: list[str] = []
        self._bystanders = stage.bystanders(terms.may_miss)

    def outcome(self, act: Act) -> Outcome:
        self._try(self._begin)
        self._try(lambda: act(self._stage))
        self._try(lambda: bool(self._stage.wait(self._terms.later_s)))
        steps = [self._longest_step(daemon) for daemon in DAEMONS]
        memory = self._memory()
        results = self._bystander_results()
        dead = [f"daemon {child.name} died: {_last_line(child)}" for child in self._stage.dead()]
        return Outcome(
            longest_step_ms=max((step for step in steps if step is not None), default=None),
            bystander_longest_wait_ms=max((one.longest_wait_ms for one in results[1:]), default=None),
            bystander_messages=results[0].messages if results else 0,
            views_lost=max(map(len, self._stage.views().values())),
            peak_memory_mb=memory.get("VmHWM"),
            later_memory_mb=memory.get("VmRSS"),
            details=self._stage.details,
            problems=list(dict.fromkeys([*dead, *self._problems])),
        )

    def _try(self, what: Callable[[], object]) -> None:
        try:
            what()
        except LiveError as error:
            self._problems.append(str(error))

    def _begin(self) -> None:
        for program in self._bystanders:
            program.ready()
        self._bystanders[0].tell("go")
        self._stage.wait(LEAD_S)

    def _longest_step(self, daemon: str) -> float | None:
        try:
            return self._stage.status(daemon)["longest_step_ms"]
        except LiveError as error:
            self._problems.append(str(error))
            return None

    def _memory(self) -> dict[str, float]:
        """Megabytes that daemon a had at most, and has."""
        child = self._stage.cluster.child(TROUBLED)
        try:
            lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        except OSError:
            return {}
        sizes = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("VmHWM:", "VmRSS:"))}
        return {name: round(int(kb) * 1_024 / 1_000_000, 1) for name, kb in sizes.items()}

    def _bystander_results(self) -> list[BystanderResult]:
        """Of the sender, then of the receivers; every message must have come to each, in order."""
        self._bystanders[0].tell("stop")
        results: list[BystanderResult] = []
        # If a daemon has died, its programs say so at once, and the others wait for a last message in vain.
        patience = 5.0 if self._problems else PATIENCE_S
        for program in self._bystanders:
            try:
                results.append(program.answer(BystanderResult, patience))
            except LiveError as error:
                self._problems.append(f"bystander {error}")
        self._problems += [f"bystander {one.name}: {one.problem}" for one in results if one.problem]
        for one in results[1:]:
            missed = results[0].messages - one.messages
            if missed and not (self._terms.may_miss and one.name == "far"):
                self._problems.append(f"bystander {one.name} got {one.messages:,} of {results[0].messages:,} messages")
        return results


def _last_line(child: Child) -> str:
    return (child.last_words().splitlines() or ["it left no word"])[-1]
