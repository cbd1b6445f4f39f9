"""Words and numbers of `covey status` and `covey top`. Imports nothing that draws."""

from __future__ import annotations

from covey.protocol.status import SessionStatus


def size_text(count: float) -> str:
    """
    >>> size_text(999.4), size_text(1_500), size_text(2_340_000)
    ('999 B', '1.5 kB', '2.3 MB')
    """
    if count < 1_000:
        return f"{count:.0f} B"
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def duration_text(seconds: float) -> str:
    """
    >>> [duration_text(seconds) for seconds in (0.4, 59, 61, 7_300, 200_000)]
    ['0 s', '59 s', '1 min', '2 h', '2 d']
    """
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def remark(session: SessionStatus) -> str:
    """What is not as it should be with a program."""
    remarks = []
    if session["phase"] != "open":
        remarks.append("leaving")
    if session["blocking"]:
        remarks.append("makes senders wait")
    if not session["reading"]:
        remarks.append("must wait to send")
    return ", ".join(remarks)
