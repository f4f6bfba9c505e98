"""Sums are computed at one go from their terms, as their nodes would be one by one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from weft.codegen.llvm.core.affine_operands import Affine, Operand
from weft.codegen.llvm.core.symbolic_indices import sum_of
from weft.ir import Expr, Ramp, Var, const, index
from weft.support.dtypes import i32

A, B = Var("a"), Var("b")
VALUES: dict[Expr, Operand] = {A: Affine(3, {"%i": 2}), B: "%j"}


def value(e: Expr, values: Mapping[Expr, Operand] = VALUES) -> Affine:
    found = sum_of(e)
    assert found is not None
    return found(None, e, *[values[v] for v in found.terms])


def test_a_sum_is_the_sum_of_the_values() -> None:
    assert value((A * 4 + B) * 2 - 5) == Affine(19, {"%i": 16, "%j": 2})
    assert value(-A) == Affine(-3, {"%i": -2})


def test_what_cancels_is_gone() -> None:
    assert value(A - B + B - A * 2) == Affine(-3, {"%i": -2})
    assert value(A - B * 2, {**VALUES, B: Affine(0, {"%i": 1})}) == Affine(3)


def test_a_term_may_be_anything_but_a_sum() -> None:
    remainder = B % 3
    assert value(A + remainder * 4 - 1, {**VALUES, remainder: "%r"}) == Affine(2, {"%i": 2, "%r": 4})


def test_lanes_a_constant_step_apart_are_numbered_from_a_sum() -> None:
    found = sum_of(Ramp(A * 16 + 3, index(2), 8))
    assert found is not None
    assert (found.lanes, found.step) == (8, Affine(2))
    assert found(None, A, VALUES[A]) == Affine(51, {"%i": 32})


@pytest.mark.parametrize(
    "e", [A, index(3), A * B, A // 2, const(1, i32) + Var("c", i32), Ramp(A, B, 4), Ramp(A * B, index(1), 4)]
)
def test_nothing_else_is(e: Expr) -> None:
    assert sum_of(e) is None
