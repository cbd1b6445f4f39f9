"""The tables of counters in docs/troubleshooting.md, made of `Counter` and `Family`: `python -m docs.counter_tables`.

In:        src/covey/protocol/counters.py: the words of each counter, the sentence below it, the comments that begin a
           section; and the page, with a pair of comments around what is made here.
Out:       the page, with the tables made anew.
Not here:  what stands around them; that is written by hand.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from covey.protocol.counters import Counter, Family

PAGE: Final = Path(__file__).with_name("troubleshooting.md")
COMMAND: Final = "python -m docs.counter_tables"
BEGIN: Final = f"<!-- counters: made by {COMMAND} -->\n"
END: Final = "<!-- end of counters -->"
BY_REASON: Final = "by reason"


class Explained(NamedTuple):
    """One counter, or one family, as its table shows it."""

    section: str
    words: str
    sentence: str


def explained(kind: type[Enum]) -> Iterator[Explained]:
    """In the order of the source. ValueError: one has no sentence."""
    source, section = inspect.getsource(kind), ""
    headings = {at: line.strip()[6:] for at, line in enumerate(source.splitlines(), 1) if line.startswith("    # --- ")}
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    for member, text in zip(body.body, body.body[1:], strict=False):
        match member:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(words))):
                section = max((pair for pair in headings.items() if pair[0] < member.lineno), default=(0, ""))[1]
            case _:
                continue
        match text:
            case ast.Expr(value=ast.Constant(value=str(sentence))):
                yield Explained(section, words, " ".join(sentence.split()))
            case _:
                raise ValueError(f"{kind.__name__}.{name} needs a sentence below it")


def tables() -> str:
    """A section and a table for each heading of the source; then what is counted by reason."""
    sections: dict[str, list[Explained]] = {}
    for one in explained(Counter):
        sections.setdefault(one.section, []).append(one)
    sections[BY_REASON] = [one._replace(words=f"{one.words}: …") for one in explained(Family)]
    return "\n\n".join(f"### Counted: {section}\n\n{_table(rows)}" for section, rows in sections.items())


def _table(rows: list[Explained]) -> str:
    return "\n".join(
        ["| counter | what happened |", "|---|---|", *(f"| {one.words} | {one.sentence} |" for one in rows)]
    )


def made(page: str) -> str:
    """The page with its tables as they are made now. ValueError: it has no place for them."""
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError("docs/troubleshooting.md lacks the comments around its counters")
    return f"{before}{BEGIN}\n{tables()}\n\n{END}{after}"


def main() -> None:
    PAGE.write_text(made(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE.name)


if __name__ == "__main__":
    main()
