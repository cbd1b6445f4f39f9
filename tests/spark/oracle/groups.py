"""C1 and C3 to C8. Each function says whether the promise holds."""

from __future__ import annotations

from .daemons import life, s4
from .owed import open_now, owed, passed_late
from .story import Place, Stay, Story, place_of

GONE = ("disconnect", "crash", "stop", "expelled")


def changed(stay: Stay) -> set[str]:
    return stay.members ^ stay.previous.members if stay.previous else {stay.process}


def last_request(story: Story, process: str) -> dict[str, str]:
    rows = [row for row in story.rows[process] if row.event in ("join", "leave") and row.cause is None]
    return {row.group or "": row.event for row in rows}


def is_member(story: Story, process: str, group: str) -> bool:
    return any(stay.group == group and open_now(stay) for stay in story.stays[process])


def requests_work(story: Story, request: str) -> bool:
    return all(
        is_member(story, process, group) == (request == "join")
        for process in story.rows
        if story.at_rest(process)
        for group, asked in last_request(story, process).items()
        if asked == request
    )


def c1(story: Story) -> bool:
    taken = {one.place for one in story.messages.values()}
    left: dict[Place, tuple[str | None, set[str], str]] = {}
    for stay in story.all_stays():
        row = stay.ended_by
        if row and row.event == "self_leave" and (place := place_of(row)):
            left[place] = ("leave", {stay.process}, stay.group)
    shown: dict[Place, tuple[str | None, set[str], str]] = {}
    for stay in story.all_stays():
        if not stay.light:
            continue
        if len(changed(stay)) != 1 or (stay.previous and stay.previous.signals):
            return False
        place = place_of(stay.row)
        if place is None:
            continue
        if place in taken:
            return False
        said = (stay.row.cause, changed(stay), stay.group)
        other = left.get(place) or shown.setdefault(place, said)
        if said[:2] != other[:2] or (said[2] != other[2] and said[0] != "disconnect"):
            return False
    return requests_work(story, "join")


def c3(story: Story) -> bool:
    if not s4(story):
        return False
    for stay in story.all_stays():
        place = place_of(stay.row)
        name = f"{place[0]}/{place[1]}.{place[2]}" if place else f"{stay.daemon_view}/net"
        if stay.view != name or stay.row.view_rank[-2:] != (place[1:] if place else (0, 0)):
            return False
        if not _daemon_view_fits(story, stay):
            return False
    return all(_quiet(story, process) for process in story.rows) and _rest_together(story)


def _daemon_view_fits(story: Story, stay: Stay) -> bool:
    assert story.daemons is not None
    daemon = story.rows[stay.process][0].daemon
    if not story.daemons.stays.get(daemon):
        return True
    there = story.daemons.first_stay(daemon, stay.daemon_view)
    place = place_of(stay.row)
    if (
        there is None
        or (place and place in passed_late(story, daemon))
        or stay.row.view_rank[:-2] != there.row.view_rank
    ):
        return False
    return all(story.rows[member][0].daemon in there.members for member in stay.members & story.rows.keys())


def _quiet(story: Story, process: str) -> bool:
    signalled = set()
    for row in story.rows[process]:
        network = row.event == "view" and (row.view_new or "").endswith("/net")
        if row.event == "transitional":
            signalled.add(row.group)
        elif row.event == "self_leave" or network:
            signalled.discard(row.group)
        elif row.event == "view" and signalled:
            return False
    return True


def _resting(story: Story) -> list[Stay]:
    return [stay for stay in story.all_stays() if stay.next is None and open_now(stay) and story.at_rest(stay.process)]


def _rest_together(story: Story) -> bool:
    stays = _resting(story)
    for stay in stays:
        beside = [other for other in stays if (other.group, other.view) == (stay.group, stay.view)]
        absent = beside[0].members - {other.process for other in beside}
        if any(story.at_rest(process) for process in absent):
            return False
    return True


def c4(story: Story) -> bool:
    for stay in story.all_stays():
        if not stay.light and stay.previous:
            if not stay.previous.signals or _untouched(story, stay, stay.previous):
                return False
        for change in _changes_during(story, stay):
            if _elsewhere(story, stay, change):
                return False
    return True


def _elsewhere(story: Story, stay: Stay, change: Stay) -> bool:
    return any(story.rows[member][0].daemon not in change.moved for member in stay.members & story.rows.keys())


def _untouched(story: Story, stay: Stay, before: Stay) -> bool:
    assert story.daemons is not None
    change = story.daemons.first_stay(story.rows[stay.process][0].daemon, stay.daemon_view)
    if not change or not change.previous or not stay.members == before.members == stay.moved:
        return False
    if not stay.members <= story.rows.keys() or _elsewhere(story, before, change):
        return False
    groups = {
        one.place: one.first.groups for one in sorted(story.messages.values(), key=lambda one: one.name) if one.place
    }
    late = [story.daemons.messages[name] for name in change.previous.names(after=True)]
    return not any(
        one.strength >= 3 and (one.place is None or stay.group in groups.get(one.place, (stay.group,))) for one in late
    )


def _changes_during(story: Story, stay: Stay) -> list[Stay]:
    """The daemon views that the client's daemon came to while the client certainly stayed in one view."""
    assert story.daemons is not None
    daemon = story.rows[stay.process][0].daemon
    views = [one.view for one in story.daemons.stays.get(daemon, [])]
    left = stay.ended_by and stay.ended_by.event == "self_leave" and place_of(stay.ended_by)
    if stay.next:
        last = stay.next.daemon_view
    elif left:
        last = left[0]
    elif story.at_rest(stay.process) and story.daemons.at_rest(daemon) and views:
        last = views[-1]
    else:
        return []
    if stay.daemon_view not in views or last not in views:
        return []
    between = views[views.index(stay.daemon_view) + 1 : views.index(last) + 1]
    shown = stay.next.daemon_view if stay.next and not stay.next.light else None
    changes = [story.daemons.first_stay(daemon, view) for view in between if view != shown]
    return [change for change in changes if change]


def c5(story: Story) -> bool:
    for stay in story.all_stays():
        cause = stay.row.cause
        if any(other.row.cause != cause for other in story.in_view(stay.group, stay.view)):
            return False
        if cause not in (("join", "leave", "disconnect") if stay.light else ("network",)):
            return False
        if stay.light and not _reason_is_true(story, stay):
            return False
    return True


def _reason_is_true(story: Story, stay: Stay) -> bool:
    before = stay.previous.members if stay.previous else stay.members - {stay.process}
    who = stay.members ^ before
    if len(who) != 1 or (who <= stay.members) != (stay.row.cause == "join"):
        return False
    if stay.previous and stay.moved != stay.members & before:
        return False
    (mover,) = who
    if mover not in story.rows:
        return True
    if stay.row.cause == "disconnect":
        return story.departed(mover) or not story.has(mover, "end")
    asked = any(row.event == stay.row.cause and row.group == stay.group for row in story.rows[mover])
    return asked or (stay.row.cause == "leave" and story.has(mover, "expelled"))


def c6(story: Story) -> bool:
    for stay in story.all_stays():
        row = stay.ended_by
        if row is None or row.event != "self_leave":
            continue
        place = place_of(row)
        if place is None:
            return False
        heard = {name for other in story.in_view(stay.group, stay.view) for name in other.names()} & story.names(3)
        due = {name for name in heard & owed(story, stay) if story.messages[name].order_view == place[0]}
        if not stay.signals and not due <= story.when[stay.process].keys():
            return False
    return requests_work(story, "leave") and _leavers_were_told(story)


def _leavers_were_told(story: Story) -> bool:
    for stay in story.all_stays():
        place = place_of(stay.row)
        if stay.row.cause != "leave" or not place or not stay.previous:
            continue
        for leaver in (stay.previous.members - stay.members) & story.rows.keys():
            rows = story.rows[leaver]
            early = ("unreliable", "reliable", "fifo")
            stamps = [row.order_stamp or 0 for row in rows if not (story.is_delivery(row) and row.service in early)]
            if story.at_rest(leaver) or max(stamps) > place[1]:
                told = [place_of(row) for row in rows if row.event == "self_leave" and row.group == stay.group]
                if place not in told:
                    return False
    return True


def c7(story: Story) -> bool:
    for stay in story.all_stays():
        if stay.light and stay.row.cause == "disconnect":
            gone = changed(stay)
            if len(gone) != 1 or any(story.at_rest(process) for process in gone):
                return False
    return not any(story.departed(member) for stay in _resting(story) for member in stay.members & story.rows.keys())


def c8(story: Story) -> bool:
    for rows in story.rows.values():
        if any(row.event == "refused" for row in rows) and (len(rows) > 1 or not rows[0].cause):
            return False
    accepted = [process for process in story.rows if not story.has(process, "refused")]
    for one in accepted:
        for two in accepted:
            same = (story.rows[one][0].name, story.rows[one][0].daemon) == (
                story.rows[two][0].name,
                story.rows[two][0].daemon,
            )
            if same and life(one)[1] < life(two)[1] and story.at_rest(one):
                return False
    return all(_names_in_turn(story, process) for process in story.rows)


def _names_in_turn(story: Story, process: str) -> bool:
    newest: dict[str, tuple[int, ...]] = {}
    for stay in story.stays[process]:
        names = [life(member) for member in sorted(stay.members)]
        if len({name for name, _ in names}) < len(names):
            return False
        for name, number in names:
            if number < newest.get(name, number):
                return False
            newest[name] = number
    return True
