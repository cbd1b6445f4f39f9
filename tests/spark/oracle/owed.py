"""Which messages are owed to a client: those that pass its daemon while it is a member of their group."""

from __future__ import annotations

from functools import cache

from .story import Place, Stay, Story, place_of


def open_now(stay: Stay) -> bool:
    return stay.last().ended_by is None


@cache
def passed(story: Story, daemon: str | None) -> dict[Place, int]:
    """When this daemon delivered the bundle at each place, by its own rows."""
    assert story.daemons is not None
    rows = [row for row in story.daemons.rows.get(daemon or "", []) if row.event == "deliver"]
    return {place: row.index for row in rows if (place := place_of(row))}


@cache
def passed_late(story: Story, daemon: str | None) -> set[Place]:
    """The places whose bundles this daemon delivered after a signal."""
    assert story.daemons is not None
    late = set()
    for row in story.daemons.rows.get(daemon or "", []):
        stays = [stay for stay in story.daemons.stays[row.process] if stay.row.index < row.index]
        if row.event == "deliver" and stays and any(signal < row.index for signal in stays[-1].signals):
            if place := place_of(row):
                late.add(place)
    return late


def daemon_views(story: Story, process: str) -> list[str]:
    """The daemon views that this client went through: as its daemon tells, or else as its own rows show."""
    assert story.daemons is not None
    told = [stay.view for stay in story.daemons.stays.get(story.rows[process][0].daemon, [])]
    if told:
        return told
    shown = [
        (row.view_new or "").split("/")[0] if row.event == "view" else row.order_view for row in story.rows[process]
    ]
    return list(dict.fromkeys(view for view in shown if view is not None))


@cache
def owed(story: Story, stay: Stay) -> set[str]:
    """To the membership that this stay is part of."""
    first, last = stay.membership()[0], stay.last()
    views = daemon_views(story, stay.process)
    join = place_of(first.row)
    leave = place_of(last.ended_by) if last.ended_by and last.ended_by.event == "self_leave" else None
    if first.daemon_view not in views:
        return set()
    views = views[views.index(first.daemon_view) :]
    if leave and leave[0] in views:
        views = views[: views.index(leave[0]) + 1]
    times = passed(story, story.rows[stay.process][0].daemon)
    found = set()
    for name, message in story.messages.items():
        place = message.place
        if message.strength < 1 or place is None or stay.group not in message.first.groups or place[0] not in views:
            continue
        if leave and place[0] == leave[0] and leave[0] in views and place[1:] >= leave[1:]:
            continue
        if join and place[0] == first.daemon_view:
            early = join in times and times.get(place, -1) > times[join]
            if not (place[1:] > join[1:] if message.strength >= 3 else early):
                continue
        found.add(name)
    return found


@cache
def owed_to(story: Story, process: str) -> set[str]:
    return {name for stay in story.stays[process] if stay.previous is None for name in owed(story, stay)}
