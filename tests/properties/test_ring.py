"""A ring that loses, reorders and repeats: everything arrives everywhere once, and the windows are kept."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.protocol.evs.frames import Frame
from tests.unit.protocol.ringhouse import SMALL, RingHouse

SEED = st.integers(0, 2**32)
HOPS_MAX = 5_000


class Storm:
    """Plays a ring at random, and looks at it after every hop."""

    def __init__(self, members: int, seed: int) -> None:
        self.random = Random(seed)
        self.house = RingHouse(members)
        self.house.loses = self._loses
        self.losses_left = 60
        self.chance = self.random.choice([0.0, 0.05, 0.3])
        self.total = 0

    def play(self) -> None:
        for _ in range(self.random.randrange(1, 6)):
            self._submit()
            for _ in range(self.random.randrange(60)):
                self._hop()
        for _ in range(HOPS_MAX):
            if self.house.is_at_rest():
                return
            self._hop()
        raise AssertionError("the ring does not come to rest")

    def _submit(self) -> None:
        amount = self.random.randrange(1, 20)
        self.house.submit(self.random.randrange(len(self.house.members)), amount)
        self.total += amount

    def _hop(self) -> None:
        house, random = self.house, self.random
        if house.is_at_rest():
            return
        if house.under_way and random.random() < 0.05:
            house.under_way.append(random.choice(house.under_way))
        house.hop(random.randrange(min(4, len(house.under_way))) if house.under_way else 0)
        self._look()

    def _look(self) -> None:
        members = self.house.members
        line = min(member.line for member in members)
        assert all(member.ring.line_everywhere.usable <= line for member in members)
        have = min(member.ring.have_to for member in members)
        highest = max(member.ring.have_to for member in members)
        assert highest - have <= SMALL.ring_packets_unstable
        assert len(self.house.holders()) <= 1

    def _loses(self, to: int, frame: Frame) -> bool:
        lost = self.losses_left > 0 and self.random.random() < self.chance
        self.losses_left -= lost
        return lost


@pytest.mark.parametrize("members", [2, 3, 4])
@settings(max_examples=20)
@given(seed=SEED)
def test_everything_arrives_everywhere_once_whatever_is_lost(members: int, seed: int) -> None:
    storm = Storm(members, seed)
    storm.play()
    assert [sorted(member.numbers) for member in storm.house.members] == [list(range(1, storm.total + 1))] * members


@settings(max_examples=20)
@given(seed=SEED)
def test_every_token_is_used_by_one_member_once(seed: int) -> None:
    storm = Storm(3, seed)
    storm.play()
    used = [number for member in storm.house.members for number in member.accepted]
    assert sorted(used) == list(range(1, len(used) + 1))
