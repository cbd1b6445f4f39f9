"""Leader election without a vote: the view says who is there, and everyone takes the lowest of them.

    python -m examples.leader ann
    python -m examples.leader ben      # in another terminal; then end the one that leads

The leader counts aloud, one tick a second. Whoever leads next goes on where it stopped. While a partition lasts each
part has a leader of its own; with `--quorum 2` only a part of at least two has one.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import suppress

import covey
from examples.terminal import run, until_one_ends

GROUP = "candidates"


def leader_of(view: covey.View, quorum: int = 1) -> str | None:
    """Equal views give equal leaders, so nobody has to be asked. None if too few are there."""
    return min(view.processes) if len(view.processes) >= quorum else None


class Candidate:
    def __init__(self, session: covey.Session, quorum: int = 1) -> None:
        self.session = session
        self.quorum = quorum
        self.view: covey.View | None = None
        self.count = 0
        """Of the last tick."""

    @property
    def leader(self) -> str | None:
        return None if self.view is None else leader_of(self.view, self.quorum)

    @property
    def leads(self) -> bool:
        return self.leader == self.session.process

    async def follow(self) -> None:
        await self.session.join(GROUP)
        async for event in self.session:
            match event:
                case covey.View():
                    self.on_view(event)
                case covey.Message():
                    self.on_message(event)
                case covey.Disconnected(reason=reason):
                    self.view = None
                    print(f"cut off ({reason}): we do not lead, and know nobody who does")
                case covey.Reconnected():
                    with suppress(covey.SessionOverError):
                        await self.session.join(GROUP)

    def on_view(self, view: covey.View) -> None:
        self.view = view
        us = " (that is us)" if self.leads else ""
        print(f"of {' '.join(view.members)} ({view.cause}): leader is {self.leader or 'nobody'}{us}")

    def on_message(self, message: covey.Message) -> None:
        """A leader's word counts in the views that it leads. One that comes late, after the change, does not."""
        if message.process == self.leader:
            self.count = max(self.count, int(message.payload))
            self.on_tick(message)

    def on_tick(self, message: covey.Message) -> None:
        print(f"tick {self.count} from {message.sender}")

    async def lead(self, pause_s: float) -> None:
        while True:
            await asyncio.sleep(pause_s)
            if self.leads:
                with suppress(covey.SessionOverError):  # The next events tell.
                    await self.session.send(GROUP, b"%d" % (self.count + 1), covey.SAFE)


async def candidate(name: str, address: str | None, quorum: int) -> None:
    async with covey.connect(name, address, reconnect=True) as session:
        program = Candidate(session, quorum)
        await until_one_ends(program.lead(pause_s=1.0), program.follow())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.leader", description="Lead, or follow who does.")
    parser.add_argument("name", help="what others call you")
    parser.add_argument("--quorum", type=int, default=1, help="how many must be there for somebody to lead")
    parser.add_argument("--address", help="a daemon: its name, unix:/path or tcp://host:port; the nearest if not given")
    arguments = parser.parse_args()
    run(candidate(arguments.name, arguments.address, arguments.quorum))


if __name__ == "__main__":
    main()
