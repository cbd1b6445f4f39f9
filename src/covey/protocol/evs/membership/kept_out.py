"""Daemons that stay outside because their clock is far ahead: it would drag ours along for good (rule R1)."""

from __future__ import annotations

from typing import Final

from covey.ids import Life
from covey.protocol.effects import Notice
from covey.protocol.evs.kit import EvsKit

WARN_EVERY_US: Final = 60_000_000
"""A warning about a daemon is not said again sooner: who forges its words must not fill our log."""

FAR_AHEAD: Final = "its clock is far ahead of ours; set the wrong one right, and restart its daemon"


class KeptOut:
    def __init__(self, kit: EvsKit) -> None:
        self._kit = kit
        self._lives: dict[int, Life] = {}
        self._warned_us: dict[int, int] = {}

    def add(self, sender: Life, now_us: int) -> list[Notice]:
        self._lives[sender.rank] = sender
        if now_us < self._warned_us.get(sender.rank, now_us - WARN_EVERY_US) + WARN_EVERY_US:
            return []
        self._warned_us[sender.rank] = now_us
        return [Notice(f"{self._kit.name(sender.rank)} stays outside: {FAR_AHEAD}")]

    def let_in(self, rank: int) -> None:
        self._lives.pop(rank, None)

    def told(self) -> list[str]:
        return [f"{self._kit.name(life.rank)}: {FAR_AHEAD}" for life in sorted(self._lives.values())]
