"""The pictures on disk are those that the script draws."""

from __future__ import annotations

from docs.pictures.draw import HERE, PICTURES


def test_pictures_are_as_drawn() -> None:
    differ = [one.__name__ for one in PICTURES if (HERE / f"{one.__name__}.svg").read_text() != one().svg()]
    assert not differ, "run: python -m docs.pictures.draw"


def test_no_picture_is_left_over() -> None:
    assert sorted(path.stem for path in HERE.glob("*.svg")) == sorted(picture.__name__ for picture in PICTURES)
