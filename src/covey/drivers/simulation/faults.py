"""What goes wrong, and when: scripts in virtual time, drawn from the seed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

from covey.ids import Ballot
from covey.protocol.effects import Effect, Entered, Installed
from covey.protocol.evs.states import State
from covey.protocol.inputs import Stop
from covey.protocol.values import Service

from .network import FAR
from .node import Clocks, Death, Node
from .options import DEAF
from .site_reactions import brings
from .workload import Workload
from .world import Script, World

MS = 1_000
SECOND = 1_000_000

ONE_WAY = "one-way cut seen"
"""The reaction to a link that carries nothing one way and everything the other."""


LACKED = "cut off without data"
"""The reaction to a daemon cut off while it lacked data that the others had."""


NOT_TRANSITIVE = "connected and apart at rest"
"""The reaction to connectivity that is not transitive."""

THREE_APART = "three views at rest, and none of them cut off"
"""The reaction to connectivity of which one to three cuts are not enough."""


_SILENCING_MS = 60
"""How long who speaks for a site lives on at most: longer than what others send takes to get there."""


class Faults:
    def __init__(self, world: World, random: Random, kinds: frozenset[str], workload: Workload) -> None:
        self.world = world
        self.random = random
        self.kinds = kinds
        self._workload = workload
        self.running = True
        self.reactions: set[str] = set()
        self.hold = False
        """Nothing else goes wrong for the time being."""
        self._ambush_at = 0
        self._lacking: set[int] = set()
        """Ranks cut off while data was kept from them."""
        world.watchers.append(self._watch)

    # --- the scripts

    def split_and_merge(self, after_us: int) -> Script:
        """In every run: a partition that lasts until it is noticed, then a merge that lasts until it is done."""
        yield after_us
        for reaction, prepare, act in (
            ("partition", self._heal, self._partition),
            ("merge", self._partition, self._heal),
        ):
            if self._is_over():
                return
            self.reactions.discard(reaction)
            act()
            yield self.random.randrange(50 * MS, 900 * MS)
            waited = 0
            while reaction not in self.reactions and waited < 16 * SECOND:
                if self._is_over():
                    return
                waited += 50 * MS
                if waited == 2 * SECOND:
                    self.hold = True  # Another fault may have undone it: nobody is together who could part, or apart.
                    self._relieve()
                    prepare()
                elif waited == 4 * SECOND:
                    act()
                yield 50 * MS
            self.hold = False

    def one_way_for_a_while(self, after_us: int) -> Script:
        """Where one-way cuts exist: some last until they are noticed as such."""
        yield after_us
        while self.running and "one_way" in self.kinds:
            pair = None if self.hold else self._one_way()
            waited, patience = 0, self.random.choice((100, 600, 2_500)) * MS
            while waited < patience and ONE_WAY not in self.reactions and not self._is_over():
                waited += 50 * MS
                yield 50 * MS
            if pair is not None and not self._is_over() and not self.hold:
                self.world.network.mend(self.world.now, *pair)
            yield self.random.randrange(200 * MS, 2 * SECOND)

    def _is_over(self) -> bool:
        """Connectivity is final now: no script may touch it any more."""
        return not self.running

    def trouble(self) -> Script:
        """One fault after another, of the kinds this seed has."""
        actions = self._actions()
        while self.running and actions:
            yield int(self.random.expovariate(1.0) * 700 * MS) + 20 * MS
            if not self._is_over() and not self.hold:
                self.random.choice(actions)()

    def _actions(self) -> list[Callable[[], object]]:
        actions: list[Callable[[], object]] = [self._partition, self._heal, self._regroup]
        if "one_way" in self.kinds:
            actions += [self._one_way]
        if "flap" in self.kinds:
            actions += [self._flap]
        if "crash" in self.kinds:
            actions += [self._crash, self._crash_while_sending, self._crash_while_sending, self._restart_one]
            actions += [self._leave_a_hole, self._leave_a_hole] if "ambush" in self.kinds else []
            actions += [self._silence, self._silence] if self.world.cluster.site_count > 1 else []
        if "stop" in self.kinds:
            actions += [self._stop]
        if DEAF in self.kinds:
            actions += [self._deafen] * 4
        if "pause" in self.kinds:
            actions += [self._pause]
        if "clock" in self.kinds:
            actions += [self._jump]
        return actions

    # --- one fault each

    def _partition(self) -> None:
        ranks = [node.rank for node in self.world.living()]
        if len(ranks) < 2:
            self._restart_all()
            ranks = [node.rank for node in self.world.living()]
        if len(ranks) < 2:
            return
        if "ambush" in self.kinds:
            for rank in ranks:  # What is safe is still on its way when they part.
                self._workload.submit(rank, Service.SAFE, 20)
        self.random.shuffle(ranks)
        sides = 3 if len(ranks) > 3 and self.random.random() < 0.25 else 2
        bounds = sorted(self.random.sample(range(1, len(ranks)), sides - 1))
        cuts = [0, *bounds, len(ranks)]
        self.world.network.partition([ranks[a:b] for a, b in itertools.pairwise(cuts)])

    def _heal(self) -> None:
        self.world.network.heal(self.world.now)
        self._restart_all()

    def _regroup(self) -> None:
        """At one moment daemons lose some they were with, and hear others again."""
        self.world.network.heal(self.world.now)
        self._partition()

    def _one_way(self) -> tuple[int, int] | None:
        ranks = [node.rank for node in self.world.living()]
        if len(ranks) < 2:
            return None
        source, to = self.random.sample(ranks, 2)
        self.world.network.cut(source, to)
        return source, to

    def _flap(self) -> None:
        """A link that comes and goes, faster than anybody can follow."""
        ranks = [node.rank for node in self.world.living()]
        if len(ranks) > 1:
            one, other = self.random.sample(ranks, 2)
            self.world.play(self._flapping(one, other))

    def _flapping(self, one: int, other: int) -> Script:
        period = self.random.choice((40 * MS, 150 * MS, 400 * MS))
        network = self.world.network
        for turn in range(2 * self.random.randint(3, 12)):
            if not self.running or self.hold:
                return  # Connectivity stays as it is now.
            for source, to in ((one, other), (other, one)):
                if turn % 2 == 0:
                    network.cut(source, to)
                else:
                    network.mend(self.world.now, source, to)
            yield period

    def _victim(self) -> Node | None:
        living = [node for node in self.world.living() if not node.dying]
        return self.random.choice(living) if len(living) > 1 else None

    def _crash(self) -> None:
        if victim := self._victim():
            self.world.crash(victim.rank)
            self._restart_later(victim.rank)

    def _crash_while_sending(self) -> None:
        """A daemon dies in the middle of a burst: of what it sends, some reaches some."""
        if victim := self._victim():
            alone_in_its_packet = self.world.settings.packet_bytes // 2 + 50
            for _ in range(self.random.choice((0, 4))):
                # What is delivered early is what a late packet could falsify.
                service = self.random.choice((Service.RELIABLE, self._service()))
                self._workload.submit(victim.rank, service, alone_in_its_packet)
            victim.dying = Death.SOME_ARRIVE
            self._restart_later(victim.rank)

    def _leave_a_hole(self) -> None:
        """A daemon stamps, passes the token and dies, and its data is lost: what the others stamp is above a hole."""
        if victim := self._victim():
            for node in self.world.living():
                for _ in range(3):
                    self._workload.submit(node.rank, self._service(), 20)
            self._workload.submit(victim.rank, Service.AGREED, 400)
            victim.dying = Death.NO_DATA_ARRIVES
            self._restart_later(victim.rank)

    def _silence(self) -> None:
        """Who speaks for a site dies while messages of others pass through it, to its ring or on."""
        if victim := self._who_speaks():
            self.world.play(self._silencing(victim))

    def _who_speaks(self) -> Node | None:
        """Of a site with several living daemons, if there is one."""
        daemons, living = self.world.cluster.daemons, self.world.living()
        sites = [daemons[node.rank].site for node in living]
        speak = {daemons[node.rank].site: node for node in reversed(living) if daemons[node.rank].gateway}
        several = [node for site, node in sorted(speak.items()) if sites.count(site) > 1]
        return self.random.choice(several) if several else None

    def _silencing(self, victim: Node) -> Script:
        """It dies with something that it has and its ring has not, or at last without."""
        daemons = self.world.cluster.daemons
        far = [node.rank for node in self.world.living() if daemons[node.rank].site != daemons[victim.rank].site]
        for at in range(_SILENCING_MS):
            if far and at < FAR:
                self._workload.submit(self.random.choice(far), self._service(), self.random.choice((20, 400)))
            yield self.random.choice((MS, MS // 2))
            if self._is_over() or self.hold or not victim.alive:
                return
            if brings(victim):
                break
        self.world.crash(victim.rank)
        self._restart_later(victim.rank)

    def _deafen(self) -> None:
        """A daemon gets no data of its site, while safe messages are under way, and then nothing at all."""
        if victim := self._victim():
            self.world.play(self._deafening(victim.rank))

    def _deafening(self, victim: int) -> Script:
        network, deaf = self.world.network, self.world.deaf
        deaf[victim] = 0
        others = [node.rank for node in self.world.living() if node.rank != victim]
        for rank in self.random.sample(others, self.random.randint(1, len(others))):
            self._workload.submit(rank, Service.SAFE, 20)
        yield self.random.choice((4, 12, 25, 50)) * self.random.randrange(500, 1_000)
        if self.running and not self.hold:
            if deaf.get(victim):
                self._lacking.add(victim)
            for rank in others:
                network.cut(rank, victim)
                network.cut(victim, rank)
            yield self.random.choice((50, 400)) * MS
        deaf.pop(victim, None)

    def _service(self) -> Service:
        return self.random.choice(list(Service)[1:])

    def _stop(self) -> None:
        if victim := self._victim():
            self.world.give(victim.rank, Stop())
            self._restart_later(victim.rank)

    def _restart_later(self, rank: int) -> None:
        wait = self.random.choice((5 * MS, 100 * MS, 800 * MS, 3 * SECOND))
        self.world.at(self.world.now + wait, lambda: self._restart(rank))

    def _restart_one(self) -> None:
        dead = [node.rank for node in self.world.nodes.values() if not node.alive]
        if dead:
            self._restart(self.random.choice(sorted(dead)))

    def _restart(self, rank: int) -> None:
        if self.running and not self.world.nodes[rank].alive:
            self.start(rank)

    def _restart_all(self) -> None:
        for node in list(self.world.nodes.values()):
            if not node.alive:
                self.start(node.rank)

    def start(self, rank: int) -> None:
        skew = self.random.choice((2, 25)) * SECOND if "clock" in self.kinds else 2 * MS
        drift = self.random.randint(-200, 200) if "clock" in self.kinds else 0
        self.world.start(
            rank, Clocks(self.random.randrange(SECOND), drift, SECOND * 100 + self.random.randint(-skew, skew))
        )

    def _pause(self) -> None:
        victim = self._victim()
        if victim is None or victim.paused:
            return
        self.world.pause(victim.rank)
        wait = self.random.choice((20 * MS, 200 * MS, 700 * MS, 2_500 * MS))
        self.world.at(self.world.now + wait, lambda: self._resume(victim))

    def _resume(self, node: Node) -> None:
        if node.alive and node.paused:
            self.world.resume(node.rank)

    def _jump(self) -> None:
        """The wall clock of a running daemon steps. It must not matter."""
        if victim := self._victim():
            victim.clocks.wall_offset += self.random.choice((-1, 1)) * self.random.randrange(10 * SECOND)

    # --- watching

    def _watch(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Installed):
            if effect.cause == "merge":
                self.reactions.add("merge")
            if effect.cause == "loss" and self._someone_is_cut_off(node):
                self.reactions.add("partition")
            if effect.cause == "loss" and self._someone_is_half_cut_off(node):
                self.reactions.add(ONE_WAY)
            self._see_lacking(node)
        if isinstance(effect, Entered) and effect.state in (State.STATETRANS, State.EVS):
            self._maybe_ambush()
        if isinstance(effect, Entered) and effect.state is State.EVS:
            self._maybe_deafen(node)

    def _see_lacking(self, node: Node) -> None:
        if node.rank in self._lacking:
            self._lacking.discard(node.rank)
        elif self._lacking.intersection(self._left_out(node)):
            self.reactions.add(LACKED)

    def _someone_is_cut_off(self, node: Node) -> bool:
        """Neither way is open."""
        cuts = self.world.network.cuts
        return any((node.rank, other) in cuts and (other, node.rank) in cuts for other in self._left_out(node))

    def _someone_is_half_cut_off(self, node: Node) -> bool:
        """One way is cut, and the other is not."""
        cuts = self.world.network.cuts
        return any(((node.rank, other) in cuts) != ((other, node.rank) in cuts) for other in self._left_out(node))

    def _left_out(self, node: Node) -> list[int]:
        members = {life.rank for life in node.core.engine.report(0).members}
        return [other.rank for other in self.world.living() if other.rank not in members]

    def _maybe_ambush(self) -> None:
        """Strike in the middle of a membership change."""
        if "ambush" not in self.kinds or not self.running or self.hold or self.world.now < self._ambush_at:
            return
        if self.random.random() < 0.35:
            self._ambush_at = self.world.now + 400 * MS
            wait = self.random.randrange(5 * MS)
            action = self.random.choice([one for one in self._actions() if one not in (self._stop, self._jump)])
            self.world.at(self.world.now + wait, lambda: self._strike(action))

    def cut_off(self, ranks: list[int], others: list[int]) -> None:
        """Nothing passes between these and those, unless connectivity must hold."""
        if self.running and not self.hold:
            for one, other in itertools.product(ranks, others):
                self.world.network.cut(one, other)
                self.world.network.cut(other, one)

    def strike(self) -> None:
        """Connectivity changes now, unless it must hold."""
        if self.running and not self.hold:
            self.random.choice((self._partition, self._heal, self._regroup))()

    def _strike(self, action: Callable[[], object]) -> None:
        if self.running:
            action()

    def _maybe_deafen(self, node: Node) -> None:
        """Strike between the DONEs, where something is left to deliver.

        The daemon has said that it is done. From now on it hears nobody, or only one other, so the rest may install the
        view while it cannot: what it promised must bind it in its next attempt.
        """
        report = node.core.engine.report(0)
        if "ambush" not in self.kinds or not self.running or self.hold or not report.joining:
            return
        if not report.undelivered or self.random.random() < 0.4:
            return
        others = [life.rank for life in report.joining if life.rank != node.rank]
        self.random.shuffle(others)
        for rank in others[self.random.choice((0, 1)) :]:
            self.world.network.cut(rank, node.rank)

    # --- the end of all faults

    def finish(self, final: str) -> None:
        """Faults stop: everyone is up and awake; connectivity stays as it is from here on."""
        self.running = False
        self.world.network.heal(self.world.now)
        options = self.world.network.options
        options.loss = options.duplication = options.late = options.delay_tail = 0.0
        options.bytes_per_second = 0
        self._relieve()
        self._restart_all()
        if final == "split":
            self._partition()
        elif final == "one_way":
            for _ in range(self.random.randint(1, 3)):
                self._one_way()
        elif final == "graph":
            self._any_graph()

    def at_rest(self) -> None:
        """Nothing happens any more."""
        views = {node.rank: node.core.engine.report(0).view for node in self.world.living()}
        if any(views[a] != views[b] and self.world.connected(a, b) for a, b in itertools.combinations(views, 2)):
            self.reactions.add(NOT_TRANSITIVE)
            if len(set(views.values())) >= 3 and all(self._hears_another(rank, views) for rank in views):
                self.reactions.add(THREE_APART)

    def _hears_another(self, rank: int, views: dict[int, Ballot]) -> bool:
        """Whether it is connected both ways with somebody of its own view or of another."""
        return any(self.world.connected(rank, other) for other in views if other != rank)

    def _any_graph(self) -> None:
        """Any direction between two daemons may be cut for good."""
        ranks = [node.rank for node in self.world.living()]
        share = self.random.choice((0.15, 0.4, 0.7))
        for source, to in itertools.permutations(ranks, 2):
            if self.random.random() < share:
                self.world.network.cut(source, to)

    def _relieve(self) -> None:
        """Nobody sleeps, nobody is about to die, and data reaches everyone."""
        self.world.deaf.clear()
        for node in self.world.living():
            node.dying = None
            self._resume(node)
