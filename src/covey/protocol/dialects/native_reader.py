"""What a client of the native dialect has said: bytes, cut into frames one by one as their turn comes.

In:        what arrived on its stream.  Out: requests, in order; one that has to wait can be put back.
Not here:  doing it (requests.py).

Bounded: one read for each that the driver makes before it is told to stop, and one unfinished frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from covey.errors import FrameError
from covey.protocol.wire.session import HELLO_BYTES_MAX, Splitter, read_from_client
from covey.protocol.wire.words import FromClient

Frame = tuple[int, memoryview]


class NativeReader:
    def __init__(self) -> None:
        self._splitter = Splitter(HELLO_BYTES_MAX)
        self._reads: deque[tuple[Iterator[Frame], int]] = deque()
        self._waits: FromClient | None = None
        self._read_bytes = 0

    def __bool__(self) -> bool:
        return self._waits is not None or bool(self._reads)

    @property
    def size(self) -> int:
        return self._read_bytes + self._splitter.kept_bytes

    @property
    def problem(self) -> FrameError | None:
        return self._splitter.problem

    def accept(self, frame_bytes_max: int) -> None:
        self._splitter.frame_bytes_max = frame_bytes_max

    def put(self, data: bytes) -> None:
        self._reads.append((self._splitter.frames(data), len(data)))
        self._read_bytes += len(data)

    def next(self) -> FromClient | None:
        if self._waits is not None:
            request, self._waits = self._waits, None
            return request
        while self._reads:
            frames, size = self._reads[0]
            frame = next(frames, None)
            if frame is not None:
                return read_from_client(*frame)
            self._reads.popleft()
            self._read_bytes -= size
        return None

    def put_back(self, request: FromClient) -> None:
        self._waits = request

    def clear(self) -> None:
        self._splitter = Splitter(HELLO_BYTES_MAX)
        self._reads.clear()
        self._waits = None
        self._read_bytes = 0
