"""Work in plain Python on two processes: recording and the slow opinions take as long as Spark does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

AT_ONCE = 2

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_processes(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """What `work` makes of each item, in order. Fresh processes, since one with a Spark in it must not be copied."""
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, items))
