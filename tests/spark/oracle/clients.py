"""S1 to S13, M1 to M9 and C1 to C8 between clients. Each function says whether the promise holds.

Where a promise speaks of daemons, `story.daemons` is asked; without their rows that part stays undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from covey.trace.record import SERVICES, Row

from .daemons import life, once, s2, s4
from .groups import c1, c3, c4, c5, c6, c7, c8
from .owed import open_now, owed, owed_to, passed, passed_late
from .story import Message, Stay, Story, key_of

GONE = ("disconnect", "crash", "stop", "expelled")


def s1(story: Story) -> bool:
    for rows in story.rows.values():
        current: dict[str, str | None] = {}
        gone = False
        for row in rows:
            group = row.group or ""
            if story.is_delivery(row) or row.event == "send":
                here = tuple(current.get(one) or "" for one in row.groups)
                nowhere = story.is_delivery(row) and bool(row.groups) and not any(here)
                if gone or (row.groups and row.views != here) or nowhere:
                    return False
            elif row.event in ("view", "transitional", "self_leave"):
                if gone or row.view != current.get(group) or (row.event == "transitional" and not current.get(group)):
                    return False
                current[group] = (
                    row.view_new if row.event == "view" else None if row.event == "self_leave" else row.view
                )
            elif row.event in GONE:
                gone = True
    return True


def s3(story: Story) -> bool:
    for stays in story.stays.values():
        for group in {stay.group for stay in stays}:
            ranks = [stay.row.view_rank for stay in stays if stay.group == group]
            if any(two <= one for one, two in pairwise(ranks)):
                return False
    return True


def daemon_of(story: Story, process: str | None) -> str | None:
    rows = story.rows.get(process or "")
    return rows[0].daemon if rows else None


def daemons_came_along(story: Story, one: Stay, two: Stay) -> bool:
    """Whether the daemons of both came to this daemon view from the same one; a light view does not move them."""
    if one.light:
        return True
    assert story.daemons is not None
    stays = [story.daemons.first_stay(daemon_of(story, stay.process) or "", stay.daemon_view) for stay in (one, two)]
    views = [stay.previous.view if stay and stay.previous else None for stay in stays]
    return one is two or (views[0] is not None and views[0] == views[1])


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
            same = other.previous is not None and other.previous.view == stay.previous.view
            if other.process in stay.moved and not same:
                return False
            if (
                same
                and daemons_came_along(story, stay, other)
                and (other.process not in stay.moved or other.moved != stay.moved)
            ):
                return False
    return True


def s6(story: Story) -> bool:
    return once(story, story.names(1))


def s7(story: Story) -> bool:
    sends = [row.message or "" for rows in story.rows.values() for row in rows if story.is_send(row)]
    if len(sends) != len(set(sends)) or story.runs_in_circles():
        return False
    for row in story.deliveries:
        send = story.messages[row.message or ""].send
        if send is None:
            return False
        for column in ("digest", "size", "service", "sender", "session_seq", "count", "groups"):
            here = getattr(row, column)
            if here != getattr(send, column) and not (here is None and row.event == "discard"):
                return False
    return True


def agree(story: Story, names: set[str]) -> bool:
    """Those who move together: the same causal, agreed and safe messages in the view they leave."""
    return all(here.names() & names == there.names() & names for here, there in story.comovers())


def spans(story: Story, names: set[str]) -> bool:
    """Those who move together to a network view: the same early messages since the last one, as far as owed."""
    for here, there in story.comovers():
        assert here.next is not None
        if not here.next.light and not _span_is_there(story, here, there, names):
            return False
    return True


def _span_is_there(story: Story, here: Stay, there: Stay, names: set[str]) -> bool:
    """What the other delivered since the last network view, this one has, if it was owed to it."""
    theirs = {name for stay in there.span() for name in stay.names()} & names
    mine = {name for stay in here.span() for name in stay.names()}
    return theirs & owed(story, here) <= mine


def s8(story: Story) -> bool:
    return agree(story, story.names(3)) and spans(story, story.names(1, 2))


def same_view(story: Story, names: set[str]) -> bool:
    views: dict[tuple[str, str], set[str]] = {}
    for stay in story.all_stays():
        for name in stay.names(after=False) & names:
            views.setdefault((name, stay.group), set()).add(stay.view)
    if any(len(found) > 1 for found in views.values()):
        return False
    return all(
        name in here.names() or name not in story.when[here.process]
        for here, there in story.comovers()
        for name in there.names() & names
    )


def s9(story: Story) -> bool:
    return same_view(story, story.names(3))


def asked_to_leave(story: Story, message: str, group: str) -> bool:
    """Whether its sender had asked to leave the group before it sent the message to it."""
    asked = False
    for row in story.rows[story.messages[message].origin or ""]:
        if row.event == "send" and row.message == message:
            break
        if row.group == group and (row.event == "self_leave" or (row.event == "leave" and row.cause is None)):
            asked = row.event == "leave"
    return asked


def s10(story: Story) -> bool:
    for stay in story.all_stays():
        for name, after, _ in stay.delivered:
            message = story.messages[name]
            sent_in = message.sent_in.get(stay.group)
            if sent_in is None or message.strength < 1 or asked_to_leave(story, name, stay.group):
                continue
            if message.strength >= 3 and not after and stay.row.view_rank < sent_in.row.view_rank:
                return False
            start = sent_in.span()[0]
            if not start.light and stay.span()[0].row.view_rank < start.row.view_rank:
                return False
    for rows in story.rows.values():
        seen: list[tuple[str, tuple[int, ...]]] = []
        for row in rows:
            if row.event == "view":
                seen += map(life, row.members)
            elif story.is_delivery(row) and row.service in SERVICES[1:]:
                sender, number = life(row.sender or "")
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
        name in story.when[one.origin]
        for name, one in story.messages.items()
        if name in names
        and one.origin
        and story.at_rest(one.origin)
        and any(open_now(stay) for stay in one.sent_in.values())
    )


def s12(story: Story) -> bool:
    return own(story, story.names(1))


def resting(story: Story) -> list[Stay]:
    return [stay for stay in story.all_stays() if stay.next is None and open_now(stay) and story.at_rest(stay.process)]


def rest_alike(story: Story, names: set[str]) -> bool:
    """Those who rest in one view have delivered the same there, early messages in the last span as far as owed."""
    stays = resting(story)
    for here in stays:
        for there in stays:
            if (here.group, here.view) != (there.group, there.view):
                continue
            if not there.names() & names & story.names(3) <= here.names():
                return False
            if not _span_is_there(story, here, there, names & story.names(1, 2)):
                return False
    return True


def handed_out(story: Story, names: set[str]) -> bool:
    for stay in resting(story):
        places = passed(story, daemon_of(story, stay.process))
        due = {name for name in owed(story, stay) & names if story.messages[name].place in places}
        if not due <= story.when[stay.process].keys():
            return False
    return True


def members_since(story: Story, stay: Stay, processes: set[str]) -> list[Stay]:
    """The memberships, as their last stays, of those at rest that were in the group then and never left since."""
    found = []
    for process in processes & story.rows.keys():
        if story.at_rest(process):
            begun = [
                one
                for one in story.stays[process]
                if one.group == stay.group and one.previous is None and one.row.view_rank <= stay.row.view_rank
            ]
            if begun and open_now(begun[-1]):
                found.append(begun[-1].last())
    return found


def s13(story: Story) -> bool:
    for stay in resting(story):
        for name in set(stay.sent) & story.names(1):
            message = story.messages[name]
            for member in members_since(story, stay, stay.members):
                first = member.membership()[0]
                joined_there = first.row.order_stamp is not None and message.order_view == first.daemon_view
                excused = joined_there and message.strength < 3 and name not in owed(story, member)
                if name not in story.when[member.process] and not excused:
                    return False
    return rest_alike(story, story.names(1)) and handed_out(story, story.names(1))


def m1(story: Story) -> bool:
    return once(story, story.names(0, 0))


def m2(story: Story) -> bool:
    names = story.names(1, 1)
    return once(story, names) and spans(story, names) and own(story, names)


def m3(story: Story) -> bool:
    for process, when in story.when.items():
        owed_here = owed_to(story, process)
        for later_name, at in when.items():
            later = story.messages[later_name]
            for one in story.messages.values() if later.strength >= 2 else ():
                if one.strength < 1 or not _earlier(one, later):
                    continue
                lacking = one.name in owed_here and one.order_view in _shared(story, process, later)
                if when[one.name] > at if one.name in when else lacking:
                    return False
    return True


def _earlier(one: Message, later: Message) -> bool:
    return one.first.sender == later.first.sender and (one.first.session_seq or 0) < (later.first.session_seq or 0)


def _shared(story: Story, process: str, later: Message) -> set[str]:
    """The daemon view of the message, and those before it through which the daemons of both went together."""
    if later.order_view is None or later.origin not in story.rows:
        return set()
    assert story.daemons is not None
    here = story.daemons.first_stay(daemon_of(story, process) or "", later.order_view)
    there = story.daemons.first_stay(daemon_of(story, later.origin) or "", later.order_view)
    views = {later.order_view}
    while here and there and here.previous and there.previous and here.previous.view == there.previous.view:
        if there.process not in here.moved or here.process not in there.moved:
            break
        here, there = here.previous, there.previous
        views.add(here.view)
    return views


def m4(story: Story) -> bool:
    for process, when in story.when.items():
        owed_here = owed_to(story, process)
        for later_name, at in when.items():
            later = story.messages[later_name]
            for name in story.past[later_name] - {later_name} if later.strength >= 3 else ():
                lacking = name in owed_here and story.messages[name].order_view == later.order_view is not None
                if when[name] > at if name in when else lacking:
                    return False
    return True


def places_agree(story: Story, names: set[str]) -> bool:
    for row in story.deliveries:
        message = story.messages[row.message or ""]
        if message.name not in names or (row.event == "discard" and row.order_stamp is None):
            continue
        if key_of(row) is None or (row.order_view, key_of(row)) != (message.order_view, message.key):
            return False
    return True


def m5(story: Story) -> bool:
    places = [(one.order_view, one.key) for one in story.messages.values() if one.key]
    if len(places) != len(set(places)) or not places_agree(story, story.names(1)):
        return False
    return all(_grows(story, rows) for rows in story.rows.values()) and complete(story, story.names(1), story.names(1))


def _grows(story: Story, rows: list[Row]) -> bool:
    """Messages of the agreed class and light changes at growing places; nothing of an earlier daemon view later."""
    ranks = {stay.daemon_view: stay.row.view_rank[:-2] for stay in story.all_stays()}
    assert story.daemons is not None
    ranks |= {stay.view: stay.row.view_rank for stay in story.daemons.all_stays()}
    last: tuple[int, ...] = ()
    reached: tuple[tuple[int, ...], int] | None = None
    for row in rows:
        now = None
        if row.event == "view" and (row.view_new or "").endswith("/net"):
            now = row.view_rank[:-2], 0
        elif row.order_view in ranks:
            now = ranks[row.order_view or ""], 1
        if now and reached and now < reached:
            return False
        reached = now or reached
        key = key_of(row)
        if key is None or (story.is_delivery(row) and row.service not in SERVICES[3:]):
            continue
        key_here = key if story.is_delivery(row) else key[:2]
        if key_here < last or (key_here == last and story.is_delivery(row)):
            return False
        last = key_here
    return True


def complete(story: Story, earlier_names: set[str], later_names: set[str]) -> bool:
    """Of each pair with either in its set: what was ordered earlier and anyone delivered in this view comes first."""
    for stay in story.all_stays():
        when, owed_here = story.when[stay.process], owed_to(story, stay.process)
        by_anyone = {name for other in story.in_view(stay.group, stay.view) for name in other.names()} & story.names(1)
        for later_name, after, at in stay.delivered:
            later = story.messages[later_name]
            if later.strength < 3 or later.key is None:
                continue
            for name in by_anyone & owed_here:
                one = story.messages[name]
                if later_name not in later_names and name not in earlier_names:
                    continue
                if (
                    one.order_view != later.order_view
                    or one.key is None
                    or one.key >= later.key
                    or stay.group not in one.first.groups
                ):
                    continue
                moves = stay.next is not None and one.origin in stay.next.moved
                if (moves or not after) and when.get(name, at + 1) > at:
                    return False
    return True


def safe(story: Story, names: set[str]) -> bool:
    for stay in story.all_stays():
        for side, promised in ((False, stay.members), (True, stay.next.moved if stay.next else set())):
            for name in stay.names(side) & names:
                if any(name not in story.when[one.process] for one in members_since(story, stay, promised)):
                    return False
    return True


def m6(story: Story) -> bool:
    return safe(story, story.names(5))


def m7(story: Story) -> bool:
    for process, when in story.when.items():
        owed_here = owed_to(story, process) | when.keys()
        for later_name, at in when.items():
            later = story.messages[later_name]
            for one in story.messages.values() if later.strength == 2 else ():
                there = one.order_view == later.order_view is not None and one.strength >= 3 and _earlier(one, later)
                if there and one.name in owed_here and when.get(one.name, at + 1) > at:
                    return False
    return True


def m8(story: Story) -> bool:
    outside = {
        name for name, one in story.messages.items() if one.send and len(one.sent_in) < len(one.first.groups)
    } & story.names(1)
    agreed = outside & story.names(3)
    return (
        once(story, outside)
        and agree(story, agreed)
        and spans(story, outside & story.names(1, 2))
        and same_view(story, agreed)
        and rest_alike(story, outside)
        and handed_out(story, outside)
        and complete(story, outside, outside)
        and safe(story, outside & story.names(5))
    )


def m9(story: Story) -> bool:
    several = {name for name, one in story.messages.items() if len(one.first.groups) > 1}
    reliable = several & story.names(1)
    return once(story, several) and places_agree(story, reliable) and handed_out(story, reliable)


def c2(story: Story) -> bool:
    if not (same_view(story, story.names(3)) and spans(story, story.names(1, 2))):
        return False
    for stay in story.all_stays():
        daemon = daemon_of(story, stay.process)
        for name, after, _ in stay.delivered:
            message = story.messages[name]
            if message.strength >= 3 and message.place in passed(story, daemon):
                if after != (message.place in passed_late(story, daemon)):
                    return False
    return True


CLIENT_ORACLES: dict[str, Callable[[Story], bool]] = {
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
    "M1": m1,
    "M2": m2,
    "M3": m3,
    "M4": m4,
    "M5": m5,
    "M6": m6,
    "M7": m7,
    "M8": m8,
    "M9": m9,
    "C1": c1,
    "C2": c2,
    "C3": c3,
    "C4": c4,
    "C5": c5,
    "C6": c6,
    "C7": c7,
    "C8": c8,
}
