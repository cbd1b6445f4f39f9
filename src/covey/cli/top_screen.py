"""How `covey top` looks: four tables that fit the terminal, whatever its size and its colours.

In:        a picture, the size of the terminal.  Out: something that rich can print.
Not here:  what is in the picture (top_picture.py).

Weight and red only, no other colour: both a light and a dark background show them.
"""

from __future__ import annotations

import time
from typing import Final

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .lines import printable
from .status_text import duration_text, size_text
from .top_picture import DaemonLine, Picture, ReceiverLine, ViewLine

WIDE: Final = 100
MEMBERS_WIDTH: Final = 16
REASON_WIDTH: Final = 30
"""With less room for reasons, long lists of members are cut first."""
MEMBERS: Final = 2
"""The place of the column with all members of a view, in the table of daemons."""
GAP: Final = 2
"""Between two columns."""
DOWN: Final = "down"
HEADING: Final = "bold"
TROUBLE: Final = "bold red"
ASIDE: Final = "dim"


def screen(picture: Picture, columns: int, rows: int, remark: str = "") -> RenderableType:
    """As much of everything as there is room for."""
    wide = columns >= WIDE
    left = max(4, rows - 1 - 4 * 2)  # A title, and before each table an empty line and its heading.
    daemons = min(len(picture.daemons), max(1, left - 3))
    lines = picture.daemons
    if daemons < len(lines):
        lines = tuple(sorted(lines, key=lambda one: one.working))  # Those in trouble are not hidden.
    left -= daemons
    views = min(len(picture.views), max(1, left // 4))
    groups = min(len(picture.groups), max(1, left // 4))
    receivers = max(1, left - views - groups)
    table = daemon_table(lines[:daemons], wide)
    shown = section(table, len(picture.daemons) - daemons)
    leave_room(table, MEMBERS, columns)
    return Group(
        title(picture, columns, remark),
        *shown,
        *section(view_table(picture.views[:views], columns, picture.time_ns), len(picture.views) - views),
        *section(group_table(picture, groups, wide), 0),
        *section(receiver_table(picture.receivers[:receivers], wide), picture.receiver_count - receivers),
    )


def section(table: Table, hidden: int) -> list[RenderableType]:
    """A table behind an empty line; its first heading tells how much there was no room for."""
    if hidden > 0:
        first = table.columns[0]
        first.header = f"{first.header} +{hidden:,}"
        if first.width is not None:
            first.width = max(first.width, len(first.header))
    return [Text(""), table]


def leave_room(table: Table, long: int, columns: int) -> None:
    """One column takes what the others leave: rich would make all of them narrow for it."""
    widths = [max(cell_len(str(one)) for one in (column.header, *column.cells)) for column in table.columns]
    others = sum(widths) - widths[long] + GAP * (len(widths) - 1)
    table.columns[long].max_width = max(cell_len(str(table.columns[long].header)), columns - others)


def title(picture: Picture, columns: int, remark: str) -> Text:
    up = sum(daemon.running for daemon in picture.daemons)
    clock = time.strftime("%H:%M:%S", time.localtime(picture.time_ns / 1_000_000_000))
    text = Text(f"cluster {printable(picture.cluster)}", style="bold")
    text.append(f"  {up} of {len(picture.daemons)} daemons", style="" if up == len(picture.daemons) else TROUBLE)
    text.append(f"  {clock}", style="not bold")
    if remark and len(text.plain) + len(remark) + 2 <= columns:
        text.append(f"  {remark}", style="not bold dim")
    return text


def table_of(*columns: tuple[str, bool]) -> Table:
    """Of (heading, whether it holds numbers)."""
    table = Table(box=None, pad_edge=False, header_style=HEADING, expand=False)
    for heading, numeric in columns:
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=True, overflow="ellipsis")
    return table


def daemon_table(daemons: tuple[DaemonLine, ...], wide: bool) -> Table:
    narrow_columns = (("daemon", False), ("state", False), ("view of", False), ("msg/s", True))
    more = (("view", True), ("in/s", True), ("out/s", True), ("step", True), ("up", True)) if wide else ()
    table = table_of(*narrow_columns, *more, ("programs", True), ("backlog", True))
    table.columns[1].min_width = len(DOWN)
    for one in daemons:
        if not one.running:
            table.add_row(Text(one.name), Text(DOWN, style=TROUBLE))
            continue
        state = Text(one.state, style="" if one.working else TROUBLE)
        cells: list[Text | str] = [Text(one.name), state, Text(" ".join(one.members)), f"{one.messages_per_s:,.0f}"]
        if wide:
            cells += [one.view, size_text(one.bytes_in_per_s), size_text(one.bytes_out_per_s)]
            cells += [f"{one.longest_step_recent_ms:,.1f} ms", duration_text(one.uptime_s)]
        table.add_row(*cells, f"{one.programs:,}", _backlog(one.backlog_bytes))
    return table


def view_table(views: tuple[ViewLine, ...], columns: int, now_ns: int) -> Table:
    wide = columns >= WIDE
    headings = [("new view", True), ("of", False), ("together", False), *([("at", False)] if wide else [])]
    table = table_of(*headings, ("why", False))
    rows = [_view_cells(one, wide, now_ns) for one in views]
    widths = [max([len(heading), *(len(row[at]) for row in rows)]) for at, (heading, _) in enumerate(headings)]
    if columns - sum(widths) - GAP * len(widths) < REASON_WIDTH:
        widths = [min(width, MEMBERS_WIDTH) for width in widths]
    for column, width in zip(table.columns, widths, strict=False):
        column.width = width
    # What the others leave. Told to rich, or it would cut the end off without a sign.
    table.columns[-1].max_width = max(1, columns - sum(widths) - GAP * len(widths))
    for one, row in zip(views, rows, strict=True):
        table.add_row(*map(Text, row), Text(f"{one.cause}: {one.reason}"))
    return table


def _view_cells(view: ViewLine, wide: bool, now_ns: int) -> list[str]:
    ago = duration_text(max(0, now_ns - view.time_ns) / 1_000_000_000)
    return [f"{ago} ago", *(" ".join(names) for names in (view.members, view.transitional, *([view.at] * wide)))]


def group_table(picture: Picture, shown: int, wide: bool) -> Table:
    """Several side by side, the largest first."""
    pairs = min(4 if wide else 2, max(1, len(picture.groups)))
    found = list(picture.groups.items())[: shown * pairs]
    table = table_of(*[("group", False), ("members", True)] * pairs)
    for at in range(0, len(found), pairs):
        cells = [cell for group, size in found[at : at + pairs] for cell in (Text(printable(group)), f"{size:,}")]
        table.add_row(*cells)
    if not found:
        table.add_row(Text("none", style=ASIDE))
    elif picture.group_count > len(found):
        table.add_row(Text(f"+{picture.group_count - len(found):,}", style=ASIDE))
    return table


def receiver_table(receivers: tuple[ReceiverLine, ...], wide: bool) -> Table:
    table = table_of(
        ("program", False), ("groups", True), ("msg/s", True), ("backlog", True), ("oldest", True),
        *((("if too slow", False),) if wide else ()), ("", False),
    )  # fmt: skip
    for one in receivers:
        oldest = f"{one.lag_ms:,} ms" if one.lag_ms else "-"
        cells: list[Text | str] = [Text(printable(one.name)), f"{one.groups:,}", f"{one.messages_per_s:,.0f}"]
        cells += [_backlog(one.backlog_bytes), oldest, *([one.policy] if wide else [])]
        table.add_row(*cells, Text(one.remark, style=TROUBLE))
    if not receivers:
        table.add_row(Text("none", style=ASIDE))
    return table


def _backlog(size: int) -> Text:
    return Text(size_text(size) if size else "-", style="bold" if size >= 1_000_000 else "")
