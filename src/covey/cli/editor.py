"""A line that somebody is typing, on a terminal where other lines may come in between.

In:        bytes from a terminal in single-key mode.  Out: finished lines; how the unfinished one looks.
Not here:  the terminal (keys.py), who prints (chat.py).

Only what every terminal has is used: one line is cleared and written again.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import Final

CLEAR: Final = "\r\x1b[K"
LINE_MAX: Final = 10_000

_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
"""Arrows and other keys for which there is no use here."""


class EndOfInput(Exception):  # noqa: N818 - the end is no error
    """Ctrl-D on an empty line."""


class LineEditor:
    r"""
    >>> editor = LineEditor()
    >>> editor.feed(b"helo\x7flo\nsecond \x1b[Dlin")
    ['hello']
    >>> editor.shown("> ", 80)
    '> second lin'
    """

    def __init__(self) -> None:
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, data: bytes) -> list[str]:
        """The lines that are finished now; EndOfInput after Ctrl-D."""
        lines: list[str] = []
        for character in _SEQUENCE.sub("", self._decoder.decode(data)):
            if character in "\r\n":
                lines.append(self.text)
                self.text = ""
            elif character == "\x04" and not self.text:
                raise EndOfInput
            else:
                self._edit(character)
        return lines

    def _edit(self, character: str) -> None:
        if character in "\x7f\b":
            self.text = self.text[:-1]
        elif character == "\x15":
            self.text = ""
        elif character == "\x17":
            self.text = re.sub(r"\S*\s*$", "", self.text)
        elif character.isprintable() and len(self.text) < LINE_MAX:
            self.text += character

    def shown(self, prompt: str, columns: int) -> str:
        """Prompt and text on one line; of a long text its end."""
        room = columns - len(prompt) - 1
        text = self.text
        while text and width(text) > room:
            text = text[1 + max(0, (width(text) - room) // 2 - 1) :]
        return prompt + text


def width(text: str) -> int:
    """Columns of a terminal.

    >>> width("abc"), width("日本")
    (3, 4)
    """
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)
