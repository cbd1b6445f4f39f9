"""What is wrong with what a client says: a sentence that tells it, or nothing.

In:        what a client asks, and its session.
Out:       the problem as text, empty if there is none.
Not here:  what becomes of it, whether there is room (clients.py), whether bytes are a request at all (dialects/).
"""

from __future__ import annotations

from collections.abc import Container

from covey.config import COUNT_MAX, GROUPS_MAX, Settings
from covey.names import destination_problem, group_problem, name_problem
from covey.protocol.asked import Open, Sending
from covey.protocol.wire.bodies import SELF_DISCARD

from .session import ClientSession

DESTINATIONS_KNOWN_MAX = 20_000


def open_problem(asked: Open, taken: Container[str], settings: Settings) -> str:
    if asked.name in taken:
        return f"the name {asked.name!r} is taken here, or its last owner's departure is not ordered yet: try again"
    if asked.policy == "block" and not settings.block_percent:
        return "no session may make senders wait here (block_percent is 0): take the policy 'disconnect'"
    return name_problem(asked.name)


def join_problem(session: ClientSession, group: str, groups_max: int) -> str:
    if problem := group_problem(group):
        return problem
    if group in session.asked:
        return "it is a member already"
    return f"a session may be in {groups_max} groups at most" if len(session.asked) >= groups_max else ""


class Destinations:
    """Where clients send: a name is examined once, not with every message."""

    def __init__(self) -> None:
        self._good: set[str] = set()

    def problem(self, destinations: tuple[str, ...]) -> str:
        if not 0 < len(destinations) <= GROUPS_MAX:
            return f"a message has 1 to {GROUPS_MAX} destinations, not {len(destinations)}"
        for destination in destinations:
            if destination not in self._good:
                if problem := destination_problem(destination):
                    return problem
                if len(self._good) < DESTINATIONS_KNOWN_MAX:
                    self._good.add(destination)
        return ""


def sending_problem(session: ClientSession, sending: Sending, known: Destinations) -> str:
    if sending.session_seq != session.next_seq:
        return f"its message {sending.session_seq} is not the next, which is {session.next_seq}"
    if not 0 < sending.messages <= COUNT_MAX:
        return f"it sent {sending.messages} messages at once, not 1 to {COUNT_MAX}"
    if sending.flags & ~SELF_DISCARD:
        return "it sent a message with flags that nobody knows"
    if sending.body[: len(session.prefix)] != session.prefix:
        return "it sent a message in another's name"
    return known.problem(sending.groups)
