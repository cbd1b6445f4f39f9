"""One table of deadlines per daemon. Deadlines are state: a driver only ever asks for the next one."""

from __future__ import annotations

from enum import Enum


class Deadline(Enum):
    """What a daemon waits for, whatever engine orders its messages. Each engine has deadlines of its own besides."""

    GOODBYE = "say goodbye now, stable or not"
    CLIENTS = "look after silent and slow clients"
    CLIENT_WORK = "go on with what one step could not do for clients"

    __hash__ = object.__hash__
    """Each is one object. What Enum offers computes a hash of the name, in Python, a dozen times a step."""


class DeadlineTable:
    """Set, clear, ask.

    >>> table = DeadlineTable()
    >>> table.set(Deadline.CLIENTS, 30); table.set(Deadline.GOODBYE, 20)
    >>> table.next_us(), table.due(25)
    (20, [<Deadline.GOODBYE: 'say goodbye now, stable or not'>])
    """

    def __init__(self) -> None:
        self._at: dict[Enum, int] = {}

    def set(self, deadline: Enum, at_us: int) -> None:
        self._at[deadline] = at_us

    def set_if_clear(self, deadline: Enum, at_us: int) -> None:
        self._at.setdefault(deadline, at_us)

    def clear(self, *deadlines: Enum) -> None:
        for deadline in deadlines:
            self._at.pop(deadline, None)

    def clear_all(self) -> None:
        self._at.clear()

    def is_set(self, deadline: Enum) -> bool:
        return deadline in self._at

    def at(self, deadline: Enum) -> int | None:
        return self._at.get(deadline)

    def next_us(self) -> int | None:
        return min(self._at.values(), default=None)

    def due(self, now_us: int) -> list[Enum]:
        """What has run out, earliest first. Each is cleared by `take` just before it is acted on."""
        if not self._at or min(self._at.values()) > now_us:
            return []
        late = [(at, order, deadline) for order, (deadline, at) in enumerate(self._at.items()) if at <= now_us]
        return [deadline for _, _, deadline in sorted(late, key=lambda entry: entry[:2])]

    def take(self, deadline: Enum, now_us: int) -> bool:
        """Clear it if it is still due: acting on one deadline may have moved or cleared another."""
        at = self._at.get(deadline)
        if at is None or at > now_us:
            return False
        del self._at[deadline]
        return True
