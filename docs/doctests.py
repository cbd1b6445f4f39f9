"""For the site: what a docstring shows as `>>>` becomes a block of code, so that it is not read as prose."""

from __future__ import annotations

import re
from typing import Any

import griffe

RUN = re.compile(r"^( *>>> .*(?:\n(?! *\n)(?!$).*)*)", re.MULTILINE)


class Doctests(griffe.Extension):
    """Loaded by mkdocstrings."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = RUN.sub(r"```pycon\n\1\n```", obj.docstring.value)
