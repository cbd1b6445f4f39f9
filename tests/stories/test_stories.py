"""Every story reads as its file says: a changed transcript is a change of the protocol that somebody must understand.

`covey sim story --rewrite` writes the transcripts anew; commit the difference only if you can explain it.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from covey.drivers.simulation.story import Story, builtin_stories, play_story
from covey.drivers.simulation.story_clients import StoryClients
from covey.drivers.simulation.story_words import StoryError, usage

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


# --- what cannot be played

TWO = "daemons 2\nstart a\n"
ALICE = "running daemons 2\n----\n\nclient alice a\nrun 20\n"

CLUSTER = [
    ("", "start a", "begins with its cluster"),
    ("", "client alice a", "begins with its cluster"),
    ("", "check", "begins with its cluster"),
    ("", "daemons x", "'x' cannot be the number of daemons: write a whole number from 1"),
    ("", "daemons 0", "'0' cannot be the number of daemons"),
    ("", "daemons 2 packet_bites=600", "no setting is called 'packet_bites': docs/configuration.md"),
    ("", "daemons 2 packet_bytes=few", "'few' cannot be the packet_bytes"),
    ("", "daemons 2 packet_bytes=1", "packet_bytes >= 512"),
    ("", "running circles 3", "write `running daemons 3` or `running sites 3`"),
    (TWO, "sites 3", "a story has one cluster"),
]

WORDS = [
    (TWO, "dance a", "there is no command 'dance': docs/simulation.md lists all commands"),
    (TWO, "run", "write `run MS`"),
    (TWO, "heal now", "write `heal`"),
    (TWO, "start", "write `start DAEMONS …`"),
    (TWO, "send a agreed", "write `send DAEMON SERVICE TEXT [SIZE]`"),
    (ALICE, "join alice", "write `join NAME GROUP`"),
    (TWO, "run soon", "'soon' cannot be the milliseconds: write a whole number from 0 to"),
    (TWO, "run -5", "'-5' cannot be the milliseconds"),
    (TWO, "send a agreed hi -3", "'-3' cannot be the size"),
    (TWO, "send a/x agreed hi", "'x' cannot be the session"),
    (TWO, "send a/100 agreed hi", "'100' cannot be the session: write a whole number from 0 to 99"),
    (TWO, "send a STRONGLY hi", "write unreliable, reliable, fifo, causal, agreed or safe"),
    (ALICE, "say alice room STRONGLY hi", "write unreliable, reliable, fifo, causal, agreed or safe"),
    (ALICE, "say alice room agreed hi 10 -3", "'-3' cannot be the number of messages: write a whole number from 1"),
    (ALICE, "say alice room agreed hi -10", "'-10' cannot be the size"),
    (TWO, "until a dancing", "write op, seg, rep, gather, statetrans, evs or merge"),
    (TWO, "start b+x", "'x' cannot be the seconds ahead"),
    (TWO, "lose a>b data x", "'x' cannot be the number of datagrams"),
    (TWO, "lose a>b dada 2", "no frame is called 'dada': write ack, alive, announce, data,"),
    (TWO, "delay a>b dada 2", "no frame is called 'dada'"),
    (TWO, "lose ab", "'ab' is no direction: write `a>b`"),
    (TWO, "cut a>*", "'a>*' does not name two daemons"),
    (TWO, "flap a>a 5 5 2", "'a>a' does not name two daemons"),
    (TWO, "partition a b", "it needs two sides or more"),
    (TWO, "partition a b | a", "each daemon on one of them"),
    (TWO, "count no-such-thing", "nothing is counted as 'no-such-thing': docs/troubleshooting.md"),
    (TWO, "count tokens lost", "nothing is counted as 'tokens lost', but 'token lost' is"),
]

DAEMONS = [
    (TWO, "start z", "no daemon is called 'z': there are a b"),
    (TWO, "cut a>z", "no daemon is called 'z'"),
    (TWO, "start a", "a runs already: `crash a` or `stop a` ends it first"),
    (TWO, "crash b", "b does not run: `start b` starts it"),
    (TWO, "pause b", "b does not run"),
    (TWO, "stop b", "b does not run"),
    (TWO, "send b agreed hi", "b does not run"),
    (TWO, "show b", "b does not run"),
    (TWO, "until b op", "b does not run"),
    (TWO, "show zoe", "no daemon and no program is called 'zoe'"),
    (TWO, "resume a", "a is not paused"),
    (TWO, "until a evs", "a is in op, and did not enter evs for 5 s"),
]

PROGRAMS = [
    (TWO, "client alice z", "no daemon is called 'z': there are a b"),
    (TWO, "client alice b", "nobody listens at b"),
    (TWO, "client b a", "b is a daemon: call the program something else"),
    (TWO, "client alice a dance", "policy is 'dance'"),
    (TWO, "join alice room", "no program is called 'alice': `client alice a` connects one"),
    (ALICE, "say bob room agreed hi", "no program is called 'bob': there are alice"),
    (ALICE, "client alice b", "alice is there already, at a: `bye alice` or `kill alice` ends it first"),
    (ALICE, "leave alice room", "'room' was not joined"),
    ("daemons 2\nstart a\nclient alice a\n", "client alice a", "alice is there already"),
]


@pytest.mark.parametrize(("before", "line", "fragment"), [*CLUSTER, *WORDS, *DAEMONS, *PROGRAMS])
def test_what_cannot_be_played_is_named_with_its_line(before: str, line: str, fragment: str) -> None:
    assert fragment in error_of(f"{before}{line}\n----\n", line)


@pytest.mark.parametrize("end", ["bye alice", "kill alice", "crash a"])
@pytest.mark.parametrize(
    "line",
    [
        "join alice room", "leave alice room", "say alice room agreed hi", "stall alice", "read alice", "bye alice",
        "kill alice",
    ],
)  # fmt: skip
def test_a_program_that_is_gone_is_told_nothing(end: str, line: str) -> None:
    told = error_of(f"{ALICE}{end}\n{line}\n----\n", line)
    assert "alice is gone: `client alice a` connects it again" in told


def error_of(text: str, line: str) -> str:
    """What the story says of its last command."""
    with pytest.raises(StoryError) as caught:
        play_story(text)
    assert str(caught.value).startswith(f"line {len(text.splitlines()) - 1}, {line!r}: ")
    return str(caught.value)


@pytest.mark.parametrize("end", ["bye", "kill"])
def test_a_refused_command_writes_no_row(end: str) -> None:
    story = Story()
    story.play_block([(1, "running daemons 2"), (2, "client alice a"), (3, "run 20"), (4, f"{end} alice")])
    for line in ("kill alice", "say alice room agreed hi", "join alice room"):
        with pytest.raises(StoryError):
            story.play_block([(5, line)])
    assert story.play_block([(6, "heal")]) == ["nothing happens"]


@pytest.mark.parametrize("end", ["bye", "kill"])
def test_a_program_that_is_gone_may_connect_elsewhere(end: str) -> None:
    told = play_story(f"{ALICE}{end} alice\nclient alice b\nrun 20\nshow alice\ncheck\n----\n")
    assert "alice@b:1.101 is let in" in told
    assert "alice is in {}\nno violation" in told


def test_who_is_killed_before_it_is_let_in_has_no_history() -> None:
    told = play_story("running daemons 2\n----\n\nclient alice a\nkill alice\nrun 20\nshow alice\n----\n")
    assert told.endswith("----\nalice is gone: killed\n")


def test_a_line_is_counted_from_the_top_of_the_file() -> None:
    with pytest.raises(StoryError, match="line 8, 'crash b': "):
        play_story("\n# A story.\ndaemons 2\nstart a\n----\n\n# Wrong.\ncrash b\n----\n")


def test_a_counter_may_be_written_with_hyphens() -> None:
    told = play_story("daemons 2\nstart a\ncount one-way-link-seen\ncount frame rejected: damaged\n----\n")
    assert "one-way link seen: 0\nframe rejected: damaged: 0\n" in told


# --- the page


def test_the_page_lists_all_commands_as_they_are_written() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "simulation.md").read_text()
    listed = {usage for row in page.splitlines() if row.startswith("| `") for usage in re.findall("`([^`]+)`", row)}
    players = {**vars(StoryClients), **vars(Story)}
    commands = {name.removeprefix("do_"): command for name, command in players.items() if name.startswith("do_")}
    assert [name for name, command in commands.items() if usage(name, partial(command, None)) not in listed] == []
