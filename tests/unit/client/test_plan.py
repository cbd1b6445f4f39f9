"""Whether a session goes on at another daemon when its own is lost: as told, else only with a list of addresses."""

from __future__ import annotations

import pytest

import covey
from covey.client.plan import Address, make_plan


@pytest.mark.parametrize(
    ("address", "told", "reconnects"),
    [
        (None, None, False),
        ("a", None, False),
        (["a"], None, True),
        (["a", "b"], None, True),
        (None, True, True),
        ("a", True, True),
        (["a", "b"], False, False),
    ],
)
def test_who_reconnects(address: Address, told: bool | None, reconnects: bool) -> None:
    assert make_plan("alice", address, told, 1, "disconnect", 1.0, None).reconnects is reconnects


def test_the_end_says_what_to_do_next() -> None:
    with covey.embedded() as daemon:
        session = covey.blocking.connect("alice", daemon.address, reconnect=True, timeout=0.2)
    with session:
        assert [type(event).__name__ for event in session] == ["Disconnected", "Failure"]
