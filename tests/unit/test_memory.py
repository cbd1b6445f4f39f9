"""Freed memory is kept, and asking for that makes no process larger; after a peak it goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

from covey.drivers.live.freed_memory import (
    BLOCK_SIZES,
    KEPT_US,
    LOOK_AGAIN_US,
    LOOKS,
    PORTION_BLOCKS,
    PORTION_BYTES,
    WORTH_BYTES,
    FreedMemory,
)

MB = 1024 * 1024

PROGRAM = """
from pathlib import Path
from covey.memory import keep_freed_memory

def resident_kb():
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line)

def faults():
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[7])

before = resident_kb()
for _ in range(3):
    keep_freed_memory()
grown = resident_kb() - before

def work():
    blocks = [bytes([number]) * 100_000 for number in range(40)]

work()
first = faults()
for _ in range(20):
    work()
print(grown, faults() - first)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_freed_memory_is_used_again_and_nothing_is_taken_in_advance() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    grown_kb, faults = map(int, said.stdout.split())
    assert grown_kb < 2_000
    assert faults < 1_000, "the blocks were mapped anew"


# --- what was freed after a peak


class Fake:
    """So much is resident, so much in use, and so many blocks of each size are free."""

    def __init__(self, resident: int, in_use: int) -> None:
        self.now_resident, self.now_in_use = resident, in_use
        self.free: dict[int, int] = {}
        self.taken: list[int] = []
        self.returned: list[int] = []

    def resident(self) -> int:
        return self.now_resident

    def in_use(self) -> int:
        return self.now_in_use

    def take(self, size: int) -> int:
        if not self.free.get(size):
            return 0
        self.free[size] -= 1
        self.now_resident -= size
        self.taken.append(size)
        return len(self.taken)

    def give_back(self, block: int) -> None:
        self.returned.append(block)


def peak(of_blocks: int) -> tuple[Fake, FreedMemory]:
    """So many of the largest blocks, freed since the start."""
    memory = Fake(resident=20 * MB, in_use=10 * MB)
    freed = FreedMemory(memory)
    memory.now_resident += of_blocks * BLOCK_SIZES[0]
    memory.free = {BLOCK_SIZES[0]: of_blocks}
    return memory, freed


def test_what_is_free_for_a_while_goes_back_in_portions_and_the_blocks_are_returned() -> None:
    memory, freed = peak(of_blocks=100)
    now_us = 0
    for _ in range(200):
        before = len(memory.taken), len(memory.returned)
        now_us = freed.look(now_us)
        assert (len(memory.taken) - before[0]) * BLOCK_SIZES[0] <= PORTION_BYTES
        assert len(memory.returned) - before[1] <= PORTION_BLOCKS
    assert memory.taken == [BLOCK_SIZES[0]] * 100
    assert sorted(memory.returned) == list(range(1, 101))
    assert freed.look(now_us) == now_us + LOOK_AGAIN_US


def test_what_is_used_again_soon_stays() -> None:
    memory, freed = peak(of_blocks=100)
    for look in range(30):
        memory.now_in_use = 10 * MB + (memory.now_resident - 20 * MB if look % LOOKS == 0 else 0)
        freed.look(look * LOOK_AGAIN_US)
    assert not memory.taken


def test_a_little_stays() -> None:
    memory, freed = peak(of_blocks=WORTH_BYTES // BLOCK_SIZES[0] - 1)
    for look in range(30):
        freed.look(look * LOOK_AGAIN_US)
    assert not memory.taken


def test_what_cannot_be_given_back_is_not_tried_for_again_for_a_while() -> None:
    memory, freed = peak(of_blocks=100)
    memory.free = {BLOCK_SIZES[-1]: 1}
    now_us, tries = 0, []
    while now_us < 2 * KEPT_US:
        before = len(memory.taken)
        now_us = freed.look(now_us)
        memory.free = {BLOCK_SIZES[-1]: 1}
        if len(memory.taken) > before:
            tries.append(now_us // 1_000_000)
            memory.free.clear()
    assert 2 <= len(set(tries)) <= 6, "about once a minute"


AFTER_A_PEAK = """
import sys
from covey.drivers.live.freed_memory import freed_memory
from covey.memory import keep_freed_memory

keep_freed_memory()
freed = freed_memory()
if freed is None:
    sys.exit("the C library is another one")
resident = freed._memory.resident
before = resident()
held = [bytes([number % 256]) * 3_000 for number in range(100_000)]
kept = held[::50]
peak = resident()
held.clear()
now_us = 0
for _ in range(300):
    now_us = freed.look(now_us)
assert kept == [bytes([number % 256]) * 3_000 for number in range(0, 100_000, 50)]
print(before, peak, resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_a_process_is_small_again_after_a_peak_and_nothing_in_use_is_touched() -> None:
    said = subprocess.run([sys.executable, "-c", AFTER_A_PEAK], capture_output=True, text=True, check=False)
    if "the C library" in said.stderr:
        pytest.skip(said.stderr)
    before, peak, after = map(int, said.stdout.split())
    assert peak > before + 250 * MB
    assert after < before + 80 * MB, "6 MB of it are in use"
