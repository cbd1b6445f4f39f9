"""What the documents show works: Python blocks run on a real cluster, commands exist with the options they are given.

The documents are the README, all pages below docs/, and the programs in docstrings that the page of the API shows.

A comment before a Python block says how it is run:

    (none)                            a whole program: it ends by itself, without an error
    <!-- snippet: until "TEXT" -->    a whole program with the argument `ann`: it goes on until it prints the text
    <!-- snippet: inside -->          part of a program: `session` is connected and has asked to join "room"
    <!-- snippet: skip because … -->  not ours: skipped, and the reason is shown
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

import covey
from covey.client.address import socket_path
from covey.lab.cluster import LocalCluster
from tests.examples.crew import three

ROOT = Path(__file__).parents[2]
WITHIN_S = 30
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(
    r"^(?P<indent> *)(?:<!-- snippet: (?P<how>.*?) -->\n(?P=indent))?"
    r"```(?P<language>[a-z]*)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?(covey|make|python)(?=\s|$)(.*)$")


class Block(NamedTuple):
    place: str
    language: str
    how: str
    body: str


def blocks() -> Iterator[Block]:
    for path in DOCUMENTS:
        text = path.read_text()
        for found in FENCE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            place = f"{path.relative_to(ROOT)}:{line}"
            yield Block(place, found["language"], found["how"] or "", textwrap.dedent(found["body"]))


def python_blocks() -> list[Any]:
    return [pytest.param(block, id=block.place) for block in blocks() if block.language == "python"]


# --- Python


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("snippets")
    with three(directory) as made:
        yield made


@pytest.mark.live
@pytest.mark.parametrize("block", python_blocks())
def test_python_blocks_run(block: Block, cluster: LocalCluster) -> None:
    if reason := block.how.removeprefix("skip because ") if block.how.startswith("skip") else "":
        ast.parse(block.body)
        pytest.skip(reason)
    address = f"unix:{socket_path(cluster.cluster.digest(), 'a')}"
    if block.how == "inside":
        asyncio.run(asyncio.wait_for(inside(block, address), WITHIN_S))
    else:
        text = re.fullmatch(r'until "(.*)"', block.how)
        assert text or not block.how, f"what is {block.how!r}?"
        run(block.body, address, text[1] if text else None)


@pytest.mark.live
@pytest.mark.parametrize("function", [covey.connect, covey.blocking.connect], ids=["connect", "blocking.connect"])
def test_programs_in_docstrings_run(function: object, cluster: LocalCluster) -> None:
    """They stand on the page of the API, which is made of docstrings."""
    indented = [line for line in (inspect.getdoc(function) or "").splitlines() if not line or line.startswith("    ")]
    code = textwrap.dedent("\n".join(indented))
    assert "covey." in code
    run(code, f"unix:{socket_path(cluster.cluster.digest(), 'a')}", None)


async def inside(block: Block, address: str) -> None:
    code = compile(block.body, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    async with covey.connect("inside", address) as session:
        await session.join("room")
        made = eval(code, {"covey": covey, "session": session, "asyncio": asyncio})
        if inspect.iscoroutine(made):
            await made


def run(code: str, address: str, until: str | None) -> None:
    environment = os.environ | {"COVEY_ADDRESS": address, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", code, "ann"], env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as program:
        assert program.stdout is not None
        try:
            if until is None:
                program.communicate(timeout=WITHIN_S)
                assert program.returncode == 0
            else:
                assert any(until in line for line in program.stdout), f"it ended without {until!r}"
        finally:
            program.kill()


def test_no_document_says_how_many_events_a_seed_has() -> None:
    """Any change of the protocol or of the simulator may change that."""
    said = [f"{path.name}: {found}" for path in DOCUMENTS for found in re.findall(r'"events": \d+', path.read_text())]
    assert said == []


def test_all_blocks_are_found() -> None:
    """Every fence that a reader sees is one of ours, so that none escapes."""
    fences = sum(len(re.findall(r"^ *```", path.read_text(), re.MULTILINE)) for path in DOCUMENTS)
    assert fences == 2 * len(list(blocks()))
    assert [one.place for one in blocks() if one.language == "py" and not one.body.startswith("--8<--")] == []


# --- commands


def commands() -> list[Any]:
    found: dict[str, str] = {}
    for block in blocks():
        if block.language in {"", "sh", "console"}:
            for number, line in enumerate(block.body.splitlines(), start=1):
                if match := COMMAND.match(line):
                    found.setdefault(" ".join(match.group(1, 2)), f"{block.place}+{number}")
    return [pytest.param(command, id=f"{place} {command[:40].strip()}") for command, place in found.items()]


@pytest.mark.parametrize("command", commands())
def test_commands_exist(command: str) -> None:
    line = re.split(r"\s[|>]\s|\s&&\s", command)[0]
    program, *words = shlex.split(line, comments=True)
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert [word for word in words if "=" not in word and word not in targets] == []
    elif program == "python":
        check_python(words)
    else:
        check_covey(words)


def check_python(words: list[str]) -> None:
    if words[0] == "-m":
        assert (ROOT / words[1].replace(".", "/")).with_suffix(".py").exists() or words[1].startswith("covey.")
        if words[1].startswith("examples."):
            check_example(words[1], words[2:])
    elif words[0] != "hello.py":  # What the quick start tells to write.
        assert (ROOT / words[0]).exists()


def check_example(module: str, arguments: list[str]) -> None:
    """It understands these arguments: it gets as far as looking for a daemon."""
    environment = os.environ | {"COVEY_ADDRESS": "unix:/nowhere"}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert "nobody listens at unix:/nowhere" in done.stderr


def check_covey(words: list[str]) -> None:
    command: Any = typer.main.get_command(__import__("covey.cli.main", fromlist=["app"]).app)
    while words and (children := getattr(command, "commands", None)):
        name = words.pop(0)
        assert name in children, f"there is no command {name!r}"
        command = children[name]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert [word for word in words if word.startswith("--") and word.partition("=")[0] not in options] == []
