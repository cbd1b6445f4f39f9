"""The pictures on disk are those that the script draws, and the states are drawn as their table has them."""

from __future__ import annotations

import pytest

from covey.protocol.evs.states import LOSSES, TRANSITIONS, Reason, State
from docs.pictures import states
from docs.pictures.draw import HERE, PICTURES


def test_pictures_are_as_drawn() -> None:
    differ = [one.__name__ for one in PICTURES if (HERE / f"{one.__name__}.svg").read_text() != one().svg()]
    assert not differ, "run: python -m docs.pictures.draw"


def test_no_picture_is_left_over() -> None:
    assert sorted(path.stem for path in HERE.glob("*.svg")) == sorted(picture.__name__ for picture in PICTURES)


# --- the states of membership


def test_there_is_one_arrow_for_each_pair_of_states_in_the_table() -> None:
    pairs = {(source, target) for (source, _), target in TRANSITIONS.items()}
    assert set(states.arrows()) == pairs
    assert states.states().svg().count('marker-end="url(#head)"') == len(pairs)


def test_only_losses_share_their_words() -> None:
    assert set(states.WORDS) == set(Reason)
    assert len(set(states.WORDS.values())) == len(Reason) - len(LOSSES) + 1


def test_a_pair_that_has_no_room_is_not_drawn_over_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "TRANSITIONS", {(State.MERGE, Reason.INSTALLED): State.REP})
    with pytest.raises(ValueError, match="MERGE and REP are not neighbours"):
        states.states()
