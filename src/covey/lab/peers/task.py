"""What a program beside others is told. What it tells is a TrafficResult (traffic/task.py)."""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["send", "receive"]


class PeerTask(msgspec.Struct, frozen=True, kw_only=True):
    system: str
    role: Role
    name: str
    number: int
    """Of the senders, or of the receivers, from 0 on."""
    addresses: list[str]
    """Where the system's programs meet, as the system writes it."""
    size: int
    seconds: float
    rate: float
    """Messages a second, each one stamped; 0 is as fast as the system takes them."""
    singly: bool
    """One call for each message, and nothing kept back for the next."""
    service: str
    is_agreed: bool
    """All receivers must see the messages of all senders in one order."""
    senders: int
    receivers: int
