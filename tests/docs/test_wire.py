"""The page of the wire names the version that daemons speak."""

from __future__ import annotations

from pathlib import Path

from covey.protocol.evs.codec import VERSION

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol"


def test_the_page_names_the_version_of_the_codec() -> None:
    assert f"| 1 | version | {VERSION} |" in (PROTOCOL / "wire.md").read_text(encoding="utf-8")
