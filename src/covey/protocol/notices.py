"""What clients are told, whatever dialect they speak: messages, views, signals, the end of a session.

In:        what the groups and the desk have to tell.  Out: values that a dialect turns into bytes (dialects/).
Not here:  whom it is told (groups/), what waits for whom (session/).

A message is the delivery itself (`effects.Deliver`). Views come as differences where the receiver has the view before,
and can give the full list too, for dialects that know only lists.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from covey.ids import INFINITE, Ballot, Natural

Text = Annotated[str, Meta(max_length=600)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=100_000)]

NET: Final = (0, 0)
"""Instead of a stamp and a site: the view came with a daemon view, not with an ordered change."""


class Change(NamedTuple):
    """A view, as its difference from the one before it in the same group.

    Members: those before, without who went, with who came. The transitional set: those before who did not go and are
    not apart. An empty detail names who came or went.
    """

    view: Ballot
    stamp: Annotated[int, Meta(ge=0, le=INFINITE)]
    site: Natural
    came: Texts
    gone: Texts
    apart: Texts
    """They stayed, but did not move with us from our previous view."""
    cause: Text
    detail: Text
