"""What may be said of a message: the keywords of the public methods are the fields of one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import msgspec
import pytest

import covey
from covey.client.options import SendOptions

METHODS = [covey.Session.send, covey.Session.send_many, covey.blocking.Session.send, covey.blocking.Session.send_many]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.__module__}.{method.__name__}")
def test_every_public_method_takes_all_options_in_one_order(method: Callable[..., object]) -> None:
    offered = list(inspect.signature(method).parameters.values())[3:]  # After self, destinations and payloads.
    assert [(one.name, one.default) for one in offered] == [
        (field.name, field.default) for field in msgspec.structs.fields(SendOptions)
    ]
    assert {one.name: one.annotation for one in offered} == SendOptions.__annotations__


def test_options_are_a_value_that_does_not_change() -> None:
    assert SendOptions(covey.SAFE, 7) == SendOptions(service=covey.SAFE, kind=7) != SendOptions(covey.SAFE)
    with pytest.raises(AttributeError):
        SendOptions().kind = 1  # type: ignore[misc]
