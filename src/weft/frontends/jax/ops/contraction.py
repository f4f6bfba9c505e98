"""Products of tensors over dimensions in common."""

from __future__ import annotations

from string import ascii_letters
from typing import Any

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.einsum import einsum


@translates("dot_general")
def dot_general(c: Call) -> Operand:
    """Sums of products: the result has the batch dimensions, then those of the left and those of the right that are left."""
    x, y = c.operand(0), c.operand(1)
    (left_batch, right_batch), (left, right) = _dimensions(c)
    if x.rank + y.rank > len(ascii_letters):
        c.fail(f"it multiplies tensors of {x.rank} and {y.rank} dimensions", "flatten them")
    names_x, names_y = list(ascii_letters[: x.rank]), list(ascii_letters[x.rank : x.rank + y.rank])
    for a, b in zip([*left_batch, *left], [*right_batch, *right], strict=True):
        names_y[b] = names_x[a]
    batch = [names_x[d] for d in left_batch]
    used = {*batch, *[names_x[d] for d in left]}
    result = [*batch, *[n for n in [*names_x, *names_y] if n not in used]]
    dtype = c.result_dtype()
    equation = f"{''.join(names_x)},{''.join(names_y)}->{''.join(result)}"
    return einsum(c, [c.cast(x, dtype), c.cast(y, dtype)], equation)


@translates("dot")
def dot(c: Call) -> Operand:
    """The sums of products of matrices or vectors: over the last dimension, and the first."""
    x, y, dtype = c.operand(0), c.operand(1), c.result_dtype()
    if not 1 <= x.rank <= 2 or not 1 <= y.rank <= 2:
        c.fail(f"it multiplies {x!r} and {y!r}", AGAIN)
    return (
        c.add("matmul", c.cast(x, dtype), c.cast(y, dtype))
        if x.rank + y.rank > 2
        else einsum(c, [c.cast(x, dtype), c.cast(y, dtype)], "a,a->")
    )


def _dimensions(c: Call) -> tuple[list[list[int]], list[list[int]]]:
    """Returns the batch dimensions and the contracted ones of both operands, in the own form or the generic one."""
    numbers = c.value("dot_dimension_numbers")
    if isinstance(numbers, dict):
        batch: Any = [numbers.get(f"{side}_batching_dimensions", []) for side in ("lhs", "rhs")]
        contracted: Any = [numbers.get(f"{side}_contracting_dimensions", []) for side in ("lhs", "rhs")]
    else:
        batch, contracted = c.value("batching_dims") or [[], []], c.value("contracting_dims") or [[], []]
    made = [[c.integers_of(side, "contracting_dims") for side in pair] for pair in (batch, contracted)]
    for k in range(2):
        dims = made[0][k] + made[1][k]
        if len(set(dims)) != len(dims) or any(not 0 <= d < c.operand(k).rank for d in dims):
            c.fail(f"its dimensions {dims} are not those of {c.operand(k)!r}", AGAIN)
    return made[0], made[1]
