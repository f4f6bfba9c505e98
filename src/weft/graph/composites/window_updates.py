"""Windows of tensors, at places that are data, written over."""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.ir import Expr


def clamped(b: Builder, x: Operand, most: int | Expr) -> Operand:
    """Returns integers kept between 0 and *most*."""
    last = b.cast(b.size(most), x.dtype) if isinstance(most, Expr) else b.scalar(most, x.dtype)
    return b.add("minimum", b.add("maximum", x, b.scalar(0, x.dtype)), last)


def write_window(
    b: Builder,
    x: Operand,
    update: Operand,
    places: Sequence[Operand],
    sizes: Sequence[int | Expr],
    extents: Sequence[int | Expr],
    d: int = 0,
) -> Operand:
    """Returns *x* with *update* written at *places*, numbers of int64; a window that would reach beyond it is moved inside.

    *sizes* are those of the update, and *extents* those of x; before dimension *d* they are the same. Where the window is a part
    of more than one dimension, what is there is read first, and written in turn.
    """
    while d < x.rank and sizes[d] == extents[d]:
        d += 1
    if d == x.rank:
        return update
    first = clamped(b, places[d], extents[d] - sizes[d])
    if list(sizes[d + 1 :]) != list(extents[d + 1 :]):
        window = b.add("gather", x, b.add("add", b.add("range", start=0, size=sizes[d], step=1), first), axis=d)
        update = write_window(b, window, update, places, sizes, [*extents[:d], sizes[d], *extents[d + 1 :]], d + 1)
    return _write(b, x, update, first, d)


def _write(b: Builder, x: Operand, update: Operand, first: Operand, d: int) -> Operand:
    """Returns *x* with whole slices written along one dimension."""
    if d:
        begin = b.add("expand", b.reshape(first, [1]), shape=(x.shape[0],))
        return b.add("write_at", x, update, begin, axis=d)
    one = [b.reshape(v, [1, *v.shape]) for v in (x, update)]
    return b.reshape(b.add("write_at", *one, b.reshape(first, [1]), axis=1), x.shape)
