"""The prefixes of a slice that is read element by element, in blocks whose elements are combined side by side.

    for i in range(0, n // 8):
        within = x[8 i], x[8 i] + x[8 i + 1], ...          of each block alone
        y[8 i + k] = before + within[k]
        before = before + within[7]

Each prefix waits for that of the element before: four cycles for a sum of floats. Here a block waits for the one before, and its
own prefixes are computed beside those of others (Blelloch, "Prefix sums and their applications", 1990, section 1.2.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir import Expr, Var
from weft.loop import Stmt, allocated, cell, for_, get, let, put, seq
from weft.support.dtypes import DType
from weft.te import Reducer

BLOCK: Final = 8
"""Elements of a block: two cycles of arithmetic each, so that eight cover the four cycles that the next block waits."""


def prefix_blocks(
    count: Expr,
    dtype: DType,
    reducer: Reducer,
    element: Callable[[Expr], Expr],
    emit: Callable[[Expr, Expr], Stmt],
    *,
    exclusive: bool,
    start: Expr | None = None,
) -> Stmt:
    """Returns statements that call *emit* with each index below *count* and the elements before it, and its own, combined.

    The own is left out of an *exclusive* prefix. The elements are of *dtype*; *start* comes before them.
    """
    before = cell("before", dtype)
    block, rest = Var("block"), Var("rest")

    def combined(a: Expr, b: Expr) -> Expr:
        return reducer.combine((a,), (b,))[0]

    def step(i: Expr) -> Stmt:
        def finished(total: Expr) -> Stmt:
            return seq(emit(i, get(before) if exclusive else total), put(before, total))

        return let("total", combined(get(before), element(i)), finished)

    def of_block(first: Expr, within: list[Expr]) -> Stmt:
        """Binds the prefixes within a block, from the first on, then combines all with the prefix before the block."""
        k = len(within)
        if k < BLOCK:
            x = element(first + k)
            value = combined(within[-1], x) if within else x
            return let("within", value, lambda v: of_block(first, [*within, v]))
        whole = get(before)
        totals = [whole, *[combined(whole, w) for w in within]]
        parts = [emit(first + k, totals[k if exclusive else k + 1]) for k in range(BLOCK)]
        return seq(*parts, put(before, totals[-1]))

    blocks = count // BLOCK
    body = seq(
        put(before, reducer.identity((dtype,))[0] if start is None else start),
        for_(block, blocks, of_block(block * BLOCK, [])),
        for_(rest, count % BLOCK, step(rest), begin=blocks * BLOCK),
    )
    return allocated([before], body)
