"""Many readings, and dashboards that may not keep up: what then happens is chosen by who reads, and shown.

    python -m examples.sensors sensor roof --rate 1000 --size 10000
    python -m examples.sensors dashboard wall
    python -m examples.sensors dashboard tablet --slow 5                   # 5 ms for each reading: too slow
    python -m examples.sensors dashboard archive --slow 5 --policy block   # and it must not miss any

A dashboard that falls too far behind is let go, told how far behind it was, and comes back to the present: it sees how
many readings it missed. One with the policy `block` makes the sensors wait instead, for a bounded time.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import suppress
from random import Random

import msgspec

import covey
from examples.terminal import run, until_one_ends

GROUP = "readings"


class Reading(msgspec.Struct, frozen=True, array_like=True):
    sensor: str
    """Its own name for itself. The session's name changes when it goes on at another daemon."""
    number: int
    """Its own count, without a hole."""
    time: float
    value: float
    padding: str = ""
    """As large as a picture would be."""


# --- who sends


class Sensor:
    def __init__(self, session: covey.Session, name: str) -> None:
        self.session = session
        self.name = name
        self.number = 0
        self.longest_wait_s = 0.0
        """How long we were made to wait for a receiver that blocks."""

    async def measure(self, value: float, padding: str = "") -> None:
        """Fifo: each sensor's readings in its own order. Nothing waits for the readings of others."""
        self.number += 1
        reading = Reading(self.name, self.number, time.time(), value, padding)
        began = time.monotonic()
        with suppress(covey.SessionOverError):  # Between two daemons readings are lost, and their numbers will show it.
            await self.session.send(GROUP, msgspec.msgpack.encode(reading), covey.FIFO)
        self.longest_wait_s = max(self.longest_wait_s, time.monotonic() - began)

    async def run(self, rate: float, size: int = 0) -> None:
        await until_one_ends(self._measure(rate, "." * size), self._keep_connected(), self._show())

    async def _measure(self, rate: float, padding: str) -> None:
        random = Random(self.name)
        value, due = 20.0, time.monotonic()
        while True:
            value += random.uniform(-0.1, 0.1)
            await self.measure(value, padding)
            due = max(due + 1 / rate, time.monotonic() - 1)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _keep_connected(self) -> None:
        """Nobody sends us anything; but who reads its events is connected again when its daemon is lost."""
        async for event in self.session:
            if isinstance(event, covey.Reconnected):
                print(f"going on as {event.name}")

    async def _show(self) -> None:
        while True:
            await asyncio.sleep(1)
            print(f"{self.number} readings sent; receivers made us wait for {self.longest_wait_s:.2f} s at most")


# --- who receives


class Known(msgspec.Struct):
    """What a dashboard knows of one sensor."""

    last: Reading
    received: int = 0
    missed: int = 0


class Dashboard:
    def __init__(self, session: covey.Session, pause_s: float = 0) -> None:
        self.session = session
        self.pause_s = pause_s
        """What each reading costs us."""
        self.sensors: dict[str, Known] = {}
        self.times_behind: list[covey.Disconnected] = []
        """Each time that we were let go because we read too slowly, and how far behind we were."""

    async def run(self) -> None:
        await self.session.join(GROUP)
        async for event in self.session:
            with suppress(covey.SessionOverError):  # The next events tell, and how it goes on.
                await self.on_event(event)

    async def on_event(self, event: covey.Event) -> None:
        match event:
            case covey.Message(payload=payload):
                self.on_reading(msgspec.msgpack.decode(payload, type=Reading))
                if self.pause_s:
                    await asyncio.sleep(self.pause_s)
            case covey.Disconnected():
                self.times_behind += [event] * bool(event.lag_bytes)
                print(f"let go: {event.reason}")
            case covey.Reconnected():
                await self.session.join(GROUP)

    def on_reading(self, reading: Reading) -> None:
        known = self.sensors.get(reading.sensor)
        if known is None or reading.number < known.last.number:  # It is new, or has begun anew.
            self.sensors[reading.sensor] = Known(reading, received=1)
        else:
            known.missed += reading.number - known.last.number - 1
            known.last, known.received = reading, known.received + 1

    def lines(self) -> list[str]:
        """One for each sensor: its value, and how old that is by now."""
        now = time.time()
        return [
            f"{sensor}: {known.last.value:.1f} of {now - known.last.time:.2f} s ago, "
            f"{known.received} received, {known.missed} missed"
            for sensor, known in sorted(self.sensors.items())
        ]

    async def show(self) -> None:
        while True:
            await asyncio.sleep(1)
            print("\n".join(self.lines()) or "no readings yet", end="\n\n")


async def sensor(name: str, address: str | None, rate: float, size: int) -> None:
    async with covey.connect(name, address, reconnect=True) as session:
        await Sensor(session, name).run(rate, size)


async def dashboard(name: str, address: str | None, slow_ms: float, policy: covey.Policy) -> None:
    async with covey.connect(name, address, reconnect=True, policy=policy) as session:
        program = Dashboard(session, slow_ms / 1_000)
        await until_one_ends(program.show(), program.run())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.sensors", description="Send readings, or show them.")
    parser.add_argument("--address", help="a daemon: its name, unix:/path or tcp://host:port; the nearest if not given")
    roles = parser.add_subparsers(dest="role", required=True)
    sending = roles.add_parser("sensor", help="send readings until Ctrl-C")
    sending.add_argument("name")
    sending.add_argument("--rate", type=float, default=1_000, help="readings a second")
    sending.add_argument("--size", type=int, default=0, help="bytes to add to each reading")
    showing = roles.add_parser("dashboard", help="show what the sensors say")
    showing.add_argument("name")
    showing.add_argument("--slow", type=float, default=0, metavar="MS", help="milliseconds for each reading")
    showing.add_argument("--policy", choices=["disconnect", "block"], default="disconnect")
    arguments = parser.parse_args()
    if arguments.role == "sensor":
        run(sensor(arguments.name, arguments.address, arguments.rate, arguments.size))
    else:
        run(dashboard(arguments.name, arguments.address, arguments.slow, arguments.policy))


if __name__ == "__main__":
    main()
