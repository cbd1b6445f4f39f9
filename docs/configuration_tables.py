"""The tables of docs/configuration.md, made of `Settings` and the presets: `python -m docs.configuration_tables`.

In:        src/covey/config.py: the fields with their defaults, the text below each, the comments that begin a section;
           and the page, with a pair of comments around each part that is made here.
Out:       the page, with these parts made anew.
Not here:  what stands around the tables; that is written by hand.

A field's unit is a word of its name. A text is a paragraph on what the field means and costs; then, if there are any,
rules: `Checked: …` is what `Settings` refuses to break, `Advice: …` what is wise.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from covey.config import PRESETS, Settings

PAGE: Final = Path(__file__).with_name("configuration.md")
COMMAND: Final = "python -m docs.configuration_tables"

UNITS: Final = {
    "ms": "ms",
    "bytes": "bytes",
    "packets": "packets",
    "bundles": "bundles",
    "growth": "factor",
    "percent": "%",
    "requests": "numbers",
    "sessions": "sessions",
    "groups": "groups",
    "memberships": "stays",
    "interests": "groups",
    "prune": "true or false",
}
"""By the word of a field's name that says it."""

SHOWN: Final = (("loopback", 5), ("lan", 20), ("wan", 5), ("wan", 20))
"""Presets whose values the page shows, each for so many daemons. `lan(10)` is the defaults."""


class Field(NamedTuple):
    """One setting, as its table shows it."""

    section: str
    name: str
    meaning: str
    checked: str
    advice: str

    @property
    def unit(self) -> str:
        (unit,) = [UNITS[word] for word in self.name.split("_") if word in UNITS]
        return unit

    @property
    def rule(self) -> str:
        checked = f"**{self.checked}**" if self.checked else ""
        return "; ".join(filter(None, (checked, self.advice)))


def fields() -> Iterator[Field]:
    """In the order of the source. ValueError: one is not explained, or stands under no heading."""
    source = inspect.getsource(Settings)
    headings = [
        (at, line.strip()[6:]) for at, line in enumerate(source.splitlines(), 1) if line.startswith("    # --- ")
    ]
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    for field, text in zip(body.body, body.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        name = field.target.id
        above = [heading for at, heading in headings if at < field.lineno]
        match text:
            case ast.Expr(value=ast.Constant(value=str(explained))) if above:
                yield Field(above[-1], name, *parts(explained))
            case _:
                raise ValueError(f"Settings.{name} needs a text below it, and a comment `# --- SECTION` above")


def parts(text: str) -> tuple[str, str, str]:
    """What it means, what is checked, what is wise."""
    meaning, _, rules = inspect.cleandoc(text).partition("\n\n")
    found = dict(re.findall(r"^(Checked|Advice): (.*?)(?=\n(?:Checked|Advice):|\Z)", rules, re.DOTALL | re.MULTILINE))
    return _line(meaning), _line(found.get("Checked", "")), _line(found.get("Advice", ""))


def _line(text: str) -> str:
    return " ".join(text.split())


def settings() -> str:
    """A section and a table for each heading of the source."""
    sections: dict[str, list[Field]] = {}
    for field in fields():
        sections.setdefault(field.section, []).append(field)
    return "\n\n".join(f"### {section}\n\n{_table_of(rows)}" for section, rows in sections.items())


def _table_of(rows: list[Field]) -> str:
    head = ("field", "unit", "default", "meaning", "rule")
    defaults = Settings()
    return _table(head, [(f"`{x.name}`", x.unit, _value(getattr(defaults, x.name)), x.meaning, x.rule) for x in rows])


def presets() -> str:
    """What each is for; then all values that differ from the defaults."""
    purposes = [f"- `{name}(n)`: {_line(inspect.getdoc(preset) or '')}" for name, preset in PRESETS.items()]
    defaults, shown = Settings(), [PRESETS[name](daemons) for name, daemons in SHOWN]
    head = ("", "default", *(f"`{name}({daemons})`" for name, daemons in SHOWN))
    rows = []
    for name in Settings.__struct_fields__:
        default = getattr(defaults, name)
        values = [getattr(preset, name) for preset in shown]
        if any(value != default for value in values):
            rows.append(
                (f"`{name}`", _value(default), *(_value(value) if value != default else "" for value in values))
            )
    return "\n".join(purposes) + "\n\n" + _table(head, rows)


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:,}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|" for cells in lines)


PARTS: Final[dict[str, Callable[[], str]]] = {"settings": settings, "presets": presets}


def made(page: str) -> str:
    """The page with each part as it is made now. ValueError: a part has no place on it."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name}: made by {COMMAND} -->\n", f"<!-- end of {name} -->"
        before, found, rest = page.partition(begin)
        _, ended, after = rest.partition(end)
        if not (found and ended):
            raise ValueError(f"docs/configuration.md lacks the comments around its part {name!r}")
        page = f"{before}{begin}\n{part()}\n\n{end}{after}"
    return page


def main() -> None:
    PAGE.write_text(made(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE.name)


if __name__ == "__main__":
    main()
