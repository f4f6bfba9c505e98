"""Prefix sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.ir import ZERO, Const, Expr
from weft.loop import Buffer, Load, Stmt, store
from weft.ops.algorithms.prefix_blocks import prefix_blocks
from weft.ops.folding import Array, Fold, NotFoldable, elementwise
from weft.ops.registry import OPERATORS, Operator
from weft.ops.shapes import normalize_axis, product
from weft.te import Reducer, Tensor, extern, prefix, prod, sum_

PREFIXES: Final = {"cumsum": ("reduce_sum", 0), "cumprod": ("reduce_prod", 1)}
"""The operators of prefixes, each with the one that combines all elements so, and its neutral element."""

SHORTEST_ROW: Final = 8
"""Elements behind the axis from which on they are computed in vectors."""


def _define(name: str, reducer: Reducer, fold: Fold | None = None) -> None:
    """Registers the operator that combines the elements up to each along an axis; *fold* evaluates it.

    Its second operand, of one element along the axis, is combined before all elements.
    """

    def build(
        x: Tensor, start: Tensor | None = None, *, axis: int = 0, exclusive: bool = False, reverse: bool = False
    ) -> Tensor:
        d = normalize_axis(axis, x.rank)
        behind = product(x.shape[d + 1 :])
        if not isinstance(behind, Const) or int(behind.value) >= SHORTEST_ROW:
            return prefix(x, reducer, d, name, start=start, exclusive=exclusive, reverse=reverse)
        return _in_slices(x, start, reducer, d, name, exclusive=exclusive, reverse=reverse)

    OPERATORS[name] = Operator(name, build, fold=fold)


def _in_slices(
    x: Tensor, start: Tensor | None, reducer: Reducer, d: int, name: str, *, exclusive: bool, reverse: bool
) -> Tensor:
    """Computes each slice along dimension *d* by itself, in blocks of its elements."""
    size = x.shape[d]

    def of_slice(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        def at(step: Expr) -> tuple[Expr, ...]:
            return (*i[:d], size - 1 - step if reverse else step, *i[d:])

        def element(step: Expr) -> Expr:
            return Load(ins[0], at(step))

        def emit(step: Expr, value: Expr) -> Stmt:
            return store(outs[0], at(step), value)

        before = Load(ins[1], (*i[:d], ZERO, *i[d:])) if start is not None else None
        return prefix_blocks(size, x.dtype, reducer, element, emit, exclusive=exclusive, start=before)

    along = [n for n in range(x.rank) if n != d]
    return extern([x.shape], [x] if start is None else [x, start], of_slice, [x.dtype], name, along=along)[0]


def _fold_cumsum(
    a: Array, start: Array | None = None, *, axis: int = 0, exclusive: bool = False, reverse: bool = False
) -> Array:
    if exclusive or reverse or start is not None:
        raise NotFoldable
    return np.cumsum(a, axis)


_define("cumsum", sum_, elementwise(_fold_cumsum))
_define("cumprod", prod)
