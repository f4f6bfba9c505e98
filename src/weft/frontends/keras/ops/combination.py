"""Layers and operators of several tensors."""

from __future__ import annotations

from functools import reduce
from typing import Final

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import Translation, translates
from weft.graph.builder import Operand
from weft.graph.composites.normalization import lp_normalize
from weft.ir import ExprLike
from weft.support.dtypes import f32

_MERGING: Final = {"Add": "add", "Multiply": "mul", "Maximum": "maximum", "Minimum": "minimum", "Subtract": "sub"}


def _aligned(c: Call) -> list[Operand]:
    """Returns the inputs of a merging layer, which gives those of fewer dimensions ones of size 1 behind the first."""
    operands = [c.cast(x, f32) for x in c.tensors()]
    rank = max(x.rank for x in operands)
    return [
        x if x.rank in (0, rank) else c.reshape(x, [x.shape[0], *[1] * (rank - x.rank), *x.shape[1:]]) for x in operands
    ]


def _merged(op: str) -> Translation:
    """Tensors of one shape taken together element by element."""
    return lambda c: c.pointwise(lambda *v: reduce(lambda a, b: c.add(op, a, b), v), *_aligned(c))


for _name, _op in _MERGING.items():
    translates(_name)(_merged(_op))


@translates("Average")
def average(c: Call) -> Operand:
    """The mean of tensors."""
    operands = _aligned(c)
    share = c.scalar(1 / len(operands), f32)
    return c.pointwise(lambda *v: c.add("mul", reduce(lambda a, b: c.add("add", a, b), v), share), *operands)


@translates("Concatenate", "TFDConcat", "ops.Concatenate")
def concatenate(c: Call) -> Operand:
    """Tensors one after another along a dimension."""
    given = c.tensors()
    is_mixed = any(x.dtype.is_float for x in given) or len({x.dtype for x in given}) > 1
    tensors = [c.cast(x, f32) for x in given] if is_mixed else given
    axis = c.axis_of(c.integer("axis", -1), tensors[0].rank)
    return c.along(lambda d, *v: c.add("concat", *v, axis=d), axis, *tensors)


@translates("Dot")
def dot(c: Call) -> Operand:
    """Products of samples, summed along one dimension of each, in which they may be *normalize*d to unit length before."""
    x, y = (c.cast(t, f32) for t in c.tensors())
    found = c.layer.config.get("axes")
    a, b = (
        c.axis_of(d, t.rank) for d, t in zip(found if isinstance(found, list) else [found] * 2, (x, y), strict=True)
    )
    if max(x.rank, y.rank) > 3 or min(x.rank, y.rank) < 2 or not a or not b:
        c.fail(f"products of {x!r} and {y!r} along {found!r} are not supported", "use samples of 1 or 2 dimensions")
    if c.flag("normalize"):
        x, y = lp_normalize(c, x, a, 2), lp_normalize(c, y, b, 2)
    left = c.reshape(x, [x.shape[0], 1, x.shape[1]]) if x.rank == 2 else c.transpose(x, [0, 3 - a, a])
    right = c.reshape(y, [*y.shape, 1]) if y.rank == 2 else c.transpose(y, [0, b, 3 - b])
    made = c.add("matmul", left, right)
    kept: list[ExprLike] = [s for s, t in ((made.shape[1], x), (made.shape[2], y)) if t.rank == 3]
    return c.reshape(made, [made.shape[0], *(kept or [1])])
