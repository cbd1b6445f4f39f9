"""The rows of one run as what they tell: lives, stays in views, messages, deliveries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from covey.trace.record import SERVICES, Row

Key = tuple[int, int, int]
Place = tuple[str, int, int]


@dataclass(eq=False)
class Stay:
    process: str
    group: str
    row: Row
    previous: Stay | None
    next: Stay | None = None
    ended_by: Row | None = None
    signals: list[int] = field(default_factory=list)
    # Each delivery: the message's name, "after the signal", and where in the history.
    delivered: list[tuple[str, bool, int]] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    @property
    def view(self) -> str:
        return self.row.view_new or ""

    @property
    def members(self) -> set[str]:
        return set(self.row.members)

    @property
    def moved(self) -> set[str]:
        return set(self.row.transitional)

    @property
    def light(self) -> bool:
        return not self.view.endswith("/net")

    @property
    def daemon_view(self) -> str:
        return self.view.split("/")[0]

    def names(self, after: bool | None = None) -> set[str]:
        return {name for name, late, _ in self.delivered if after is None or late == after}

    def membership(self) -> list[Stay]:
        """The stays up to this one, from the first."""
        return [*(self.previous.membership() if self.previous else []), self]

    def span(self) -> list[Stay]:
        """Back to the last network view, or to the first view of all."""
        stays = [self]
        while stays[0].light and stays[0].previous:
            stays.insert(0, stays[0].previous)
        return stays

    def last(self) -> Stay:
        return self.next.last() if self.next else self


@dataclass(eq=False)
class Message:
    name: str
    first: Row
    send: Row | None
    order_view: str | None
    key: Key | None
    # Level C: the sender's stays in the destination groups, when it sent.
    sent_in: dict[str, Stay] = field(default_factory=dict)

    @property
    def strength(self) -> int:
        return SERVICES.index(self.first.service) if self.first.service in SERVICES else 0

    @property
    def origin(self) -> str | None:
        return self.send.process if self.send else None

    @property
    def place(self) -> Place | None:
        return (self.order_view, *self.key[:2]) if self.order_view and self.key else None


def key_of(row: Row) -> Key | None:
    if row.order_stamp is None or row.order_site is None:
        return None
    return row.order_stamp, row.order_site, row.order_index or 0


def place_of(row: Row) -> Place | None:
    key = key_of(row)
    return (row.order_view, *key[:2]) if key and row.order_view is not None else None


class Story:
    def __init__(self, rows: list[Row], level: str, daemons: Story | None = None) -> None:
        self.level = level
        # For clients, the story of their daemons.
        self.daemons = daemons
        mine = sorted((row for row in rows if row.level == level), key=lambda row: (row.process, row.index))
        self.rows: dict[str, list[Row]] = {}
        for row in mine:
            self.rows.setdefault(row.process, []).append(row)
        self.deliveries = [row for row in mine if self.is_delivery(row)]
        self.messages = self._messages(mine)
        self.stays: dict[str, list[Stay]] = {process: self._stays(rows) for process, rows in self.rows.items()}
        # When each process first delivered each message.
        self.when: dict[str, dict[str, int]] = {process: {} for process in self.rows}
        for row in self.deliveries:
            self.when[row.process].setdefault(row.message or "", row.index)

    def is_delivery(self, row: Row) -> bool:
        return row.event == "deliver" or (self.level == "C" and row.event == "discard")

    def is_send(self, row: Row) -> bool:
        return row.event == "send" and (self.level == "S" or row.cause is None)

    def _messages(self, rows: list[Row]) -> dict[str, Message]:
        found: dict[str, Message] = {}
        for row in rows:
            if self.is_send(row) and (row.message or "") not in found:
                found[row.message or ""] = Message(row.message or "", row, row, row.order_view, key_of(row))
        for row in self.deliveries:
            name = row.message or ""
            message = found.setdefault(name, Message(name, row, None, row.order_view, key_of(row)))
            if self.level == "C" and message.key is None:
                message.order_view, message.key = row.order_view, key_of(row)
        return found

    def _stays(self, rows: list[Row]) -> list[Stay]:
        stays: list[Stay] = []
        current: dict[str, Stay] = {}
        for row in rows:
            group = row.group or ""
            if row.event == "view":
                previous = current.get(group) if self.level == "S" or row.view is not None else None
                if previous is None and group in current:
                    current.pop(group).ended_by = row
                current[group] = Stay(row.process, group, row, previous)
                if previous:
                    previous.next = current[group]
                stays.append(current[group])
            elif row.event == "transitional" and group in current:
                current[group].signals.append(row.index)
            elif self.level == "C" and row.event == "self_leave" and group in current:
                current.pop(group).ended_by = row
            elif self.level == "C" and row.event in ("disconnect", "crash", "stop", "expelled"):
                while current:
                    current.popitem()[1].ended_by = row
            elif self.is_send(row) or self.is_delivery(row):
                self._place(row, current)
        return stays

    def _place(self, row: Row, current: dict[str, Stay]) -> None:
        message = self.messages[row.message or ""]
        for group in row.groups if self.level == "C" else ("",):
            if group not in current:
                continue
            stay = current[group]
            if self.is_delivery(row):
                stay.delivered.append((message.name, bool(stay.signals), row.index))
            elif message.send is row:
                stay.sent.append(message.name)
                message.sent_in[group] = stay

    # ----------------------------------------------------------------------------------------------------- questions

    def all_stays(self) -> Iterator[Stay]:
        return (stay for stays in self.stays.values() for stay in stays)

    def in_view(self, group: str, view: str) -> list[Stay]:
        return self._in_view.get((group, view), [])

    @cached_property
    def _in_view(self) -> dict[tuple[str, str], list[Stay]]:
        found: dict[tuple[str, str], list[Stay]] = {}
        for stay in self.all_stays():
            found.setdefault((stay.group, stay.view), []).append(stay)
        return found

    def has(self, process: str, event: str) -> bool:
        return any(row.event == event for row in self.rows.get(process, []))

    def departed(self, process: str) -> bool:
        events = ("crash", "stop") if self.level == "S" else ("disconnect", "crash", "stop", "expelled")
        return any(self.has(process, event) for event in events)

    def at_rest(self, process: str) -> bool:
        return self.has(process, "end") and not self.departed(process)

    def names(self, weakest: int, strongest: int = 5) -> set[str]:
        return {name for name, one in self.messages.items() if weakest <= one.strength <= strongest}

    def first_stay(self, process: str, view: str | None) -> Stay | None:
        """Level S: the first stay in this view."""
        return next((stay for stay in self.stays.get(process, []) if stay.view == view), None)

    def comovers(self) -> Iterator[tuple[Stay, Stay]]:
        """Ordered pairs of stays that virtual synchrony joins: same view, same next view, one in the other's set."""
        for here in self.all_stays():
            for there in self.in_view(here.group, here.view):
                if here is not there and here.next and there.next and here.next.view == there.next.view:
                    if there.process in here.next.moved or here.process in there.next.moved:
                        yield here, there

    @cached_property
    def past(self) -> dict[str, set[str]]:
        """What happened before each message: by every process that sent or delivered it, again and again."""
        past: dict[str, set[str]] = {name: set() for name in self.messages}
        changed = True
        while changed:
            changed = False
            for rows in self.rows.values():
                known: set[str] = set()
                for row in rows:
                    if not (self.is_send(row) or self.is_delivery(row)):
                        continue
                    message = self.messages[row.message or ""]
                    if message.send is row and not known <= past[message.name]:
                        past[message.name] |= known
                        changed = True
                    if message.strength >= 1 and (message.send is row or self.is_delivery(row)):
                        known |= {message.name} | past[message.name]
        return past

    def runs_in_circles(self) -> bool:
        """Whether the histories can only be put in a line by letting a delivery come before its send."""
        waiting = {
            process: [
                row
                for row in rows
                if self.messages.get(row.message or "")
                and (self.is_delivery(row) or self.messages[row.message or ""].send is row)
            ]
            for process, rows in self.rows.items()
        }
        sent: set[str] = set()
        moved = True
        while moved:
            moved = False
            for rows in waiting.values():
                while rows and (
                    not self.is_delivery(rows[0])
                    or self.messages[rows[0].message or ""].send is None
                    or (rows[0].message or "") in sent
                ):
                    row = rows.pop(0)
                    moved = True
                    if not self.is_delivery(row):
                        sent.add(row.message or "")
        return any(waiting.values())
