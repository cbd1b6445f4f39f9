"""Every session gets on: while a view is sound, nothing that a daemon took waits in it for long.

In:        what daemons are given, stamp and deliver; who waits (fairness.py); a look every quarter of a second.
Out:       a Verdict like those of the checkers, under the name `progress`.
Not here:  who is passed by others (fairness.py); what is owed at the end of a run (checkers/).

A view is *sound* while all its members are awake in it and hear one another. In a sound view does not get on
- the first message of a daemon's own that is not delivered there for `PATIENCE_US`,
- the first message of a session that is not stamped for `PATIENCE_US` while its daemon stamps hardly anything, or for
  `LIMIT_US` whatever it stamps, if no window is closed and no receiver makes senders wait,
- a receiver that made senders wait in the view before and ends, `SOON_US` into the next, without having asked again.

Other messages would bring along in time what does not get on by itself, and at the end of a run everybody speaks once
more: so this is judged in the middle of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

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
LIMIT_US = 3_500_000
BUSY = 10
"""Who has stamped so many meanwhile was not idle: others had turns. Who found a window closed so often had no room."""
SOON_US = 100_000
"""A receiver asks again as soon as there is a view."""
_LOOK_US = 250_000


class _Since(NamedTuple):
    """When something began to wait, and what the daemon had done by then."""

    at: int
    stamped: int
    closed: int
    """How often it had found a window closed."""
    stable: str
    """How far everybody was known to be."""

    def had_no_room(self, now: _Since) -> bool:
        """Whether windows were closed for others that are slow, but get on."""
        return now.closed - self.closed >= BUSY and now.stable != self.stable

    def was_busy(self, now: _Since) -> bool:
        return now.stamped - self.stamped >= BUSY


@dataclass(slots=True)
class _Watched:
    """One life of a daemon."""

    undelivered: dict[tuple[Kind, int, int], int] = field(default_factory=dict)
    """Its own messages and changes that are not delivered here, by session and sequence; when they were stamped."""
    blocking: set[int] = field(default_factory=set)
    """Sessions that make senders wait."""
    to_ask: set[int] = field(default_factory=set)
    """Those of them that have not asked in this view."""
    installed_at: int = 0
    waiting: dict[str, _Since] = field(default_factory=dict)
    """What waits, and since when."""
    stamped: int = 0
    view: Ballot | None = None
    sound_since: int = 0


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
            watched.sound_since = now
            watched.waiting.clear()
        if not is_sound:
            return
        begun = self._now(node, watched)
        watched.waiting = {what: watched.waiting.get(what, begun) for what in self._to_be_stamped(node)}
        for what, since in list(watched.waiting.items()):
            waited = now - since.at
            patience = LIMIT_US if since.was_busy(begun) else PATIENCE_US
            if waited >= patience and not since.had_no_room(begun):
                self._violation(node, what, waited)
                watched.waiting[what] = begun
        if watched.undelivered:
            (kind, session, seq), at = next(iter(watched.undelivered.items()))
            waited = now - max(at, watched.sound_since)
            if waited >= PATIENCE_US:
                self._violation(node, f"the delivery of {kind.name.lower()} {seq} of session {session}", waited)
                watched.sound_since = now

    def _now(self, node: Node, watched: _Watched) -> _Since:
        closed = node.core.kit.count.get(Counter.WINDOW_CLOSED, 0)
        return _Since(self._world.now, watched.stamped, closed, str(node.core.engine.report(0).link.get("safe_line")))

    def _violation(self, node: Node, what: str, waited: int) -> None:
        self._findings.violation(node.recorder.process, f"{what} waits for {waited / 1_000_000:.1f} s")

    def _to_be_stamped(self, node: Node) -> Iterator[str]:
        """The first of each session."""
        first: dict[int, int] = {}
        for session, seq in node.owed:
            first[session] = min(seq, first.get(session, seq))
        for session, seq in first.items():
            yield f"submission {seq} of session {session}"
        for process, seq in self._fairness.waiting(node.life):
            yield f"message {seq} of {process}"

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
            watched.undelivered[_key(bundle)] = self._world.now
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
