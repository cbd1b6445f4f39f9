"""Every reason that a program or an operator can be told has its entry in docs/troubleshooting.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.protocol.evs.states import Reason

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "covey"
PAGE = re.sub(r"\s+", " ", (ROOT / "docs" / "troubleshooting.md").read_text())

TOLD_BY = {"Failed": 1, "_end": -1, "_ended": 0, "_reject": -1, "end_all": 0, "lost": 0, "_enter_over": 0}
"""Functions that tell a reason, and the argument that is it."""

TOLD_BY_DESK = {"Failed": 1, "end": 1, "reject": 1, "_too_slow": 1, "end_noticed": 1}
"""The same at the daemon's desk."""

FILES = {
    "protocol/clients.py": TOLD_BY_DESK,
    "protocol/requests.py": TOLD_BY_DESK,
    "protocol/liveness.py": TOLD_BY_DESK,
    "protocol/desk.py": TOLD_BY_DESK,
    "protocol/session/problems.py": {},
    "protocol/dialects/native_reader.py": {},
    "protocol/daemon.py": {"end_all": 0},
    "client/protocol.py": TOLD_BY,
    "client/stream.py": TOLD_BY,
    "client/dial.py": TOLD_BY,
    "client/plan.py": {},
    "client/address.py": {"ConnectError": 0},
    "names.py": {},
}
RETURNED_BY = re.compile(r".*(_problem|^_problem|^why_not)$")
"""Functions whose returned texts are reasons."""


def literal(node: ast.expr | None) -> str:
    """The longest part of a text that is written in the code."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value for part in node.values if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        return max(parts, key=len, default="").strip(" :(;,")
    return ""


def either(node: ast.Return) -> list[ast.expr | None]:
    """What it returns, whichever way a condition goes."""
    return [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def reasons(tree: ast.AST, told_by: dict[str, int]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in told_by:
            at = told_by[called(node)]
            if node.args and -1 <= at < len(node.args):
                yield literal(node.args[at])
        elif isinstance(node, ast.Call) and called(node) == "Wording":
            yield from (literal(keyword.value) for keyword in node.keywords)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id in {"problem", "reason"}:
                yield literal(node.value)
        elif isinstance(node, ast.FunctionDef) and RETURNED_BY.match(node.name):
            yield from (literal(text) for one in ast.walk(node) if isinstance(one, ast.Return) for text in either(one))


def told() -> list[str]:
    found: set[str] = set()
    for name, told_by in FILES.items():
        found.update(reasons(ast.parse((SOURCE / name).read_text()), told_by))
    return sorted(reason for reason in found if len(reason) > 3)


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_of_a_view_is_explained(reason: Reason) -> None:
    assert reason.value in PAGE


@pytest.mark.parametrize("reason", told())
def test_every_reason_that_a_program_is_told_is_explained(reason: str) -> None:
    assert reason in PAGE


def test_reasons_are_found() -> None:
    source = (
        'def f():\n    self._end(s, f"it said {x} twice")\n    return "no"\ndef name_problem():\n    return "bad"\n'
    )
    assert sorted(reasons(ast.parse(source), TOLD_BY)) == ["bad", "it said"]
    assert len(told()) > 20
