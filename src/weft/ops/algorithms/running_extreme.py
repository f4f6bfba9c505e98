"""The largest or smallest element so far, along a dimension, and where it is."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Expr, Var, cast
from weft.loop import Buffer, If, Load, Stmt, allocated, cell, for_, get, put, seq, store
from weft.ops.nan_order import order_key
from weft.ops.registry import operator
from weft.ops.shapes import normalize_axis
from weft.support.dtypes import i64
from weft.te import Tensor, extern


@operator("running_extreme", reads_bits=True)
def running_extreme(x: Tensor, *, axis: int, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The *largest* (or smallest) of the elements up to each along *axis*, and its index, as int64; of equal ones the last.

    The largest, and the smallest, of numbers and NaN is NaN.
    """
    d = normalize_axis(axis, x.rank)
    others = [k for k in range(x.rank) if k != d]

    def of_slice(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        best, step = cell("best"), Var("k")

        def at(k: Expr) -> tuple[Expr, ...]:
            return (*i[:d], k, *i[d:])

        def follows(new: Expr, old: Expr) -> Expr:
            a, b = (order_key(e, nan_first=not largest) for e in (new, old))
            return ~(a < b) if largest else ~(b < a)

        def taken(k: Expr) -> Stmt:
            new, old = Load(ins[0], at(k)), Load(ins[0], at(get(best)))
            found = seq(store(outs[0], at(k), Load(ins[0], at(get(best)))), store(outs[1], at(k), cast(get(best), i64)))
            return seq(If(follows(new, old), put(best, k), None), found)

        return allocated([best], seq(put(best, 0), for_(step, x.shape[d], taken(step))))

    values, places = extern([x.shape, x.shape], [x], of_slice, [x.dtype, i64], "running_extreme", along=others)
    return values, places
