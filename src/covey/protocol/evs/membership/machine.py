"""The state machine of membership: hears others, decides when a view is lost, gathers, proposes, promises.

In:        ALIVE, JOIN, NEWMEMB, REFUSE, GOODBYE; deadlines; "lost" from the links; "installed" from the exchange.
Out:       frames to send, states entered with their reason, and decisions that the engine carries out (decisions.py).
Not here:  the exchange within an attempt (exchange.py), messages of views (ordering/), whom to merge with (merging.py).

One ballot: `promised` never falls, and an attempt is accepted only above it (docs/protocol/membership.md, "Ballots").

Whether the view works is a function of the state (states.WORKING_STATES).

Invariants: P1 promised >= view; P2 an attempt is under way exactly in STATETRANS and EVS; P3 we are a member of our
view and of our attempt; P4 every state waits for a deadline; P5 only a working view has deadlines for its token and
announcements.
"""

from __future__ import annotations

from typing import Final

from covey.ids import Ballot, Life
from covey.protocol.counters import Counter, Dropped
from covey.protocol.effects import Entered
from covey.protocol.evs.causes import Ending
from covey.protocol.evs.deadlines import WORKING, EvsDeadline
from covey.protocol.evs.decisions import Abandon, Attempt, Begin, FrameOutcome, Outcome
from covey.protocol.evs.frames import Alive, Join, NewMemb, Refuse
from covey.protocol.evs.kit import EvsKit
from covey.protocol.evs.overlay import is_overlay, joined_with, overlay
from covey.protocol.evs.states import STATES, TRANSITIONS, WORKING_STATES, Reason, State

from .ballots import is_far, is_for
from .damping import Damping
from .gathering import everyone_is_heard, free_clique, is_everyone, to_propose
from .hearing import Hearing, News
from .heartbeat import Heartbeat
from .jitter import Jitter
from .judging import AliveVerdict, judge
from .kept_out import KeptOut
from .merging import Merging
from .waits import OVER, WAITS

ATTEMPT_TIMEOUTS_MAX = 50
"""How many of its timeouts an attempt may last at most, however much it progresses."""


GATHERING: Final = (State.GATHER, State.MERGE)


class Machine:
    def __init__(self, kit: EvsKit, counter: int, seed: int) -> None:
        self.kit = kit
        self.hearing = Hearing(kit.me, kit.settings)
        self.damping = Damping(kit.settings)
        self.state = State.SEG
        self.reason = Reason.STARTED
        # Before its first view a daemon stands alone in a view that nobody else can be in.
        self.view = Ballot(0, kit.me.rank, kit.me.boot)
        self.members: tuple[Life, ...] = (kit.me,)
        self.promised = self.view
        self.counter = counter
        self.active = False
        """The view works: kept, since it is asked for in every step."""
        self.attempt: Attempt | None = None
        self.ending = Ending(Reason.STARTED, "")
        self.merging = Merging(kit, self.hearing, self.damping)
        self.kept_out = KeptOut(kit)
        self._leader = -1
        self._excluded: tuple[int, ...] = ()
        self._moved_on: dict[int, Ballot] = {}
        self._growth = 1
        self._jitter = Jitter(seed)
        self._installed_us = -(1 << 60)
        self._attempt_us = 0
        self._heartbeat = Heartbeat(kit)

    # --- beginning, loss, success

    def start(self, now_us: int) -> list[Outcome]:
        return self._enter(Reason.STARTED, "", now_us)

    def lost(self, reason: Reason, detail: str, now_us: int) -> list[Outcome]:
        """The view, or the attempt, cannot go on."""
        if self.state in (State.SEG, State.REP, State.GATHER):
            return []
        if self.active:
            self.ending = Ending(reason, detail)
        if self.attempt is not None and reason is not Reason.ATTEMPT_REFUSED:
            self._growth = min(self._growth * 2, self.kit.settings.gather_growth_max)
        return [*self._enter(reason, detail, now_us), Abandon()]

    def installed(self, now_us: int) -> list[Outcome]:
        """The attempt has become the view."""
        assert self.attempt is not None
        self.damping.view_ended(self.members, self.attempt.members, self.ending.reason, now_us)
        for life in self.members:
            if life not in self.attempt.members and self.damping.comes_and_goes(life, now_us):
                self.hearing.suspect(life)  # Not only the one whose silence was noticed first.
        self.view, self.members, _ = self.attempt
        self.attempt = None
        self._moved_on.clear()
        self._growth = 1
        self._installed_us = now_us
        self.ending = Ending(Reason.INSTALLED, "")
        return self._enter(Reason.INSTALLED, "", now_us)

    def exchanged(self, now_us: int) -> list[Outcome]:
        return self._enter(Reason.EXCHANGED, "", now_us)

    # --- the one door

    def _enter(self, reason: Reason, detail: str, now_us: int) -> list[Outcome]:
        """Go where the table says this reason leads, and do the work of arriving there."""
        target = TRANSITIONS.get((self.state, reason))
        assert target is not None, f"no way from {self.state} for {reason}"
        self.state, self.reason = target, reason
        self.active = target in WORKING_STATES
        self.kit.deadlines.clear(*OVER[target])
        arrive = {
            State.OP: self._arrive_op,
            State.SEG: self._arrive_seg,
            State.REP: self._arrive_rep,
            State.GATHER: self._arrive_gather,
            State.MERGE: self._arrive_gather,
            State.STATETRANS: self._arrive_statetrans,
            State.EVS: self._arrive_evs,
        }[target]
        return [Entered(target, reason, detail), *arrive(now_us)]

    def _arrive_op(self, now_us: int) -> list[Outcome]:
        self._leader, self._excluded = -1, ()
        return self._say_alive(now_us)

    def _arrive_seg(self, now_us: int) -> list[Outcome]:
        self._excluded = (self._leader,) if self.reason is Reason.REPRESENTATIVE_SILENT else ()
        self.attempt, self._leader = None, -1
        self.kit.deadlines.set(EvsDeadline.SEGMENT, now_us + self.kit.settings.segment_ms * 1_000)
        return self._say_alive(now_us)

    def _arrive_rep(self, now_us: int) -> list[Outcome]:
        s = self.kit.settings
        self.kit.deadlines.set(EvsDeadline.FOLLOW, now_us + (s.segment_ms + s.gather_ms + s.follow_slack_ms) * 1_000)
        return self._say_alive(now_us)

    def _arrive_gather(self, now_us: int) -> list[Outcome]:
        wait = self.kit.settings.gather_ms * self._growth * 1_000
        if self._growth > 1:
            wait += self._jitter.below(wait // 2)
        self.kit.deadlines.set(EvsDeadline.GATHER, now_us + wait)
        self._hasten(now_us)
        return self._say_alive(now_us)

    def _arrive_statetrans(self, now_us: int) -> list[Outcome]:
        self._leader = -1
        self._attempt_us = now_us
        self.extend_attempt(now_us)
        return self._say_alive(now_us)

    def _arrive_evs(self, now_us: int) -> list[Outcome]:
        self.extend_attempt(now_us)
        return []

    def extend_attempt(self, now_us: int) -> None:
        """The attempt makes progress: give it its full time again, up to a limit."""
        timeout_us = self.kit.settings.attempt_timeout_ms * 1_000
        last_us = self._attempt_us + ATTEMPT_TIMEOUTS_MAX * timeout_us
        self.kit.deadlines.set(EvsDeadline.ATTEMPT, min(now_us + timeout_us, last_us))

    # --- frames

    def on_alive(self, sender: Life, alive: Alive, now_us: int) -> list[FrameOutcome]:
        if self.hearing.is_stale(sender, alive, now_us):
            return [Dropped(Counter.ALIVE_OVERTAKEN)]
        if self.kit.clock.is_far_ahead(alive.clock, now_us):
            return [Dropped(Counter.ALIVE_CLOCK_FAR_AHEAD), *self.kept_out.add(sender, now_us)]
        if is_far(max(alive.counter, alive.promised.counter, alive.view.counter), self.counter):
            return [Dropped(Counter.ALIVE_COUNTER_FAR_AHEAD)]
        self.kept_out.let_in(sender.rank)
        previous = self.hearing.peers.get(sender.rank)
        was_two_way = self.hearing.two_way(sender.rank, now_us)
        news = self.hearing.on_alive(sender, alive, now_us)
        assert news is not News.STALE
        if news is News.UNPROVEN:
            self._heartbeat.soon(now_us)
            return [Dropped(Counter.ALIVE_UNPROVEN)]
        self.kit.clock.see(alive.clock - 1)
        self.counter = max(self.counter, alive.counter)
        if news is News.NEW_LIFE and previous is not None:
            self.kit.count.add(Counter.RESTART_SEEN)
        waits_for_us = sender in self.members and self.hearing.waits_for_us(sender, now_us)
        if news is News.NEW_LIFE or waits_for_us or self.hearing.two_way(sender.rank, now_us) != was_two_way:
            self._heartbeat.soon(now_us)
        elif self.state is State.OP:
            self._heartbeat.join_in(now_us)
        verdict = self._judge(sender, alive)
        early = [Dropped(Counter.ALIVE_TOO_EARLY)] if verdict is AliveVerdict.TOO_EARLY else []
        ended = self._on_breach(verdict, sender, alive, now_us) if isinstance(verdict, Reason) else []
        effects = ended or self._maybe_merge(now_us)
        self._hasten(now_us)
        return [*early, *effects]

    def _hasten(self, now_us: int) -> None:
        """Waiting is for others to be heard: once everybody is here or known to be gone, it ends."""
        if self._growth > 1 or self.state not in (State.SEG, *GATHERING):
            return  # Attempts have failed, and the back-off is the point; or we do not wait for that.
        if not everyone_is_heard(self.hearing, self._heartbeat.everyone, now_us):
            return
        if self.state is State.SEG:
            ranks = free_clique(self.hearing, self.kit.cluster, self._excluded, now_us)
            deadline = EvsDeadline.SEGMENT
        else:
            ranks, deadline = [life.rank for life in self._to_propose(now_us)], EvsDeadline.GATHER
        if is_everyone(self.hearing, self._heartbeat.everyone, ranks):
            self.kit.deadlines.set(deadline, now_us)

    def _to_propose(self, now_us: int) -> tuple[Life, ...]:
        base = self.members if self.active else (self.kit.me,)
        return tuple(to_propose(self.hearing, self.kit.cluster, base, self._excluded, now_us))

    def _judge(self, sender: Life, alive: Alive) -> AliveVerdict | Reason | None:
        """What an ALIVE says about our view or attempt, if we are in one."""
        current = self.attempt or (Attempt(self.view, self.members) if self.active else None)
        return judge(current, sender, alive) if current is not None else None

    def _on_breach(self, reason: Reason, sender: Life, alive: Alive, now_us: int) -> list[Outcome]:
        """A member of our view or attempt is no longer with us."""
        if reason is Reason.PEER_LEFT and alive.is_arriving and self.active:
            # It works on a newer attempt: most likely ours too, and the proposal to us is on its way.
            known, self._moved_on[sender.rank] = self._moved_on.get(sender.rank), alive.promised
            if known != alive.promised:
                return []
        return self.lost(reason, self.kit.name(sender.rank), now_us)

    def on_join(self, sender: Life, join: Join, now_us: int) -> list[FrameOutcome]:
        effects = self.on_alive(sender, join.alive, now_us)
        peer = self.hearing.peers.get(sender.rank)
        if peer is None or peer.alive is not join.alive:
            return effects  # Overtaken by a later word, of an earlier life, or kept out.
        if sender.rank > self.kit.me.rank or self.kit.me not in join.proposed or sender.rank in self._excluded:
            return effects
        if self.state is State.MERGE:
            return effects + self._enter(Reason.YIELDED, self.kit.name(sender.rank), now_us)
        if self.state in (State.SEG, State.GATHER) or (self.state is State.REP and sender.rank <= self._leader):
            if self._leader != sender.rank or self.state is not State.REP:
                self._leader = sender.rank
                effects += self._enter(Reason.FOLLOW_LOWER, self.kit.name(sender.rank), now_us)
            settings = self.kit.settings
            longest_us = 2 * settings.gather_ms * settings.gather_growth_max * 1_000
            wait_us = min(join.remaining_us, longest_us) + settings.follow_slack_ms * 1_000
            self.kit.deadlines.set(EvsDeadline.FOLLOW, now_us + wait_us)
        return effects

    def on_new_memb(self, sender: Life, frame: NewMemb, now_us: int) -> list[FrameOutcome]:
        if frame.attempt == self.promised:
            return []  # A repetition: our STATETRANS answers it.
        if frame.attempt.counter <= self.promised.counter:
            refusal = Refuse(frame.attempt, max(self.counter, self.promised.counter))
            return [Dropped(Counter.ATTEMPT_OLDER), self.kit.send((sender.rank,), refusal)]
        if is_far(frame.attempt.counter, self.counter):
            return [Dropped(Counter.PROPOSAL_COUNTER_FAR_AHEAD)]
        if frame.attempt.proposer_life != sender or not is_for(self.kit.me, frame.members, self.kit.cluster):
            return [Dropped(Counter.PROPOSAL_NOT_FOR_US)]
        if not is_overlay(self.kit.cluster, frame.members, frame.links):
            return [Dropped(Counter.PROPOSAL_NOT_JOINED)]
        attempt = Attempt(frame.attempt, frame.members, frame.links)
        return [*self._promise(attempt, Reason.PROMISED, now_us), Begin(attempt)]

    def on_refuse(self, sender: Life, frame: Refuse, now_us: int) -> list[FrameOutcome]:
        ours = self.attempt is not None and self.attempt.ballot == frame.attempt and sender in self.attempt.members
        if not ours or is_far(frame.counter, self.counter):
            return [Dropped(Counter.REFUSAL_NOT_OURS)]
        self.counter = max(self.counter, frame.counter)
        return [*self.lost(Reason.ATTEMPT_REFUSED, "", now_us)]

    def on_goodbye(self, sender: Life, now_us: int) -> list[FrameOutcome]:
        """A member leaves in good order: the lowest of the others proposes the view without it at once."""
        if not self.hearing.hint_gone(sender, Reason.PEER_GOODBYE):
            return [Dropped(Counter.GOODBYE_UNKNOWN)]
        self.kit.count.add(Counter.GOODBYE_HEARD)
        if self.attempt is not None and sender in self.attempt.members:
            return [*self.lost(Reason.PEER_GOODBYE, self.kit.name(sender.rank), now_us)]
        if not self.active or sender not in self.members:
            return []
        rest = tuple(joined_with(self.kit.cluster, [life for life in self.members if life != sender], self.kit.me))
        self.ending = Ending(Reason.PEER_GOODBYE, self.kit.name(sender.rank))
        return [*self._propose(rest, now_us)] if rest[0] == self.kit.me else []

    def on_peer_refused(self, rank: int, now_us: int) -> list[Outcome]:
        peer = self.hearing.peers.get(rank)
        if peer is None or not self.hearing.hint_gone(peer.life, Reason.PEER_REFUSED):
            return []
        return self._look_around(now_us)

    # --- deadlines

    def on_alive_deadline(self, now_us: int) -> list[Outcome]:
        self.hearing.decay([life.rank for life in self.members], now_us)
        return self._say_alive(now_us) + self._look_around(now_us)

    def _look_around(self, now_us: int) -> list[Outcome]:
        """Are the members of our view or attempt all there, both ways? Is somebody new?"""
        current = self.attempt.members if self.attempt else self.members if self.active else ()
        for life in current:
            if life != self.kit.me and not self.hearing.is_there(life, now_us):
                return self._suspect(life, now_us)
        return self._maybe_merge(now_us)

    def _maybe_merge(self, now_us: int) -> list[Outcome]:
        """The lowest of a working view gathers as soon as somebody can be merged."""
        if self.state is not State.OP or self.members[0] != self.kit.me:
            return []
        if self.merging.is_possible(self.members, self._installed_us, now_us):
            self._excluded = self.merging.held_down(self.members, now_us)
            return self._enter(Reason.STRANGERS, "", now_us)
        return []

    def _suspect(self, life: Life, now_us: int) -> list[Outcome]:
        reason = self.hearing.why_gone(life.rank, now_us)
        if reason is Reason.PEER_ONE_WAY:
            self.kit.count.add(Counter.ONE_WAY_SEEN)
        self.hearing.suspect(life)
        return self.lost(reason, self.kit.name(life.rank), now_us)

    def on_segment_deadline(self, now_us: int) -> list[Outcome]:
        clique = free_clique(self.hearing, self.kit.cluster, self._excluded, now_us)
        if clique[0] == self.kit.me.rank:
            return self._enter(Reason.ALL_HEARD, "", now_us)
        self._leader = clique[0]
        return self._enter(Reason.FOLLOW_LOWER, self.kit.name(clique[0]), now_us)

    def on_gather_deadline(self, now_us: int) -> list[Outcome]:
        members = self._to_propose(now_us)
        if self.state is State.MERGE and members == self.members:
            return self._enter(Reason.NOTHING_FOUND, "", now_us)
        if self.state is State.MERGE:
            self.ending = Ending(Reason.STRANGERS, "")
        return self._propose(members, now_us)

    def on_follow_deadline(self, now_us: int) -> list[Outcome]:
        return self._enter(Reason.REPRESENTATIVE_SILENT, self.kit.name(self._leader), now_us)

    # --- proposing

    def _propose(self, members: tuple[Life, ...], now_us: int) -> list[Outcome]:
        self.counter += 1
        ballot = Ballot(max(self.counter, self.promised.counter + 1), self.kit.me.rank, self.kit.me.boot)
        attempt = Attempt(ballot, members, overlay(self.kit.cluster, members))
        return [*self._promise(attempt, Reason.PROPOSED, now_us), *self.proposal(members), Begin(attempt)]

    def proposal(self, to: tuple[Life, ...]) -> list[Outcome]:
        """NEWMEMB of the attempt under way, to those who have not answered it."""
        assert self.attempt is not None
        ranks = tuple(life.rank for life in to if life != self.kit.me)
        return [self.kit.send(ranks, NewMemb(*self.attempt))] if ranks else []

    def _promise(self, attempt: Attempt, reason: Reason, now_us: int) -> list[Outcome]:
        if self.promised > self.view:
            self.kit.count.add(Counter.ATTEMPT_SUPERSEDED)
        if self.active and reason is Reason.PROMISED and self.ending.reason is not Reason.PEER_GOODBYE:
            self.ending = Ending(reason, self.kit.name(attempt.ballot.proposer))
        self.attempt = attempt
        self.promised = attempt.ballot
        self.counter = max(self.counter, attempt.ballot.counter)
        detail = f"{attempt.ballot} of {' '.join(self.kit.name(life.rank) for life in attempt.members)}"
        return self._enter(reason, detail, now_us)

    # --- ALIVE and JOIN

    def _say_alive(self, now_us: int) -> list[Outcome]:
        self._heartbeat.next(self.state, self.hearing.is_overdue(self.members, now_us), now_us)
        if not self._heartbeat.everyone:
            return []
        alive = Alive(
            number=self.hearing.next_number(now_us),
            state=STATES.index(self.state),
            leader=self._leader,
            view=self.view,
            members=self.members,
            promised=self.promised,
            counter=self.counter,
            heard=self.hearing.heard(now_us),
            clock=self.kit.clock.now(now_us),
        )
        if self.state not in GATHERING:
            return [*self._heartbeat.say(alive)]
        remaining_us = max(0, (self.kit.deadlines.at(EvsDeadline.GATHER) or now_us) - now_us)
        return [*self._heartbeat.say(Join(alive, remaining_us, self._to_propose(now_us)))]

    def check(self, full: bool) -> None:
        assert self.promised >= self.view, "P1"
        assert self.active == (self.state in WORKING_STATES)
        assert (self.attempt is not None) == (self.state in (State.STATETRANS, State.EVS)), "P2"
        assert self.kit.me in self.members, "P3"
        assert self.attempt is None or self.kit.me in self.attempt.members, "P3"
        assert self.kit.deadlines.is_set(WAITS[self.state]), "P4"
        assert self.active or not any(map(self.kit.deadlines.is_set, WORKING)), "P5"
        if full:
            self.hearing.check()
            self.damping.check()
