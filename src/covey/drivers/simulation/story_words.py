"""The words of a story's commands: numbers, services, kinds of frames, counters, and what is wrong with them.

In:        the words that stand behind a command.
Out:       what they mean; a StoryError that says what is wrong, and what would be right.
Not here:  who exists and who runs (story.py, story_clients.py), which line it is about (story.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Final

from covey.cluster import DAEMONS_MAX, LINK_COST_MAX, SITE_MAX, Cluster, SiteLink, many_sites
from covey.errors import ConfigError, CoveyError
from covey.protocol.counters import Counter, Family
from covey.protocol.evs.codec import FRAME_NAMES
from covey.protocol.evs.states import State
from covey.protocol.values import Service

ANY: Final = "*"
"""Stands for any daemon, or any kind of frame."""
KINDS: Final = tuple(sorted(FRAME_NAMES.values()))

PAGE: Final = "docs/simulation.md lists all commands"
COUNTER_PAGE: Final = "docs/troubleshooting.md lists all counters"

MILLISECONDS_MAX: Final = 3_600_000
TIMES_MAX: Final = 10_000


class StoryError(CoveyError):
    """A story asks for something that cannot be played."""


def number(text: str, what: str, least: int, most: int) -> int:
    """
    >>> number("20", "milliseconds", 0, MILLISECONDS_MAX)
    20
    """
    is_number = text.removeprefix("-").isdecimal() and text.isascii()
    if not is_number or not least <= int(text) <= most:
        raise StoryError(f"{text!r} cannot be the {what}: write a whole number from {least} to {most}")
    return int(text)


def switch(text: str, what: str) -> bool:
    """
    >>> switch("false", "prune")
    False
    """
    if text not in ("true", "false"):
        raise StoryError(f"{text!r} cannot be the {what}: write true or false")
    return text == "true"


def milliseconds(text: str) -> int:
    return number(text, "milliseconds", 0, MILLISECONDS_MAX)


def times(text: str, what: str) -> int:
    return number(text, what, 1, TIMES_MAX)


def sites_of(daemons: str, words: tuple[str, ...]) -> tuple[Cluster, tuple[str, ...]]:
    """Sites with so many daemons each, or so many of one, and the links that a word may name; the words left over.

    >>> cluster, _ = sites_of("2,1,1", ("0-1:5,1-2",))
    >>> [daemon.site for daemon in cluster.daemons], [tuple(link) for link in cluster.links]
    ([0, 0, 1, 2], [(0, 1, 5), (1, 2, 1)])
    """
    counts = [number(one, "number of daemons of a site", 1, DAEMONS_MAX) for one in daemons.split(",")]
    sites = counts if "," in daemons else [1] * counts[0]
    has_links = bool(words) and "=" not in words[0]
    links = tuple(_link(one) for one in words[0].split(",")) if has_links else ()
    try:
        return many_sites(sites, links), words[has_links:]
    except ConfigError as error:
        raise StoryError(str(error)) from None


def _link(text: str) -> SiteLink:
    between, _, cost = text.partition(":")
    one, _, other = between.partition("-")
    lower, higher = sorted(number(end, "number of a site", 0, SITE_MAX) for end in (one, other))
    return SiteLink(lower, higher, number(cost or "1", "cost of a link", 1, LINK_COST_MAX))


def service_of(text: str) -> Service:
    """
    >>> service_of("safe")
    <Service.SAFE: 5>
    """
    known = {one.name.lower(): one for one in Service}
    if text not in known:
        raise StoryError(f"no service is called {text!r}: write {_one_of(known)}")
    return known[text]


def state_of(text: str) -> State:
    known = {one.value: one for one in State}
    if text not in known:
        raise StoryError(f"no state is called {text!r}: write {_one_of(known)}")
    return known[text]


def kind_of(text: str) -> str:
    """The kind of frame that a rule is about: a typing error must not lose nothing, silently."""
    if text != ANY and text not in KINDS:
        raise StoryError(f"no frame is called {text!r}: write {_one_of((*KINDS, ANY))}")
    return text


def counter(words: tuple[str, ...]) -> str:
    """The name of a counter, which may be written with hyphens.

    >>> counter(("one-way-link-seen",))
    'one-way link seen'
    """
    name = " ".join(words)
    known = {_spaced(one.value): one.value for one in Counter}
    if _spaced(name) in known:
        return known[_spaced(name)]
    if any(name.startswith(f"{family.value}: ") for family in Family):
        return name
    near = get_close_matches(_spaced(name), known, 1)
    raise StoryError(
        f"nothing is counted as {name!r}" + (f", but {known[near[0]]!r} is" if near else f": {COUNTER_PAGE}")
    )


def check_words(command: Callable[..., None], words: list[str]) -> None:
    """Are they as many as the command has?"""
    try:
        signature(command).bind(*words[1:])
        is_enough = len(words) > 1 or not _needs_some(command)
    except TypeError:
        is_enough = False
    if not is_enough:
        raise StoryError(f"too few words, or too many: write `{usage(words[0], command)}`")


def usage(name: str, command: Callable[..., None]) -> str:
    """How a command is written, from the names of its arguments.

    >>> def do_say(name: str, text: str, size: str = "0") -> None: ...
    >>> usage("say", do_say)
    'say NAME TEXT [SIZE]'
    """
    arguments = signature(command).parameters.values()
    return " ".join([name, *(_placeholder(one, is_optional=len(arguments) > 1) for one in arguments)])


def _placeholder(one: Parameter, *, is_optional: bool) -> str:
    name = one.name.upper()
    if one.kind is Parameter.VAR_POSITIONAL:
        return f"[{name} …]" if is_optional else f"{name} …"
    return name if one.default is Parameter.empty else f"[{name}]"


def _needs_some(command: Callable[..., None]) -> bool:
    """It takes nothing but any number of words, such as names: none is too few."""
    return [one.kind for one in signature(command).parameters.values()] == [Parameter.VAR_POSITIONAL]


def _spaced(name: str) -> str:
    return name.replace("-", " ")


def _one_of(known: Iterable[str]) -> str:
    *others, last = known
    return f"{', '.join(others)} or {last}"
