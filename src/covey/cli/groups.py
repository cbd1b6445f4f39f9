"""`covey groups`: who is in which group, at which daemon.

In:        which groups; which daemons.
Out:       a table for each view, because daemons in different views know of different members; or JSON objects.
Not here:  what a daemon tells (drivers/live/status.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, cast

import typer

from covey.protocol.status import GroupsListing, GroupsStatus, GroupStatus

from .common import BROKEN, At, Json, fail, telling
from .complete import group_names

EXAMPLES = (
    "covey groups",
    "covey groups --group room",
    "covey groups --group 'sensors/*' --json",
)


def groups(
    wanted: Annotated[
        str,
        typer.Option("--group", help="Only this group, or with a * at its end: those that begin like this.",
                     autocompletion=group_names),
    ] = "",
    config: Annotated[Path | None, typer.Option("--config", help="The configuration file of the cluster.")] = None,
    at: At = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Show who is in which group, at which daemon.

    Exits 1 if no daemon answers. Of very many groups or members only the first are shown.
    """
    from covey.drivers.live.status import Question

    from .where import answers, daemons, nobody_answers

    with telling("groups"):
        told: dict[str, GroupsStatus | None] = answers(daemons(at, config), Question("groups", wanted))
    running = {name: answer for name, answer in told.items() if answer}
    if not running:
        fail("groups", nobody_answers(at, config, told), BROKEN)
    views = by_view(running)
    if as_json:
        for view in views:
            print(json.dumps(view))
        return
    _show(views, wanted)


class GroupsView(GroupsListing):
    """What all daemons of one view know of its groups."""

    view: str
    working: bool
    daemons: list[str]


def by_view(running: dict[str, GroupsStatus]) -> list[GroupsView]:
    """One answer a view: all daemons of one view know the same."""
    views: dict[str, GroupsView] = {}
    for answer in running.values():
        known = {key: value for key, value in answer.items() if key != "name"}
        views.setdefault(answer["view"], cast("GroupsView", known))
    return [views[view] for view in sorted(views)]


def by_daemon(members: list[str]) -> list[tuple[str, list[str]]]:
    """
    >>> by_daemon(["bob@b:7.3", "alice@a:9.1", "carol@b:7.1"])
    [('a', ['alice']), ('b', ['bob', 'carol'])]
    """
    found: dict[str, list[str]] = {}
    for process in members:
        name, _, rest = process.partition("@")
        found.setdefault(rest.rpartition(":")[0], []).append(name)
    return [(daemon, sorted(found[daemon])) for daemon in sorted(found)]


def _show(views: list[GroupsView], wanted: str) -> None:
    for view in views:
        if len(views) > 1:
            print(f"view {view['view'].rpartition('.')[0]} of {' '.join(view['daemons'])}")
        for line in _lines(view, wanted):
            print(line)


def _lines(view: GroupsView, wanted: str) -> list[str]:
    """A table of words: libraries that draw better ones take their time to load."""
    from .lines import printable

    if not view["groups"]:
        return [f"nobody is in {wanted or 'any group'}; join one with: covey tail {wanted or 'room'}"]
    rows = [("group", "members", "at")]
    rows += [(printable(one["group"]), f"{one['size']:,}", _who_where(one)) for one in view["groups"]]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"{group:<{first}}  {size:<{second}}  {where}" for group, size, where in rows]
    hidden = view["group_count"] - len(view["groups"])
    return [*lines, *([f"{hidden:,} more; name some with --group 'begin*'"] if hidden else [])]


def _who_where(group: GroupStatus) -> str:
    from .lines import printable

    where = [f"{daemon}: {' '.join(map(printable, names))}" for daemon, names in by_daemon(group["members"])]
    hidden = group["size"] - len(group["members"])
    return "; ".join([*where, *([f"and {hidden:,} more"] if hidden else [])])
