"""Parts of a live daemon, each in this process: the load, the commands."""

from __future__ import annotations

from covey.drivers.live.control import LINE_BYTES_MAX, CommandLines
from covey.lab.daemon import Cut
from covey.lab.load import DUE_MAX, Load
from covey.protocol.effects import Send
from covey.protocol.values import Service

SECOND_US = 1_000_000


def test_the_same_seed_gives_the_same_load() -> None:
    loads = [Load(200, 7, 0, 8_192), Load(200, 7, 0, 8_192)]
    first, second = ([load.due(at) for at in range(0, 2 * SECOND_US, 100_000)] for load in loads)
    assert first == second
    submissions = [one for batch in first for one in batch]
    assert 200 < len(submissions) < 600
    assert {one.service for one in submissions} == set(Service)


def test_bursts_come_at_the_same_rate_on_average() -> None:
    load = Load(200, 7, 0, 8_192, bursts=True)
    batches = [len(load.due(at)) for at in range(0, 60 * SECOND_US, 1_000)]
    assert 9_000 < sum(batches) < 15_000
    assert max(batches) >= 40
    assert batches.count(0) > len(batches) / 2


def test_a_load_makes_up_for_little_after_a_pause_and_nothing_after_its_stop() -> None:
    load = Load(1_000, 7, 0, 8_192)
    assert len(load.due(60 * SECOND_US)) == DUE_MAX
    assert load.next_us() == 60 * SECOND_US
    load.stop()
    assert load.next_us() is None
    assert load.due(120 * SECOND_US) == []


def test_what_is_for_those_cut_off_does_not_leave() -> None:
    sent: list[Send] = []
    cut = Cut(sent.extend)
    cut.send([Send((1, 2), b"x")])
    cut.off = frozenset([1])
    cut.send([Send((1, 2), b"y"), Send((1,), b"z")])
    assert sent == [Send((1, 2), b"x"), Send((2,), b"y"), Send((), b"z")]


def test_a_line_without_end_is_given_up() -> None:
    unknown: list[list[str]] = []
    lines = CommandLines({"quiet": unknown.append}, unknown=unknown.append)
    lines.feed(b"x" * (LINE_BYTES_MAX + 1))
    lines.feed(b"quiet\n\n")
    assert unknown == [["a", "line", "without", "end"], []]
