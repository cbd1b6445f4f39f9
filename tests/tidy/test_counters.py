"""Every counter is explained where it is born and counted somewhere, and the troubleshooting page says the same."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

import pytest

from covey.protocol.counters import Counter, Family
from docs.counter_tables import COMMAND, PAGE, explained, made

SOURCE = Path(__file__).parents[2] / "src" / "covey"


class Unexplained(Enum):
    FIRST = "first"
    SECOND = "second"
    """It has a sentence."""


def test_the_page_is_made_of_the_counters() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == made(page), f"docs/troubleshooting.md is not what counters.py says; run: {COMMAND}"


@pytest.mark.parametrize("kind", [Counter, Family])
def test_every_counter_is_explained(kind: type[Enum]) -> None:
    found = list(explained(kind))
    assert [one.words for one in found] == [one.value for one in kind]
    assert [one.words for one in found if not one.sentence.endswith(".")] == []


def test_a_counter_without_a_sentence_is_noticed() -> None:
    with pytest.raises(ValueError, match="FIRST needs a sentence"):
        list(explained(Unexplained))


def test_a_page_without_a_place_for_the_tables_is_noticed() -> None:
    with pytest.raises(ValueError, match="comments around"):
        made("# Troubleshooting\n")


@pytest.mark.parametrize("kind", [Counter, Family])
def test_every_counter_is_counted_somewhere(kind: type[Enum]) -> None:
    code = "\n".join(path.read_text() for path in sorted(SOURCE.rglob("*.py")) if path.name != "counters.py")
    used = set(re.findall(rf"\b{kind.__name__}\.([A-Z_]+)\b", code))
    assert [one.name for one in kind if one.name not in used] == []
