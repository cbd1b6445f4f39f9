"""How a message is sent: what a program may say of it beside its payload and where it goes.

In:        the keywords of `send` and `send_many`, as a program writes them.
Out:       one value, which the library hands on as it is.
Not here:  whether they are possible (routes.py), how they travel (outbox.py).

Whatever becomes possible to say of a message gets a field here, and a keyword in the four public methods: a test
compares them. Nothing in between lists them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from covey.protocol.values import Service


class SendOptions(msgspec.Struct, frozen=True, gc=False):
    """The options of one call, for all of its messages.

    >>> SendOptions(Service.SAFE, kind=7)
    SendOptions(service=<Service.SAFE: 5>, kind=7, self_discard=False)
    """

    service: Service = Service.AGREED
    """What is promised of delivery and order."""
    kind: int = 0
    """A number of the program's own, which receivers see beside the payload."""
    self_discard: bool = False
    """The sender, though it may be a member, does not want it back."""


PLAIN: Final = SendOptions()
"""The options of a call that names none."""
