"""Sensors and dashboards: who keeps up misses nothing, who does not is told, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import covey
from covey.drivers.live.status import ask, socket_path
from covey.lab.cluster import LocalCluster
from examples.sensors import Dashboard, Reading, Sensor
from tests.examples.crew import PATIENT, Crew, address, addresses, crew, heard, process, run, three

pytestmark = pytest.mark.live

READINGS = 400
PADDING = "." * 20_000
"""So that little room is soon full: 8 MB in all, of which the daemon keeps 1 for a dashboard that does not read."""

SMALL_BUFFERS = f"""{PATIENT}
message_bytes_max = 100_000
session_send_bytes = 200_000 # What a daemon has taken already must fit what a blocking receiver may be behind.
session_receive_bytes = 1_000_000
"""


class Gated(Dashboard):
    """It looks at nothing until it is let."""

    def __init__(self, session: covey.Session, crew: Crew) -> None:
        super().__init__(session)
        self.crew = crew
        self.gate = asyncio.Event()

    async def on_event(self, event: covey.Event) -> None:
        if isinstance(event, covey.Message):
            await self.gate.wait()
        await super().on_event(event)
        self.crew.news.set()

    def knows(self, number: int) -> bool:
        return any(known.last.number == number for known in self.sensors.values())


async def boards(crew: Crew, cluster: LocalCluster, policy: covey.Policy) -> tuple[Sensor, Gated, Gated]:
    fast = Gated(await crew.session("fast", addresses(cluster, "a")), crew)
    slow = Gated(await crew.session("slow", addresses(cluster, "b"), policy), crew)
    fast.gate.set()
    crew.go(fast.run(), slow.run())
    sensor = Sensor(await crew.session("roof", address(cluster, "c")), "roof")
    while not (fast.sensors and slow.session.views):  # Until both have joined: open groups do not tell their senders.
        await sensor.measure(0)
        await asyncio.sleep(0)
    return sensor, fast, slow


def test_who_falls_behind_is_let_go_told_its_lag_and_sees_what_it_missed(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with crew() as people:
            sensor, fast, slow = await boards(people, cluster, "disconnect")
            for number in range(READINGS):
                await sensor.measure(number, PADDING)
            await people.until(lambda: fast.knows(sensor.number))
            slow.gate.set()
            await people.until(lambda: bool(slow.times_behind) and slow.session.name == "slow@a")
            await people.until(lambda: bool(slow.session.views))
            await sensor.measure(1)
            await people.until(lambda: fast.knows(sensor.number) and slow.knows(sensor.number))
            (quick,), (late,) = fast.sensors.values(), slow.sensors.values()
            assert quick.missed == 0
            assert late.missed > 0
            (behind,) = slow.times_behind
            assert "too slowly" in behind.reason
            assert behind.lag_bytes > 1_000_000
            assert "0 missed" in fast.lines()[0]

    with three(tmp_path, SMALL_BUFFERS) as cluster:
        run(program(cluster))


def test_who_blocks_makes_the_sensor_wait_and_misses_nothing(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with crew() as people:
            sensor, fast, slow = await boards(people, cluster, "block")

            async def measure() -> None:
                for number in range(READINGS):
                    await sensor.measure(number, PADDING)

            measuring = asyncio.create_task(measure())
            while not ask(socket_path(cluster.cluster, "c"))["clients"]["blocked"]:  # noqa: ASYNC110
                await asyncio.sleep(0)  # Another process knows.
            assert not measuring.done()  # It is held up before it is through: its readings have nowhere to go.
            slow.gate.set()
            await measuring
            await people.until(lambda: fast.knows(sensor.number) and slow.knows(sensor.number))
            assert [known.missed for board in (fast, slow) for known in board.sensors.values()] == [0, 0]
            assert not slow.times_behind

    with three(tmp_path, SMALL_BUFFERS) as cluster:
        run(program(cluster))


def test_a_dashboard_counts_what_it_missed() -> None:
    board = Dashboard.__new__(Dashboard)
    board.sensors = {}
    for number in (5, 6, 9):
        board.on_reading(Reading("roof", number, 0.0, 20.0))
    assert "3 received, 2 missed" in board.lines()[0]
    board.on_reading(Reading("roof", 1, 0.0, 20.0))
    assert "1 received, 0 missed" in board.lines()[0]


def test_a_sensor_goes_on_when_its_daemon_dies_and_what_was_lost_shows(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        async with crew() as people:
            board = Gated(await people.session("wall", address(cluster, "b")), people)
            board.gate.set()
            sensor = Sensor(await people.session("roof", addresses(cluster, "c")), "roof")
            people.go(board.run(), sensor.run(rate=500))
            await people.until(lambda: "roof" in board.sensors)
            cluster.kill("c")
            at_kill = sensor.number
            await people.until(lambda: board.sensors["roof"].last.number > at_kill + 50)
            known = board.sensors["roof"]
            assert sensor.session.name == "roof@a"
            assert known.received + known.missed <= known.last.number

    with three(tmp_path) as cluster:
        run(program(cluster))


def test_it_runs_in_terminals(tmp_path: Path) -> None:
    async def program(cluster: LocalCluster) -> None:
        where = ("--address", address(cluster, "b"))
        async with (
            process("sensors", *where, "sensor", "roof", "--rate", "200"),
            process("sensors", *where, "dashboard", "wall", "--policy", "block") as wall,
        ):
            assert " 0 missed" in await heard(wall, "roof: ")

    with three(tmp_path) as cluster:
        run(program(cluster))
