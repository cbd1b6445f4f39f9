"""Every checker can fail: each planted bug is caught by the guarantee it names, from the trace read back from disk.

Invariants are off, and an exception does not count as caught. The same seeds pass without the bug.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, nullcontext
from functools import cache
from itertools import count, islice
from pathlib import Path

import pytest

from covey.drivers.simulation.options import Asked, is_steady
from covey.drivers.simulation.run import run_seed
from covey.drivers.simulation.steadiness import STEADINESS
from covey.drivers.simulation.story import builtin_stories, play_story

from .client_mutants import CLIENT_MUTANTS
from .first_seeds import FIRST_SEEDS
from .interest_mutants import INTEREST_COMPANIONS, INTEREST_MUTANTS, INTEREST_STORY_MUTANTS
from .mutants import COMPANIONS, MUTANTS, STORY_MUTANTS, Mutant
from .site_mutants import SITE_MUTANTS, SITE_STORY_MUTANTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SEEDS = 50


WITH_CLIENTS = Asked(clients=8)
STORIES = STORY_MUTANTS | SITE_STORY_MUTANTS | INTEREST_STORY_MUTANTS


@cache
def _passes_without(seed: int, asked: Asked) -> bool:
    return not any(verdict.violations for verdict in run_seed(seed, asked, invariants=False).verdicts)


def _broken(mutants: list[Mutant], seed: int, asked: Asked, trace: Path) -> set[str]:
    """The guarantees broken by a mutant; empty if the run ended in an exception."""
    with ExitStack() as planted:
        for mutant in mutants:
            planted.enter_context(mutant.applied())
        try:
            result = run_seed(seed, asked, trace=trace, invariants=False)
        except Exception:  # noqa: BLE001 - dying of a bug is not being caught by a guarantee
            return set()
    return {verdict.guarantee for verdict in result.verdicts if verdict.violations}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught_by_the_guarantee_it_names(name: str, tmp_path: Path) -> None:
    companion = COMPANIONS.get(name)
    _hunt(name, [MUTANTS[name], *([companion] if companion else [])], Asked(clients=0), tmp_path)


@pytest.mark.parametrize("name", SITE_MUTANTS)
def test_mutant_of_several_sites_is_caught_by_the_guarantee_it_names(name: str, tmp_path: Path) -> None:
    _hunt(name, [SITE_MUTANTS[name]], Asked(clients=0), tmp_path)


@pytest.mark.parametrize("name", INTEREST_MUTANTS)
def test_mutant_of_pruning_is_caught_by_the_guarantee_it_names(name: str, tmp_path: Path) -> None:
    _hunt(name, [INTEREST_MUTANTS[name]], WITH_CLIENTS, tmp_path)


@pytest.mark.parametrize("name", CLIENT_MUTANTS)
def test_mutant_of_groups_is_caught_by_the_guarantee_it_names(name: str, tmp_path: Path) -> None:
    _hunt(name, [CLIENT_MUTANTS[name]], WITH_CLIENTS, tmp_path)


def _hunt(name: str, mutants: list[Mutant], asked: Asked, traces: Path) -> None:
    mutant = mutants[0]
    for seed in _seeds(name, mutant.guarantee):
        broken = _broken(mutants, seed, asked, traces / str(seed))
        assert _passes_without(seed, asked), f"seed {seed} fails without any mutant"
        if mutant.guarantee in broken:
            return
    pytest.fail(f"{mutant.guarantee} never caught it: {mutant.what}")


def _seeds(name: str, guarantee: str) -> Iterable[int]:
    """A hand-picked one, then the first fifty that can show it: steadiness is judged in steady runs only."""
    able = filter(is_steady, count()) if guarantee == STEADINESS else count()
    first = [FIRST_SEEDS[name]] if name in FIRST_SEEDS else []
    return dict.fromkeys([*first, *islice(able, SEEDS)])


@pytest.mark.parametrize("name", STORIES)
def test_mutant_is_caught_in_its_story(name: str) -> None:
    mutant, story = STORIES[name]
    text = next(path for path in builtin_stories() if path.stem == story).read_text()
    assert f"\n{mutant.guarantee} " not in play_story(text)
    with mutant.applied(), INTEREST_COMPANIONS[name].applied() if name in INTEREST_COMPANIONS else nullcontext():
        assert f"\n{mutant.guarantee} " in play_story(text)
