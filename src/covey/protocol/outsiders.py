"""Who sends us datagrams and does not belong here: named with address, difference and remedy, counted, soon forgotten.

In:        what the codec found different, the address it came from, the time.
Out:       a notice for whoever is new; all of them for the status.
Not here:  how a datagram is recognised as foreign (the engine's codec), and that it is dropped (datagrams.py).

Whoever can reach the port can send anything under any address. So at most OUTSIDERS_MAX are kept, those heard last; at
most NOTICES_MAX lines a minute are logged; and who falls silent is forgotten.
"""

from __future__ import annotations

from typing import Final

import msgspec

from covey.cluster import Address, Cluster
from covey.errors import OutsiderError
from covey.protocol.status import OutsiderStatus

from .effects import Effect, Notice

OUTSIDERS_MAX: Final = 64
NOTICES_MAX: Final = 10
MINUTE_US: Final = 60_000_000
FORGET_US: Final = MINUTE_US
"""Who says nothing for so long is gone, or has been set right."""

UNLISTED: Final = OutsiderError(
    "an address that no daemon has", "it speaks as one of ours", "find out who runs there: datagrams can be forged"
)


class Outsider(msgspec.Struct):
    """One difference from one address."""

    source: str
    """`host:port`, or empty if unknown."""
    daemon: str
    """Our name for it, if it can be told."""
    reason: str
    detail: str
    remedy: str
    heard_us: int
    datagrams: int = 0

    def __str__(self) -> str:
        who = self.source or "somewhere"
        named = f", our daemon {self.daemon}" if self.daemon else ""
        return f"{who}{named}: {self.reason} ({self.detail}); {self.remedy}"


class Outsiders:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._names = {daemon.address: daemon.name for daemon in cluster.daemons}
        self._known: dict[tuple[str, str], Outsider] = {}
        """By source and reason, whoever was silent for longest first."""
        self._minute_us = -MINUTE_US
        self._noticed = 0

    def see(self, error: OutsiderError, source: Address | None, now_us: int) -> list[Effect]:
        """A datagram that is not for us, or not from whom it says."""
        where = f"{source[0]}:{source[1]}" if source else ""
        key = where, error.reason
        one = self._known.pop(key, None)
        is_new = one is None or now_us - one.heard_us > FORGET_US
        if one is None or is_new:
            one = Outsider(where, self._name(error, source), error.reason, error.detail, error.remedy, now_us)
        one.detail, one.heard_us = error.detail, now_us
        one.datagrams += 1
        self._known[key] = one
        if len(self._known) > OUTSIDERS_MAX:
            del self._known[next(iter(self._known))]
        return self._notice(one, now_us) if is_new else []

    def snapshot(self, now_us: int) -> list[OutsiderStatus]:
        """Everyone heard of late, in the order of their addresses."""
        return [
            {
                "source": one.source,
                "daemon": one.daemon,
                "reason": one.reason,
                "detail": one.detail,
                "remedy": one.remedy,
                "heard_us": one.heard_us,
                "datagrams": one.datagrams,
                "silent_ms": (now_us - one.heard_us) // 1_000,
                "text": str(one),
            }
            for _, one in sorted(self._known.items())
            if now_us - one.heard_us <= FORGET_US
        ]

    def _name(self, error: OutsiderError, source: Address | None) -> str:
        """By its address; or by its number, if it should have the same list of daemons as we."""
        if source in self._names:
            return self._names[source]
        rank = error.rank
        return self._cluster.daemons[rank].name if rank is not None and rank < len(self._cluster.daemons) else ""

    def _notice(self, one: Outsider, now_us: int) -> list[Effect]:
        if now_us - self._minute_us >= MINUTE_US:
            self._minute_us, self._noticed = now_us, 0
        self._noticed += 1
        if self._noticed > NOTICES_MAX:
            return []
        last = "; further ones of this minute are in the status only" if self._noticed == NOTICES_MAX else ""
        return [Notice(f"datagrams from {one}{last}")]
