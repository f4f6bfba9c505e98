"""Vectors of indices that equal ramps, though they are other expressions."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from weft.ir.expr.base import INDEX, Expr
from weft.ir.expr.binary import Add, FloorDiv, FloorMod, Mul
from weft.ir.expr.constructors import ZERO, index
from weft.ir.expr.nodes import Broadcast, Const, Ramp

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def as_ramp(e: Expr) -> Expr:
    """Returns a vector of indices as a ramp if its lanes are an arithmetic sequence from some base; else *e* itself.

    ramp(0, 1, 64) // 4 * 4 + ramp(0, 1, 64) % 4   ->   ramp(0, 1, 64)
    """
    found = None if isinstance(e, Ramp) else _split(e)
    if found is None:
        return e
    base, lanes = found
    steps = np.unique(np.diff(lanes))
    if len(steps) != 1:
        return e
    return Ramp(base + index(int(lanes[0])), index(int(steps[0])), e.dtype.lanes)


def _split(e: Expr) -> tuple[Expr, Numbers] | None:
    """Returns a scalar and a known number for each lane, whose sums *e* has in its lanes."""
    if isinstance(e, Broadcast):
        return _from(e.value, np.zeros(e.lanes, np.int64))
    if isinstance(e, Ramp) and isinstance(e.stride, Const):
        return _from(e.base, np.arange(e.lanes, dtype=np.int64) * int(e.stride.value))
    if isinstance(e, Add):
        a, b = _split(e.a), _split(e.b)
        return None if a is None or b is None else (a[0] + b[0], a[1] + b[1])
    if isinstance(e, Mul | FloorDiv | FloorMod) and isinstance(e.b, Broadcast) and isinstance(e.b.value, Const):
        return _by_constant(e, int(e.b.value.value))
    return None


def _from(base: Expr, lanes: Numbers) -> tuple[Expr, Numbers]:
    return (ZERO, lanes + int(base.value)) if isinstance(base, Const) else (base, lanes)


def _by_constant(e: Mul | FloorDiv | FloorMod, by: int) -> tuple[Expr, Numbers] | None:
    found = _split(e.a)
    if found is None or e.dtype.element is not INDEX:
        return None
    base, lanes = found
    if isinstance(e, Mul):
        return base * index(by), lanes * by
    if base is not ZERO or by < 1:
        return None
    return ZERO, lanes // by if isinstance(e, FloorDiv) else lanes % by
