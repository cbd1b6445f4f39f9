"""The state machine of membership: hears others, decides when a view is lost, gathers, proposes, promises.

In:        ALIVE, JOIN, NEWMEMB, REFUSE, GOODBYE; deadlines; "lost" from the links; "installed" from the exchange.
Out:       frames to send, states entered with their reason; `attempt`, which the engine carries out (change.py).
Not here:  the exchange within an attempt (change.py), messages of views (ordering/).

One ballot: `promised` never falls, and an attempt is accepted only above it (docs/protocol/membership.md, "Ballots").

Invariants: P1 promised >= view; P2 an attempt is under way exactly in STATETRANS and EVS; P3 the view works only in OP
and GATHER; P4 we are a member of our view and of our attempt; P5 every state waits for a deadline; P6 only a working
view has deadlines for its token and announcements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from covey.ids import Ballot, Life
from covey.protocol.effects import Effect, Entered, Notice, Send
from covey.protocol.evs.deadlines import WORKING, EvsDeadline
from covey.protocol.evs.frames import Alive, Frame, Join, NewMemb, Refuse
from covey.protocol.evs.kit import EvsKit
from covey.protocol.evs.states import TRANSITIONS, Reason, State

from .damping import Damping
from .gathering import STATES, free_clique, to_propose
from .hearing import Hearing, News
from .jitter import Jitter

ATTEMPT_TIMEOUTS_MAX = 50
"""How many of its timeouts an attempt may last at most, however much it progresses."""


COUNTER_AHEAD_MAX = 1 << 32
"""Counters start at the seconds of the clock and grow by one with each attempt: none is further ahead than this."""

WARN_EVERY_US = 60_000_000
"""A warning about a daemon is not said again sooner: who forges its words must not fill our log."""

FAR_AHEAD = "its clock is far ahead of ours; set the wrong one right, and restart its daemon"


WAITS: Final[Mapping[State, EvsDeadline]] = {
    State.OP: EvsDeadline.ALIVE,
    State.SEG: EvsDeadline.SEGMENT,
    State.REP: EvsDeadline.FOLLOW,
    State.GATHER: EvsDeadline.GATHER,
    State.STATETRANS: EvsDeadline.ATTEMPT,
    State.EVS: EvsDeadline.ATTEMPT,
}
"""What ends each state if nothing else does."""


class Attempt(NamedTuple):
    """A membership being formed; its ballot becomes the view id."""

    ballot: Ballot
    members: tuple[Life, ...]


class Machine:
    def __init__(self, kit: EvsKit, counter: int, seed: int) -> None:
        self.kit = kit
        self.hearing = Hearing(kit.me, kit.settings)
        self.damping = Damping(kit.settings)
        self.state = State.SEG
        self.reason = Reason.STARTED
        self.active = False
        # Before its first view a daemon stands alone in a view that nobody else can be in.
        self.view = Ballot(0, kit.me.rank, kit.me.boot)
        self.members: tuple[Life, ...] = (kit.me,)
        self.promised = self.view
        self.counter = counter
        self.attempt: Attempt | None = None
        # Why the view in force is to end.
        self.change_reason = Reason.STARTED
        self.change_detail = ""
        self._leader = -1
        self._excluded: tuple[int, ...] = ()
        self._moved_on: dict[int, Ballot] = {}
        self._growth = 1
        self._jitter = Jitter(seed)
        self._installed_us = -(1 << 60)
        self._attempt_us = 0
        self._far_ahead: dict[int, Life] = {}
        self._warned_us: dict[int, int] = {}
        self._everyone = tuple(r for r in range(len(kit.cluster.daemons)) if r != kit.me.rank)

    # --- beginning, loss, success

    def start(self, now_us: int) -> list[Effect]:
        return self._enter(Reason.STARTED, "", now_us)

    def lost(self, reason: Reason, detail: str, now_us: int) -> list[Effect]:
        """The view, or the attempt, cannot go on."""
        if self.state in (State.SEG, State.REP) or (self.state is State.GATHER and not self.active):
            return []
        if self.active:
            self.change_reason, self.change_detail = reason, detail
        if self.attempt is not None and reason is not Reason.ATTEMPT_REFUSED:
            self._growth = min(self._growth * 2, self.kit.settings.gather_growth_max)
        return self._enter(reason, detail, now_us)

    def installed(self, now_us: int) -> list[Effect]:
        """The attempt has become the view."""
        assert self.attempt is not None
        self.damping.view_ended(self.members, self.attempt.members, self.change_reason, now_us)
        for life in self.members:
            if life not in self.attempt.members and self.damping.comes_and_goes(life, now_us):
                self.hearing.suspect(life)  # Not only the one whose silence was noticed first.
        self.view, self.members = self.attempt
        self.attempt = None
        self._moved_on.clear()
        self._growth = 1
        self._installed_us = now_us
        self.change_reason, self.change_detail = Reason.INSTALLED, ""
        return self._enter(Reason.INSTALLED, "", now_us)

    def exchanged(self, now_us: int) -> list[Effect]:
        return self._enter(Reason.EXCHANGED, "", now_us)

    # --- the one door

    def _enter(self, reason: Reason, detail: str, now_us: int) -> list[Effect]:
        """Go where the table says this reason leads, and do the work of arriving there."""
        target = TRANSITIONS.get((self.state, reason))
        assert target is not None, f"no way from {self.state} for {reason}"
        self.state, self.reason = target, reason
        arrive = {
            State.OP: self._arrive_op,
            State.SEG: self._arrive_seg,
            State.REP: self._arrive_rep,
            State.GATHER: self._arrive_gather,
            State.STATETRANS: self._arrive_statetrans,
            State.EVS: self._arrive_evs,
        }[target]
        return [Entered(target, reason, detail), *arrive(now_us)]

    def _arrive_op(self, now_us: int) -> list[Effect]:
        self.active = True
        self._leader, self._excluded = -1, ()
        self.kit.deadlines.clear(
            EvsDeadline.SEGMENT, EvsDeadline.GATHER, EvsDeadline.FOLLOW, EvsDeadline.ATTEMPT, EvsDeadline.EXCHANGE
        )
        return self._say_alive(now_us)

    def _arrive_seg(self, now_us: int) -> list[Effect]:
        self._excluded = (self._leader,) if self.reason is Reason.REPRESENTATIVE_SILENT else ()
        self.active, self.attempt, self._leader = False, None, -1
        self.kit.deadlines.clear(EvsDeadline.GATHER, EvsDeadline.FOLLOW, EvsDeadline.ATTEMPT, EvsDeadline.EXCHANGE)
        self.kit.deadlines.set(EvsDeadline.SEGMENT, now_us + self.kit.settings.segment_ms * 1_000)
        return self._say_alive(now_us)

    def _arrive_rep(self, now_us: int) -> list[Effect]:
        self.kit.deadlines.clear(EvsDeadline.SEGMENT, EvsDeadline.GATHER)
        settings = self.kit.settings
        wait = settings.segment_ms + settings.gather_ms + settings.follow_slack_ms
        self.kit.deadlines.set(EvsDeadline.FOLLOW, now_us + wait * 1_000)
        return self._say_alive(now_us)

    def _arrive_gather(self, now_us: int) -> list[Effect]:
        wait = self.kit.settings.gather_ms * self._growth * 1_000
        if self._growth > 1:
            wait += self._jitter.below(wait // 2)
        self.kit.deadlines.set(EvsDeadline.GATHER, now_us + wait)
        self._hasten(now_us)
        return self._say_alive(now_us)

    def _arrive_statetrans(self, now_us: int) -> list[Effect]:
        self.active, self._leader = False, -1
        self.kit.deadlines.clear(EvsDeadline.SEGMENT, EvsDeadline.GATHER, EvsDeadline.FOLLOW)
        self._attempt_us = now_us
        self.extend_attempt(now_us)
        return self._say_alive(now_us)

    def _arrive_evs(self, now_us: int) -> list[Effect]:
        self.extend_attempt(now_us)
        return []

    def extend_attempt(self, now_us: int) -> None:
        """The attempt makes progress: give it its full time again, up to a limit."""
        timeout_us = self.kit.settings.attempt_timeout_ms * 1_000
        last_us = self._attempt_us + ATTEMPT_TIMEOUTS_MAX * timeout_us
        self.kit.deadlines.set(EvsDeadline.ATTEMPT, min(now_us + timeout_us, last_us))

    # --- frames

    def on_alive(self, sender: Life, alive: Alive, now_us: int) -> list[Effect]:
        if self.hearing.is_stale(sender, alive, now_us):
            self.kit.count.drop("ALIVE dropped: overtaken")
            return []
        if self.kit.clock.is_far_ahead(alive.clock, now_us):
            return self._keep_out(sender, now_us)
        if self._is_far(max(alive.counter, alive.promised.counter, alive.view.counter)):
            self.kit.count.drop("ALIVE dropped: its counter is far ahead")
            return []
        self._far_ahead.pop(sender.rank, None)
        previous = self.hearing.peers.get(sender.rank)
        was_two_way = self.hearing.two_way(sender.rank, now_us)
        news = self.hearing.on_alive(sender, alive, now_us)
        assert news is not News.STALE
        if news is News.UNPROVEN:
            self.kit.count.drop("ALIVE dropped: of an unproven life")
            self._say_alive_soon(now_us)
            return []
        self.kit.clock.see(alive.clock - 1)
        self.counter = max(self.counter, alive.counter)
        if news is News.NEW_LIFE and previous is not None:
            self.kit.count.add("restart seen")
        if news is News.NEW_LIFE or self.hearing.two_way(sender.rank, now_us) != was_two_way:
            self._say_alive_soon(now_us)
        effects = self._judge(sender, alive, now_us) or self._maybe_merge(now_us)
        self._hasten(now_us)
        return effects

    def _keep_out(self, sender: Life, now_us: int) -> list[Effect]:
        """A clock far ahead would drag ours along for good: its daemon stays outside our views (rule R1)."""
        self.kit.count.drop("ALIVE dropped: its clock is far ahead")
        self._far_ahead[sender.rank] = sender
        if now_us < self._warned_us.get(sender.rank, now_us - WARN_EVERY_US) + WARN_EVERY_US:
            return []
        self._warned_us[sender.rank] = now_us
        return [Notice(f"{self.kit.name(sender.rank)} stays outside: {FAR_AHEAD}")]

    def strangers(self, now_us: int) -> list[str]:
        """Who is there but not in our view, and why it cannot be merged, or not yet."""
        told = [f"{self.kit.name(life.rank)}: {FAR_AHEAD}" for life in sorted(self._far_ahead.values())]
        ranks = {life.rank for life in self.members}
        for rank, peer in sorted(self.hearing.peers.items()):
            apart = sorted(ranks - peer.two_way_ranks - {self.kit.me.rank})
            if rank not in ranks and self.hearing.two_way(rank, now_us) and self.active and apart:
                names = " ".join(self.kit.name(one) for one in apart)
                told.append(f"{self.kit.name(rank)}: it is not connected both ways with {names}")
        for rank in self._kept_waiting(now_us):
            seconds = -(-self.damping.held_down_us(self.hearing.peers[rank].life, now_us) // 1_000_000)
            told.append(f"{self.kit.name(rank)}: it came and went; merged again in {seconds} s")
        return told

    def _hasten(self, now_us: int) -> None:
        """Waiting is for others to be heard: once everybody is here or known to be gone, it ends."""
        if self._growth > 1 or not self._is_heard_of_everyone(now_us):
            return  # Attempts have failed, and the back-off is the point; or there is somebody to wait for.
        if self.state is State.SEG and self._is_everyone(free_clique(self.hearing, self._excluded, now_us)):
            self.kit.deadlines.set(EvsDeadline.SEGMENT, now_us)
        elif self.state is State.GATHER:
            members = to_propose(self.hearing, self._base(), self._excluded, now_us)
            if self._is_everyone([life.rank for life in members]):
                self.kit.deadlines.set(EvsDeadline.GATHER, now_us)

    def _is_heard_of_everyone(self, now_us: int) -> bool:
        """Cheap, and necessary: everyone is two-way with us, or known to be gone."""
        peers = self.hearing.peers
        return self.state in (State.SEG, State.GATHER) and all(
            rank in peers and (peers[rank].gone is not None or self.hearing.two_way(rank, now_us))
            for rank in self._everyone
        )

    def _is_everyone(self, ranks: list[int]) -> bool:
        peers = self.hearing.peers
        return all(rank in ranks or (rank in peers and peers[rank].gone is not None) for rank in self._everyone)

    def _judge(self, sender: Life, alive: Alive, now_us: int) -> list[Effect]:
        """What an ALIVE says about our view or attempt, if its sender belongs to it."""
        current = self.attempt or (Attempt(self.view, self.members) if self.active else None)
        if current is None:
            return []
        if sender not in current.members:
            if any(life.rank == sender.rank for life in current.members):
                return self.lost(Reason.PEER_RESTARTED, self.kit.name(sender.rank), now_us)
            return []
        if alive.promised < current.ballot:
            self.kit.count.drop("ALIVE dropped: not yet in our attempt")
            return []
        arriving = STATES[alive.state] in (State.STATETRANS, State.EVS)
        if alive.promised == current.ballot and (alive.active or arriving):
            return []
        if arriving and self.active and self._moved_on.get(sender.rank) != alive.promised:
            # It works on a newer attempt: most likely ours too, and the proposal to us is on its way.
            self._moved_on[sender.rank] = alive.promised
            return []
        return self.lost(Reason.PEER_LEFT, self.kit.name(sender.rank), now_us)

    def on_join(self, sender: Life, join: Join, now_us: int) -> list[Effect]:
        effects = self.on_alive(sender, join.alive, now_us)
        peer = self.hearing.peers.get(sender.rank)
        if peer is None or peer.alive is not join.alive:
            return effects  # Overtaken by a later word, of an earlier life, or kept out.
        if sender.rank > self.kit.me.rank or self.kit.me not in join.proposed or sender.rank in self._excluded:
            return effects
        if self.state is State.GATHER and self.active:
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

    def on_new_memb(self, sender: Life, frame: NewMemb, now_us: int) -> list[Effect]:
        if frame.attempt == self.promised:
            return []  # A repetition: our STATETRANS answers it.
        if frame.attempt.counter <= self.promised.counter:
            self.kit.count.drop("older attempt dropped")
            refusal = Refuse(frame.attempt, max(self.counter, self.promised.counter))
            return [self._send((sender.rank,), refusal)]
        if self._is_far(frame.attempt.counter):
            self.kit.count.drop("proposal dropped: its counter is far ahead")
            return []
        if frame.attempt[1:] != sender or self.kit.me not in frame.members or not self._knows(frame.members):
            self.kit.count.drop("proposal dropped: not for this life")
            return []
        return self._promise(Attempt(frame.attempt, frame.members), Reason.PROMISED, now_us)

    def _knows(self, members: tuple[Life, ...]) -> bool:
        """Sorted, each rank once, all configured: what a proposer always sends."""
        ranks = [life.rank for life in members]
        return ranks == sorted(set(ranks)) and ranks[-1] < len(self.kit.cluster.daemons)

    def on_refuse(self, sender: Life, frame: Refuse, now_us: int) -> list[Effect]:
        ours = self.attempt is not None and self.attempt.ballot == frame.attempt and sender in self.attempt.members
        if not ours or self._is_far(frame.counter):
            self.kit.count.drop("refusal dropped: not of our attempt")
            return []
        self.counter = max(self.counter, frame.counter)
        return self.lost(Reason.ATTEMPT_REFUSED, "", now_us)

    def _is_far(self, counter: int) -> bool:
        """A counter that no number of changes explains is damaged or forged: following it would use up all counters."""
        return counter > self.counter + COUNTER_AHEAD_MAX

    def on_goodbye(self, sender: Life, now_us: int) -> list[Effect]:
        """A member leaves in good order: the lowest of the others proposes the view without it at once."""
        if not self.hearing.hint_gone(sender, Reason.PEER_GOODBYE):
            self.kit.count.drop("goodbye dropped: of a life we do not know")
            return []
        self.kit.count.add("goodbye heard")
        if self.attempt is not None and sender in self.attempt.members:
            return self.lost(Reason.PEER_GOODBYE, self.kit.name(sender.rank), now_us)
        if not self.active or sender not in self.members:
            return []
        rest = tuple(life for life in self.members if life != sender)
        self.change_reason, self.change_detail = Reason.PEER_GOODBYE, self.kit.name(sender.rank)
        if rest[0] == self.kit.me:
            return self._propose(rest, now_us)
        return []

    def on_peer_refused(self, rank: int, now_us: int) -> list[Effect]:
        peer = self.hearing.peers.get(rank)
        if peer is None or not self.hearing.hint_gone(peer.life, Reason.PEER_REFUSED):
            return []
        return self._look_around(now_us)

    # --- deadlines

    def on_alive_deadline(self, now_us: int) -> list[Effect]:
        self.hearing.decay([life.rank for life in self.members], now_us)
        return self._say_alive(now_us) + self._look_around(now_us)

    def _look_around(self, now_us: int) -> list[Effect]:
        """Are the members of our view or attempt all there, both ways? Is somebody new?"""
        current = self.attempt.members if self.attempt else self.members if self.active else ()
        for life in current:
            if life != self.kit.me and not self._is_there(life, now_us):
                return self._suspect(life, now_us)
        return self._maybe_merge(now_us)

    def _maybe_merge(self, now_us: int) -> list[Effect]:
        """The lowest of a working view gathers as soon as somebody can be merged."""
        if self.state is State.OP and self.members[0] == self.kit.me and self._may_merge(now_us):
            self._excluded = self._held_down(now_us)
            return self._enter(Reason.STRANGERS, "", now_us)
        return []

    def _is_there(self, life: Life, now_us: int) -> bool:
        return self.hearing.two_way(life.rank, now_us) and self.hearing.peers[life.rank].life == life

    def _suspect(self, life: Life, now_us: int) -> list[Effect]:
        peer = self.hearing.peers.get(life.rank)
        if peer is not None and peer.gone is not None:
            reason = peer.gone
        elif self.hearing.is_one_way(life.rank, now_us):
            reason = Reason.PEER_ONE_WAY
            self.kit.count.add("one-way link seen")
        else:
            reason = Reason.PEER_SILENT
        self.hearing.suspect(life)
        return self.lost(reason, self.kit.name(life.rank), now_us)

    def _may_merge(self, now_us: int) -> bool:
        if now_us - self._installed_us < self.kit.settings.hold_down_ms * 1_000:
            return False
        if not self._has_strangers(now_us):
            return False
        return len(to_propose(self.hearing, self.members, self._held_down(now_us), now_us)) > len(self.members)

    def _held_down(self, now_us: int) -> tuple[int, ...]:
        """Strangers whom we would gather, but who came and went: not yet. Lower ones gather us, when they think fit."""
        ranks = {life.rank for life in self.members}
        return tuple(
            rank
            for rank, peer in sorted(self.hearing.peers.items())
            if rank > self.kit.me.rank and rank not in ranks and self.damping.held_down_us(peer.life, now_us)
        )

    def held_down_us(self, now_us: int) -> int:
        """How long until nobody around is kept waiting to be merged with us."""
        lives = [self.hearing.peers[rank].life for rank in self._kept_waiting(now_us)]
        return max((self.damping.held_down_us(life, now_us) for life in lives), default=0)

    def _kept_waiting(self, now_us: int) -> list[int]:
        """Those held down who are there: but for that, we would gather them, the lowest of a working view."""
        if not self.active or self.members[0] != self.kit.me:
            return []
        peers, me = self.hearing.peers, self.kit.me
        held = [rank for rank in self._held_down(now_us) if self.hearing.two_way(rank, now_us)]
        return [rank for rank in held if all(life > me for life in peers[rank].alive.members)]

    def _has_strangers(self, now_us: int) -> bool:
        """Cheap, and necessary for a merge: somebody is two-way with us who is no member."""
        peers = self.hearing.peers
        if len(peers) < len(self.members):
            return False
        ranks = {life.rank for life in self.members}
        return any(rank not in ranks and self.hearing.two_way(rank, now_us) for rank in peers)

    def on_segment_deadline(self, now_us: int) -> list[Effect]:
        clique = free_clique(self.hearing, self._excluded, now_us)
        if clique[0] == self.kit.me.rank:
            return self._enter(Reason.ALL_HEARD, "", now_us)
        self._leader = clique[0]
        return self._enter(Reason.FOLLOW_LOWER, self.kit.name(clique[0]), now_us)

    def on_gather_deadline(self, now_us: int) -> list[Effect]:
        members = tuple(to_propose(self.hearing, self._base(), self._excluded, now_us))
        if self.active and members == self.members:
            return self._enter(Reason.NOTHING_FOUND, "", now_us)
        if self.active:
            self.change_reason, self.change_detail = Reason.STRANGERS, ""
        return self._propose(members, now_us)

    def _base(self) -> tuple[Life, ...]:
        return self.members if self.active else (self.kit.me,)

    def on_follow_deadline(self, now_us: int) -> list[Effect]:
        return self._enter(Reason.REPRESENTATIVE_SILENT, self.kit.name(self._leader), now_us)

    # --- proposing

    def _propose(self, members: tuple[Life, ...], now_us: int) -> list[Effect]:
        self.counter += 1
        ballot = Ballot(max(self.counter, self.promised.counter + 1), self.kit.me.rank, self.kit.me.boot)
        effects = self._promise(Attempt(ballot, members), Reason.PROPOSED, now_us)
        return [*effects, *self.proposal(members)]

    def proposal(self, to: tuple[Life, ...]) -> list[Effect]:
        """NEWMEMB of the attempt under way, to those who have not answered it."""
        assert self.attempt is not None
        ranks = tuple(life.rank for life in to if life != self.kit.me)
        return [self._send(ranks, NewMemb(*self.attempt))] if ranks else []

    def _promise(self, attempt: Attempt, reason: Reason, now_us: int) -> list[Effect]:
        if self.promised > self.view:
            self.kit.count.add("attempt superseded")
        if self.active and reason is Reason.PROMISED and self.change_reason is not Reason.PEER_GOODBYE:
            self.change_reason, self.change_detail = reason, self.kit.name(attempt.ballot.proposer)
        self.attempt = attempt
        self.promised = attempt.ballot
        self.counter = max(self.counter, attempt.ballot.counter)
        detail = f"{attempt.ballot} of {' '.join(self.kit.name(life.rank) for life in attempt.members)}"
        return self._enter(reason, detail, now_us)

    # --- ALIVE and JOIN

    def _say_alive_soon(self, now_us: int) -> None:
        """Something changed that others wait to hear of. A little later: more may change at once."""
        at = now_us + self.kit.settings.alive_fast_ms * 250
        if at < (self.kit.deadlines.at(EvsDeadline.ALIVE) or at + 1):
            self.kit.deadlines.set(EvsDeadline.ALIVE, at)

    def _say_alive(self, now_us: int) -> list[Effect]:
        settings = self.kit.settings
        interval = settings.alive_interval_ms if self.state is State.OP else settings.alive_fast_ms
        self.kit.deadlines.set(EvsDeadline.ALIVE, now_us + interval * 1_000)
        if not self._everyone:
            return []
        alive = Alive(
            number=self.hearing.next_number(now_us),
            state=STATES.index(self.state),
            active=self.active,
            leader=self._leader,
            view=self.view,
            members=self.members,
            promised=self.promised,
            counter=self.counter,
            heard=self.hearing.heard(now_us),
            clock=self.kit.clock.now(now_us),
        )
        if self.state is not State.GATHER:
            return [self._send(self._everyone, alive)]
        remaining = max(0, (self.kit.deadlines.at(EvsDeadline.GATHER) or now_us) - now_us)
        proposed = tuple(to_propose(self.hearing, self._base(), self._excluded, now_us))
        return [self._send(self._everyone, Join(alive, remaining, proposed))]

    def _send(self, to: tuple[int, ...], frame: Frame) -> Send:
        return Send(to, self.kit.codec.encode(frame))

    def check(self, full: bool) -> None:
        assert self.promised >= self.view, "P1"
        assert (self.attempt is not None) == (self.state in (State.STATETRANS, State.EVS)), "P2"
        assert not self.active or self.state in (State.OP, State.GATHER), "P3"
        assert self.kit.me in self.members, "P4"
        assert self.attempt is None or self.kit.me in self.attempt.members, "P4"
        assert self.kit.deadlines.is_set(WAITS[self.state]), "P5"
        assert self.active or not any(map(self.kit.deadlines.is_set, WORKING)), "P6"
        if full:
            self.hearing.check()
            self.damping.check()
