"""What `covey` exports is there, is typed, and is not loaded before it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import covey


@pytest.mark.parametrize("name", covey.__all__)
def test_every_export_exists(name: str) -> None:
    assert getattr(covey, name) is not None
    assert name in dir(covey)


def test_every_export_has_a_type() -> None:
    tree = ast.parse(Path(covey.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assigned = {
        node.target.id for node in block.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert imported | assigned | {"__version__"} == set(covey.__all__)


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        covey.conect  # noqa: B018


def test_a_daemon_loads_nothing_of_the_client_library_that_costs() -> None:
    code = "import covey.drivers.live.daemon, sys; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"asyncio", "covey.client.protocol", "covey.client.session", "covey.lab"}.isdisjoint(shown.split())


def test_types_are_shipped() -> None:
    assert (Path(covey.__file__).parent / "py.typed").exists()
