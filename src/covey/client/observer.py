"""Who looks over the shoulder of a session: told of all that passes, in its order, and asked for nothing.

In:        what the program asked and was granted; what the daemon said.
Out:       nothing: the protocol goes on as if nobody looked.
Not here:  what becomes of it (recording.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from covey.protocol.notices import OwnDiscarded

from .events import Event
from .options import SendOptions


class Observer(Protocol):
    """An observer of one `ClientProtocol`. Each call comes when the thing has happened; requests that fail are none."""

    # --- what the program asks

    def on_join(self, group: str) -> None:
        """The program asked to be a member, perhaps before the daemon has let us in."""

    def on_leave(self, group: str) -> None:
        """The program asked to be no member any more, perhaps before the daemon has let us in."""

    def on_send(self, first: int, groups: Sequence[str], payloads: Sequence[bytes], options: SendOptions) -> None:
        """The messages `first`, `first + 1`, … were queued, each destination being named once."""

    def on_bye(self) -> None:
        """The program leaves an open session."""

    # --- what the daemon says

    def on_open(self, process: str) -> None:
        """The daemon has let us in, under this name for ever."""

    def on_refusal(self, name: str, reason: str) -> None:
        """The daemon does not let us in under this name."""

    def on_discarded(self, discarded: OwnDiscarded) -> None:
        """These messages of ours have their place in the order, and do not come back."""

    def on_events(self, events: Sequence[Event]) -> None:
        """The program gets these, from one word of the daemon or from the loss of the stream."""
