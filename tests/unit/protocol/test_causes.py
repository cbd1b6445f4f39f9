"""Why a view came: cause, reason and detail, put together in one place."""

from __future__ import annotations

import pytest

from covey.ids import Life
from covey.protocol.evs.causes import Ending, why_it_came
from covey.protocol.evs.states import Reason

A, B, C = Life(0, 1), Life(1, 1), Life(2, 1)
ALL = (A, B, C)
NEW_C = Life(2, 2)


def name(rank: int) -> str:
    return "abc"[rank]


@pytest.mark.parametrize(
    ("old", "movers", "members", "reason", "cause", "detail"),
    [
        (ALL, (A, B), (A, B), Reason.PEER_SILENT, "loss", "without c"),
        (ALL, (A, B), (A, B), Reason.PEER_GOODBYE, "goodbye", "without c"),
        ((A, B), (A, B), ALL, Reason.PROPOSED, "merge", "with c"),
        (ALL, (A, B), (A, B, NEW_C), Reason.PEER_RESTARTED, "merge", "again with c"),
        (ALL, (A, B), ALL, Reason.PEER_GOODBYE, "merge", "with c"),
        (ALL, ALL, ALL, Reason.PEER_SILENT, "loss", "whom it was about"),
    ],
)
def test_a_view_says_why_it_came(
    old: tuple[Life, ...], movers: tuple[Life, ...], members: tuple[Life, ...], reason: Reason, cause: str, detail: str
) -> None:
    ending = Ending(reason, "whom it was about")
    assert why_it_came(False, old, movers, members, ending, name) == (cause, reason, detail)


def test_a_first_view_follows_no_other_and_names_nobody() -> None:
    ending = Ending(Reason.STARTED, "")
    assert why_it_came(True, (A,), (A,), ALL, ending, name) == ("start", Reason.STARTED, "")
