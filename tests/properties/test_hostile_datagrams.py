"""Bytes that are wrong: whatever comes in a datagram, a step never raises, and what is dropped is counted.

A short life of a small cluster is recorded: forming a view, messages of every service, a cut, a merge. One daemon's
inputs are then played again with one datagram changed somewhere in them, and everything after it.
"""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from covey.cluster import many_sites, one_daemon_sites, one_site
from covey.errors import FrameError
from covey.protocol.counters import Family
from covey.protocol.daemon import Daemon
from covey.protocol.evs.engine import EvsEngine
from covey.protocol.inputs import Datagram, Input
from covey.protocol.values import Service
from tests.unit.protocol.network import START_US, Step, TinyNetwork, instant, make_daemon

CLUSTERS = {"ring": one_site(3), "alone": one_daemon_sites(3), "sites": many_sites([2, 1])}
SHAPES = pytest.mark.parametrize("shape", CLUSTERS)
RANK = 1
UNSHRUNK = (Phase.explicit, Phase.generate)
"""An example is one datagram already, and playing a whole life for each step of shrinking it takes long."""
WHERE = st.integers(0, 100_000)
"""Which datagram, which byte: taken modulo how many there are."""


@cache
def recorded(shape: str) -> tuple[Step, ...]:
    """All inputs of one daemon in the life of its cluster."""
    network = TinyNetwork(CLUSTERS[shape])
    network.form_view()
    send_some(network, 1)
    network.loses = lambda source, to, header: 2 in (source, to)
    send_some(network, 2)
    network.run_until(lambda: network.in_one_view((0, 1)))
    network.loses = lambda source, to, header: False
    network.form_view()
    send_some(network, 3)
    return tuple(network.steps[RANK])


def send_some(network: TinyNetwork, seq: int) -> None:
    for service in Service:
        for rank in range(3):
            network.submit(rank, seq, bytes(3_000), service, session=service + 1)
        network.run(1_000)
    network.run(10_000)


def datagrams(shape: str) -> list[tuple[int, int]]:
    """(step, index in it) of each datagram."""
    return [
        (step, index)
        for step, (_, inputs) in enumerate(recorded(shape))
        for index, one in enumerate(inputs)
        if isinstance(one, Datagram)
    ]


def original(shape: str, which: int) -> tuple[int, int, bytes]:
    indices = datagrams(shape)
    step, index = indices[which % len(indices)]
    one = recorded(shape)[step][1][index]
    assert isinstance(one, Datagram)
    return step, index, one.data


def play(shape: str, step: int, index: int, data: bytes) -> Daemon[EvsEngine]:
    """The same life with one datagram replaced; then the daemon is left alone for a while."""
    daemon = make_daemon(CLUSTERS[shape], RANK)
    daemon.start(instant(START_US))
    now = START_US
    for at, (now_us, recorded_inputs) in enumerate(recorded(shape)):
        inputs: list[Input] = list(recorded_inputs)
        if at == step:
            inputs[index] = Datagram(data)
        now = now_us
        daemon.step(instant(now), inputs)
    for _ in range(60):
        now = max(now, daemon.next_deadline_us() or now)
        daemon.step(instant(now), [])
    return daemon


def is_counted(daemon: Daemon[EvsEngine], data: bytes) -> bool:
    """Whether these bytes, if they are no frame, were counted under their reason."""
    try:
        daemon.engine.kit.codec.decode(data)
    except FrameError as error:
        return daemon.kit.count[Family.FRAME_REJECTED.of(error.reason)] >= 1
    return True


@SHAPES
def test_a_recorded_life_can_be_played_again(shape: str) -> None:
    step, index, data = original(shape, 0)
    daemon = play(shape, step, index, data)
    assert len(recorded(shape)) > 100
    assert not daemon.kit.count.of(Family.FRAME_REJECTED)


@SHAPES
@settings(max_examples=40, phases=UNSHRUNK)
@given(which=WHERE, at=WHERE, by=st.integers(1, 255))
def test_one_changed_byte_never_makes_a_step_raise(shape: str, which: int, at: int, by: int) -> None:
    step, index, data = original(shape, which)
    changed = bytearray(data)
    changed[at % len(data)] ^= by
    assert is_counted(play(shape, step, index, bytes(changed)), bytes(changed))


@SHAPES
@settings(max_examples=20, phases=UNSHRUNK)
@given(which=WHERE, length=WHERE)
def test_a_truncated_datagram_never_makes_a_step_raise(shape: str, which: int, length: int) -> None:
    step, index, data = original(shape, which)
    cut = data[: length % len(data)]
    assert is_counted(play(shape, step, index, cut), cut)


@SHAPES
@settings(max_examples=20, phases=UNSHRUNK)
@given(which=WHERE, noise=st.binary(max_size=100), keep=st.booleans())
def test_noise_never_makes_a_step_raise(shape: str, which: int, noise: bytes, keep: bool) -> None:
    """With or without a good head before it."""
    step, index, data = original(shape, which)
    bad = data[:30] + noise if keep else noise
    assert is_counted(play(shape, step, index, bad), bad)


@given(noise=st.lists(st.binary(max_size=60), max_size=20))
def test_every_datagram_that_is_no_frame_is_counted_once(noise: list[bytes]) -> None:
    daemon = make_daemon(CLUSTERS["ring"], RANK)
    daemon.start(instant(START_US))
    daemon.step(instant(START_US), [Datagram(data) for data in noise])
    assert sum(daemon.kit.count.values()) == len(noise)
