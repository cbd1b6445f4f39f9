"""Paper for pictures; and ruled paper for programs over time: one line each, from left to right.

In:        what to draw, at places in points; on ruled paper lanes by name, and places from 0 to 100.
Out:       SVG as text: no fonts, scripts or files from elsewhere, readable on any background.
Not here:  the pictures (draw.py, states.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 780, 92, 26
LANE, TOP = 66, 54
BAR = 26

INK, PALE, RED = "#24343a", "#8fa3a8", "#c8402f"
TONES = {
    "teal": ("#d6efec", "#0f766e"),
    "sand": ("#fbe9cf", "#9a5b00"),
    "plum": ("#ecdff3", "#7a3b94"),
    "grey": ("#e9eef0", "#566a70"),
    "rose": ("#fadfda", "#a83220"),
}


class Paper:
    """Parts are drawn in the order in which they were put."""

    def __init__(self, title: str, height: int) -> None:
        self.height = height
        self._title = title
        self._parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, *, anchor: str = "middle", size: float = 13.5, weight: int = 400,
        colour: str = INK,
    ) -> None:  # fmt: skip
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{colour}">{escape(text)}</text>'
        )

    def rect(self, x: float, y: float, width: float, height: float, tone: str, *, line: float = 1) -> None:
        fill, ink = TONES[tone]
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="8" fill="{fill}" '
            f'stroke="{ink}" stroke-width="{line}"/>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self._line(x1, y1, x2, y2, INK, arrow=True)

    def loop(self, x: float, y: float, up: float) -> None:
        """An arrow that comes back to the edge at `y`; with a negative `up` it hangs below."""
        self._parts.append(
            f'<path d="M{x - 13:.1f} {y:.1f}C{x - 19:.1f} {y - up:.1f} {x + 19:.1f} {y - up:.1f} {x + 13:.1f} {y:.1f}" '
            f'fill="none" stroke="{INK}" stroke-width="1.4" marker-end="url(#head)"/>'
        )

    def _line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str, *, dashed: bool = False, arrow: bool = False,
        width: float = 1.4,
    ) -> None:  # fmt: skip
        extra = ' stroke-dasharray="5 4"' * dashed + ' marker-end="url(#head)"' * arrow
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"{extra}/>'
        )

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" '
            f'height="{self.height}" role="img" font-family="system-ui, sans-serif">'
        )
        paper = f'<rect width="{WIDTH}" height="{self.height}" rx="10" fill="#ffffff" stroke="#d5dee0"/>'
        arrow = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
        )
        return "\n".join([head, f"<title>{escape(self._title)}</title>", arrow, paper, *self._parts, "</svg>"]) + "\n"


class Sheet(Paper):
    """Ruled paper: a lane for each program."""

    def __init__(self, lanes: Sequence[str], title: str, bottom: int = 0) -> None:
        self.lanes = list(lanes)
        super().__init__(title, TOP + LANE * max(0, len(self.lanes) - 1) + (46 if self.lanes else -16) + bottom)
        self._bottom = bottom
        for lane in self.lanes:
            self.text(LEFT - 14, self.y(lane) + 5, lane, anchor="end", weight=600)
            self._line(LEFT, self.y(lane), WIDTH - RIGHT, self.y(lane), PALE)

    # --- places

    def x(self, at: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * at / 100, 1)

    def y(self, lane: str | float) -> float:
        """Of a lane, or between two of them: 0.5 is between the first and the second."""
        return TOP + LANE * (self.lanes.index(lane) if isinstance(lane, str) else lane)

    # --- what happens

    def bar(self, lane: str, start: float, end: float, text: str, tone: str = "teal") -> None:
        """A view, or anything else that lasts."""
        fill, ink = TONES[tone]
        x, width, y = self.x(start), self.x(end) - self.x(start), self.y(lane) - BAR / 2
        self._parts.append(
            f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{BAR}" rx="7" fill="{fill}" stroke="{ink}"/>'
        )
        self.text(x + width / 2, y + BAR / 2 + 4.5, text, colour=ink, size=12.5)

    def message(self, lane: str, sent: float, arrivals: dict[str, float], label: str = "", lost: str = "") -> None:
        """From one lane to others; `lost` does not get it."""
        start = (self.x(sent), self.y(lane))
        self._parts.append(f'<circle cx="{start[0]}" cy="{start[1]}" r="4.5" fill="{INK}"/>')
        for other, at in arrivals.items():
            x, y = self.x(at), self.y(other)
            gap = BAR / 2 + 3 if y > start[1] else -(BAR / 2 + 3)
            end = (x, y - gap)
            if other == lost:
                half = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
                self._line(*start, *half, RED, dashed=True)
                self.text(half[0], half[1] + 5, "✕", colour=RED, size=15)
            else:
                self._line(*start, *end, INK, arrow=True)
        if label:
            up = -20 if self.lanes.index(lane) == 0 else 28
            self.text(start[0], start[1] + up, label, size=12.5, weight=600)

    def crash(self, lane: str, at: float, label: str = "crash") -> None:
        x, y = self.x(at), self.y(lane)
        self._parts.append(f'<rect x="{x}" y="{y - 16}" width="{WIDTH - RIGHT - x + 2:.1f}" height="32" fill="#fff"/>')
        self.text(x, y + 7, "✕", colour=RED, size=22, weight=700)
        self.text(x + 14, y + 5, label, colour=RED, anchor="start", size=12.5)

    def wall(self, between: float, start: float, end: float, label: str = "no network between them") -> None:
        """A partition: nothing passes."""
        y = self.y(between)
        self._line(self.x(start), y, self.x(end), y, RED, dashed=True, width=2)
        self.text((self.x(start) + self.x(end)) / 2, y - 6, label, colour=RED, size=12)

    def moment(self, at: float, label: str) -> None:
        self._line(self.x(at), 34, self.x(at), self.height - 22 - self._bottom, PALE, dashed=True)
        self.text(self.x(at), 26, label, size=12, colour="#566a70")

    def note(self, at: float, lane: str | float, text: str, anchor: str = "middle", colour: str = INK) -> None:
        self.text(self.x(at), self.y(lane) + 4, text, anchor=anchor, size=12.5, colour=colour)

    # --- without lanes

    def box(self, at: float, y: float, width: float, height: float, tone: str) -> None:
        """Put before what is written: later parts are drawn over earlier ones."""
        fill, ink = TONES[tone]
        box = f'<rect x="{self.x(at) - width / 2:.1f}" y="{y}" width="{width}" height="{height}" rx="8"'
        self._parts.insert(0, f'{box} fill="{fill}" stroke="{ink}"/>')

    def join(self, at: float, y: float, to: float, to_y: float) -> None:
        self._line(self.x(at), y, self.x(to), to_y, PALE, width=2)
