"""A chat: everyone in the room sees the same lines in the same order, and who comes and goes, and why.

    python -m examples.chat ann
    python -m examples.chat ben        # in another terminal

A line goes to the room. `/to ben@b hi` goes to one person, `/who` lists the members, Ctrl-D leaves.
"""

from __future__ import annotations

import argparse
from contextlib import suppress

import covey
from examples.terminal import lines, run, until_one_ends

ROOM = "room"


class Chat:
    def __init__(self, session: covey.Session) -> None:
        self.session = session
        self.members: tuple[str, ...] = ()

    # --- what happens

    async def listen(self) -> None:
        await self.session.join(ROOM)
        async for event in self.session:
            with suppress(covey.SessionOverError):  # The next events tell, and how it goes on.
                await self.on_event(event)

    async def on_event(self, event: covey.Event) -> None:
        match event:
            case covey.Message(groups=groups, sender=sender, payload=payload):
                where = "" if ROOM in groups else " (to you)"
                print(f"{sender}{where}: {payload.decode(errors='replace')}")
            case covey.View():
                self.show(event)
            case covey.Disconnected(reason=reason):
                print(f"* we are cut off: {reason}; looking for another daemon")
            case covey.Reconnected(name=name):
                print(f"* we are back as {name}")
                await self.session.join(ROOM)
            case covey.Failure(asked=asked, reason=reason):
                print(f"* {asked}: {reason}")

    def show(self, view: covey.View) -> None:
        before, self.members = set(self.members), view.members
        came, went = sorted(set(view.members) - before), sorted(before - set(view.members))
        changes = [f"{' '.join(came)} came"] * bool(came) + [f"{' '.join(went)} left"] * bool(went)
        print(f"* {', '.join(changes) or 'nobody changed'} ({view.cause}); here: {' '.join(view.members)}")

    # --- what is typed

    async def talk(self) -> None:
        async for line in lines():
            try:
                await self.on_line(line)
            except covey.SessionOverError as error:
                print(f"* not said: {error}")
            except covey.ArgumentError as error:
                print(f"* {error}")

    async def on_line(self, line: str) -> None:
        match line.split(maxsplit=2):
            case []:
                pass
            case ["/who"]:
                print(f"* here: {' '.join(self.members)}")
            case ["/to", name, text]:
                await self.session.send(name, text.encode())
            case _:
                await self.session.send(ROOM, line.encode())


async def chat(name: str, address: str | None) -> None:
    async with covey.connect(name, address, reconnect=True) as session:
        program = Chat(session)
        await until_one_ends(program.talk(), program.listen())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.chat", description="Talk with everyone in the room.")
    parser.add_argument("name", help="what others call you")
    parser.add_argument("--address", help="a daemon: its name, unix:/path or tcp://host:port; the nearest if not given")
    arguments = parser.parse_args()
    run(chat(arguments.name, arguments.address))


if __name__ == "__main__":
    main()
