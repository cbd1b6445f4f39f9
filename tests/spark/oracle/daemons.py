"""S1 to S15 and M1 to M7 between daemons. Each function says whether the promise holds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

from .story import Stay, Story, key_of

CONTENT = (
    "digest",
    "size",
    "service",
    "sender",
    "session_seq",
    "count",
    "order_view",
    "order_stamp",
    "order_site",
    "order_index",
)


def s1(story: Story) -> bool:
    for rows in story.rows.values():
        current = None
        for row in rows:
            if row.event in ("send", "deliver", "transitional") and (current is None or row.view != current):
                return False
            if row.event == "view":
                if row.view != current:
                    return False
                current = row.view_new
    return True


def s2(story: Story) -> bool:
    return all(stay.process in stay.members for stay in story.all_stays())


def s3(story: Story) -> bool:
    return all(one.row.view_rank < two.row.view_rank for stays in story.stays.values() for one, two in pairwise(stays))


def s4(story: Story) -> bool:
    return all(
        one.members == two.members and one.row.view_rank == two.row.view_rank
        for one, two in combinations(story.all_stays(), 2)
        if (one.group, one.view) == (two.group, two.view)
    )


def s5(story: Story) -> bool:
    for stay in story.all_stays():
        if stay.previous is None:
            if stay.moved != {stay.process}:
                return False
            continue
        if not {stay.process} <= stay.moved <= stay.members & stay.previous.members:
            return False
        for other in story.in_view(stay.group, stay.view):
            if other.process == stay.process:
                continue
            together = other.previous is not None and other.previous.view == stay.previous.view
            if (other.process in stay.moved) != together or (together and other.moved != stay.moved):
                return False
    return True


def once(story: Story, names: set[str]) -> bool:
    told = [(row.process, row.message or "") for row in story.deliveries if (row.message or "") in names]
    return len(told) == len(set(told))


def s6(story: Story) -> bool:
    return once(story, story.names(1))


def s7(story: Story) -> bool:
    sends = [row.message or "" for rows in story.rows.values() for row in rows if story.is_send(row)]
    if len(sends) != len(set(sends)) or story.runs_in_circles():
        return False
    for message in story.messages.values():
        if message.send and message.order_view is not None and message.order_view != message.send.view:
            return False
    for row in story.deliveries:
        send = story.messages[row.message or ""].send
        if send is None:
            return False
        for column in CONTENT:
            here, there = getattr(row, column), getattr(send, column)
            if here is not None and there is not None and here != there:
                return False
    return True


def together(story: Story, names: set[str]) -> bool:
    return all(here.names() & names == there.names() & names for here, there in story.comovers())


def s8(story: Story) -> bool:
    return together(story, story.names(1))


def s9(story: Story) -> bool:
    views: dict[str, set[str]] = {}
    for stay in story.all_stays():
        for name in stay.names():
            views.setdefault(name, set()).add(stay.view)
    return all(len(found) == 1 for found in views.values())


def life(process: str) -> tuple[str, tuple[int, ...]]:
    name, colon, number = process.rpartition(":")
    parts = number.split(".")
    return (
        (name, tuple(map(int, parts))) if colon and name and all(part.isdecimal() for part in parts) else (process, ())
    )


def s10(story: Story) -> bool:
    for stay in story.all_stays():
        seen = [
            life(member)
            for other in story.stays[stay.process]
            if other.row.index <= stay.row.index
            for member in other.members
        ]
        for name in stay.names():
            message = story.messages[name]
            sent_in = story.in_view("", message.send.view or "") if message.send else []
            if sent_in and stay.row.view_rank < sent_in[0].row.view_rank:
                return False
            if message.origin is not None:
                sender, number = life(message.origin)
                if any(name == sender and other > number for name, other in seen):
                    return False
    return True


def s11(story: Story) -> bool:
    if any(len(stay.signals) > 1 for stay in story.all_stays()):
        return False
    agreed = story.names(3)
    return all(
        here.names(side) & agreed == there.names(side) & agreed
        for here, there in story.comovers()
        for side in (False, True)
    )


def own(story: Story, names: set[str]) -> bool:
    return all(
        set(stay.sent) & names <= stay.names() for stay in story.all_stays() if stay.next or story.at_rest(stay.process)
    )


def s12(story: Story) -> bool:
    return own(story, story.names(1))


def s13(story: Story) -> bool:
    for process, stays in story.stays.items():
        if stays and story.at_rest(process):
            sent = set(stays[-1].sent) & story.names(1)
            members = [member for member in stays[-1].members if story.at_rest(member)]
            if any(not sent <= story.when[member].keys() for member in members):
                return False
    return True


def _calm(story: Story) -> dict[str, set[str]]:
    calm = {}
    for process, rows in story.rows.items():
        for row in rows:
            if row.event == "calm" and not story.departed(process):
                calm[process] = set(row.members)
    return calm


def s14(story: Story) -> bool:
    calm = _calm(story)
    for connected in calm.values():
        if {process for process, other in calm.items() if other == connected} != connected:
            continue
        ended = [process for process in connected if story.has(process, "end")]
        views = {
            (story.stays[process][-1].view, frozenset(story.stays[process][-1].members))
            if story.stays[process]
            else None
            for process in ended
        }
        if ended and (
            len({view[0] if view else None for view in views}) != 1
            or any(view is None or view[1] != connected for view in views)
        ):
            return False
    return True


def s15(story: Story) -> bool:
    return all(
        story.has(process, "end") and bool(story.stays[process]) and story.stays[process][-1].members <= connected
        for process, connected in _calm(story).items()
    )


def m1(story: Story) -> bool:
    names = story.names(0, 0)
    in_view = all(
        story.messages[name].send is None or stay.view == story.messages[name].send.view  # type: ignore[union-attr]
        for stay in story.all_stays()
        for name in stay.names() & names
    )
    return in_view and once(story, names)


def m2(story: Story) -> bool:
    names = story.names(1, 1)
    return once(story, names) and together(story, names) and own(story, names)


def _shared_views(story: Story, process: str, origin: str, view: str) -> set[str]:
    """This view, and those before it through which both went together."""
    views = {view}
    here, there = story.first_stay(process, view), story.first_stay(origin, view)
    while here and there and here.previous and there.previous and here.previous.view == there.previous.view:
        if there.process not in here.moved or here.process not in there.moved:
            break
        here, there = here.previous, there.previous
        views.add(here.view)
    return views


def m3(story: Story) -> bool:
    for process, when in story.when.items():
        for later_name, at in when.items():
            later = story.messages[later_name]
            if later.strength < 2:
                continue
            shared = (
                _shared_views(story, process, later.origin, later.order_view)
                if later.origin and later.order_view
                else set()
            )
            for name in story.names(1):
                one = story.messages[name]
                if (one.first.sender or "") != (later.first.sender or "") or (one.first.session_seq or 0) >= (
                    later.first.session_seq or 0
                ):
                    continue
                if when[name] > at if name in when else one.order_view in shared:
                    return False
    return True


def m4(story: Story) -> bool:
    for when in story.when.values():
        for later_name, at in when.items():
            later = story.messages[later_name]
            if later.strength < 3:
                continue
            for name in story.past[later_name] - {later_name}:
                if (
                    when[name] > at
                    if name in when
                    else (story.messages[name].order_view == later.order_view is not None)
                ):
                    return False
    return True


def m5(story: Story) -> bool:
    places = [(one.order_view, one.key) for one in story.messages.values() if one.key]
    if len(places) != len(set(places)):
        return False
    for row in story.deliveries:
        message = story.messages[row.message or ""]
        key = key_of(row)
        if (key is None and message.strength >= 3) or (key and message.key and key != message.key):
            return False
    return _grows(story) and all(_in_order(story, stay) for stay in story.all_stays())


def _grows(story: Story) -> bool:
    """From one view to the next the keys grow."""
    for process, rows in story.rows.items():
        starts = [stay.row.index for stay in story.stays[process]]
        agreed = [
            row
            for row in rows
            if story.is_delivery(row) and story.messages[row.message or ""].strength >= 3 and key_of(row)
        ]
        for one, two in pairwise(agreed):
            apart = sum(start < one.index for start in starts) != sum(start < two.index for start in starts)
            if apart and key_of(two) <= key_of(one):  # type: ignore[operator]
                return False
    return True


def _in_order(story: Story, stay: Stay) -> bool:
    when = story.when[stay.process]
    by_anyone = {name for other in story.in_view("", stay.view) for name in other.names()} & story.names(1)
    for later_name, after, at in stay.delivered:
        later = story.messages[later_name]
        if later.strength < 3 or later.key is None or later.order_view != stay.view:
            continue
        for name, one in story.messages.items():
            if one.order_view != stay.view or one.key is None or one.key == later.key:
                continue
            if one.key > later.key:
                if one.strength >= 3 and when.get(name, at) < at:
                    return False
                continue
            moves = stay.next is not None and one.origin in stay.next.moved
            required = name in by_anyone and (moves or not after)
            if required and when.get(name, at + 1) > at:
                return False
    return True


def m6(story: Story) -> bool:
    safe = story.names(5)
    for stay in story.all_stays():
        for side, promised in ((False, stay.members), (True, stay.next.moved if stay.next else set())):
            for name in stay.names(side) & safe:
                for process in promised & story.rows.keys():
                    there = story.first_stay(process, stay.view)
                    survives = story.at_rest(process) or (there is not None and there.next is not None)
                    if survives and name not in story.when[process]:
                        return False
    return True


def m7(story: Story) -> bool:
    for when in story.when.values():
        for later_name, at in when.items():
            later = story.messages[later_name]
            for one in story.messages.values() if later.strength == 2 else ():
                earlier = one.first.sender == later.first.sender and (one.first.session_seq or 0) < (
                    later.first.session_seq or 0
                )
                if (
                    earlier
                    and one.strength >= 3
                    and one.order_view == later.order_view is not None
                    and when.get(one.name, at + 1) > at
                ):
                    return False
    return True


DAEMON_ORACLES: dict[str, Callable[[Story], bool]] = {
    "S1": s1,
    "S2": s2,
    "S3": s3,
    "S4": s4,
    "S5": s5,
    "S6": s6,
    "S7": s7,
    "S8": s8,
    "S9": s9,
    "S10": s10,
    "S11": s11,
    "S12": s12,
    "S13": s13,
    "S14": s14,
    "S15": s15,
    "M1": m1,
    "M2": m2,
    "M3": m3,
    "M4": m4,
    "M5": m5,
    "M6": m6,
    "M7": m7,
}
