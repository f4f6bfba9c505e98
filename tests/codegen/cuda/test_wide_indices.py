"""Indices that were narrowed, as proofs about the elements of a warp see them."""

from __future__ import annotations

import pytest

from weft.codegen.cuda.wide_indices import widened
from weft.ir import INDEX, Var, cast, const, index, simplify
from weft.support.dtypes import i32

B, T = Var("b"), Var("t")


@pytest.mark.parametrize("scale", [1, 256])
def test_sums_and_products_are_wide_again(scale: int) -> None:
    b, t = cast(B, i32), cast(T, i32)
    made = widened(cast(b * const(scale, i32) + t - const(3, i32), INDEX))
    assert simplify(made) is simplify(B * index(scale) + T - index(3))


def test_other_steps_stay() -> None:
    step = cast(B, i32) // const(4, i32)
    assert widened(cast(step, INDEX) + T) is cast(step, INDEX) + T
    assert widened(cast(step + cast(T, i32), INDEX)) is cast(step, INDEX) + T
