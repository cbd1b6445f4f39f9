"""A cluster with clients that keeps every promise: daemons pass an ordered stream, group by group told to clients.

In:   one call an event: clients connect, join, send; daemons pass what is ordered, early or in order, and change views.
Out:  rows of level S and C, as correct daemons and clients would write them.

The order is one list for each daemon view, to which every message and change is appended when it is stamped. Daemons go
through it at their own pace. Nothing here is shared with the checkers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from covey.trace.record import Row, payload_digest
from tests.unit.checkers.builder import Trace

AGREED_CLASS = ("causal", "agreed", "safe")


@dataclass(eq=False)
class Client:
    process: str
    name: str
    daemon: str
    session: str
    index: int = 0
    session_seq: int = 0
    views: dict[str, str] = field(default_factory=dict)
    gone: bool = False
    # Its departure has been ordered, and its daemon knows: the name is free.
    is_forgotten: bool = False
    # The groups it has asked to be in.
    asked: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Item:
    """A message or a change at its place in the order."""

    kind: str
    client: Client
    groups: tuple[str, ...]
    service: str
    # As the daemons call it, with its place.
    bundle: str
    place: tuple[str, int, int]
    # The columns of its messages, and for whom a private one is.
    messages: list[dict[str, Any]] = field(default_factory=list)
    address: Client | None = None
    discard: bool = False


@dataclass(eq=False)
class Component:
    """One daemon view and what is ordered in it."""

    view: str
    rank: tuple[int, ...]
    daemons: list[str]
    items: list[Item] = field(default_factory=list)


Roster = dict[str, dict[Client, tuple[str, int, int]]]


@dataclass(eq=False)
class Node:
    """One daemon: how far it is in the order, what it passed early, and who is in which group."""

    component: Component
    line: int = 0
    early: set[int] = field(default_factory=set)
    roster: Roster = field(default_factory=dict)

    def members(self, group: str) -> dict[Client, tuple[str, int, int]]:
        return self.roster.setdefault(group, {})


class World:
    def __init__(self, daemons: str, run: str = "run") -> None:
        self.daemons = Trace(daemons, run)
        self.client_rows: list[Row] = []
        self.nodes: dict[str, Node] = {}
        self.clients: dict[str, Client] = {}
        self.all_clients: list[Client] = []
        self.sessions: dict[str, int] = {}
        self.items: dict[str, Item] = {}
        self.view_count = 0
        self.install(daemons.split(), {})

    @property
    def rows(self) -> list[Row]:
        return self.daemons.rows + self.client_rows

    # ----------------------------------------------------------------------------------------------------- sessions

    def connect(self, name: str, daemon: str) -> Client:
        life = self.daemons.process(daemon)
        number = self.sessions[life] = self.sessions.get(life, 0) + 1
        full = f"{name}@{daemon}"
        client = Client(f"{full}:{life.partition(':')[2]}.{number}", full, life, f"s{number}")
        self.clients[name] = client
        self.all_clients.append(client)
        self.write(client, "connect")
        return client

    def refuse(self, name: str, daemon: str) -> None:
        life = self.daemons.process(daemon)
        refused = Client(f"{name}@{life}.refused1", f"{name}@{daemon}", life, "")
        self.write(refused, "refused", cause="the name is taken")

    def crash(self, name: str) -> None:
        self.depart(name, "crash")

    def disconnect(self, name: str) -> None:
        self.depart(name, "disconnect", cause="bye")

    def depart(self, name: str, event: str, **columns: Any) -> None:
        client = self.clients.pop(name)
        self.write(client, event, **columns)
        client.gone = True
        self.change(client, "disconnect", ())

    # --------------------------------------------------------------------------------------------------- what is sent

    def join(self, name: str, group: str) -> Item:
        self.write(self.clients[name], "join", group=group)
        self.clients[name].asked.add(group)
        return self.change(self.clients[name], "join", (group,))

    def leave(self, name: str, group: str) -> Item:
        client = self.clients[name]
        self.write(client, "leave", group=group, view=client.views.get(group))
        client.asked.discard(group)
        return self.change(client, "leave", (group,))

    def change(self, client: Client, kind: str, groups: tuple[str, ...]) -> Item:
        return self.stamp(Item(kind, client, groups, "agreed", "", ("", 0, 0)))

    def send(
        self, name: str, service: str, groups: str, *, to: str | None = None, discard: bool = False, count: int = 1
    ) -> str:
        """Sends some messages as one bundle, and returns the name of the last one."""
        client = self.clients[name]
        item = Item("message", client, tuple(groups.split()), service, "", ("", 0, 0), discard=discard)
        item.address = self.clients[to] if to is not None else None
        for _ in range(count):
            item.messages.append(self._sent(client, service, item.groups))
        self.stamp(item)
        message = str(item.messages[-1]["message"])
        self.items[message] = item
        return message

    def _sent(self, client: Client, service: str, groups: tuple[str, ...]) -> dict[str, Any]:
        client.session_seq += 1
        message = f"{client.process}#{client.session_seq}"
        columns: dict[str, Any] = {
            "message": message,
            "count": 1,
            "sender": client.process,
            "session_seq": client.session_seq,
            "service": service,
            "groups": groups,
            "group": groups[0] if len(groups) == 1 else None,
            "size": len(message),
            "digest": payload_digest(message.encode()),
        }
        self.write(client, "send", **columns | self._where(client, groups))
        return columns

    def _where(self, client: Client, groups: tuple[str, ...]) -> dict[str, Any]:
        views = tuple(client.views.get(group, "") for group in groups)
        return {"views": views, "view": (views[0] or None) if len(views) == 1 else None}

    def stamp(self, item: Item) -> Item:
        """Gives it the next place in the order of its daemon's view; unreliable messages have none."""
        daemon = item.client.daemon.partition(":")[0]
        node = self.nodes[daemon]
        if item.service in AGREED_CLASS:
            # Its past must be complete, or others could get it without what its sender had early.
            while node.early and max(node.early) >= node.line:
                self.step(daemon)
        item.bundle = self.daemons.send(daemon, item.service, item.client.session)
        item.place = (node.component.view, self.daemons.stamp, 1)
        if item.service != "unreliable":
            node.component.items.append(item)
        return item

    # -------------------------------------------------------------------------------------------------- what is passed

    def flow(self, daemons: str | None = None) -> World:
        """The daemons pass everything that is ordered so far."""
        for daemon in daemons.split() if daemons is not None else list(self.nodes):
            while self.step(daemon):
                pass
        return self

    def step(self, daemon: str) -> bool:
        """One daemon passes what is next in the order."""
        node = self.nodes[daemon]
        if node.line == len(node.component.items):
            return False
        node.line += 1
        if node.line - 1 not in node.early:
            self.tell(daemon, node.component.items[node.line - 1])
        return True

    def early(self, message: str, daemons: str) -> World:
        """These daemons pass a message ahead of its place."""
        for daemon in daemons.split():
            node = self.nodes[daemon]
            at = node.component.items.index(self.items[message])
            if at >= node.line and at not in node.early:
                node.early.add(at)
                self.tell(daemon, node.component.items[at])
        return self

    def unreliable(self, message: str, daemons: str) -> World:
        for daemon in daemons.split():
            self.tell(daemon, self.items[message])
        return self

    def multicast(self, name: str, service: str, groups: str, **options: Any) -> str:
        message = self.send(name, service, groups, **options)
        self.flow()
        return message

    def tell(self, daemon: str, item: Item) -> None:
        """In a working view: clients get messages, and a view for every change."""
        self.daemons.deliver(item.bundle, daemon)
        node = self.nodes[daemon]
        self.forget(daemon, item)
        if item.kind == "message":
            self.hand_out(daemon, item, {group: list(node.members(group)) for group in item.groups})
        for group in self.concerned(node, item):
            before = dict(node.members(group))
            self.fold(node, item, group)
            if node.members(group) != before:
                self.show_light(daemon, item, group, before)

    def forget(self, daemon: str, item: Item) -> None:
        if item.kind == "disconnect" and item.client.daemon == self.daemons.process(daemon):
            item.client.is_forgotten = True

    def concerned(self, node: Node, item: Item) -> list[str]:
        """The groups that a change is about."""
        if item.kind == "disconnect":
            return [group for group, members in sorted(node.roster.items()) if item.client in members]
        return list(item.groups) if item.kind in ("join", "leave") else []

    def fold(self, node: Node, item: Item, group: str) -> None:
        if item.kind == "join":
            node.members(group).setdefault(item.client, item.place)
        else:
            node.members(group).pop(item.client, None)

    def show_light(self, daemon: str, item: Item, group: str, before: Roster | dict[Client, Any]) -> None:
        node, (view, stamp, site) = self.nodes[daemon], item.place
        order = {"order_view": view, "order_stamp": stamp, "order_site": site}
        if item.kind == "leave" and item.client.daemon == self.daemons.process(daemon):
            self.self_leave(item, group)
        stayed = [client for client in node.members(group) if client in before]
        new = f"{view}/{stamp}.{site}", (*node.component.rank, stamp, site)
        for client in self.local(daemon, node.members(group)):
            moved = stayed if client in stayed else [client]
            self.show(client, group, new, list(node.members(group)), moved, cause=item.kind, **order)

    def self_leave(self, item: Item, group: str) -> None:
        view, stamp, site = item.place
        current = item.client.views.pop(group, None)
        order = {"order_view": view, "order_stamp": stamp, "order_site": site}
        self.write(item.client, "self_leave", group=group, view=current, **order)

    def hand_out(self, daemon: str, item: Item, local: dict[str, list[Client]]) -> None:
        receivers = dict.fromkeys(client for group in item.groups for client in self.local(daemon, local[group]))
        if item.address is not None and item.address.daemon == self.daemons.process(daemon):
            receivers[item.address] = None
        view, stamp, site = item.place
        stamped = item.service != "unreliable"
        for client in receivers:
            event = "discard" if item.discard and client is item.client else "deliver"
            unknown = {"size": None, "digest": None} if event == "discard" else {}
            for index, message in enumerate(item.messages):
                order = (view, stamp, site, index) if stamped else (None,) * 4
                columns = dict(zip(("order_view", "order_stamp", "order_site", "order_index"), order, strict=True))
                self.write(client, event, **message | unknown | columns | self._where(client, item.groups))

    def local(self, daemon: str, clients: Any) -> list[Client]:
        life = self.daemons.process(daemon)
        return sorted((one for one in clients if one.daemon == life and not one.gone), key=lambda one: one.process)

    # ------------------------------------------------------------------------------------------------ daemon changes

    def become(self, *components: str, lost: Iterable[Item] = ()) -> World:
        """The daemons named form these components; what is in `lost` gets only as far as its own component.

        Daemons that appear in none have crashed before.
        """
        steps: list[tuple[list[str], dict[str, Step]]] = []
        for component in components:
            daemons = component.split()
            steps.append((daemons, {daemon: self._ending(daemon, daemons, frozenset(lost)) for daemon in daemons}))
        for _, endings in steps:
            for ending in endings.values():
                ending.catch_up()
        for daemons, endings in steps:
            declared = {daemon: ending.rest() for daemon, ending in endings.items()}
            self.install(daemons, {daemon: ending.component for daemon, ending in endings.items()}, declared)
        return self

    def _ending(self, daemon: str, daemons: list[str], lost: frozenset[Item]) -> Step:
        old = self.nodes[daemon].component
        movers = [other for other in daemons if self.nodes[other].component is old]
        return Step(self, daemon, movers, lost)

    def install(
        self,
        daemons: list[str],
        came_from: dict[str, Component],
        endings: dict[str, Ending] | None = None,
    ) -> None:
        """A new daemon view: the rosters are put together, and the groups that are touched get a network view."""
        self.view_count += 1
        view = f"v{self.view_count}"
        component = Component(view, (self.view_count, 0, 1), daemons)
        rosters = {daemon: self._merged(daemon, daemons, came_from) for daemon in daemons}
        touched = {}
        for daemon in daemons:
            if endings is not None:
                touched[daemon] = endings[daemon].announce(rosters[daemon])
        self.daemons.install(view, " ".join(daemons))
        for daemon in daemons:
            self.nodes[daemon] = Node(component, roster=rosters[daemon])
            if endings is not None:
                endings[daemon].show(touched[daemon], component, rosters[daemon])

    def _merged(self, daemon: str, daemons: list[str], came_from: dict[str, Component]) -> Roster:
        """Own groups, and what each daemon of the new view declares of its own clients."""
        merged: Roster = {}
        for other in daemons:
            life = self.daemons.process(other)
            for group, members in self.nodes[other].roster.items() if other in came_from else ():
                for client, place in members.items():
                    if client.daemon == life:
                        merged.setdefault(group, {})[client] = place
        return merged

    def crash_daemon(self, daemon: str) -> None:
        """With all its clients; the others find out by their next view."""
        life = self.daemons.process(daemon)
        for name, client in list(self.clients.items()):
            if client.daemon == life:
                self.write(client, "disconnect", cause="the daemon is gone")
                client.gone = True
                del self.clients[name]
        self.daemons.crash(daemon)
        del self.nodes[daemon]

    def restart_daemon(self, daemon: str) -> None:
        self.daemons.restart(daemon)
        self.install([daemon], {})

    # ---------------------------------------------------------------------------------------------------------- rows

    def show(
        self,
        client: Client,
        group: str,
        new: tuple[str, tuple[int, ...]],
        members: list[Client],
        transitional: list[Client],
        **columns: Any,
    ) -> None:
        view, rank = new
        self.write(
            client,
            "view",
            group=group,
            view=client.views.get(group),
            view_new=view,
            view_rank=rank,
            members=tuple(sorted(one.process for one in members)),
            transitional=tuple(sorted(one.process for one in transitional)),
            **columns,
        )
        client.views[group] = view

    def write(self, client: Client, event: str, **columns: Any) -> None:
        if client.gone:
            return
        head: dict[str, Any] = {
            "run": self.daemons.run,
            "level": "C",
            "process": client.process,
            "name": client.name,
            "daemon": client.daemon,
            "index": client.index,
            "time_ns": 0,
            "event": event,
        }
        client.index += 1
        self.client_rows.append(Row(**head | columns))

    def settle(self) -> World:
        self.flow()
        for component in dict.fromkeys(node.component for node in self.nodes.values()):
            self.daemons.settle(" ".join(component.daemons))
        for client in self.clients.values():
            self.write(client, "end")
        return self


class Step:
    """One daemon's way out of its view: what it still passes before the signal and after it."""

    def __init__(self, world: World, daemon: str, movers: list[str], lost: frozenset[Item]) -> None:
        self.world = world
        self.daemon = daemon
        self.node = world.nodes[daemon]
        self.component = self.node.component
        self.movers = movers
        lives = {world.daemons.process(mover) for mover in movers}
        nodes = [world.nodes[mover] for mover in movers]
        self.signal = max(node.line for node in nodes)
        held = {at for node in nodes for at in node.early}
        items = list(enumerate(self.component.items))[self.signal :]
        # What co-movers sent or passed early is here; of the rest, what is not lost.
        kept = [(at, item) for at, item in items if at in held or item.client.daemon in lives or item not in lost]
        self.after = [(at, item) for at, item in kept if at not in self.node.early]

    def catch_up(self) -> None:
        while self.node.line < self.signal:
            self.world.step(self.daemon)

    def rest(self) -> Ending:
        ending = Ending(self)
        for _, item in self.after:
            ending.fold(item)
        return ending


class Ending:
    """From the signal to the new view, with look-ahead: changes are applied silently, then signals, rest and views."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.world, self.daemon, self.node = step.world, step.daemon, step.node
        self.component = step.component
        self.at_signal = {group: dict(members) for group, members in self.node.roster.items()}
        self.busy: set[str] = set()

    def fold(self, item: Item) -> None:
        concerned = self.world.concerned(self.node, item)
        if item.service in AGREED_CLASS:
            self.busy |= {*item.groups, *concerned}
        for group in concerned:
            self.world.fold(self.node, item, group)

    def announce(self, new: Roster) -> list[str]:
        """The signals, and what comes after them; returns the groups touched."""
        world, movers = self.world, {self.world.daemons.process(mover) for mover in self.step.movers}
        touched = [
            group
            for group, members in sorted(self.at_signal.items())
            if members
            and (
                group in self.busy
                or new.get(group, {}) != members
                or any(client.daemon not in movers for client in members)
            )
        ]
        world.daemons.signal(self.daemon)
        for group in touched:
            for client in world.local(self.daemon, self.at_signal[group]):
                world.write(client, "transitional", group=group, view=client.views[group])
        self._hand_out_rest()
        return touched

    def _hand_out_rest(self) -> None:
        world = self.world
        present = {group: dict(members) for group, members in self.at_signal.items()}
        joined: set[tuple[str, Client]] = set()
        for _, item in self.step.after:
            world.daemons.deliver(item.bundle, self.daemon)
            world.forget(self.daemon, item)
            if item.kind == "message":
                world.hand_out(self.daemon, item, {group: list(present.get(group, {})) for group in item.groups})
            elif item.kind == "join":
                joined.add((item.groups[0], item.client))
            elif item.kind == "disconnect":
                for members in present.values():
                    members.pop(item.client, None)
            elif item.client in present.get(item.groups[0], {}) or (item.groups[0], item.client) in joined:
                present.get(item.groups[0], {}).pop(item.client, None)
                if item.client.daemon == world.daemons.process(self.daemon):
                    world.self_leave(item, item.groups[0])

    def show(self, touched: list[str], component: Component, roster: Roster) -> None:
        movers = {self.world.daemons.process(mover) for mover in self.step.movers}
        for group, now in sorted(roster.items()):
            before = self.at_signal.get(group, {})
            if before and group not in touched:
                continue
            together = [c for c, place in now.items() if before.get(c) == place and c.daemon in movers]
            for client in self.world.local(self.daemon, now):
                moved = together if client in together else [client]
                new = f"{component.view}/net", (*component.rank, 0, 0)
                self.world.show(client, group, new, list(now), moved, cause="network")
