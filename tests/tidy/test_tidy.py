"""The rules of the house that a machine can check: sizes, purity, and documents that say what the code does.

In:   the files of the repository, and the modules whose names the documents must know.
Out:  one failing test a rule, with file and line of each breach.
Not here: formatting, lint, types (ruff, mypy) and who may import whom (the import contracts in pyproject.toml).
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import pytest
import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT: Final = Path(__file__).resolve().parents[2]
PROTOCOL: Final = ROOT / "src" / "covey" / "protocol"

FILE_LINES_MAX: Final = 600
PROTOCOL_FILE_LINES_MAX: Final = 400
FUNCTION_LINES_MAX: Final = 70

# Builtins that reach outside, or whose value differs from one run of Python to the next.
IMPURE_BUILTINS: Final = frozenset({"__import__", "breakpoint", "hash", "id", "input", "open", "print"})

# ----------------------------------------------------------------------------------------------- the files we look at


@cache
def tracked_files() -> tuple[Path, ...]:
    """What git tracks or would track; without git, everything that is not a cache."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        paths = [ROOT / name for name in sorted(set(listed)) if name]
    else:
        paths = sorted(ROOT.rglob("*"))
    return tuple(path for path in paths if path.is_file() and not is_cache(path.relative_to(ROOT)))


def is_cache(path: Path) -> bool:
    made = {".git", ".hypothesis", ".venv", "__pycache__", "build", "dist"}
    return any(part in made or part.endswith("_cache") for part in path.parts)


def python_files() -> list[Path]:
    return [path for path in tracked_files() if path.suffix == ".py"]


def protocol_files() -> list[Path]:
    return [path for path in python_files() if path.is_relative_to(PROTOCOL)]


def markdown_files() -> list[Path]:
    return [path for path in tracked_files() if path.suffix == ".md"]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def called_name(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def assert_none(breaches: Iterable[str], rule: str) -> None:
    found = list(breaches)
    assert not found, "\n  ".join([f"{rule}:", *found])


# ----------------------------------------------------------------------------------------------------------- 1. sizes


def long_functions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield node.lineno, f"{node.name} has {lines} lines"


def test_no_file_is_too_long() -> None:
    lengths = [(path, len(read(path).splitlines())) for path in python_files()]
    breaches = [f"{place(path, 1)} has {lines} lines" for path, lines in lengths if lines > lines_max(path)]
    rule = f"at most {FILE_LINES_MAX} lines, below protocol/ {PROTOCOL_FILE_LINES_MAX}"
    assert_none(breaches, f"a file has {rule}; past that it holds two ideas")


def lines_max(path: Path) -> int:
    return PROTOCOL_FILE_LINES_MAX if path.is_relative_to(PROTOCOL) else FILE_LINES_MAX


def test_files_of_the_protocol_have_the_narrower_bound() -> None:
    assert lines_max(PROTOCOL / "daemon.py") == PROTOCOL_FILE_LINES_MAX < lines_max(ROOT / "tests" / "x.py")


def test_no_function_is_too_long() -> None:
    breaches = [
        f"{place(path, line)} {what}"
        for path in python_files()
        for line, what in long_functions(ast.parse(read(path), str(path)))
    ]
    assert_none(breaches, f"a function has at most {FUNCTION_LINES_MAX} lines")


@pytest.mark.parametrize(("lines", "noticed"), [(FUNCTION_LINES_MAX, False), (FUNCTION_LINES_MAX + 1, True)])
def test_a_long_function_is_noticed(lines: int, noticed: bool) -> None:
    source = "def f():\n" + "    x = 1\n" * (lines - 1)
    assert bool(list(long_functions(ast.parse(source)))) == noticed


# ---------------------------------------------------------------------------------------------------- 2. a pure core


@cache
def impure_modules() -> frozenset[str]:
    """The modules that the import contract forbids: one list, here and there."""
    settings = tomllib.loads(read(ROOT / "pyproject.toml"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (pure_core,) = [contract for contract in contracts if contract["id"] == "pure-core"]
    return frozenset(pure_core["forbidden_modules"])


def is_impure(module: str) -> bool:
    return module.partition(".")[0] in impure_modules() | {"importlib"}


def impurities(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Imports of impure modules in any form, and calls of impure builtins."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, f"imports {alias.name}") for alias in node.names if is_impure(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and is_impure(node.module or ""):
            yield node.lineno, f"imports from {node.module}"
        elif isinstance(node, ast.Call) and called_name(node) in IMPURE_BUILTINS:
            yield node.lineno, f"calls {called_name(node)}"


def test_the_protocol_is_pure() -> None:
    breaches = [
        f"{place(path, line)} {what}"
        for path in protocol_files()
        for line, what in impurities(ast.parse(read(path), str(path)))
    ]
    assert_none(breaches, "below src/covey/protocol, time, chance and the world come in as arguments only")


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path as path",
        "from time import monotonic",
        "from asyncio.events import get_event_loop",
        "def f():\n    import random",
        "import importlib",
        "x = hash('a')",
        "__import__('time')",
    ],
)
def test_an_impurity_is_noticed(source: str) -> None:
    assert list(impurities(ast.parse(source)))


@pytest.mark.parametrize("source", ["from .clock import time", "import msgspec", "timer.open()", "from . import os"])
def test_what_only_sounds_impure_is_not_reported(source: str) -> None:
    assert not list(impurities(ast.parse(source)))


# ------------------------------------------------------------------------------------------- plans only in the checks

CHECKS: Final = ROOT / "src" / "covey" / "analysis" / "checks"
# What brings rows to the driver, runs Python on rows, or pairs everything with everything.
NOT_A_PLAN: Final = re.compile(
    r"(collect|isEmpty|toPandas|toArrow|toLocalIterator|rdd|crossJoin|\w*udf|(apply|map)In\w+|foreach\w*)"
)


def breaches_of_planning(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if NOT_A_PLAN.fullmatch(name):
            yield node.lineno, f"uses {name}"  # type: ignore[attr-defined]


def test_checks_are_plans() -> None:
    breaches = [
        f"{place(path, line)} {what}"
        for path in python_files()
        if path.is_relative_to(CHECKS)
        for line, what in breaches_of_planning(ast.parse(read(path), str(path)))
    ]
    assert_none(breaches, "a check is a plan for Spark: no Python on rows, nothing brought to the driver, no pairs")


@pytest.mark.parametrize(
    ("source", "noticed"),
    [
        ("rows.collect()", True),
        ("rows.isEmpty()", True),
        ("F.pandas_udf(f)", True),
        ("rows.groupBy('a').applyInPandas(f)", True),
        ("F.collect_set('a')", False),
    ],
)
def test_what_is_no_plan_is_noticed(source: str, noticed: bool) -> None:
    assert bool(list(breaches_of_planning(ast.parse(source)))) == noticed


# --------------------------------------------------------------------------------------------- one name, one meaning

TWINS: Final = {
    "Session": "a program imports the one that waits as it does: covey.Session, or covey.blocking.Session",
}
"""Names that two classes may have, and why."""


def classes() -> dict[str, list[Path]]:
    """Where a class of each name is defined in the package."""
    found: dict[str, list[Path]] = {}
    for path in python_files():
        if path.is_relative_to(ROOT / "src"):
            for node in ast.walk(ast.parse(read(path), str(path))):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(path)
    return found


def test_a_class_has_a_name_of_its_own() -> None:
    twins = [
        f"{name}: {', '.join(str(path.relative_to(ROOT)) for path in paths)}"
        for name, paths in classes().items()
        if len(paths) > 1 and name not in TWINS
    ]
    assert_none(twins, "one name, one meaning: say which plan, which task, which program it is")


def test_every_name_that_two_classes_may_have_is_needed() -> None:
    assert_none([name for name in TWINS if len(classes()[name]) < 2], "no twin has this name any more: take it out")


# ---------------------------------------------------------------------------------------------- 3. no order from sets

# Who calls these does not care in which order the elements come.
ORDER_BLIND: Final = frozenset({"all", "any", "frozenset", "len", "set", "sorted", "sum"})
# These hand on the order in which the elements come.
ORDER_KEEPING: Final = frozenset({"dict", "enumerate", "iter", "list", "next", "tuple", "zip"})


def is_set(node: ast.AST) -> bool:
    """Obviously a set: a literal, a comprehension, a call of set, or an operation on one of these."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor):
        return is_set(node.left) or is_set(node.right)
    return isinstance(node, ast.Set | ast.SetComp) or called_name(node) in {"set", "frozenset"}


def arguments_of(tree: ast.AST, names: frozenset[str]) -> list[ast.expr]:
    """All arguments of calls of the named functions."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [argument for call in calls if called_name(call) in names for argument in call.args]


def iterated_by(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.iter]
    if isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
        return [generator.iter for generator in node.generators]
    return node.args if isinstance(node, ast.Call) and called_name(node) in ORDER_KEEPING else []


def set_iterations(tree: ast.AST) -> Iterator[int]:
    blind = {id(argument) for argument in arguments_of(tree, ORDER_BLIND)}
    for node in ast.walk(tree):
        if id(node) not in blind:
            yield from (expression.lineno for expression in iterated_by(node) if is_set(expression))


def test_nothing_in_the_protocol_takes_its_order_from_a_set() -> None:
    breaches = [place(path, line) for path in protocol_files() for line in set_iterations(ast.parse(read(path)))]
    assert_none(breaches, "sets of strings have another order in each run: wrap them in sorted(...)")


@pytest.mark.parametrize(
    ("source", "noticed"),
    [
        ("for x in {a, b}: pass", True),
        ("for x in set(a): pass", True),
        ("for x in frozenset(a) - b: pass", True),
        ("y = [x for x in {x for x in a}]", True),
        ("y = list(set(a))", True),
        ("for i, x in enumerate(set(a)): pass", True),
        ("for x in sorted({a, b}): pass", False),
        ("y = {x for x in set(a)}", False),
        ("y = any(x for x in set(a))", False),
        ("y = sorted(list(set(a)))", False),
        ("for x in a - b: pass", False),
    ],
)
def test_an_iteration_over_a_set_is_noticed(source: str, noticed: bool) -> None:
    assert bool(list(set_iterations(ast.parse(source)))) == noticed


# ------------------------------------------------------------------------------------------------------ 4. guarantees


def guarantee_rows() -> list[tuple[str, str, str, str]]:
    """(number, name, promise, status) of each row of the tables in docs/guarantees.md."""
    row = re.compile(r"^\| ([A-Z]\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
    return row.findall(read(ROOT / "docs" / "guarantees.md"))


def held() -> list[str]:
    return list(importlib.import_module("covey.guarantees").HELD)


def load_mutants() -> Mapping[str, Any]:
    daemons = importlib.import_module("tests.simulation.mutants").MUTANTS
    sites = importlib.import_module("tests.simulation.site_mutants").SITE_MUTANTS
    clients = importlib.import_module("tests.simulation.client_mutants").CLIENT_MUTANTS
    pruning = importlib.import_module("tests.simulation.interest_mutants").INTEREST_MUTANTS
    return {**daemons, **sites, **pruning, **clients}


def test_the_document_has_the_guarantees_of_the_list() -> None:
    listed = importlib.import_module("covey.guarantees").GUARANTEES
    assert guarantee_rows() == [
        (one.number, one.name, one.promise, "held" if one.held else "not yet") for one in listed
    ]


def test_the_checkers_of_each_level_are_those_that_the_list_names() -> None:
    listed, checkers = importlib.import_module("covey.guarantees").GUARANTEES, "covey.guarantees.checkers"
    of_daemons = importlib.import_module(checkers).DAEMON_CHECKERS
    of_clients = importlib.import_module(f"{checkers}.clients").CHECKERS
    assert list(of_daemons) == [one.number for one in listed if "S" in one.levels]
    assert list(of_clients) == [one.number for one in listed if "C" in one.levels]
    assert list(importlib.import_module(checkers).CHECKERS) == held()


def asserted_numbers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The numbers of invariants: what an assertion says when it fails."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and isinstance(node.msg, ast.Constant):
            yield node.lineno, str(node.msg.value)


def test_no_invariant_has_the_number_of_a_guarantee() -> None:
    numbers = {one.number for one in importlib.import_module("covey.guarantees").GUARANTEES}
    found = [
        (path, line, number)
        for path in protocol_files()
        for line, number in asserted_numbers(ast.parse(read(path), str(path)))
    ]
    assert len(found) > 30
    breaches = [f"{place(path, line)} {number}" for path, line, number in found if number in numbers]
    assert_none(breaches, "one number, one meaning: S, M, C, V, O and L are letters of guarantees")


def test_every_held_guarantee_has_a_mutant() -> None:
    caught = {mutant.guarantee for mutant in load_mutants().values()}
    missing = [number for number in held() if number not in caught]
    assert_none(missing, "held, but no mutant shows that the checker can fail")


# ------------------------------------------------------------------------------------------------------- 5. documents


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = Counter(re.findall(r"\((\d{4}-[^)]+\.md)\)", read(folder / "README.md")))
    notes = [path.name for path in markdown_files() if path.parent == folder and path.name != "README.md"]
    assert_none([name for name in notes if name not in listed], "not listed in docs/decisions/README.md")
    numbers = Counter(name[:4] for name in notes)
    assert_none([number for number, count in numbers.items() if count > 1], "a number that two decisions have")


def glossary_terms(text: str) -> list[str]:
    """The words in the first column of its tables; a row may have several."""
    rows = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    return [term for row in rows if row not in ("word", "---") for term in row.split(", ")]


def test_the_glossary_has_no_term_twice() -> None:
    terms = Counter(glossary_terms(read(ROOT / "docs" / "glossary.md")))
    assert len(terms) > 100
    assert_none([term for term, count in terms.items() if count > 1], "one word, one meaning, in one row")


def test_a_term_that_stands_twice_is_noticed() -> None:
    text = "| word | meaning |\n|---|---|\n| light change, light view | a |\n| light view | b |\n"
    assert glossary_terms(text) == ["light change", "light view", "light view"]


def local_links(text: str) -> Iterator[str]:
    """Targets of links to files, without those in code, and without their anchors."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    inline = re.findall(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)", prose)
    named = re.findall(r"^\[[^\]]+\]: (\S+)", prose, re.MULTILINE)
    for target in inline + named:
        path = target.partition("#")[0]
        if path and not re.match(r"[a-z][a-z0-9+.-]*:", path):
            yield path


def test_links_between_documents_resolve() -> None:
    broken = [
        f"{path.relative_to(ROOT)} -> {target}"
        for path in markdown_files()
        for target in local_links(read(path))
        if not (path.parent / target).exists()
    ]
    assert_none(broken, "a link to a file that does not exist")


def test_links_are_found() -> None:
    text = "[a](b.md) [c](d.md#e) [f](https://g.h) [i](#j) `[k](l.md)`\n```\n[m](n.md)\n```\n[o]: p.md\n"
    assert list(local_links(text)) == ["b.md", "d.md", "p.md"]


def test_documents_that_the_code_names_exist() -> None:
    missing = [
        f"{place(path, line)} {name}"
        for path in python_files()
        for line, text in enumerate(read(path).splitlines(), start=1)
        for name in re.findall(r"(?<![\w./])docs/[\w/.-]+\.md", text)
        if not (ROOT / name).exists()
    ]
    assert_none(missing, "a rule is cited by the page that holds it, and that page exists")


def test_mutants_that_the_documents_name_exist() -> None:
    mutants = {*load_mutants(), *importlib.import_module("tests.simulation.test_mutants").STORIES}
    missing = [
        f"{path.relative_to(ROOT)} {name}"
        for path in markdown_files()
        for name in re.findall(r'[Mm]utant\s+"([^"]+)"', read(path))
        if " ".join(name.split()) not in mutants
    ]
    assert_none(missing, "a mutant that tests/simulation does not have")


MAPPED: Final = ("client", "drivers", "protocol")


def test_the_map_names_every_module() -> None:
    _, _, rest = read(ROOT / "ARCHITECTURE.md").partition("## Code map")
    quoted = re.findall(r"`([^`]+)`", rest.partition("\n## ")[0])
    known = {word for one in quoted for word in re.findall(r"\w+", one)}
    package = ROOT / "src" / "covey"
    missing = [
        str(path.relative_to(package))
        for path in python_files()
        if path.parent == package or any(path.is_relative_to(package / part) for part in MAPPED)
        if not path.stem.startswith("__") and path.stem not in known
    ]
    assert_none(missing, "a module that the code map of ARCHITECTURE.md lacks")


def defined_names() -> set[str]:
    """Functions, classes, and methods as `Class.method`, of the package."""
    found: set[str] = set()
    for path in python_files():
        if path.is_relative_to(ROOT / "src"):
            for node in ast.walk(ast.parse(read(path), str(path))):
                if isinstance(node, ast.ClassDef):
                    found |= {node.name, *(f"{node.name}.{one.name}" for one in node.body if is_function(one))}
                elif is_function(node):
                    found.add(node.name)
    return found


def is_function(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def test_the_walks_name_functions_that_exist() -> None:
    tables = [line for line in read(ROOT / "ARCHITECTURE.md").splitlines() if re.match(r"\| \d+ \|", line)]
    named = [name for line in tables for name in re.findall(r"`([\w.]+)`", line)]
    assert len(named) > 100
    known = defined_names() | {"sendmsg", "writev"}
    assert_none([name for name in named if name not in known], "a step that the code does not have")


def machine_paths(text: str) -> Iterator[tuple[int, str]]:
    pattern = re.compile(r"(?<![\w.])/(?:work|root|home|Users)/")
    for line, content in enumerate(text.splitlines(), start=1):
        if pattern.search(content):
            yield line, content.strip()


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    breaches = []
    for path in tracked_files():
        try:
            text = read(path)
        except UnicodeDecodeError:
            continue  # Not text: traces and wire vectors may hold any bytes.
        breaches += [f"{place(path, line)} {content}" for line, content in machine_paths(text)]
    assert_none(breaches, "a path that exists on one machine only")


def test_a_machine_path_is_noticed() -> None:
    for folder in ("work", "root", "home", "Users"):
        assert list(machine_paths(f"see /{folder}/x"))
        assert not list(machine_paths(f"see https://example.org/{folder}/x and docs/{folder}/x"))


# ---------------------------------------------------------------------------------------------------- 6. command line


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for child in sorted(getattr(command, "commands", {})):
        yield from commands(command.commands[child], f"{name} {child}")


def command_line() -> Any:
    return typer.main.get_command(importlib.import_module("covey.cli.main").app)


def test_every_command_and_option_has_a_help_text() -> None:
    silent = []
    for name, command in commands(command_line(), "covey"):
        if not (command.help or "").strip():
            silent.append(name)
        for parameter in command.params:
            if not (getattr(parameter, "help", None) or "").strip():
                silent.append(f"{name}: {parameter.name}")
    assert_none(silent, "without a help text")


def leaves() -> list[tuple[str, Any]]:
    return [(name, command) for name, command in commands(command_line(), "covey") if not hasattr(command, "commands")]


def test_every_command_is_documented_with_an_example() -> None:
    document = read(ROOT / "docs" / "commands.md")
    missing = [name for name, _ in leaves() if f"`{name}`" not in document or f"$ {name}" not in document]
    assert_none(missing, "a command that docs/commands.md lacks, by its name in backticks or in an example after $")


def test_every_command_of_the_first_hour_shows_examples_in_its_help() -> None:
    names = importlib.import_module("covey.cli.main").COMMANDS
    silent = [name for name, command in command_line().commands.items() if name in names and not command.epilog]
    assert_none(silent, "without examples in its help")


ALWAYS_JSON: Final = frozenset({"covey trace cat"})


def test_every_command_can_speak_json() -> None:
    options = {name: {option for one in command.params for option in one.opts} for name, command in leaves()}
    missing = [name for name, known in options.items() if "--json" not in known and name not in ALWAYS_JSON]
    assert_none(missing, "a command without --json")


SLOW_TO_IMPORT: Final = ("asyncio", "multiprocessing", "pydantic", "rich", "covey.protocol", "covey.drivers")


@pytest.mark.parametrize("arguments", [["--help"], ["send", "--help"], ["top", "--help"], ["demo", "--help"]])
def test_asking_for_help_loads_nothing_that_takes_its_time(arguments: list[str]) -> None:
    script = (
        f"import sys; sys.argv[1:] = {arguments!r}\n"
        "from covey.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout
    loaded = set(shown.splitlines()[-1].split())
    assert "typer" in loaded
    assert_none([name for name in SLOW_TO_IMPORT if name in loaded], "loaded before anything was asked for")
