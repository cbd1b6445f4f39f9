"""Runs of an imaginary cluster that keeps every promise, drawn from a seed.

In:   a seed, the number of daemons and of steps.
Out:  a Trace with partitions, merges, crashes, restarts, and messages of every service.

Nothing here is shared with the checkers: a delivery order is any order that the services allow, chosen at random.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from covey.trace.record import SERVICES
from tests.unit.checkers.builder import Trace


@dataclass(frozen=True)
class Sent:
    """A message of the current batch; stamps grow, so the order of a batch is the order of its sends."""

    name: str
    daemon: str
    session: str
    service: str


class IdealRun:
    def __init__(self, seed: int, daemons: int = 5, steps: int = 12, batch: int = 6) -> None:
        self.random = random.Random(seed)
        self.names = [f"d{number}" for number in range(daemons)]
        self.trace = Trace(" ".join(self.names), run=f"seed {seed}")
        self.batch = batch
        self.view_count = 0
        # The components, and who is down.
        self.components: list[list[str]] = []
        self.down: list[str] = []
        self.install(self.names)
        for _ in range(steps):
            self.step()
        self.settle()

    def step(self) -> None:
        for component in list(self.components):
            self.talk(component)
        change = self.random.choice([self.split, self.merge, self.crash, self.restart, self.pause])
        change()

    def pause(self) -> None:
        """Nobody moves."""

    def settle(self) -> None:
        for component in self.components:
            self.talk(component)
            self.trace.settle(" ".join(component))

    # ------------------------------------------------------------------------------------------------------- views

    def install(self, component: list[str]) -> None:
        self.view_count += 1
        self.components.append(component)
        self.trace.install(f"v{self.view_count}", " ".join(component))

    def split(self) -> None:
        component = self.random.choice(self.components)
        cut = self.random.randint(1, len(component))
        shuffled = self.random.sample(component, len(component))
        self.leave_view(component, [part for part in (sorted(shuffled[:cut]), sorted(shuffled[cut:])) if part])

    def merge(self) -> None:
        if len(self.components) < 2:
            return
        joined = self.random.sample(self.components, 2)
        for component in joined:
            self.leave_view(component, [component], install=False)
        self.install(sorted(joined[0] + joined[1]))

    def crash(self) -> None:
        component = self.random.choice(self.components)
        if len(component) < 2:
            return
        victim = self.random.choice(component)
        self.down.append(victim)
        self.leave_view(component, [[name for name in component if name != victim]], victim=victim)

    def restart(self) -> None:
        if not self.down:
            return
        name = self.down.pop()
        self.trace.restart(name)
        if self.random.random() < 0.5:
            self.install([name])
        else:
            component = self.random.choice(self.components)
            self.leave_view(component, [component], install=False)
            self.install(sorted([*component, name]))

    def leave_view(
        self, component: list[str], parts: list[list[str]], victim: str | None = None, *, install: bool = True
    ) -> None:
        """Ends a view with messages under way: up to the signal all have the same, after it each part its own."""
        batch = self.send_batch(component)
        common = self.random.randint(0, len(batch))
        for name in component:
            self.deliver(name, batch[:common])
        if victim is not None:
            self.random.choice([self.trace.crash, self.trace.stop])(victim)
        self.components.remove(component)
        for part in parts:
            rest = self.what_a_part_delivers(batch[common:], part)
            for name in part:
                self.trace.signal(name)
                self.deliver(name, rest)
            if install:
                self.install(part)

    def what_a_part_delivers(self, batch: list[Sent], part: list[str]) -> list[Sent]:
        """All that its own members sent, and some reliable messages of others, delivered past the holes."""
        return [
            sent for sent in batch if sent.daemon in part or (sent.service == "reliable" and self.random.random() < 0.5)
        ]

    # ---------------------------------------------------------------------------------------------------- messages

    def talk(self, component: list[str]) -> None:
        batch = self.send_batch(component)
        for name in component:
            self.deliver(name, batch)

    def send_batch(self, component: list[str]) -> list[Sent]:
        batch = []
        for _ in range(self.random.randint(0, self.batch)):
            name, service = self.random.choice(component), self.random.choice(SERVICES)
            session = self.random.choice(["s1", "s2"])
            batch.append(Sent(self.trace.send(name, service, session), name, f"{session}@{name}", service))
        return batch

    def deliver(self, name: str, batch: list[Sent]) -> None:
        """One daemon delivers the batch in some order that its services allow; unreliable messages may be lost."""
        waiting = [sent for sent in batch if sent.service != "unreliable" or self.random.random() < 0.7]
        while waiting:
            sent = self.random.choice([sent for sent in waiting if self.may_be_delivered(sent, waiting)])
            waiting.remove(sent)
            self.trace.deliver(sent.name, name)

    def may_be_delivered(self, sent: Sent, waiting: list[Sent]) -> bool:
        earlier = [other for other in waiting[: waiting.index(sent)] if other.service != "unreliable"]
        if sent.service in ("unreliable", "reliable"):
            return True
        if sent.service == "fifo":
            return all(other.session != sent.session for other in earlier)
        return not earlier
