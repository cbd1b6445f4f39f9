"""What Spark says when it fails, as one sentence.

In:        the text of an exception that came from Spark, with all that Java says below it.
Out:       which file it was, or the first line that says something, and what to do.
Not here:  files that are refused before Spark reads them (store.py).
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

FAILURES: Final[tuple[type[Exception], ...]] = (PySparkException, Py4JError)
UNREADABLE: Final = re.compile(r"reading file (?:file:)?/*(/[^\n]+?\.parquet)\b")
LONGEST: Final = 300


def sentence_of(failure: str) -> str:
    r"""What went wrong, and what to do.

    >>> sentence_of("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///tmp/a%20b.parquet. 7")
    '/tmp/a b.parquet is damaged, Spark cannot read it: copy it or convert it again from its segments.'
    >>> sentence_of("An error occurred.\n: java.lang.OutOfMemoryError: Java heap space\n\tat a.b")
    'Spark failed (java.lang.OutOfMemoryError: Java heap space): see that it has enough memory and disk, and try again.'
    """
    if file := UNREADABLE.search(failure):
        return f"{unquote(file[1])} is damaged, Spark cannot read it: copy it or convert it again from its segments."
    lines = [line.strip() for line in failure.splitlines() if line.strip()] or ["without a word"]
    said = next((line for line in lines if line.startswith(":")), lines[0]).lstrip(": ")
    return f"Spark failed ({said[:LONGEST]}): see that it has enough memory and disk, and try again."
