"""`covey bench hostile`: one scenario after the other, each on daemons of its own.

In:        which scenarios, and a HostilePlan.  Out: an Outcome each; LiveError where it cannot be measured here.
Not here:  the scenarios (scenarios.py), how they are shown (cli/).
"""

from __future__ import annotations

import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from covey.lab.cluster import LiveError

from .outcome import Outcome, worst
from .plan import HostilePlan
from .scenarios import SCENARIOS
from .stage import play

FILES_BESIDES: Final = 256
"""Open files of a process besides its sessions."""


def measure_hostile(names: Sequence[str], plan: HostilePlan) -> Iterator[tuple[str, Outcome]]:
    with open_files(max(plan.sessions, plan.silent) + FILES_BESIDES):
        for name in names:
            yield name, worst([play(act, terms) for act, terms in SCENARIOS[name].stages(plan)])


@contextmanager
def open_files(needed: int) -> Iterator[None]:
    """As many for this process and those it starts; LiveError: the system does not let us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise LiveError(
            f"so many sessions need {needed:,} open files a process, and at most {hard:,} are allowed here "
            "(ulimit -Hn): raise that, or write fewer --sessions"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
