"""The groups at one daemon, by hand: ordered changes in, and what each session is told in few words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from covey.cluster import one_site
from covey.config import Settings
from covey.ids import Ballot, Life
from covey.protocol.counters import Count
from covey.protocol.deadlines import DeadlineTable
from covey.protocol.effects import Deliver, Installed
from covey.protocol.evs.states import Reason
from covey.protocol.groups.layer import Groups, Out
from covey.protocol.groups.step import NetworkStep
from covey.protocol.kit import Kit
from covey.protocol.notices import GroupSignalled, LeftGroup, Views, WholeView
from covey.protocol.values import Bundle, Kind, Place, Service, Stay
from covey.protocol.wire.bodies import sender_prefix
from covey.protocol.wire.words import GroupDifferences, GroupView
from tests.unit.protocol.builders import A
from tests.unit.protocol.peers import Seen as Knows

OLD, NEW = Ballot(7, 0, 1), Ballot(8, 0, 1)


class Seen(NamedTuple):
    session: int
    what: str
    group: str
    members: str
    transitional: str


def process(life: Life, session: int) -> str:
    return f"{'abc'[life.rank]}{session}"


def stay(life: Life, session: int, group: str = "room", stamp: int = 5) -> Stay:
    return Stay(session, process(life, session), group, Place(OLD, stamp, 0))


class House:
    """The groups at one daemon, a stamp that grows, and what each session knows."""

    def __init__(self, me: Life = A) -> None:
        self.groups = Groups(Kit(me, one_site(8), Settings(), Count(), DeadlineTable()))
        self.stamp = 0
        self._knows: dict[tuple[int, str], Knows] = {}

    def effect(
        self,
        kind: Kind,
        life: Life,
        session: int,
        *groups: str,
        service: Service = Service.AGREED,
        flags: int = 0,
        why: str = "",
    ) -> Deliver:
        self.stamp += 1
        name = sender_prefix(process(life, session)) + why.encode()
        bundle = Bundle(
            0, self.stamp, self.stamp, life, session, 1, 1, self.stamp, service, 0, 1, groups, name, kind, flags
        )
        return Deliver(OLD, bundle, (name,))

    def installed(self, *movers: Life, joined: dict[Life, tuple[Stay, ...]] | None = None) -> Installed:
        """A view of these and of strangers with their stays, in pages of two."""
        joined = joined or {}
        members = tuple(sorted([*movers, *joined]))
        pages = [(life, tuple(stays[at : at + 2] for at in range(0, len(stays), 2))) for life, stays in joined.items()]
        return Installed(OLD, NEW, members, movers, "loss", Reason.TOKEN_LOST, "", tuple(pages))

    # --- what happens

    def join(self, life: Life, session: int, group: str = "room") -> list[Seen]:
        return self.change(self.effect(Kind.JOIN, life, session, group))

    def leave(self, life: Life, session: int, group: str = "room") -> list[Seen]:
        return self.change(self.effect(Kind.LEAVE, life, session, group))

    def change(self, *effects: Deliver) -> list[Seen]:
        seen = self.seen(self.groups.changed(list(effects)))
        for effect in effects:
            if effect.bundle.kind is Kind.DISCONNECT:
                list(self.groups.forgotten(effect.bundle))
        return seen

    def message(self, effect: Deliver) -> list[Seen]:
        return self.seen(self.groups.message(effect))

    def step(self, after: list[Deliver], installed: Installed) -> list[Seen]:
        return self.seen(self.outs(after, installed))

    def outs(self, after: list[Deliver], installed: Installed) -> list[Out]:
        return [out for out in NetworkStep(self.groups, after, installed).told() if out is not None]

    # --- what is told

    def seen(self, outs: Iterable[Out | None]) -> list[Seen]:
        """Each thing told, session by session, in few words."""
        told = [
            one for sessions, what in filter(None, outs) for session in sessions for one in self._one(session, what)
        ]
        self.groups.roster.check()
        return told

    def _one(self, session: int, what: object) -> list[Seen]:
        if isinstance(what, WholeView):
            word = GroupView(*what[:4], what.names(), *what[5:])
            return self._views(session, what.group, word)
        if isinstance(what, Views):
            return self._views(session, what.run.group, GroupDifferences(what.run.group, tuple(what.differences)))
        if isinstance(what, GroupSignalled | LeftGroup):
            return [Seen(session, type(what).__name__, what.group, "", "")]
        assert isinstance(what, Deliver)
        return [Seen(session, "data", " ".join(what.bundle.groups), "", "")]

    def _views(self, session: int, group: str, word: GroupView | GroupDifferences) -> list[Seen]:
        knows = self._knows.setdefault((session, group), Knows())
        before = len(knows.views)
        knows.see(word)
        return [
            Seen(session, cause, group, " ".join(members), " ".join(together))
            for cause, members, together in knows.views[before:]
        ]
