"""What sessions and groups may be called. A private address is `name@daemon`."""

from __future__ import annotations

import unicodedata
from typing import Final

NAME_MAX: Final = 64
GROUP_MAX: Final = 128
DAEMON_MAX: Final = 32


def name_problem(name: str) -> str:
    """Why a session cannot have this name; empty if it can.

    >>> name_problem("alice"), name_problem("a@b")
    ('', "a session name must not contain '@'")
    """
    return _problem("session name", name, NAME_MAX)


def group_problem(group: str) -> str:
    """Why a group cannot have this name; empty if it can.

    >>> group_problem("room 1"), group_problem("")
    ('', 'a group name must not be empty')
    """
    return _problem("group name", group, GROUP_MAX)


def daemon_problem(name: str, of: str = "daemon") -> str:
    """Why a daemon, or a site, cannot have this name, which is a part of addresses and paths; empty if it can.

    >>> daemon_problem("a"), daemon_problem("../b")
    ('', "a daemon name must not contain '/'")
    """
    if problem := _problem(f"{of} name", name, DAEMON_MAX):
        return problem
    found = next((mark for mark in "/: " if mark in name), "")
    return f"a {of} name must not contain {found!r}" if found else ""


def destination_problem(destination: str) -> str:
    """Why nothing can be sent there: it is neither a group nor a private address.

    >>> destination_problem("room"), destination_problem("bob@b"), destination_problem("bob@b@c")
    ('', '', "a daemon name must not contain '@'")
    """
    name, at, daemon = destination.partition("@")
    if not at:
        return group_problem(destination)
    return name_problem(name) or (
        daemon_problem(daemon) if daemon else f"{destination!r} names no daemon after its '@'"
    )


def is_private(destination: str) -> bool:
    return "@" in destination


UNSEEN: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Categories of characters that would end a line or do worse where a name is shown. All versions of Unicode agree on
them, and so do programs and daemons that run different versions of Python."""


def _problem(what: str, text: object, longest: int) -> str:
    if not isinstance(text, str):
        return f"a {what} is a str, not {type(text).__name__}"
    if not text:
        return f"a {what} must not be empty"
    if len(text) > longest:
        return f"a {what} has at most {longest} characters, not {len(text)}"
    if "@" in text:
        return f"a {what} must not contain '@'"
    # Whatever is printable is none of these, and that is soon seen.
    if not text.isprintable() and any(unicodedata.category(character) in UNSEEN for character in text):
        return f"a {what} must not contain control characters"
    return ""
