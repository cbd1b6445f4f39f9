"""Names for the shell to complete: groups and daemons, where asking for them is cheap. Silence where it is not."""

from __future__ import annotations

WAIT_S = 0.3
"""Nobody wants to wait for a Tab key."""


def group_names(incomplete: str) -> list[str]:
    """Groups that the nearest daemon knows."""
    from covey.drivers.live.status import NotRunningError, Question, ask
    from covey.errors import CoveyError

    from .where import daemons

    try:
        for one in daemons(None, None):
            try:
                answer = ask(one.path, Question("groups", f"{incomplete}*"), WAIT_S)
            except NotRunningError:
                continue
            return [group["group"] for group in answer["groups"]]
    except (CoveyError, KeyError, UnicodeEncodeError):
        pass
    return []


def daemon_names(incomplete: str) -> list[str]:
    """Daemons of the configuration file, or those that run here."""
    from covey.errors import CoveyError

    from .where import daemons

    try:
        return sorted(one.name for one in daemons(None, None) if one.name.startswith(incomplete))
    except CoveyError:
        return []
