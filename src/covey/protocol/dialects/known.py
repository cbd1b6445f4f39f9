"""The dialects that a daemon speaks unless it is given others, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .dialect import Dialect
from .native import NATIVE

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType({"native": NATIVE})
