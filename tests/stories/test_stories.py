"""Every story reads as its file says: a changed transcript is a change of the protocol that somebody must understand.

`covey sim story --rewrite` writes the transcripts anew; commit the difference only if you can explain it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.drivers.simulation.story import StoryError, builtin_stories, play_story
from covey.errors import CoveyError

STORIES = builtin_stories()


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story_plays_as_written(path: Path) -> None:
    written = path.read_text()
    assert play_story(written) == written


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story_breaks_no_guarantee(path: Path) -> None:
    told = path.read_text()
    assert "no violation; something to check for" in told


def test_there_are_stories_for_the_named_situations() -> None:
    assert len(STORIES) >= 15


def test_unknown_command_is_named() -> None:
    with pytest.raises(StoryError, match="no such command: 'dance a'"):
        play_story("daemons 2\ndance a\n----\n")


def test_story_must_begin_with_a_cluster() -> None:
    with pytest.raises(StoryError, match="begins with"):
        play_story("start a\n----\n")


@pytest.mark.parametrize(
    "line",
    [
        "daemons x", "run", "run soon", "run -5", "send a bogus hi", "until a dancing", "crash b", "show b", "pause b",
        "running circles 3", "start a+x", "send a/x agreed hi", "lose a>b data x", "start z",
    ],
)  # fmt: skip
def test_a_command_that_cannot_be_played_is_named(line: str) -> None:
    with pytest.raises(CoveyError):
        play_story(f"daemons 2\nstart a\n   \n{line}\n----\n")
