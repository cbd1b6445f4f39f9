"""Every session gets on: while a view is sound, nothing that a daemon took waits in it for long.

In:        what daemons are given, stamp and deliver; who waits (fairness.py); a look every quarter of a second.
Out:       a Verdict like those of the checkers, under the name `progress`.
Not here:  who is passed by others (fairness.py); what is owed at the end of a run (checkers/).

A view is *sound* while all its members are awake in it and hear one another. What waits in a sound view for
`PATIENCE_US`, while its daemon has room and stamps hardly anything:
- the first message of a session that is not stamped, if no receiver makes senders wait,
- the first message of a daemon's own that is not delivered there
does not get on. Nor does a receiver that made senders wait in the view before and ends, `SOON_US` into the next,
without having asked again.

Other messages would bring along in time what does not get on by itself, and at the end of a run everybody speaks once
more: so this is judged in the middle of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from covey.guarantees.checkers.verdict import Findings, Verdict
from covey.ids import Ballot, Life
from covey.protocol.counters import Counter
from covey.protocol.effects import Deliver, Effect, Installed, Stamped
from covey.protocol.values import Bundle, Kind, Service

from .fairness import Fairness
from .node import Node
from .world import Script, World

PROGRESS = "progress"

ASKED_AGAIN = "asked again in a new view"
"""The reaction of a receiver that makes senders wait while views change."""

PATIENCE_US = 2_000_000
BUSY = 10
"""Who has stamped so many meanwhile, or found its window closed, was not idle: turns are a matter of fairness."""
SOON_US = 100_000
"""A receiver asks again as soon as there is a view."""
_LOOK_US = 250_000


@dataclass(slots=True)
class _Watched:
    """One life of a daemon."""

    undelivered: dict[tuple[Kind, int, int], None] = field(default_factory=dict)
    """Its own messages and changes, by session and sequence, that are stamped and not delivered here."""
    blocking: set[int] = field(default_factory=set)
    """Sessions that make senders wait."""
    to_ask: set[int] = field(default_factory=set)
    """Those of them that have not asked in this view."""
    installed_at: int = 0
    waiting: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What waits; since when, and how often the daemon had stamped, or found a window closed, by then."""
    stamped: int = 0
    view: Ballot | None = None


class Progress:
    def __init__(self, world: World, fairness: Fairness, run: str) -> None:
        self._world = world
        self._fairness = fairness
        self._findings = Findings(PROGRESS, run)
        self._watched: dict[Life, _Watched] = {}
        self.reactions: set[str] = set()
        world.observers.append(self._observe)

    def verdict(self) -> Verdict:
        return self._findings.verdict()

    def script(self) -> Script:
        while True:
            yield _LOOK_US
            sound = self._sound()
            for node in self._world.living():
                self._look(node, node.rank in sound)

    # --- looking

    def _sound(self) -> set[int]:
        """The ranks of those whose view is sound."""
        reports = {node.rank: node.core.engine.report(0) for node in self._world.living() if not node.paused}
        connected = self._world.connected
        found = set[int]()
        for rank, report in reports.items():
            together = [life.rank for life in report.members]
            views = {reports[one].view if one in reports and reports[one].working else None for one in together}
            if views == {report.view} and all(connected(one, rank) for one in together if one != rank):
                found.add(rank)
        return {rank for rank in found if all(life.rank in found for life in reports[rank].members)}

    def _look(self, node: Node, is_sound: bool) -> None:
        watched, now = self._of(node.life), self._world.now
        view = node.core.engine.report(0).view
        if not is_sound or view != watched.view:
            watched.view = view if is_sound else None
            watched.waiting.clear()
        if not is_sound:
            return
        moves = watched.stamped + node.core.kit.count.get(Counter.WINDOW_CLOSED, 0)
        begun = (now, moves)
        found = {what: watched.waiting.get(what, begun) for what in self._what_waits(node, watched)}
        late = [what for what, (since, _) in found.items() if now - since >= PATIENCE_US]
        for what in late:
            since, before = found.pop(what)
            if moves - before < BUSY:
                waited = (now - since) / 1_000_000
                self._findings.violation(node.recorder.process, f"{what} waits for {waited:.1f} s")
        watched.waiting = found

    def _what_waits(self, node: Node, watched: _Watched) -> Iterator[str]:
        first: dict[int, int] = {}
        for session, seq in node.owed:
            first[session] = min(seq, first.get(session, seq))
        for session, seq in first.items():
            yield f"submission {seq} of session {session}"
        for process, seq in self._fairness.waiting(node.life):
            yield f"message {seq} of {process}"
        if watched.undelivered:
            kind, session, seq = next(iter(watched.undelivered))
            yield f"the delivery of {kind.name.lower()} {seq} of session {session}"

    # --- what daemons do

    def _observe(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Stamped):
            self._on_stamped(node, self._of(node.life), effect)
        elif isinstance(effect, Deliver):
            if effect.bundle.origin == node.life:
                self._of(node.life).undelivered.pop(_key(effect.bundle), None)
                self._findings.premise()
        elif isinstance(effect, Installed):
            watched = self._of(node.life)
            watched.undelivered.clear()
            watched.to_ask = watched.blocking & self.making_wait(node) if watched.blocking else set()
            watched.installed_at = self._world.now

    def making_wait(self, node: Node) -> set[int]:
        """The sessions of a daemon that still make senders wait: none that has ended."""
        sessions = node.core.snapshot(node.clocks.at(self._world.now).mono_us)["clients"]["sessions"]
        return {int(one["process"].rpartition(".")[2]) for one in sessions if one["blocking"]}

    def _on_stamped(self, node: Node, watched: _Watched, effect: Stamped) -> None:
        bundle = effect.bundle
        watched.stamped += 1
        if bundle.service is not Service.UNRELIABLE:
            watched.undelivered[_key(bundle)] = None
        if bundle.kind is Kind.BLOCK:
            if bundle.session in watched.to_ask:
                self.reactions.add(ASKED_AGAIN)
            watched.blocking.add(bundle.session)
            watched.to_ask.discard(bundle.session)
        elif bundle.kind in (Kind.UNBLOCK, Kind.DISCONNECT):
            if bundle.kind is Kind.DISCONNECT and bundle.session in watched.to_ask:
                self._judge_end(node, watched, bundle.session)
            watched.blocking.discard(bundle.session)
            watched.to_ask.discard(bundle.session)

    def _judge_end(self, node: Node, watched: _Watched, session: int) -> None:
        """A receiver that had time to ask again, and did not, was flooded."""
        if self._world.now - watched.installed_at >= SOON_US:
            self._findings.violation(
                node.recorder.process,
                f"session {session} made senders wait, and ended in a new view without asking again",
            )

    def _of(self, life: Life) -> _Watched:
        found = self._watched.get(life)
        if found is None:
            found = self._watched[life] = _Watched()
        return found


def _key(bundle: Bundle) -> tuple[Kind, int, int]:
    return bundle.kind, bundle.session, bundle.session_seq
