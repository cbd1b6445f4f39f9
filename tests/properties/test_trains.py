"""Trains: whatever is to be sent, it is all there, in its order, and the system can take each train."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from covey.config import DATAGRAM_BYTES_MAX
from covey.drivers.live.trains import DATAGRAMS_MAX, UDP_GRO, cut, to_be_cut, trains
from covey.protocol.effects import Send

SIZES = st.sampled_from((0, 1, 2, 700, 1_400, 1_400, 1_400, 40_000))
SENDS = st.lists(st.builds(Send, st.sampled_from(((1,), (1, 2), (2,))), SIZES.map(bytes)), max_size=200)


@given(SENDS)
def test_nothing_is_lost_or_overtaken(sends: list[Send]) -> None:
    assert [(to, data) for to, datagrams in trains(sends) for data in datagrams] == [(s.to, s.data) for s in sends]


@given(SENDS)
def test_the_system_can_take_every_train(sends: list[Send]) -> None:
    for _, datagrams in trains(sends):
        assert 1 <= len(datagrams) <= DATAGRAMS_MAX
        if len(datagrams) > 1:
            sizes = [len(data) for data in datagrams]
            assert sum(sizes) <= DATAGRAM_BYTES_MAX
            assert len(set(sizes[:-1])) == 1
            assert 0 < sizes[-1] <= sizes[0]


@given(SENDS)
def test_what_is_cut_is_what_was_joined(sends: list[Send]) -> None:
    for _, datagrams in trains(sends):
        ((level, _, _),) = to_be_cut(len(datagrams[0]))
        size = (level, UDP_GRO, struct.pack("=i", len(datagrams[0])))
        assert cut(b"".join(datagrams), [size]) == datagrams


def test_neighbours_of_one_size_for_the_same_ranks_share_a_train() -> None:
    full, rest = bytes(1_400), bytes(300)
    sends = [Send((1, 2), full), Send((1, 2), full), Send((1, 2), rest), Send((1, 2), full), Send((2,), full)]
    assert list(trains(sends)) == [((1, 2), [full, full, rest]), ((1, 2), [full]), ((2,), [full])]


def test_a_train_has_an_end() -> None:
    lengths = [len(datagrams) for _, datagrams in trains([Send((1,), bytes(10))] * 150)]
    assert lengths == [DATAGRAMS_MAX, DATAGRAMS_MAX, 150 - 2 * DATAGRAMS_MAX]


def test_a_read_that_says_no_size_is_one_datagram() -> None:
    assert cut(b"abcdef", []) == [b"abcdef"]
    assert cut(b"abcdef", [(0, UDP_GRO, b"\x02\x00\x00\x00")]) == [b"abcdef"]
