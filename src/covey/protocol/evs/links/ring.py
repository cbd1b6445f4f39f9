"""Token ring inside a site: reliable packets and flow control by a rotating token.

In:        packets and tokens of one view; on each visit the engine's new packets, order line and received numbers.
Out:       datagrams to send, in order; new packets' chunks; the usable minima of the ring.
Not here:  what is in a packet (transport/), order and stamps (ordering/, the engine), when to give up (membership/).

The token is retransmitted by its last sender, with the same number, but never made anew inside a view. Passing is
accelerated: the last packets of a turn follow the token, so packets are requested only up to the number that the
previous token named. A visit may have several turns: the only sender keeps the token for a while, and an idle token is
parked where the last sender is; whoever else has something to send hurries it on.

Invariants: R1 the packet after have_to, up to which all were received, is not here; R2 the store holds everything above
the usable packet floor that was received; R3 new packets are sent only while the windows are open; R4 the store stays
within three times `ring_packets_unstable`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from covey.config import Settings
from covey.ids import INFINITE, Ballot
from covey.protocol.counters import Count, Counter, Dropped
from covey.protocol.deadlines import DeadlineTable
from covey.protocol.effects import Send
from covey.protocol.evs.codec import Codec
from covey.protocol.evs.deadlines import EvsDeadline
from covey.protocol.evs.frames import Ack, Chunk, Data, Floor, Hurry, Parked, Token
from covey.protocol.evs.growth import Growth

from .floors import NOBODY, TwoVisits, visit, visited
from .lines import Lines
from .resting import Resting
from .turn import Standing, Turn

COUNT_MAX: Final = 1 << 32
"""What a token counts of itself stays far below; it grows with each visit, and must stay a number of the wire."""


class Ring:
    def __init__(
        self,
        view: Ballot,
        ring: tuple[int, ...],
        me: int,
        settings: Settings,
        codec: Codec,
        count: Count,
        patience: Growth,
        site: int,
        sources: int = 1,
    ) -> None:
        self.view = view
        self.me = me
        self._site = site
        self.is_first = me == ring[0]
        self._others = tuple(rank for rank in ring if rank != me)
        self.lines = Lines(self._others)
        self._successor = ring[(ring.index(me) + 1) % len(ring)]
        self._size = len(ring)
        self._settings = settings
        self._visit_packets = (
            settings.ring_packets_per_visit * sources
        )  # Of so many sites we bring packets to the ring.
        self._codec = codec
        self._count = count
        self._patience = patience  # Membership notes lost views in it; here it is only looked at.
        # Packets: received up to have_to without a gap; the store keeps what others may still ask for.
        self.have_to = 0
        self._store: dict[int, bytes] = {}
        self._highest = 0
        self._discarded = 0
        self._requestable = 0
        # Token: the last number handled or passed, and the datagram to repeat until the successor shows it has it.
        self.number = 0
        self._passed: bytes = b""
        self.holding: Token | None = None
        self.is_new = False  # It has come, and we have not used it yet.
        self._sent_last_visit = 0
        self._sent_this_visit = 0
        self._numbered_to = 0  # The last packet that we sent.
        self._resting = Resting(settings.token_rest_ms)
        self._passed_us = 0
        self._rotation_us = 0
        self._packets_everywhere = TwoVisits()
        self.line_everywhere = TwoVisits()
        self.received_everywhere: dict[int, TwoVisits] = {}

    # --- packets

    def on_data(
        self, frame: Data, datagram: bytes, now_us: int, deadlines: DeadlineTable
    ) -> tuple[Chunk, ...] | Dropped:
        """The chunks of a packet not seen before. One sent under a later token shows that ours has arrived."""
        if frame.packet_seq > self.have_to + 2 * self._settings.ring_packets_unstable:
            return Dropped(Counter.PACKET_BEYOND_WINDOW)
        if frame.packet_seq <= self.have_to or frame.packet_seq in self._store:
            return Dropped(Counter.PACKET_DUPLICATE)
        if frame.turn >= self.number and self.holding is None:
            deadlines.clear(EvsDeadline.TOKEN_RESEND)
        self._resting.heard(frame, now_us)
        self._keep(frame.packet_seq, datagram)
        return frame.chunks

    def _keep(self, packet_seq: int, datagram: bytes) -> None:
        self._store[packet_seq] = datagram
        self._highest = max(self._highest, packet_seq)
        while self.have_to + 1 in self._store:
            self.have_to += 1

    # --- the token

    def first_token(self, sites: tuple[int, ...], stamp: int) -> Token:
        """The lowest member starts the ring with this token."""
        floor = Floor(0, NOBODY)
        return Token(self.view, 1, 0, floor, floor, tuple((site, floor) for site in sites), 0, stamp, 0, 0, ())

    def why_not(self, token: Token) -> Dropped | None:
        """Why this token is not ours to handle: a repetition, one we hold, or one that cannot be."""
        if token.number <= self.number:
            return Dropped(Counter.TOKEN_DUPLICATE)
        return None if self._is_possible(token) else Dropped(Counter.TOKEN_IMPOSSIBLE)

    def hold(self, token: Token, now_us: int, deadlines: DeadlineTable) -> None:
        """It is our turn."""
        if self._passed_us:
            self._rotation_us += (now_us - self._passed_us - self._rotation_us) // 4
        self.number = token.number
        self.holding = token
        self.is_new, self._sent_this_visit = True, 0
        deadlines.clear(EvsDeadline.TOKEN_RESEND, EvsDeadline.TOKEN_LOST, EvsDeadline.HURRY)

    def _is_possible(self, token: Token) -> bool:
        """It passes everybody in turn, so it is no further ahead than one rotation; and within what windows allow."""
        return (
            token.number <= self.number + 1 + len(self._others)
            and token.packet_seq - self.have_to <= 2 * self._settings.ring_packets_unstable
            and token.stamp < INFINITE
            and (token.behind in (-1, self.me) or token.behind in self._others)
            and max(token.flow, token.idle) < COUNT_MAX
            and len(token.requests) <= self._settings.retransmit_requests_max
        )

    def on_duplicate(self, token: Token) -> list[Send]:
        """Our predecessor repeats a token that we hold parked: tell it so."""
        if self.holding is not None and token.number == self.number:
            return [self._send(self._others, Parked(self.view, self.number))]
        return []

    def allowance(self, token: Token) -> int:
        """Packets this daemon may still send in this visit."""
        settings = self._settings
        rotation = settings.ring_packets_per_rotation - token.flow + self._sent_last_visit
        most = min(self._visit_packets, rotation) - self._sent_this_visit
        return max(0, min(most, self.window(token)))

    def window(self, token: Token) -> int:
        """How many more packets may be under way that not everyone is known to have."""
        return self._settings.ring_packets_unstable - (token.packet_seq - self._packets_everywhere.usable)

    def arrive(self, mine: Standing) -> None:
        """Learn from a token that has just come how far everybody is, ourselves included."""
        token, me = self.holding, self.me
        assert token is not None
        everywhere = self._packets_everywhere.see(visited(token.packet_floor, self.have_to, me))
        while self._discarded < everywhere:
            self._discarded += 1
            self._store.pop(self._discarded, None)
        self.line_everywhere.see(visited(token.line_floor, mine.line, me))
        for site, floor in token.received_floors:
            self.received_everywhere.setdefault(site, TwoVisits()).see(visited(floor, mine.received[site], me))

    def turn(self, mine: Standing, turn: Turn, now_us: int, deadlines: DeadlineTable) -> list[Send]:
        """Use the token: answer requests, send packets; then keep it for a while, park it or pass it on."""
        token = self.holding
        assert token is not None
        again, still_wanted = self._answer(token) if token.requests else ([], ())
        allowance = self.allowance(token)
        assert len(turn.packets) <= allowance or self._is_allowed_alone(turn.packets, allowance), "R3"
        requests = self._requests(still_wanted) if still_wanted or self.have_to < self._requestable else ()
        rests = turn.may_rest and not again and not requests and len(turn.packets) < allowance
        rests = rests and self._resting.is_only_sender(now_us)
        rests = rests and (bool(turn.packets) or self._may_wait(token, turn.busy))
        packets = self._number_packets(token, turn.packets, mine.line if rests else 0)
        quiet = not (again or packets or still_wanted or turn.busy)
        quiet_now = quiet and not rests
        token = self._after_turn(token, mine, len(packets), len(again), requests, quiet_now, turn.behind)
        if rests:
            self.holding = token
            self._count.add(Counter.TOKEN_KEPT)
            self._resting.keep(deadlines, now_us, has_sent=bool(packets))
            return packets
        deadlines.clear(EvsDeadline.REST)
        parks = self._parks(token, quiet) if turn.parks is None else turn.parks
        if parks and not (again or packets or requests):
            return self._park(token)
        return again + self._pass(self._told(token, mine), packets, now_us, deadlines)

    def _parks(self, token: Token, quiet: bool) -> bool:
        return quiet and token.idle >= (self._size if self._numbered_to == token.packet_seq else 2 * self._size)

    def all_have_all(self, token: Token) -> bool:
        """Whether every packet that the token names is known to be everywhere."""
        return self._packets_everywhere.usable >= token.packet_seq

    def is_quiet(self, token: Token) -> bool:
        """Whether nobody has had anything to do since the token was here."""
        return token.idle >= self._size

    def _may_wait(self, token: Token, busy: bool) -> bool:
        """Whether it may stay before we have more to send: it has come back, and all have what we sent last."""
        return self.is_new and not busy and self._sent_last_visit > 0 and self._numbered_to == token.packet_seq

    def _is_allowed_alone(self, packets: list[list[Chunk]], allowance: int) -> bool:
        """A bundle that needs more packets than are left goes alone, in a turn that may send at all."""
        return allowance > 0 and len({chunk.number for packet in packets for chunk in packet}) == 1

    def _answer(self, token: Token) -> tuple[list[Send], tuple[int, ...]]:
        """Retransmit what is asked for and held here."""
        held = [seq for seq in token.requests if seq in self._store]
        self._count.add(Counter.PACKET_RETRANSMITTED, len(held))
        return [Send(self._others, self._store[seq]) for seq in held], tuple(
            seq for seq in token.requests if seq not in self._store
        )

    def _number_packets(self, token: Token, packets: list[list[Chunk]], kept_line: int) -> list[Send]:
        sends = []
        for offset, chunks in enumerate(packets, start=1):
            seq = self._numbered_to = token.packet_seq + offset
            datagram = self._codec.encode(Data(self.view, token.number, seq, tuple(chunks), kept_line))
            self._keep(seq, datagram)
            sends.append(Send(self._others, datagram))
        return sends

    def _after_turn(
        self,
        token: Token,
        mine: Standing,
        sent: int,
        again: int,
        requests: tuple[int, ...],
        quiet: bool,
        is_behind: bool,
    ) -> Token:
        """The token as it is now, but for the floors: those it is told when it goes."""
        flow = max(0, token.flow - self._sent_last_visit) if self.is_new else token.flow
        self._sent_last_visit = again + sent if self.is_new else self._sent_last_visit + again + sent
        self._sent_this_visit += sent
        self.is_new = False
        return msgspec.structs.replace(
            token,
            packet_seq=token.packet_seq + sent,
            site_seq=mine.site_seq,
            stamp=mine.stamp,
            withdrawn_seq=mine.withdrawn_seq,
            flow=flow + again + sent,
            behind=self._who_is_behind(token, is_behind),
            idle=token.idle + 1 if quiet else 0,
            requests=requests,
        )

    def _who_is_behind(self, token: Token, we_are: bool) -> int:
        if we_are:
            return self.me
        return -1 if token.behind == self.me else token.behind

    def _told(self, token: Token, mine: Standing) -> Token:
        """Before it goes, it is told how far we are; that is no second visit."""
        token = msgspec.structs.replace(
            token,
            packet_floor=visit(token.packet_floor, self.have_to, self.me, token.packet_seq),
            line_floor=visit(token.line_floor, mine.line, self.me, mine.stamp),
            received_floors=tuple(
                [
                    (site, visit(floor, mine.received[site], self.me, self._top(site, mine)))
                    for site, floor in token.received_floors
                ]
            ),
        )
        self._packets_everywhere.revise(token.packet_floor.value)
        self.line_everywhere.revise(token.line_floor.value)
        for site, floor in token.received_floors:
            self.received_everywhere[site].revise(floor.value)
        return token

    def _top(self, site: int, mine: Standing) -> int:
        """Who has so many of a site's bundles misses none; of another site's, the token does not know how many."""
        return mine.site_seq if site == self._site else INFINITE

    def _requests(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """What is missing here is asked for too."""
        missing = (seq for seq in range(self.have_to + 1, self._requestable + 1) if seq not in self._store)
        return tuple(sorted({*wanted, *missing})[: self._settings.retransmit_requests_max])

    def _pass(self, token: Token, packets: list[Send], now_us: int, deadlines: DeadlineTable) -> list[Send]:
        self.holding = None
        # What the previous token named has had a whole rotation to arrive; what this one names may be on its way.
        self._requestable = token.packet_seq
        self.number = token.number + 1
        passed = msgspec.structs.replace(token, number=token.number + 1)
        self._passed = self._codec.encode(passed)
        deadlines.set(EvsDeadline.TOKEN_RESEND, now_us + self._settings.token_resend_ms * 1_000)
        self._passed_us = now_us
        deadlines.set(EvsDeadline.TOKEN_LOST, now_us + self.lost_after_us(now_us))
        # Whoever missed that the token was parked asks for it in time, however patient the ring has become.
        deadlines.set(EvsDeadline.HURRY, now_us + self._usual_us(1) // 3)
        before = max(0, len(packets) - self._settings.ring_packets_after_token)
        return [*packets[:before], Send((self._successor,), self._passed), *packets[before:]]

    def lost_after_us(self, now_us: int) -> int:
        """How long we wait for the token: longer after views that were lost one soon after the other."""
        return self._usual_us(self._patience.at(now_us))

    def _usual_us(self, growth: int) -> int:
        """At least the configured time; more where rotations take long; at most four times it."""
        base = self._settings.token_lost_ms * 1_000 * growth
        return min(max(base, 8 * self._rotation_us), 4 * base)

    def _park(self, token: Token) -> list[Send]:
        self.holding = token
        self._count.add(Counter.TOKEN_PARKED)
        return [self._send(self._others, Parked(self.view, token.number))]

    def resume(self) -> Token | None:
        """Take up again a token that was kept or parked."""
        if self.holding is None:
            return None
        if self.holding.idle:
            self.holding = msgspec.structs.replace(self.holding, idle=0)
        return self.holding

    # --- signs of the token

    def is_kept_elsewhere(self) -> bool:
        """Whether somebody else has said that it keeps the token, after we passed it."""
        return self.holding is None and self._resting.is_kept_since(self.number)

    def may_be_kept(self) -> bool:
        """Whether somebody else may keep the token, and not have said so."""
        return self.holding is None and self._resting.may_be_kept

    def lacks_something(self) -> bool:
        """Whether a packet is here, and one before it is not."""
        return self._highest > self.have_to

    def has_asked_for(self, packet_seq: int) -> bool:
        """Whether we miss a packet, and the token has been told."""
        return self.have_to < packet_seq <= self._requestable and packet_seq not in self._store

    def acknowledge(self, line: int) -> list[Send]:
        """Tell the others how far we hold the order, if they do not know; the token would do so later."""
        if not self.lines.are_told or not self.lines.is_news(line):
            return []
        self._count.add(Counter.LINE_TOLD)
        return [self._send(self._others, Ack(self.view, line))]

    def on_hurry(self, now_us: int) -> Token | None:
        """Somebody else wants to send."""
        self._resting.hurried(now_us)
        return self.resume()

    def on_parked(self, frame: Parked, deadlines: DeadlineTable) -> None:
        if frame.number >= self.number and self.holding is None:
            deadlines.clear(EvsDeadline.TOKEN_RESEND, EvsDeadline.TOKEN_LOST, EvsDeadline.HURRY)
            self._passed_us = 0  # A parked token's way round says nothing about the ring.

    def resend_token(self, now_us: int, deadlines: DeadlineTable) -> list[Send]:
        if self.holding is not None or not self._passed:
            return []
        self._count.add(Counter.TOKEN_RESENT)
        deadlines.set(EvsDeadline.TOKEN_RESEND, now_us + self._settings.token_resend_ms * 1_000)
        return [Send((self._successor,), self._passed)]

    def hurry(self, now_us: int, deadlines: DeadlineTable) -> list[Send]:
        """Ask for the token, again and again until it comes; without an answer it counts as lost."""
        if self.holding is not None:
            return []
        self._resting.hurry()
        deadlines.set(EvsDeadline.HURRY, now_us + self._settings.hurry_ms * 1_000)
        deadlines.set_if_clear(EvsDeadline.TOKEN_LOST, now_us + self.lost_after_us(now_us))
        return [self._send(self._others, Hurry(self.view))]

    def snapshot(self) -> dict[str, object]:
        return {
            "token": self.number,
            "token_is_here": self.holding is not None,
            "packets_received": self.have_to,
            "packets_kept": len(self._store),
            "packets_unstable_max": self._settings.ring_packets_unstable,
        }

    def check(self) -> None:
        assert self.have_to + 1 not in self._store, "R1"
        assert all(seq in self._store for seq in range(self._packets_everywhere.usable + 1, self.have_to + 1)), "R2"
        assert len(self._store) <= 3 * self._settings.ring_packets_unstable, "R4"

    def _send(self, to: tuple[int, ...], frame: Parked | Hurry | Ack) -> Send:
        return Send(to, self._codec.encode(frame))
