"""One table of deadlines per daemon. Deadlines are state: a driver only ever asks for the next one."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Deadline(Enum):
    """Everything a daemon waits for."""

    ALIVE = "send the next ALIVE, and look whom we still hear"
    SEGMENT = "enough time to hear who is around"
    GATHER = "the gatherer proposes now"
    FOLLOW = "the representative we follow should have proposed by now"
    ATTEMPT = "the attempt makes no progress"
    EXCHANGE = "send again what the attempt still lacks"
    GOODBYE = "say goodbye now, stable or not"
    TOKEN_RESEND = "the successor has not shown that it has the token"
    TOKEN_LOST = "the token did not come back"
    HURRY = "ask again for a parked token"
    ANNOUNCE = "tell the other sites how far we are"
    CLIENTS = "look after silent and slow clients"
    CLIENT_WORK = "go on with what one step could not do for clients"

    __hash__ = object.__hash__
    """Each is one object. What Enum offers computes a hash of the name, in Python, a dozen times a step."""


WORKING: Final = (Deadline.TOKEN_RESEND, Deadline.TOKEN_LOST, Deadline.HURRY, Deadline.ANNOUNCE)
"""What only a working view waits for."""


class DeadlineTable:
    """Set, clear, ask.

    >>> table = DeadlineTable()
    >>> table.set(Deadline.ALIVE, 30); table.set(Deadline.GATHER, 20)
    >>> table.next_us(), table.due(25)
    (20, [<Deadline.GATHER: 'the gatherer proposes now'>])
    """

    def __init__(self) -> None:
        self._at: dict[Deadline, int] = {}

    def set(self, deadline: Deadline, at_us: int) -> None:
        self._at[deadline] = at_us

    def set_if_clear(self, deadline: Deadline, at_us: int) -> None:
        self._at.setdefault(deadline, at_us)

    def clear(self, *deadlines: Deadline) -> None:
        for deadline in deadlines:
            self._at.pop(deadline, None)

    def is_set(self, deadline: Deadline) -> bool:
        return deadline in self._at

    def at(self, deadline: Deadline) -> int | None:
        return self._at.get(deadline)

    def next_us(self) -> int | None:
        return min(self._at.values(), default=None)

    def due(self, now_us: int) -> list[Deadline]:
        """What has run out, earliest first. Each is cleared by `take` just before it is acted on."""
        if not self._at or min(self._at.values()) > now_us:
            return []
        late = [(at, order, deadline) for order, (deadline, at) in enumerate(self._at.items()) if at <= now_us]
        return [deadline for _, _, deadline in sorted(late, key=lambda entry: entry[:2])]

    def take(self, deadline: Deadline, now_us: int) -> bool:
        """Clear it if it is still due: acting on one deadline may have moved or cleared another."""
        at = self._at.get(deadline)
        if at is None or at > now_us:
            return False
        del self._at[deadline]
        return True
