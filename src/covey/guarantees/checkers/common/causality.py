"""Happened-before between messages, from the histories of the processes alone.

In:        the lives of one run.
Out:       Causality: the causal past of every message as a bit set, and the deliveries that no order of the
           events can put after their send (they close a circle).
Not here:  judgement (S7 in delivery.py, M4 in services.py).

m happened before m' if some process sent or delivered m before it sent m', and transitively. Only messages that are
reliable or stronger carry the past on: an unreliable message has no stamp, so it cannot raise the receiver's clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from .lives import RELIABLE, AnyLife, TracedMessage


@dataclass(slots=True)
class Causality:
    # By message name, for the messages that have a send row.
    past: dict[str, int] = field(default_factory=dict)
    # A process, and the message it delivered although the send could only come later.
    circles: list[tuple[str, TracedMessage]] = field(default_factory=list)


def causality_of(lives: Mapping[str, AnyLife]) -> Causality:
    return _Replay(lives).run()


class _Replay:
    """Plays all histories at once: a delivery waits until its message has been sent."""

    def __init__(self, lives: Mapping[str, AnyLife]) -> None:
        self.lives = lives
        self.result = Causality()
        # What each process knows so far, and how far its traffic has been played.
        self.known: dict[str, int] = dict.fromkeys(lives, 0)
        self.position: dict[str, int] = dict.fromkeys(lives, 0)
        self.waiting: dict[str, list[str]] = defaultdict(list)
        self.ready: list[str] = list(lives)

    def run(self) -> Causality:
        while self.ready or self._break_circle():
            self._advance(self.lives[self.ready.pop()])
        return self.result

    def _advance(self, life: AnyLife) -> None:
        past, process = self.result.past, life.process
        known = self.known[process]
        for position in range(self.position[process], len(life.traffic)):
            is_send, message = life.traffic[position]
            if is_send:
                past[message.name] = known
                self.ready.extend(self.waiting.pop(message.name, ()))
            elif message.send is not None and message.name not in past:
                self.waiting[message.name].append(process)
                self.position[process], self.known[process] = position, known
                return
            if message.strength >= RELIABLE:
                known |= message.bit | past.get(message.name, 0)
        self.position[process], self.known[process] = len(life.traffic), known

    def _break_circle(self) -> bool:
        """With everybody waiting, finds a circle and lets one of its deliveries pass; False if nobody waits."""
        blocked_on = {process: name for name, processes in self.waiting.items() for process in processes}
        if not blocked_on:
            return False
        process = min(blocked_on)
        seen: set[str] = set()
        while process not in seen:
            seen.add(process)
            process = self._sender_awaited(process)
        self._pass(process, blocked_on[process])
        return True

    def _sender_awaited(self, process: str) -> str:
        message = self.lives[process].traffic[self.position[process]][1]
        assert message.origin is not None, "only messages with a send row are waited for"
        return message.origin

    def _pass(self, process: str, name: str) -> None:
        self.waiting[name].remove(process)
        self.result.circles.append((process, self.lives[process].traffic[self.position[process]][1]))
        self.position[process] += 1
        self.ready.append(process)
