"""Atomic updates, interpreted: threads combine an element with values one after another, in any order."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.codegen.interp.threads.copies_in_flight import Threads
from weft.codegen.interp.threads.thread_lanes import Mask, Memo, spread
from weft.ir import Add, Expr, Max, Min, Mul
from weft.loop import ATOMICS, Address, Call, updating_store

_COMBINING: Final[dict[type[Expr], np.ufunc]] = {Add: np.add, Mul: np.multiply, Min: np.minimum, Max: np.maximum}


def update(r: Threads, s: Call, mask: Mask) -> None:
    """Runs an update in the threads of *mask*."""
    at, operand = s.args
    assert isinstance(at, Address)
    memo: Memo = {}
    value = r.lanes.evaluate(operand, mask, memo)
    memory, places, element = r.where(at.buffer, at.indices, mask, memo)
    r.touch(memory, places, element, updates=True)
    r.count(memory, places, element, writes=True, at=updating_store(s))
    _COMBINING[ATOMICS[s.callee]].at(memory.flat, element, spread(value, r.grid.count, 1)[places])
