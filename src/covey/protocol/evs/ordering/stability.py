"""What the daemons of each site are known to have: how far safe may go, what may be discarded (rule R5).

Two different things, never mixed: the *line* of a site (its daemons hold the whole order up to that stamp) decides safe
delivery; *received* numbers decide discarding, so that a slow source does not hold up the others' buffers. What must
hold of both is Z5 of order.py.
"""

from __future__ import annotations


class Stability:
    def __init__(self, sites: tuple[int, ...]) -> None:
        self._lines = dict.fromkeys(sites, 0)
        self._received = {source: dict.fromkeys(sites, 0) for source in sites}
        # The least of each, asked for far more often than it changes.
        self._safe_line = 0
        self.received_everywhere = dict.fromkeys(sites, 0)
        """By source: bundles up to this number are at every daemon of the view."""
        self._held_back: dict[int, int] = {}
        """Of each site that is behind, what it had received of a source when we heard of that."""

    def raise_line(self, site: int, line: int) -> None:
        """Every daemon of the site holds the order up to this stamp."""
        if line > self._lines[site]:
            self._lines[site] = line
            self._safe_line = min(self._lines.values())

    def raise_received(self, site: int, source: int, number: int) -> None:
        """Every daemon of the site holds the source's bundles up to this number."""
        numbers = self._received[source]
        if number > numbers[site]:
            numbers[site] = number
            self.received_everywhere[source] = min(numbers.values())

    def received_at(self, site: int, source: int) -> int:
        """Up to here every daemon of the site is known to have the source's bundles."""
        return self._received[source][site]

    def has_received(self, site: int, source: int, number: int) -> bool:
        """Whether every daemon of the site is known to have the source's bundles up to this number."""
        return self._received[source][site] >= number

    def note_behind(self, site: int, is_behind: bool, source: int) -> None:
        """Whether a site's daemons tell their clients too slowly: what they receive opens no window of the source."""
        if is_behind:
            self._held_back.setdefault(site, self._received[source][site])
        else:
            self._held_back.pop(site, None)

    def taken_by_all(self, source: int) -> int:
        """Up to here every site has received the source's bundles, and takes more: windows begin there."""
        return min([self.received_everywhere[source], *self._held_back.values()])

    def safe_line(self) -> int:
        return self._safe_line

    def received_by_all(self, source: int) -> int:
        return self.received_everywhere[source]
