"""How much trouble a hostile measurement makes."""

from __future__ import annotations

import msgspec

from covey.config_file import Preset


class HostilePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How much trouble."""

    preset: Preset = "loopback"
    sessions: int = 4_000
    groups: int = 100_000
    silent: int = 20
    seconds: float = 10.0
    """How long senders send."""
    flap_seconds: float = 30.0
    block_every_s: float = 10.0
    patience_s: float = 60.0
    """How long a crowd may take to get what it asked for."""
    later_s: float = 5.0
    settings: dict[str, int] = {}
    """Besides those that a scenario needs."""
