"""docs/driving.md: the obligations are numbered, know every input and effect, and name tests that exist."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from covey.protocol.building import build_daemon
from covey.protocol.daemon import Daemon
from covey.protocol.effects import Effect
from covey.protocol.inputs import Input, Submit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "driving.md").read_text()
OBLIGATION = re.compile(r"^\*\*D(\d+)\. ", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def functions(path: Path) -> set[str]:
    """Tests at the top of a file, as pytest finds them."""
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("path", "name"), sorted(set(TEST.findall(PAGE))))
def test_every_test_that_the_page_names_exists(path: str, name: str) -> None:
    assert (ROOT / path).is_file(), "the file was moved: docs/driving.md names it"
    assert name in functions(ROOT / path), "the test was renamed: docs/driving.md names it"


def test_obligations_are_numbered_one_by_one_and_each_is_held_by_a_test() -> None:
    _, *parts = OBLIGATION.split(PAGE)
    numbers, texts = parts[::2], parts[1::2]
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert [number for number, text in zip(numbers, texts, strict=True) if not TEST.search(text)] == []


def test_obligations_that_the_program_and_the_live_driver_name_exist() -> None:
    known = set(OBLIGATION.findall(PAGE))
    driver = (ROOT / "src" / "covey" / "drivers" / "live" / "driver.py").read_text()
    assert {*re.findall(r"\bD(\d+)\b", PAGE), *re.findall(r"\bD(\d+)\b", driver)} <= known


@pytest.mark.parametrize(
    "door", [build_daemon, Daemon.start, Daemon.step, Daemon.pull, Daemon.snapshot, Daemon.groups_snapshot]
)
def test_the_page_has_the_doors_with_their_parameters(door: Callable[..., object]) -> None:
    parameters = [name for name in inspect.signature(door).parameters if name != "self"]
    assert f"| `{door.__name__}({', '.join(parameters)})` |" in PAGE


def test_the_page_has_the_rules_of_every_field_of_a_submission() -> None:
    fields = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## What a driver may send")[2], re.MULTILINE)
    assert {*fields, "service"} == set(Submit.__struct_fields__)


@pytest.mark.parametrize("kind", [*get_args(Input), *get_args(Effect)])
def test_the_page_knows_every_input_and_effect(kind: type) -> None:
    assert f"`{kind.__name__}`" in PAGE
