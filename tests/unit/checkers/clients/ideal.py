"""Runs of an imaginary cluster with clients that keeps every promise, drawn from a seed.

In:   a seed, the number of daemons and of steps.
Out:  a World that has come to rest after joins, leaves, crashes, partitions, merges, and messages of every service.
"""

from __future__ import annotations

import random

from covey.trace.record import SERVICES
from tests.unit.checkers.clients.world import AGREED_CLASS, Client, Item, World

GROUPS = ("g", "h", "i")
NAMES = ("u", "w", "x", "y", "z")


class IdealClients:
    def __init__(self, seed: int, daemons: int = 4, steps: int = 120) -> None:
        self.random = random.Random(seed)
        self.world = World(" ".join("abcdefgh"[:daemons]), run=f"seed {seed}")
        self.names = list(self.world.nodes)
        acts = [self.connect] * 3 + [self.join] * 5 + [self.leave, self.depart] + [self.send] * 24
        acts += [self.step] * 15 + [self.early] * 8 + [self.split, self.merge, self.crash, self.restart]
        for act in [self.connect] * 2 * daemons + [self.join] * 3 * daemons:
            act()
        for _ in range(steps):
            self.random.choice(acts)()
        self.world.settle()

    def some_client(self) -> str | None:
        return self.random.choice(list(self.world.clients)) if self.world.clients else None

    # ------------------------------------------------------------------------------------------------------ clients

    def connect(self) -> None:
        daemon = self.random.choice(list(self.world.nodes))
        name = f"{self.random.choice(NAMES)}{daemon}"
        life = self.world.daemons.process(daemon)
        if all(self.is_free(client, f"{name}@{daemon}", life) for client in self.world.all_clients):
            self.world.connect(name, daemon)
        elif not any(row.event == "refused" and row.name == f"{name}@{daemon}" for row in self.world.client_rows):
            self.world.refuse(name, daemon)

    def is_free(self, client: Client, name: str, life: str) -> bool:
        return (client.name, client.daemon) != (name, life) or client.is_forgotten

    def join(self) -> None:
        name, group = self.some_client(), self.random.choice(GROUPS)
        if name is not None and group not in self.world.clients[name].asked:
            self.world.join(name, group)

    def leave(self) -> None:
        name = self.some_client()
        if name is not None and self.world.clients[name].asked:
            self.world.leave(name, self.random.choice(sorted(self.world.clients[name].asked)))

    def depart(self) -> None:
        name = self.some_client()
        if name is not None:
            self.random.choice([self.world.crash, self.world.disconnect])(name)

    # ----------------------------------------------------------------------------------------------------- messages

    def send(self) -> None:
        name, service = self.some_client(), self.random.choice(SERVICES)
        if name is None:
            return
        if self.random.random() < 0.1:
            message = self.world.send(name, service, "", to=self.some_client())
        else:
            groups = self.random.sample(GROUPS, self.random.choice([1, 1, 1, 2]))
            discard, count = self.random.random() < 0.1, self.random.choice([1, 1, 2])
            message = self.world.send(name, service, " ".join(groups), discard=discard, count=count)
        if service == "unreliable":
            daemons = self.world.nodes[self.world.items[message].client.daemon.partition(":")[0]].component.daemons
            heard = [daemon for daemon in daemons if daemon in self.world.nodes and self.random.random() < 0.7]
            self.world.unreliable(message, " ".join(heard))

    def step(self) -> None:
        daemon = self.random.choice(list(self.world.nodes))
        for _ in range(self.random.randint(1, 4)):
            self.world.step(daemon)

    def early(self) -> None:
        daemon = self.random.choice(list(self.world.nodes))
        node = self.world.nodes[daemon]
        for at in range(node.line, len(node.component.items)):
            item = node.component.items[at]
            if at not in node.early and self.may_be_early(daemon, item) and self.random.random() < 0.5:
                self.world.early(str(item.messages[-1]["message"]), daemon)

    def may_be_early(self, daemon: str, item: Item) -> bool:
        if item.service == "reliable":
            return True
        node = self.world.nodes[daemon]
        ahead = [at for at in range(node.line, node.component.items.index(item)) if at not in node.early]
        return item.service == "fifo" and all(node.component.items[at].client is not item.client for at in ahead)

    # ------------------------------------------------------------------------------------------------------ daemons

    def components(self) -> list[list[str]]:
        found = dict.fromkeys(node.component for node in self.world.nodes.values())
        return [[daemon for daemon in one.daemons if daemon in self.world.nodes] for one in found]

    def split(self) -> None:
        component = self.random.choice(self.components())
        shuffled = self.random.sample(component, len(component))
        cut = self.random.randint(1, len(component))
        parts = [" ".join(sorted(part)) for part in (shuffled[:cut], shuffled[cut:]) if part]
        self.world.become(*parts, lost=self.lost(component))

    def merge(self) -> None:
        components = self.components()
        if len(components) > 1:
            one, other = self.random.sample(components, 2)
            self.world.become(" ".join(sorted(one + other)), lost=self.lost(one) + self.lost(other))

    def crash(self) -> None:
        component = self.random.choice(self.components())
        if len(component) > 1:
            # What the victim delivered is not lost.
            lost = self.lost(component)
            self.world.crash_daemon(self.random.choice(component))
            self.world.become(" ".join(daemon for daemon in component if daemon in self.world.nodes), lost=lost)

    def restart(self) -> None:
        down = [name for name in self.names if name not in self.world.nodes]
        if down:
            self.world.restart_daemon(self.random.choice(down))

    def lost(self, component: list[str]) -> list[Item]:
        """From some place on that nobody has reached, order is lost; each session's stream breaks off somewhere."""
        nodes = [self.world.nodes[daemon] for daemon in component]
        items = nodes[0].component.items
        hole = self.random.randint(max(node.line for node in nodes), len(items))
        lost: list[Item] = []
        for item in items[hole:]:
            broken = any(item.client is other.client for other in lost)
            in_order = item.service in AGREED_CLASS or (item.service == "fifo" and broken)
            if in_order or self.random.random() < 0.5:
                lost.append(item)
        return lost
