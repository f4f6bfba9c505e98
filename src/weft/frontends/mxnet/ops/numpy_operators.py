"""Operators of `mxnet.np` and `mxnet.npx` that others don't have, or have with other attributes."""

from __future__ import annotations

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Operand, total
from weft.graph.composites.sequences import concat as concat_of
from weft.graph.composites.sequences import stack as stack_of
from weft.graph.composites.slicing import reshape_open
from weft.ir import ExprLike
from weft.support.dtypes import bool_


@translates("_np_reshape", "_npi_reshape")
def reshape(c: Call) -> Operand:
    """Another shape, of which one size may be -1."""
    return reshape_open(c, c.input(), c.ints("newshape"))


@translates("_npx_reshape")
def reshape_by_codes(c: Call) -> Operand:
    """Another shape: -1 is inferred, -2 keeps a size, -3 drops one of 1, -4 keeps all left, -5 joins two, -6 splits one."""
    x, codes = c.input(), c.ints("newshape")
    if c.flag("reverse"):
        c.fail("a shape that is read from the back is not supported", "write the shape from the front")
    left, made, k = [*x.shape], list[ExprLike](), 0
    while k < len(codes):
        code, k = codes[k], k + 1
        if code == -4:
            made, left = [*made, *left], []
        elif code == -5:
            made.append(total([left.pop(0), left.pop(0)]))
        elif code == -6:
            made += _halves(left.pop(0), codes[k], codes[k + 1])
            k += 2
        else:
            size = left.pop(0) if left else None
            made += [] if code == -3 else [size if code == -2 and size is not None else code]
    return reshape_open(c, x, made)


def _halves(size: ExprLike, first: int, second: int) -> list[ExprLike]:
    """Returns the two sizes of a product, of which one may be -1."""
    if first == -1:
        return [size // second, second]
    return [first, size // first if second == -1 else second]


@translates("_npi_concatenate")
def concatenate(c: Call) -> Operand:
    """Tensors one after another; flat ones where the axis is None."""
    parts = c.all_inputs()
    if c.text("axis") == "None":
        return concat_of(c, [c.reshape(p, [total(p.shape)]) for p in parts], 0)
    return concat_of(c, parts, c.axis_of(c.integer("axis", 0), parts[0].rank))


@translates("_npi_stack")
def stack(c: Call) -> Operand:
    """Tensors in a new dimension."""
    return stack_of(c, c.all_inputs(), c.axis_of(c.integer("axis", 0), c.input().rank + 1))


@translates("_npi_where")
def where(c: Call) -> Operand:
    """Chooses between two tensors."""
    return c.add("where", c.cast(c.input(0), bool_), c.input(1), c.input(2))


@translates("_npi_where_lscalar", "_npi_where_rscalar", "_npi_where_scalar2")
def where_scalar(c: Call) -> Operand:
    """Chooses between a number and a tensor, a tensor and a number, or two numbers."""
    x = c.input(1) if c.node.op != "_npi_where_scalar2" else c.input(0)
    names = {"_npi_where_lscalar": ("scalar", ""), "_npi_where_rscalar": ("", "scalar")}.get(c.node.op, ("x", "y"))
    chosen = [c.scalar(c.number(name), x.dtype) if name else x for name in names]
    return c.add("where", c.cast(c.input(0), bool_), *chosen)


@translates("_npi_pad")
def pad(c: Call) -> Operand:
    """Elements around those of a tensor, whose numbers are given as pairs."""
    widths, mode = c.value("pad_width"), c.text("mode", "constant")
    pairs = (
        [tuple(w) for w in widths] if isinstance(widths, tuple) and all(isinstance(w, tuple) for w in widths) else []
    )
    if len(pairs) != c.input().rank or any(len(p) != 2 or not all(isinstance(v, int) for v in p) for p in pairs):
        c.wrong("pad_width", "a pair of integers for each dimension")
    value = c.number("constant_value", 0.0)
    return c.add("pad", c.input(), pads=(*(a for a, _ in pairs), *(b for _, b in pairs)), mode=mode, value=value)
