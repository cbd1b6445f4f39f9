"""The demonstration, act by act: what is shown, why it matters, what happens to the daemons, which views they install.

In:        a local cluster of a, b and c.  Out: values to show: a sentence before each act, then each view.
Not here:  how they are shown (cli/demo.py), judgement of the trace (simulation/checkers).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from .cluster import WITHIN_S, LocalCluster
from .events import View

LOAD_PER_SECOND: Final = 60.0
"""Submissions a second at each daemon."""


class Step(msgspec.Struct, frozen=True, tag_field="kind", tag="step"):
    """What is about to be shown, and why it matters. `since` says what the times of its views are counted from."""

    act: str
    text: str
    since: str = ""


class Shown(msgspec.Struct, frozen=True, tag_field="kind", tag="view"):
    """One view at one daemon, so many milliseconds after the event that the act is about."""

    act: str
    at: str
    after_ms: float
    view: str
    members: tuple[str, ...]
    transitional: tuple[str, ...]
    cause: str
    reason: str


Told = Step | Shown


class _Act(msgspec.Struct, frozen=True):
    name: str
    text: str
    since: str
    do: Callable[[LocalCluster], int]
    """Gives the wall clock from which the views are counted."""
    then: str
    """The daemons that must end up in one view."""


PROLOGUE: Final = Step(
    "prologue",
    "Three daemons, a, b and c, run as processes of their own on this machine. Each sends messages all the time, with "
    "every guarantee on offer from unreliable to safe. A view says who takes part. Views arrive in the same stream as "
    "messages, and daemons that move together from one view to the next have delivered the same messages in between: "
    "this is virtual synchrony, and it lets replicas stay equal without asking one another.",
)

_ACTS: Final = (
    _Act(
        "start",
        "a, b and c are started. Nobody tells them who is up: they find one another and agree on one view.",
        "after the last of them was up",
        lambda cluster: cluster.start("a", "b", "c"),
        "abc",
    ),
    _Act(
        "kill",
        "c is killed in the middle of its work (kill -9), without a last word. a and b must notice by themselves, and "
        "agree not only on who is left but on which of c's last messages count: else replicas would drift apart.",
        "after the kill",
        lambda cluster: cluster.kill("c"),
        "ab",
    ),
    _Act(
        "stop",
        "b is stopped in good order. It sees its own messages through and says goodbye, so that a need not wait for "
        "a timeout: planned work on a host costs next to nothing.",
        "after the signal",
        lambda cluster: cluster.stop("b"),
        "a",
    ),
    _Act(
        "restart",
        "b is started again. It is a new life, and takes no credit for what the old one had seen: nobody is listed as "
        "having moved together with it, so a program knows that b needs the state.",
        "after b was up",
        lambda cluster: cluster.start("b"),
        "ab",
    ),
    _Act(
        "merge",
        "c is started again too, and is merged into the running view. a and b move together: what they share stays "
        "shared, and only c has to catch up.",
        "after c was up",
        lambda cluster: cluster.start("c"),
        "abc",
    ),
)

EPILOGUE: Final = Step(
    "check",
    "The load stops. Every daemon has written down what it sent, delivered and installed, the killed one up to its "
    "last moment. Now each promise is checked on these traces alone, by code that knows nothing of the protocol.",
)


def play(cluster: LocalCluster, seconds: float) -> Iterator[Told]:
    """All acts, with this many seconds of traffic in each view; then the daemons come to rest and end."""
    yield PROLOGUE
    for act in _ACTS:
        yield Step(act.name, act.text, act.since)
        begun = time.time_ns()
        at = act.do(cluster)
        cluster.wait_for_view(*act.then)
        for view in cluster.views_since(begun):
            yield _shown(act.name, view, at)
        if act is _ACTS[-1]:
            cluster.calm()
        cluster.wait_for_traffic(int(LOAD_PER_SECOND * seconds * len(act.then)), within_s=WITHIN_S + 5 * seconds)
    yield EPILOGUE
    cluster.finish()


def _shown(act: str, view: View, since_ns: int) -> Shown:
    after_ms = round((view.time_ns - since_ns) / 1_000_000, 1)
    return Shown(act, view.name, after_ms, view.view, view.members, view.transitional, view.cause, view.reason)
