"""Every checker can fail: each planted bug is caught by the guarantee it names, from the trace read back from disk.

Invariants are off, and an exception does not count as caught. The same seeds pass without the bug.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from covey.drivers.simulation.run import run_seed
from covey.drivers.simulation.story import builtin_stories, play_story

from .mutants import COMPANIONS, MUTANTS, STORY_MUTANTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SEEDS = 50


@cache
def _passes_without(seed: int) -> bool:
    return not any(verdict.violations for verdict in run_seed(seed, invariants=False).verdicts)


def _broken(name: str, seed: int, trace: Path) -> set[str]:
    """The guarantees broken by a mutant; empty if the run ended in an exception."""
    with ExitStack() as planted:
        for mutant in (MUTANTS[name], COMPANIONS.get(name)):
            if mutant is not None:
                planted.enter_context(mutant.applied())
        try:
            result = run_seed(seed, trace=trace, invariants=False)
        except Exception:  # noqa: BLE001 - dying of a bug is not being caught by a guarantee
            return set()
    return {verdict.guarantee for verdict in result.verdicts if verdict.violations}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught_by_the_guarantee_it_names(name: str, tmp_path: Path) -> None:
    mutant = MUTANTS[name]
    for seed in range(mutant.first_seed, mutant.first_seed + SEEDS):
        broken = _broken(name, seed, tmp_path / str(seed))
        assert _passes_without(seed), f"seed {seed} fails without any mutant"
        if mutant.guarantee in broken:
            return
    pytest.fail(f"{mutant.guarantee} never caught {name!r} ({mutant.what})")


@pytest.mark.parametrize("name", STORY_MUTANTS)
def test_mutant_is_caught_in_its_story(name: str) -> None:
    mutant, story = STORY_MUTANTS[name]
    text = next(path for path in builtin_stories() if path.stem == story).read_text()
    assert f"\n{mutant.guarantee} " not in play_story(text)
    with mutant.applied():
        assert f"\n{mutant.guarantee} " in play_story(text)
