"""Memory that was freed after a peak goes back to the system, a portion at a time.

In:        the time, now and then.  Out: when to be asked again; pages that the system may use otherwise.
Not here:  bounds on what is in use (every queue has its own); what is kept for the next large buffer (covey.memory).

The C library keeps what is freed below something that is still in use, however much it is. Its own `malloc_trim` gives
all of that back in one call: some 70 ms for 1 GB, 130 ms if it lies in small pieces, and for so long a daemon serves
nobody. So free blocks are taken from it, their pages given back, a millisecond or two a turn, and then the blocks are
returned. Where there is no such library, nothing happens.

Invariants:
  F1  only what was free for LOOKS looks one after the other is given back: what is used again soon stays
  F2  one call takes PORTION_BYTES or PORTION_BLOCKS at most
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from contextlib import suppress
from mmap import MADV_DONTNEED
from typing import ClassVar, Final, Protocol

WORTH_BYTES: Final = 64 * 1024 * 1024
"""Less is not worth the work: it will be used again."""
LOOKS: Final = 3
LOOK_AGAIN_US: Final = 1_000_000
GO_ON_US: Final = 20_000
KEPT_US: Final = 60_000_000
"""So long it is believed that what could not be given back cannot be."""
PORTION_BYTES: Final = 16 * 1024 * 1024
PORTION_BLOCKS: Final = 256
BLOCK_SIZES: Final = tuple(size * 1024 for size in (4_096, 1_024, 256, 128, 64, 48, 32, 16))


class Memory(Protocol):
    """What can be known of this process's memory, and done with it."""

    def resident(self) -> int:
        """Bytes that the system has given us and that are in its memory."""

    def in_use(self) -> int:
        """Bytes of them that the C library has given to somebody."""

    def take(self, size: int) -> int:
        """A block of free memory, whose pages go back to the system; 0 if there is none of this size."""

    def give_back(self, block: int) -> None:
        """The block is free again, without its pages."""


class FreedMemory:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._least = memory.resident()
        self._kept = self._least
        """Of what is not in use, so much stays: programs, stacks, small objects, pieces smaller than a page."""
        self._kept_until_us = 0
        self._unused: deque[int] = deque(maxlen=LOOKS)
        self._blocks: list[int] = []
        self._sizes: list[int] = []
        """Those still to be tried, the largest last; none: nothing is being given back."""

    def look(self, now_us: int) -> int:
        """Do a portion of what there is to do; when to look again."""
        if self._sizes:
            self._go_on()
        elif self._blocks:
            self._return_some(now_us)
        elif self._is_worth_it(now_us):
            self._sizes = sorted(BLOCK_SIZES)
        return now_us + (GO_ON_US if self._sizes or self._blocks else LOOK_AGAIN_US)

    def _is_worth_it(self, now_us: int) -> bool:
        resident = self._memory.resident()
        if resident < self._least + WORTH_BYTES:
            self._unused.clear()
            return False
        unused = resident - self._memory.in_use()
        self._kept = min(self._kept, unused) if now_us < self._kept_until_us else self._least
        self._unused.append(unused)
        return len(self._unused) == LOOKS and min(self._unused) - self._kept >= WORTH_BYTES

    def _go_on(self) -> None:
        room = PORTION_BYTES
        for _ in range(PORTION_BLOCKS):
            block = self._memory.take(self._sizes[-1])
            if block:
                self._blocks.append(block)
                room -= self._sizes[-1]
            else:
                self._sizes.pop()
            if not self._sizes or room <= 0:
                break
        if not self._sizes:
            self._unused.clear()

    def _return_some(self, now_us: int) -> None:
        for block in self._blocks[-PORTION_BLOCKS:]:
            self._memory.give_back(block)
        del self._blocks[-PORTION_BLOCKS:]
        if not self._blocks:
            self._kept = self._memory.resident() - self._memory.in_use()
            self._kept_until_us = now_us + KEPT_US


def freed_memory() -> FreedMemory | None:
    """None where the C library is another one, or too old."""
    with suppress(OSError, AttributeError):
        return FreedMemory(_Glibc())
    return None


class _Info(ctypes.Structure):
    """What `mallinfo2` tells; most of it is of no use here."""

    _fields_: ClassVar = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")),
    ]


class _Glibc:
    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._info, self._malloc, self._free = library.mallinfo2, library.malloc, library.free
        self._madvise, self._break = library.madvise, library.sbrk
        self._info.restype = _Info
        self._malloc.restype = self._break.restype = ctypes.c_void_p
        self._malloc.argtypes = [ctypes.c_size_t]
        self._free.argtypes = [ctypes.c_void_p]
        self._break.argtypes = [ctypes.c_ssize_t]
        self._madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def resident(self) -> int:
        return int(os.pread(self._statm, 200, 0).split()[1]) * self._page

    def in_use(self) -> int:
        info = self._info()
        return int(info.uordblks + info.hblkhd)

    def take(self, size: int) -> int:
        end = self._break(0)
        block = self._malloc(size)
        if not block:
            return 0
        if not block < end <= self._break(0) == end:
            self._free(block)  # It is new: nothing free is as large.
            return 0
        first = -(-block // self._page) * self._page
        last = (block + size) // self._page * self._page
        self._madvise(first, last - first, MADV_DONTNEED)
        return int(block)

    def give_back(self, block: int) -> None:
        self._free(block)
