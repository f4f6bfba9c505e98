"""Shuffles of two vectors: their types, their text, their meaning."""

from __future__ import annotations

import numpy as np
import pytest

from weft.codegen.interp import run
from weft.ir import Expr, Shuffle, Var, parse_expr
from weft.loop import parse_program
from weft.support.dtypes import f32, i32
from weft.support.errors import ParseError, TypeMismatch

A, B = Var("a", f32.with_lanes(4)), Var("b", f32.with_lanes(4))


def test_text_round_trip() -> None:
    made = Shuffle(A, B, (0, 4, 1, 5, 7))
    scope: dict[str, Expr] = {"a": A, "b": B}
    assert str(made) == "shuffle(a, b, 0, 4, 1, 5, 7)"
    assert parse_expr(str(made), scope) is made
    assert made.dtype is f32.with_lanes(5)


@pytest.mark.parametrize("picks", [(0, 8), (-1, 0), (1,), ()])
def test_refused_picks(picks: tuple[int, ...]) -> None:
    with pytest.raises(TypeMismatch, match="a shuffle of f32x4 picks two or more of 8 lanes"):
        Shuffle(A, B, picks)


@pytest.mark.parametrize("other", [Var("c", i32.with_lanes(4)), Var("c", f32.with_lanes(8)), Var("c", f32)])
def test_refused_operands(other: Expr) -> None:
    with pytest.raises(TypeMismatch, match="a shuffle takes two vectors of one type"):
        Shuffle(A, other, (0, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shuffle(a)", "`shuffle` takes 2 arguments, not 1"),
        ("shuffle(a, b, 0, a)", "expected the number of a lane, not `a`"),
    ],
)
def test_texts_that_are_none(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_expr(text, {"a": A, "b": B})


def test_the_interpreter_picks_lanes() -> None:
    text = (
        "def f(A: f32[4], B: f32[4], C: f32[3]):\n"
        "    C[ramp(0, 1, 3)] = shuffle(A[ramp(0, 1, 4)], B[ramp(0, 1, 4)], 6, 0, 3)\n"
    )
    c = np.zeros(3, np.float32)
    run(parse_program(text), [np.arange(4, dtype=np.float32), np.arange(4, 8, dtype=np.float32), c])
    assert c.tolist() == [6, 0, 3]
