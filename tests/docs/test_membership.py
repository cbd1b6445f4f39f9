"""The tables of docs/protocol/membership.md say what the code says: states, transitions, reasons."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from covey.protocol.evs.states import Reason, State, diagram

PAGE = (Path(__file__).parents[2] / "docs" / "protocol" / "membership.md").read_text()


def table(head: str) -> dict[str, str]:
    """The rows below this head, which has two columns."""
    (rows,) = re.findall(rf"^\| {re.escape(head)} \|\n\|---\|---\|\n((?:\|.*\|\n)+)", PAGE, re.MULTILINE)
    return dict(re.findall(r"^\| (\w+) \| (.+) \|$", rows, re.MULTILINE))


def meanings() -> dict[str, str]:
    """What stands below each state in the code, as a table says it."""
    (body,) = ast.parse(inspect.getsource(State)).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for state, text in zip(body.body, body.body[1:], strict=False):
        match state, text:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(said))):
                if name in State.__members__:
                    found[name] = said[0].lower() + said[1:].removesuffix(".")
    return found


def test_every_state_has_its_meaning() -> None:
    assert list(meanings()) == list(State.__members__)
    assert list(table("state | meaning").items()) == list(meanings().items())


def test_every_reason_is_put_in_words() -> None:
    assert list(table("reason | in words").items()) == [(reason.name, reason.value) for reason in Reason]


def test_the_table_of_transitions_is_that_of_the_code() -> None:
    (shown,) = re.findall(r"^```text\n(\w+ +-> .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown == diagram() + "\n", "put here what covey.protocol.evs.states.diagram() prints"
