"""The states of membership, drawn from their table: one arrow for each pair of states that the table joins.

In:        covey.protocol.evs.states: the table, the reasons, the states in which a view works.
Out:       the picture on docs/protocol/membership.md.
Not here:  which transitions exist. Only where a state stands, and a few words for each reason, are said here.

Two states are joined with all others: they are tall, and the others stand in rows between them. So every arrow is
straight: level to or from a tall one, upright between neighbours. ValueError: the table has an arrow for which these
places leave no room; then move a state.
"""

from __future__ import annotations

from typing import Final

from covey.protocol.evs.states import LOSSES, TRANSITIONS, WORKING_STATES, Reason, State
from docs.pictures.canvas import WIDTH, Paper

LEFT, RIGHT = State.SEG, State.STATETRANS
ROWS: Final = (State.MERGE, State.OP, State.EVS, None, State.GATHER, State.REP)
"""From above, between the tall ones. In the empty row the tall ones are joined with each other."""

WORDS: Final = dict.fromkeys(LOSSES, "a loss") | {
    Reason.STARTED: "started",
    Reason.TOKEN_LOST: "no token",
    Reason.LINK_FAILED: "no link",
    Reason.ATTEMPT_STUCK: "stuck",
    Reason.ATTEMPT_REFUSED: "refused",
    Reason.ALL_HEARD: "we are the lowest",
    Reason.FOLLOW_LOWER: "a lower one represents us",
    Reason.REPRESENTATIVE_SILENT: "no proposal in time",
    Reason.STRANGERS: "strangers around",
    Reason.NOTHING_FOUND: "nobody new",
    Reason.YIELDED: "we yield",
    Reason.PROPOSED: "we propose",
    Reason.PROMISED: "we accept",
    Reason.EXCHANGED: "all have declared",
    Reason.INSTALLED: "all are done",
}

TOP, ROW, BOX, WIDE = 84, 86, 44, 112
EDGE, TALL = 24, 118
MIDDLE: Final = WIDTH / 2
APART = 11
"""Half of what is between two arrows that go opposite ways."""


def states() -> Paper:
    paper = Paper("The states of membership, and what leads from one to another", TOP + ROW * len(ROWS) + 20)
    for state in State:
        _box(paper, state)
    for source, target in arrows():
        if source is target:
            _loop(paper, source)
        elif {source, target} & {LEFT, RIGHT}:
            _level(paper, source, target)
        else:
            _upright(paper, source, target)
    _legend(paper)
    return paper


def arrows() -> dict[tuple[State, State], str]:
    """Each pair with its words; several reasons may share them."""
    found: dict[tuple[State, State], list[str]] = {}
    for reason in Reason:
        for source in State:
            if (source, reason) in TRANSITIONS:
                words = found.setdefault((source, TRANSITIONS[source, reason]), [])
                words += [WORDS[reason]] * (WORDS[reason] not in words)
    return {pair: ", ".join(words) for pair, words in found.items()}


# --- places


def _y(state: State | None) -> float:
    return TOP + ROW * ROWS.index(state)


def _span(state: State) -> tuple[float, float]:
    """From where to where a box reaches, from left to right."""
    if state is LEFT:
        return EDGE, EDGE + TALL
    return (WIDTH - EDGE - TALL, WIDTH - EDGE) if state is RIGHT else (MIDDLE - WIDE / 2, MIDDLE + WIDE / 2)


def _box(paper: Paper, state: State) -> None:
    start, end = _span(state)
    top, bottom = (_y(ROWS[0]), _y(ROWS[-1])) if state in (LEFT, RIGHT) else (_y(state), _y(state))
    works = state in WORKING_STATES
    tone, line = ("teal", 2.4) if works else ("grey", 1.2)
    paper.rect(start, top - BOX / 2, end - start, bottom - top + BOX, tone, line=line)
    paper.text((start + end) / 2, (top + bottom) / 2 + 5, state.name, weight=700)


# --- arrows


def _level(paper: Paper, source: State, target: State) -> None:
    inner = next((state for state in (source, target) if state not in (LEFT, RIGHT)), None)
    both_ways = (target, source) in arrows()
    up = 0 if not both_ways else -APART if source is LEFT or target is RIGHT else APART
    (start, start_end), (end, end_end) = _span(source), _span(target)
    x1, x2 = (start_end, end - 2) if start < end else (start, end_end + 2)
    y = _y(inner) + up
    paper.arrow(x1, y, x2, y)
    paper.text((x1 + x2) / 2, y + (16 if up > 0 else -6), arrows()[source, target], size=12.5)


def _upright(paper: Paper, source: State, target: State) -> None:
    if abs(ROWS.index(source) - ROWS.index(target)) != 1:
        raise ValueError(f"{source.name} and {target.name} are not neighbours: there is no room for an arrow")
    down = 1 if _y(target) > _y(source) else -1
    aside = -down * APART * ((target, source) in arrows())
    x, y1, y2 = MIDDLE + aside, _y(source) + down * BOX / 2, _y(target) - down * (BOX / 2 + 2)
    paper.arrow(x, y1, x, y2)
    side, anchor = (-8, "end") if aside < 0 else (8, "start")
    paper.text(x + side, (_y(source) + _y(target)) / 2 + 5, arrows()[source, target], anchor=anchor, size=12.5)


def _loop(paper: Paper, state: State) -> None:
    x = sum(_span(state)) / 2
    words = arrows()[state, state]
    if state is ROWS[-1]:
        paper.loop(x, _y(state) + BOX / 2, -34)
        paper.text(x + 22, _y(state) + BOX / 2 + 21, words, anchor="start", size=12.5)
    elif state in (LEFT, RIGHT):
        paper.loop(x, _y(ROWS[0]) - BOX / 2, 34)
        paper.text(x, _y(ROWS[0]) - BOX / 2 - 31, words, size=12.5)
    else:
        raise ValueError(f"there is no room for an arrow from {state.name} to itself")


def _legend(paper: Paper) -> None:
    y = paper.height - 34
    paper.rect(EDGE, y, 26, 16, "teal", line=2.4)
    paper.text(EDGE + 34, y + 12.5, "in a view that works", anchor="start", size=12.5)
    paper.text(WIDTH - EDGE, y + 12.5, "a loss: a member is gone, or has left", anchor="end", size=12.5)
