"""Small faults, planted at random places: a comparison swapped, a constant off by one, a reset or a condition dropped.

In:        a source tree, a generator.
Out:       faults: a file, the line, what was there and what stands there now.
Not here:  who catches them (judging.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

AREA: Final = "src/covey/protocol"
"""Where faults are planted: what is simulated."""

_SWAPPED: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_RESETS: Final = ("clear", "pop", "discard", "popleft", "remove")


class Fault(NamedTuple):
    path: str
    """From the root of the tree."""
    line: int
    what: str
    begin: int
    end: int
    """Of the text that is replaced, in characters of the file."""
    new: str

    def plant(self, tree: Path) -> str:
        """Put it into this copy; the line as it was and as it is."""
        file = tree / self.path
        text = file.read_text()
        changed = text[: self.begin] + self.new + text[self.end :]
        ast.parse(changed)
        file.write_text(changed)
        was, now = text.splitlines()[self.line - 1].strip(), changed.splitlines()[self.line - 1].strip()
        return f"- {was}\n+ {now}"


def plantable(tree: Path) -> list[Fault]:
    """All that could be planted."""
    return [fault for path in sorted((tree / AREA).rglob("*.py")) for fault in faults_in(tree, path)]


def draw(found: list[Fault], count: int, random: Random) -> list[Fault]:
    """So many different ones, or all; every file counts by what can go wrong in it."""
    return random.sample(found, min(count, len(found)))


def faults_in(tree: Path, path: Path) -> list[Fault]:
    """All that could be planted in a file, but for asserts, which are checks themselves, and what only people read.

    >>> from tempfile import mkdtemp
    >>> root = Path(mkdtemp())
    >>> _ = (root / "a.py").write_text("def f(x):\\n    if x > 3:\\n        x = 0\\n    return x\\n")
    >>> [(fault.line, fault.what) for fault in faults_in(root, root / "a.py")]
    [(2, 'condition dropped'), (2, '> becomes >='), (2, '3 becomes 4'), (3, 'reset dropped'), (3, '0 becomes 1')]
    """
    text = path.read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    source = _Source(str(path.relative_to(tree)), text, starts)
    found = [fault for node in _places(ast.parse(text)) for fault in source.faults(node)]
    return sorted(found, key=lambda fault: (fault.begin, fault.what))


def _places(module: ast.Module) -> Iterator[ast.AST]:
    """What is inside functions, without asserts and snapshots for people."""
    stack: list[tuple[ast.AST, bool]] = [(module, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.Assert | ast.JoinedStr):
            continue
        if isinstance(node, ast.FunctionDef):
            if node.name in ("check", "snapshot", "told", "__repr__", "report", "diagram"):
                continue
            stack += [(child, True) for child in (_without_firsts(node) if node.name == "__init__" else node.body)]
            continue
        if inside:
            yield node
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]


def _without_firsts(init: ast.FunctionDef) -> list[ast.AST]:
    """A field that is never set is missed at once: of what a constructor sets, only the values can be wrong."""
    return [statement.value if isinstance(statement, ast.Assign) else statement for statement in init.body]


class _Source(NamedTuple):
    path: str
    text: str
    starts: list[int]

    def faults(self, node: ast.AST) -> Iterator[Fault]:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from self._comparison(node)
        elif isinstance(node, ast.Constant) and type(node.value) is int and node.value < 1 << 20:
            yield self._fault(node, f"{node.value} becomes {node.value + 1}", str(node.value + 1))
        elif isinstance(node, ast.If):
            yield from self._condition(node)
        elif isinstance(node, ast.BoolOp):
            yield from self._operands(node)
        elif isinstance(node, ast.Assign | ast.Expr) and _is_reset(node):
            yield self._fault(node, "reset dropped", "pass")

    def _comparison(self, node: ast.Compare) -> Iterator[Fault]:
        swapped = _SWAPPED[type(node.ops[0])]
        begin, end = self._at(node.left, end=True), self._at(node.comparators[0])
        between = self.text[begin:end]
        sign = between.strip(" ()\\\n")
        new = between.replace(sign, swapped, 1)
        yield Fault(self.path, node.lineno, f"{sign} becomes {swapped}", begin, end, new)

    def _condition(self, node: ast.If) -> Iterator[Fault]:
        """What was done under a condition is always done. Not where names depend on it."""
        if not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node.test)):
            yield self._fault(node.test, "condition dropped", "True")

    def _operands(self, node: ast.BoolOp) -> Iterator[Fault]:
        """One operand of `and` or `or` no longer counts."""
        neutral = "True" if isinstance(node.op, ast.And) else "False"
        for operand in node.values:
            if not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(operand)):
                dropped = ast.get_source_segment(self.text, operand) or ""
                yield self._fault(operand, f"{' '.join(dropped.split())} dropped", neutral)

    def _fault(self, node: ast.expr | ast.stmt, what: str, new: str) -> Fault:
        return Fault(self.path, node.lineno, what, self._at(node), self._at(node, end=True), new)

    def _at(self, node: ast.expr | ast.stmt, end: bool = False) -> int:
        """Where a node begins or ends. The parser counts bytes of a line."""
        line = node.end_lineno if end else node.lineno
        column = node.end_col_offset if end else node.col_offset
        assert line is not None
        assert column is not None
        start = self.starts[line - 1]
        text = self.text[start : self.starts[line]]
        return start + len(text.encode()[:column].decode())


def _is_reset(node: ast.Assign | ast.Expr) -> bool:
    """A field is set to a constant or to something empty, or something is taken out of a collection."""
    if isinstance(node, ast.Expr):
        call = node.value
        return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _RESETS
    value = node.value
    empty = isinstance(value, ast.List | ast.Tuple | ast.Set) and not value.elts
    empty = empty or (isinstance(value, ast.Dict) and not value.keys)
    return empty or isinstance(value, ast.Constant)
