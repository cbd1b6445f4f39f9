"""What this engine tells of its links: where the token is, as far as it knows, and how full its windows are."""

from __future__ import annotations

from typing import NotRequired

from covey.protocol.status import LinkStatus


class EvsLinkStatus(LinkStatus):
    """Its kind is `ring`, or for the only daemon of a site `alone`."""

    token: NotRequired[int]
    """Of a ring, like the next ones: how often it was passed."""
    token_is_here: NotRequired[bool]
    packets_received: NotRequired[int]
    packets_kept: NotRequired[int]
    packets_unstable_max: NotRequired[int]
    sites: NotRequired[list[str]]
    """Of a view of several sites, like the next ones."""
    links: NotRequired[list[str]]
    """Between them, each with its cost."""
    speaks_for_its_site: NotRequired[str]
    """The daemon that ends the links of our site."""
    carried: NotRequired[dict[str, dict[str, int]]]
    """Over each link in this view: pieces of bundles and bytes, and of these, heads alone."""
    to_be_received: NotRequired[int]
    """Messages of our site that not everybody is known to have, in bundles."""
    to_be_brought: NotRequired[int]
    """Those of other sites that we have, and not everybody on our ring is known to have."""
    prunes: NotRequired[bool]
    """Whether messages go only where somebody is in their groups."""
    not_pruned: NotRequired[list[str]]
    """Sites that ask for so many groups that they get everything."""
    undelivered: int
    unstable: bool
    line: int
    safe_line: int
