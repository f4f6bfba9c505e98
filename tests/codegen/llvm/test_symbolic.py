"""Sums of variables are computed at one go, as their nodes would be one by one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from weft.codegen.llvm.core.affine_operands import Affine, Operand
from weft.codegen.llvm.core.symbolic_indices import sum_of_variables
from weft.ir import Expr, Var, const, index
from weft.support.dtypes import i32

A, B = Var("a"), Var("b")
VALUES: dict[Var, Operand] = {A: Affine(3, {"%i": 2}), B: "%j"}


def value(e: Expr, values: Mapping[Var, Operand] = VALUES) -> Affine:
    found = sum_of_variables(e)
    assert found is not None
    compute, variables = found
    return compute(None, e, *[values[v] for v in variables])


def test_a_sum_is_the_sum_of_the_values() -> None:
    assert value((A * 4 + B) * 2 - 5) == Affine(19, {"%i": 16, "%j": 2})
    assert value(-A) == Affine(-3, {"%i": -2})


def test_what_cancels_is_gone() -> None:
    assert value(A - B + B - A * 2) == Affine(-3, {"%i": -2})
    assert value(A - B * 2, {**VALUES, B: Affine(0, {"%i": 1})}) == Affine(3)


@pytest.mark.parametrize("e", [A, index(3), A * B, A // 2, A + B % 3, const(1, i32) + Var("c", i32)])
def test_nothing_else_is(e: Expr) -> None:
    assert sum_of_variables(e) is None
