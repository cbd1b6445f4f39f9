"""What can be wrong with a trace on disk, or with a row that is to be stored."""

from __future__ import annotations

from covey.errors import CoveyError


class TraceError(CoveyError):
    """The text names the file, says what is wrong with it and what to do."""
