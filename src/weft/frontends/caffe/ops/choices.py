"""Layers that choose elements: the largest ones, rows by their numbers, and rows that a blob tells."""

from __future__ import annotations

from typing import Final

from weft.frontends.caffe.call import Call
from weft.frontends.caffe.registry import Tops, layer
from weft.graph.builder import Operand, total
from weft.graph.composites.ordering import top_k
from weft.graph.composites.selection import compress
from weft.graph.composites.sequences import concat
from weft.ir import Const
from weft.support.dtypes import bool_, i32, i64

_FAR: Final = 1 << 62


@layer("ArgMax")
def arg_max(c: Call) -> Tops:
    """The places of the `top_k` largest elements, or those elements: along an axis, or of each image's elements in a row.

    Images have both, places first, where the elements are asked for. Of equal elements the last comes first.
    """
    p, x = c.parameters("argmax_param"), c.input
    count, values = p.integer("top_k", 1, 1), p.flag("out_max_val", False)
    if p.has("axis"):
        places, largest = _largest(c, x, count, c.axis(p.integer("axis", 0), x))
        return largest if values else places
    flat = c.reshape(x, [x.shape[0], total(x.shape[1:])])
    places, largest = (c.reshape(y, [y.shape[0], 1, count]) for y in _largest(c, flat, count, 1))
    made = concat(c, [places, largest], 1) if values else places
    return c.reshape(made, [*made.shape, *[1] * max(x.rank - 3, 0)])


def _largest(c: Call, x: Operand, count: int, axis: int) -> tuple[Operand, Operand]:
    """Returns the places of the *count* largest elements, as floats, and these."""
    size = x.shape[axis]
    if not isinstance(size, Const) or count > size.value:
        c.fail(f"top_k: {count} is more than {x!r} has along dimension {axis}", "mend its argmax_param")
    last = c.scalar(int(size.value) - 1, i64)
    largest, places = top_k(
        c, _backwards(c, x, axis), count, axis, largest=True
    )  # which has the first of equal ones first
    return c.cast(c.add("sub", last, places), x.dtype), largest


@layer("BatchReindex")
def batch_reindex(c: Call) -> Tops:
    """The rows of the first input whose numbers are in the second."""
    x, rows = c.two()
    return c.add("gather", x, c.cast(c.reshape(rows, [total(rows.shape)]), i32), axis=0)


@layer("Filter")
def filter_(c: Call) -> Tops:
    """The rows of all inputs but the last, where the last is not zero."""
    if len(c.inputs) < 2:
        c.fail(f"it has {len(c.inputs)} bottoms, and takes two or more", "name what it filters, and by what")
    *given, chosen = c.inputs
    kept = c.cast(c.reshape(chosen, [total(chosen.shape)]), bool_)
    return tuple(compress(c, x, kept, 0) for x in given)


@layer("Reverse")
def reversed_(c: Call) -> Tops:
    """The elements in reverse order along an axis."""
    x = c.input
    return _backwards(c, x, c.axis(c.parameters("reverse_param").integer("axis", 0), x))


def _backwards(c: Call, x: Operand, axis: int) -> Operand:
    return c.add("slice", x, starts=(-1,), ends=(-_FAR,), axes=(axis,), steps=(-1,))
