"""What can go wrong on purpose in an analysis, besides TraceError for a file that cannot be read."""

from __future__ import annotations

from covey.errors import CoveyError


class AnalysisError(CoveyError):
    """The caller erred, or something that he must provide is missing; the text says what to do."""
