"""Every session gets its turn: nobody waits for ever while others of its daemon go on.

In:        what programs hand to the library, and what daemons stamp, in the order of the run.
Out:       a Verdict like those of the checkers, under the name `fairness`.
Not here:  what is judged from the trace alone (checkers/): when a message was handed over and when it was not stamped
           although others were cannot be told from there.

A session *waits* while it has a message that its daemon has read, or would not read, and has not stamped; each stamp
of a word of its own begins its wait anew. While it waits, the messages of others that its daemon stamps are counted, as
long as the view is the same and no receiver makes senders wait; joins and leaves are not, since nobody refuses them for
want of room. More than `_FEW`, which is what a narrow queue holds or one step does, and some for each session that
sends there: it starves. Priorities and turns explain far less. Whoever is not in the queue yet, and does not get there
in the same step, is passed by no more than `_STEP` of what that step stamps: all of it may have been taken before, in
turns, and have waited for the token, and nobody can be heard in the middle of a step. When the daemon reads on, all
that it had read of the session is done: what follows is still on its way, and its wait begins anew. Whoever is the
first of its site to join a group waits until the other sites know, with all that it sent after that: nobody passes it
then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from covey.guarantees.checkers.verdict import Findings, Verdict
from covey.ids import Life
from covey.protocol.effects import ClientClosed, ClientReading, Deliver, Effect, Installed, Stamped
from covey.protocol.values import Kind, Service

from .node import Node
from .world import World

FAIRNESS = "fairness"

_FEW = 200
_FOR_EACH = 15
"""Messages of others that may pass a session, and so many more for each session of its daemon."""

_STEP = 100

_LOOK_EVERY = 20

_HEADS = 9_000
_HEAD = 64
"""More than all that a frame has beside its body, however long its names; and what it mostly has."""

WAITED = "large beside small waited"
_WAITED = 4
_LARGE = 15_000


@dataclass(slots=True)
class _Place:
    """One session at its daemon."""

    process: str
    connection: int
    handed: deque[tuple[int, int]] = field(default_factory=deque)
    """The numbers of messages, reliable or stronger, that the program handed over and nobody has stamped; for each, how
    much of the stream must have been read for it to be there."""
    since: int = 0
    """What the daemon had stamped when the wait began."""
    excused: tuple[int, int] = (0, 0)
    """A step, and how many of those stamped in it do not count."""

    def done(self, seq: int) -> None:
        while self.handed and self.handed[0][0] <= seq:
            self.handed.popleft()


@dataclass(slots=True)
class _Daemon:
    places: dict[int, _Place] = field(default_factory=dict)
    passed: int = 0
    """Messages stamped while nobody made senders wait; what travels in one bundle is one."""
    step: int = 0
    in_step: int = 0
    """How many of them in the step at hand."""
    senders: set[int] = field(default_factory=set)
    """The sessions of which something was stamped in this view, those of the daemon itself included."""
    blockers: set[tuple[Life, int]] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)
    """Connections that the daemon has ended."""


class Fairness:
    def __init__(self, world: World, run: str) -> None:
        self._world = world
        self._findings = Findings(FAIRNESS, run)
        self._daemons: dict[Life, _Daemon] = {}
        self.reactions: set[str] = set()
        world.observers.append(self._observe)

    def verdict(self) -> Verdict:
        """Also over those who wait still."""
        for daemon in self._daemons.values():
            self._judge_all(daemon)
        return self._findings.verdict()

    def waiting(self, life: Life) -> Iterator[tuple[str, int]]:
        """Who waits at this daemon, and with which message, unless a receiver makes senders wait."""
        daemon = self._daemon(life)
        for place in () if daemon.blockers else daemon.places.values():
            if place.handed:
                yield place.process, place.handed[0][0]

    # --- what programs do

    def handed(self, life: Life, connection: int, process: str, seq: int, upto: int) -> None:
        """A program has given this message, reliable or stronger, to the library; the stream then ends about there."""
        daemon = self._daemon(life)
        if connection in daemon.closed:
            return  # It does not know yet that it has ended.
        place = daemon.places.setdefault(_number(process), _Place(process, connection))
        if not place.handed:
            place.since = daemon.passed
        place.handed.append((seq, upto + _HEADS + _HEAD * len(place.handed)))

    def was_read(self, life: Life, process: str, before: int) -> None:
        """The daemon reads on in the stream, of which it had read so much: what is not there yet does not wait."""
        daemon = self._daemon(life)
        place = daemon.places.get(_number(process))
        if place is not None and place.handed and before < place.handed[0][1]:
            place.since = daemon.passed

    def answered(self, life: Life, process: str, seq: int) -> None:
        """The daemon has said that it did not take this message."""
        place = self._daemon(life).places.get(_number(process))
        if place is not None:
            place.done(seq)

    def over(self, life: Life, process: str) -> None:
        """The session has ended, or says no more: nothing is owed to it."""
        daemon = self._daemon(life)
        place = daemon.places.pop(_number(process), None)
        if place is not None:
            self._judge(daemon, place)

    # --- what daemons do

    def _observe(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Stamped):
            daemon = self._daemon(node.life)
            self._on_stamped(daemon, node, effect)
            if daemon.passed % _LOOK_EVERY == 0:
                self._look(daemon, node)
        elif isinstance(effect, Deliver):
            if effect.bundle.kind in (Kind.BLOCK, Kind.UNBLOCK, Kind.DISCONNECT):
                self._on_change(self._daemon(node.life), effect)
        elif isinstance(effect, Installed):
            daemon = self._daemon(node.life)
            self._judge_all(daemon)
            daemon.blockers.clear()
            daemon.senders.clear()
        elif isinstance(effect, ClientReading):
            self._on_reading(self._daemon(node.life), effect)
        elif isinstance(effect, ClientClosed):
            self._daemon(node.life).closed.add(effect.connection)
            for place in list(self._daemon(node.life).places.values()):
                if place.connection == effect.connection:
                    self.over(node.life, place.process)

    def _on_stamped(self, daemon: _Daemon, node: Node, effect: Stamped) -> None:
        bundle = effect.bundle
        if bundle.kind <= Kind.MESSAGES and not daemon.blockers:
            self._count(daemon, node)
        daemon.senders.add(bundle.session)
        place = daemon.places.get(bundle.session)
        if place is None or bundle.service is Service.UNRELIABLE:
            return
        if place.excused[0] == self._world.steps:
            place.since -= place.excused[1]  # It was in the queue with them after all.
            place.excused = (0, 0)
        self._judge(daemon, place)
        if bundle.kind is not Kind.MESSAGES:
            place.since = daemon.passed  # A join or a leave of its own stood in its line before the message.
            return
        if len(effect.payloads[0]) > _LARGE and daemon.passed - place.since > _WAITED:
            self.reactions.add(WAITED)
        place.done(bundle.session_seq + bundle.count - 1)
        place.since = daemon.passed

    def _count(self, daemon: _Daemon, node: Node) -> None:
        step = self._world.steps
        if daemon.step != step:
            daemon.step, daemon.in_step = step, 0
        daemon.in_step += 1
        daemon.passed += 1
        for number, place in daemon.places.items():
            if place.handed and node.core.clients.waits_for_interest(number):
                place.since += 1
        if daemon.in_step <= _STEP:
            return
        for number, place in daemon.places.items():
            if place.handed and not node.core.clients.has_queued(number):
                place.since += 1
                place.excused = (step, place.excused[1] + 1 if place.excused[0] == step else 1)

    def _look(self, daemon: _Daemon, node: Node) -> None:
        """Whoever has nothing at the daemon does not wait there: what it said is still on its way."""
        for number, place in daemon.places.items():
            if place.handed and not node.core.clients.has_words_of(number):
                place.since = daemon.passed

    def _on_reading(self, daemon: _Daemon, effect: ClientReading) -> None:
        for place in daemon.places.values():
            if effect.read and place.connection == effect.connection:
                self._judge(daemon, place)
                place.since = daemon.passed

    def _on_change(self, daemon: _Daemon, effect: Deliver) -> None:
        who = (effect.bundle.origin, effect.bundle.session)
        if effect.bundle.kind is Kind.BLOCK:
            daemon.blockers.add(who)
        else:
            daemon.blockers.discard(who)

    def _judge_all(self, daemon: _Daemon) -> None:
        for place in daemon.places.values():
            self._judge(daemon, place)
            place.since = daemon.passed

    def _judge(self, daemon: _Daemon, place: _Place) -> None:
        if not place.handed:
            return
        self._findings.premise()
        passed = daemon.passed - place.since
        if passed > _FEW + _FOR_EACH * max(len(daemon.places), len(daemon.senders)):
            self._findings.violation(
                place.process, f"message {place.handed[0][0]} of {place.process} was passed by {passed} of others"
            )

    def _daemon(self, life: Life) -> _Daemon:
        found = self._daemons.get(life)
        if found is None:
            found = self._daemons[life] = _Daemon()
        return found


def _number(process: str) -> int:
    """
    >>> _number("alice@a:7.103")
    103
    """
    return int(process.rpartition(".")[2])
