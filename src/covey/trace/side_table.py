"""The side table of one stem: every string and every list of its records, once, a JSON value a line.

In:        the names of a record (writing), a file (reading).
Out:       the line number of each name, and the name of each line number.
Not here:  which column a name belongs to (layout.py).

Invariants:
  T1  line 0 tells what the file is, so a name is never 0 and 0 can stand for null
  T2  the lines of a record are in the file before the record is: a kill leaves no record without its names
  T3  lines are never changed, and the same names in the same order give the same bytes
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from .errors import TraceError
from .layout import Name

TITLE: Final = b'{"covey_trace_names":1}\n'

# Bounds the memory of a writer that lives long. A table that is full is forgotten and names are written once more.
NAMES_KNOWN_MAX: Final = 65_536


class SideTableWriter:
    def __init__(self, path: Path) -> None:
        # The line of each name; to be read only.
        self.ids: dict[Name, int] = {None: 0}
        self._next_line = 1
        # What is whole in the file ends here; a write that failed half way is overwritten by the next one.
        self._end = 0
        # Exclusive: a second writer of the same stem would spoil the records of the first.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)

    def begin(self) -> None:
        """Write what the file is: a side table without it has lost everything. OSError: there is no room for it."""
        self._write(TITLE)

    def learn(self, names: tuple[Name, ...]) -> None:
        """Give each of these names an id. OSError: nothing has changed."""
        known = self.ids
        if len(known) + len(names) > NAMES_KNOWN_MAX:
            known = {None: 0}
        fresh = list(dict.fromkeys(name for name in names if name not in known))
        lines = b"".join(msgspec.json.encode(name) + b"\n" for name in fresh)
        self._write(lines)
        known.update(zip(fresh, range(self._next_line, self._next_line + len(fresh)), strict=True))
        self.ids = known
        self._next_line += len(fresh)

    def close(self) -> None:
        os.close(self._file)

    def _write(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):  # A disk that is nearly full takes a part first and fails then.
                written += os.pwrite(self._file, data[written:], self._end + written)
        except OSError:
            os.ftruncate(self._file, self._end)
            raise
        self._end += len(data)


class SideTableReader:
    def __init__(self, path: Path) -> None:
        self.names: list[Name] = [None]
        self._path = path
        self._end = 0

    @property
    def is_empty(self) -> bool:
        """It does not even say what it is."""
        return self._end == 0

    def refresh(self) -> None:
        """Read the lines added since the last call. A last line without its end was being written: no record has it."""
        with self._path.open("rb") as file:
            file.seek(self._end)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if self._end == 0 and whole and not whole.startswith(TITLE):
            raise TraceError(f"{self._path} is not a side table of a trace: move it to another directory.")
        lines = whole.split(b"\n")[:-1]
        self.names += [self._decode(line) for line in (lines if self._end else lines[1:])]
        self._end += len(whole)

    def _decode(self, line: bytes) -> Name:
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TraceError(f"{self._path} is damaged ({error}): copy it again from where it was written.") from error
        name: Name = tuple(value) if isinstance(value, list) else value
        return name
