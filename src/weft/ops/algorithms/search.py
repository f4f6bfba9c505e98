"""Elements looked up in a sorted vector."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import INDEX, ONE, ZERO, Const, Expr, eq, index, minimum, select
from weft.loop import Buffer, Load, Stmt, While, allocated, cell, get, let, put, seq, store
from weft.ops.nan_order import order_key
from weft.ops.registry import operator
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern


@operator("find_sorted", reads_bits=True)
def find_sorted(x: Tensor, keys: Tensor) -> Tensor:
    """The position in *keys*, a vector in ascending order, of each element of *x*; their number where an element is none of them.

    NaN is above all numbers, and is found where it is a key; of equal keys it is the first. A binary search for each element,
    which takes the same steps for all: with a known number of keys, elements are vectors.
    """
    if keys.rank != 1 or keys.dtype is not x.dtype:
        raise TypeMismatch(
            f"find_sorted takes a vector of keys of {x.dtype}, not {keys.rank} dimensions of {keys.dtype}"
        )
    count = keys.shape[0]

    def word(b: Buffer, *at: Expr) -> Expr:
        return order_key(Load(b, at))

    def ended(ins: Sequence[Buffer], outs: Sequence[Buffer], i: Sequence[Expr], e: Expr, low: Expr) -> Stmt:
        """Stores the result, where *low* is the only key that may be the last below *e*, or the first."""
        is_below = (low < count) & (word(ins[1], low) < e)

        def stored(at: Expr) -> Stmt:
            found = (at < count) & eq(word(ins[1], minimum(at, count - 1)), e)
            return store(outs[0], i, select(found, at, count))

        return let("place", low + select(is_below, ONE, ZERO), stored)

    def of_element(ins: Sequence[Buffer], outs: Sequence[Buffer], *i: Expr) -> Stmt:
        def beyond(e: Expr, low: Expr, half: Expr) -> Expr:
            return low + select(word(ins[1], low + half - 1) < e, half, ZERO)

        def halved(e: Expr, low: Expr, left: int) -> Stmt:
            if left <= 1:
                return ended(ins, outs, i, e, low)
            return let("low", beyond(e, low, index(left // 2)), lambda next_: halved(e, next_, left - left // 2))

        def looped(e: Expr) -> Stmt:
            low, left = cell("low"), cell("left")

            def step(half: Expr) -> Stmt:
                return seq(put(low, beyond(e, get(low), half)), put(left, get(left) - half))

            loop = While(get(left) > 1, let("half", get(left) // 2, step))
            last = let("last", get(low), lambda at: ended(ins, outs, i, e, at))
            return allocated([low, left], seq(put(low, ZERO), put(left, count), loop, last))

        known = int(count.value) if isinstance(count, Const) else None
        return let("word", word(ins[0], *i), lambda e: looped(e) if known is None else halved(e, ZERO, known))

    return extern([x.shape], [x, keys], of_element, [INDEX], "find_sorted", along=range(x.rank))[0]
