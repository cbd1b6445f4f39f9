"""Submissions, taken or refused: from here to the queue, or to the engine if they are not to wait.

In:        submissions of clients, and of the daemon's own driver.
Out:       the queue; what is unreliable, which the daemon hands to the engine; why one is refused.
Not here:  who waits for room, and whose turn it is (transport/queue.py).

Whether there is room is asked once. A session that finds none is put on the wait list; the driver is refused.
"""

from __future__ import annotations

from typing import Final

from covey.config import COUNT_MAX, FRAME_SLACK, GROUPS_BYTES_MAX, GROUPS_MAX, Settings, part_bytes
from covey.protocol.transport.queue import SubmitQueue, Waiting, cost
from covey.protocol.wire.group_names import groups_bytes, pack_groups

from .counters import Count, Family
from .inputs import Submit
from .values import Kind, Service

QUEUE_FULL: Final = "the send queue is full"


class Admission:
    def __init__(self, settings: Settings, queue: SubmitQueue, count: Count) -> None:
        self.queue = queue
        self.stopping = False
        """Nothing more of programs is taken."""
        self._settings = settings
        self._count = count
        self._unreliable: list[Submit] = []

    def admits(self, session: int, payload_bytes: int, groups: tuple[str, ...]) -> bool:
        """Whether there is room for this of a session; if not, it waits until the queue names it."""
        return self.queue.admits(session, cost(payload_bytes, len(pack_groups(groups))))

    def take(self, submit: Submit) -> str:
        """Why it is refused, perhaps for want of room; empty if it is taken."""
        return self._answer(submit, self._problem(submit) or self._room_problem(submit))

    def take_in_turn(self, submit: Submit) -> str | None:
        """The same for a session that can wait: None if it must, until the queue names it."""
        if (refused := self._problem(submit)) or submit.service is Service.UNRELIABLE:
            return self._answer(submit, refused)
        waiting = _waiting(submit)
        if not self.queue.admits(submit.session, waiting.cost):
            return None
        self.queue.put(waiting)
        return ""

    def _answer(self, submit: Submit, refused: str) -> str:
        if refused:
            self._count.add(Family.SUBMISSION_REFUSED.of(refused))
        else:
            self.put(submit)
        return refused

    def put(self, submit: Submit) -> None:
        """What a daemon orders of its own accord is not refused."""
        if submit.service is Service.UNRELIABLE:
            self._unreliable.append(submit)
        else:
            self.queue.put(_waiting(submit))

    def take_unreliable(self) -> list[Submit]:
        taken, self._unreliable = self._unreliable, []
        return taken

    def _problem(self, submit: Submit) -> str:
        if self.stopping:
            return "the daemon is stopping"
        settings, slack = self._settings, FRAME_SLACK if submit.kind is Kind.MESSAGES else 0
        if len(submit.payload) > settings.message_bytes_max + slack:
            return "the message is too large"
        if not 0 < submit.count <= COUNT_MAX or len(submit.groups) > GROUPS_MAX:
            return "too many messages or groups, or none"
        names_bytes = groups_bytes(submit.groups)
        if names_bytes > GROUPS_BYTES_MAX:
            return "the group names are too long"
        if submit.service is Service.UNRELIABLE:
            too_large = len(submit.payload) > part_bytes(settings.bundle_bytes, names_bytes)
            return "an unreliable message must fit one bundle" if too_large else ""
        return ""

    def _room_problem(self, submit: Submit) -> str:
        """What is unreliable does not wait."""
        needed = cost(len(submit.payload), groups_bytes(submit.groups))
        return "" if submit.service is Service.UNRELIABLE or self.queue.has_room(needed) else QUEUE_FULL


def _waiting(submit: Submit) -> Waiting:
    s = submit
    return Waiting(s.session, s.session_seq, s.count, s.service, s.groups, s.payload, s.kind, s.flags, s.priority)
