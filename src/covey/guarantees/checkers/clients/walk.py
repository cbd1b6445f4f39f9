"""From the rows of one client to its memberships, stays, deliveries and traffic.

In:        a ClientLife with its rows, and the messages of the run.
Out:       the same life, filled.
Not here:  what these things are (lives.py), whether the rows make sense (views.py).
"""

from __future__ import annotations

from covey.guarantees.checkers.common.lives import name_of
from covey.trace.record import Row

from .lives import (
    DELIVERED,
    DEPARTED,
    ClientDelivery,
    ClientLife,
    ClientMessage,
    GroupStay,
    Membership,
    place_of,
    was_refused,
)


class ClientWalk:
    """Goes through one life's rows once and fills its memberships, deliveries and traffic."""

    def __init__(self, life: ClientLife, messages: dict[str, ClientMessage]) -> None:
        self.life = life
        self.messages = messages
        # The last stay in each group that the client is in.
        self.current: dict[str, GroupStay] = {}
        # The groups that it has asked to leave, and of which it has not heard that it left them.
        self.leaving: set[str] = set()

    def walk(self) -> None:
        for row in self.life.rows:
            if row.event in DELIVERED:
                self._on_deliver(row)
            elif row.event == "send":
                self._on_send(row)
            elif row.event == "view":
                self._on_view(row)
            elif row.event == "transitional":
                self._on_signal(row)
            elif row.event == "leave" and not was_refused(row):
                self.leaving.add(row.group or "")
            elif row.event == "self_leave":
                self._close(row.group or "", row)
                self.leaving.discard(row.group or "")
            elif row.event in DEPARTED:
                self._on_departure(row)
            elif row.event == "end":
                self.life.ended = True

    def _on_view(self, row: Row) -> None:
        group, view = row.group or "", row.view_new or ""
        previous = self.current.get(group) if row.view is not None else None
        if previous is None:
            self._close(group, row)
            self.life.memberships.append(Membership(self.life.process, group))
        membership = previous.membership if previous is not None else self.life.memberships[-1]
        stay = GroupStay(
            process=self.life.process,
            membership=membership,
            view=view,
            rank=row.view_rank,
            members=frozenset(row.members),
            transitional=frozenset(row.transitional),
            cause=row.cause,
            daemon_view=view.partition("/")[0],
            change=place_of(row),
            previous=previous,
        )
        if previous is not None:
            previous.next = stay
        membership.stays.append(stay)
        self.current[group] = stay

    def _on_signal(self, row: Row) -> None:
        if stay := self.current.get(row.group or ""):
            stay.signals += 1

    def _on_departure(self, row: Row) -> None:
        self.life.excused = True
        for group in list(self.current):
            self._close(group, row)

    def _close(self, group: str, row: Row) -> None:
        if stay := self.current.pop(group, None):
            stay.membership.closed_by = row

    def _on_send(self, row: Row) -> None:
        message = self.messages.get(name_of(row))
        if message is None or message.send is not row:
            return
        self.life.traffic.append((True, message))
        message.sent_in_stays = {group: self.current[group] for group in message.groups if group in self.current}
        message.sent_from_outside = frozenset(self.leaving)

    def _on_deliver(self, row: Row) -> None:
        message = self.messages[name_of(row)]
        stays = tuple((stay, stay.signals > 0) for stay in map(self.current.get, row.groups) if stay is not None)
        self.life.deliveries.append(ClientDelivery(message, row, stays))
        self.life.traffic.append((False, message))
        self.life.delivered |= message.bit
        for stay, after_signal in stays:
            if after_signal:
                stay.delivered_after_signal |= message.bit
            else:
                stay.delivered_before_signal |= message.bit
