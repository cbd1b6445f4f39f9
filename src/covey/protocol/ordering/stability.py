"""What the daemons of each site are known to have: how far safe may go, what may be discarded (rule R5).

Two different things, never mixed: the *line* of a site (its daemons hold the whole order up to that stamp) decides safe
delivery; *received* numbers decide discarding, so that a slow source does not hold up the others' buffers. What must
hold of both is O5 of order.py.
"""

from __future__ import annotations


class Stability:
    def __init__(self, sites: tuple[int, ...]) -> None:
        self._lines = dict.fromkeys(sites, 0)
        self._received = {site: dict.fromkeys(sites, 0) for site in sites}

    def raise_line(self, site: int, line: int) -> None:
        """Every daemon of the site holds the order up to this stamp."""
        self._lines[site] = max(self._lines[site], line)

    def raise_received(self, site: int, source: int, number: int) -> None:
        """Every daemon of the site holds the source's bundles up to this number."""
        numbers = self._received[site]
        numbers[source] = max(numbers[source], number)

    def safe_line(self) -> int:
        return min(self._lines.values())

    def received_by_all(self, source: int) -> int:
        return min(numbers[source] for numbers in self._received.values())
