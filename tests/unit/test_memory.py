"""Freed memory is kept: asking for it once, or for every session, makes no process larger."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
