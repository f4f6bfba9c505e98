"""Random values of host programs: replayed, compiled and interpreted alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from tests.replaying import ByHand
from tests.support.sampling import tried

from weft import ir
from weft.codegen.interp import run
from weft.codegen.launch import write_launch
from weft.ir import INDEX, Expr, Var, cast, index, maximum, select
from weft.loop import (
    Alloc,
    Buffer,
    Entry,
    Function,
    If,
    Let,
    Load,
    Program,
    Store,
    parse_program,
    print_program,
    seq,
    verify_host,
)
from weft.native import _rt
from weft.support.dtypes import bool_, i8, i32, i64, u8, u16

N, M = Var("n"), Var("m")
X, Y = Buffer("in0", (N,), i64), Buffer("out0", (index(8),), i64)
CASTS = (bool_, i8, i32, u8, u16)
ARITHMETIC = (ir.Add, ir.Sub, ir.Mul, ir.Min, ir.Max, ir.BitAnd, ir.BitOr, ir.BitXor)
DIVISIONS = (ir.FloorDiv, ir.FloorMod, ir.TruncDiv, ir.TruncMod)
COMPARISONS = (ir.Lt, ir.Le, ir.Eq, ir.Ne)


@st.composite
def numbers(draw: Any, depth: int = 3) -> Expr:
    """Sizes, of at most *depth* operators, without a division by zero or an index outside of the input."""
    made: Expr
    kind = draw(st.integers(0, 7)) if depth else draw(st.integers(0, 2))
    below = numbers(depth - 1)
    if kind == 0:
        made = draw(st.sampled_from([N, M]))
    elif kind == 1:
        made = Load(X, (draw(st.integers(0, 1).map(index)),))
    elif kind == 2:
        made = index(draw(st.integers(-20, 20)))
    elif kind == 3:
        made = draw(st.sampled_from(DIVISIONS))(draw(below), maximum(draw(below), 1))
    elif kind == 4:
        shift = draw(st.sampled_from([ir.ShiftLeft, ir.ShiftRight]))
        made = shift(draw(below), index(draw(st.integers(0, 4))))
    elif kind == 5:
        made = select(draw(conditions(depth - 1)), draw(below), draw(below))
    elif kind == 6:
        made = cast(cast(draw(below), draw(st.sampled_from(CASTS))), INDEX)
    else:
        a = draw(below)
        made = draw(st.sampled_from(ARITHMETIC))(a, draw(st.just(a) | below))
    return made


@st.composite
def conditions(draw: Any, depth: int = 2) -> Expr:
    """Conditions over sizes; an index may be outside of the input where the first side of an `and` says that it is inside."""
    made: Expr
    kind = draw(st.integers(0, 3)) if depth else 0
    if kind == 0:
        made = draw(st.sampled_from(COMPARISONS))(draw(numbers(depth)), draw(numbers(depth)))
    elif kind == 1:
        made = ~draw(conditions(depth - 1))
    elif kind == 2:
        at = draw(numbers(depth - 1))
        made = ir.And(ir.And(index(0) <= at, at < N), Load(X, (at,)) < draw(numbers(depth - 1)))
    else:
        made = draw(st.sampled_from([ir.And, ir.Or]))(draw(conditions(depth - 1)), draw(conditions(depth - 1)))
    return made


def program(values: list[Expr], conds: list[Expr]) -> Program:
    """Returns the host program that stores values, and which conditions hold."""
    flags, shape = Buffer("flags", (index(2),), bool_), Buffer("out0_shape", (index(1),), INDEX)
    count, narrow = Var("count"), Buffer("narrow", (maximum(N, 1),), i8)
    stores = [Store(Y, (index(k),), v, None) for k, v in enumerate(values)]
    stores += [Store(Y, (index(k),), index(0), None) for k in range(4, 8)]
    stores += [Store(flags, (index(k),), c, None) for k, c in enumerate(conds)]
    told = [
        If(Load(flags, (index(k),)), Store(Y, (index(4 + k),), index(k + 1), None), None) for k in range(len(conds))
    ]
    kept = Store(narrow, (index(0),), cast(count, i8), None)
    last = Store(Y, (index(6),), cast(Load(narrow, (index(0),)), INDEX), None)
    body = Alloc(flags, Alloc(narrow, seq(*stores, *told, Let(count, values[0], seq(kept, last)))))
    main = Function("main", (X, Y, N, M), body, (Entry("main", ("in0", "out0", "in0.0", "threads")),))
    plan = Function("plan", (shape,), Store(shape, (index(0),), index(8), None), (Entry("plan", ("out0.shape",)),))
    return Program((main, plan))


def replay(host: Program, x: np.ndarray) -> np.ndarray:
    code = write_launch(host, 1, 1)
    model = _rt.Model(code.data, [], b"", [(i64.code, 1)], [(i64.code, 1)], threads=1)
    made: np.ndarray = model.run([x])[0]
    return made


def pieces(depth: int) -> tuple[st.SearchStrategy[list[Expr]], st.SearchStrategy[list[Expr]]]:
    """Returns the strategies of the values and of the conditions of a program."""
    return st.lists(numbers(depth), min_size=4, max_size=4), st.lists(conditions(depth - 1), min_size=2, max_size=2)


@tried(40, 1000, *pieces(3), st.data())
def test_values_are_those_of_the_interpreter(values: list[Expr], conds: list[Expr], data: st.DataObject) -> None:
    host = program(values, conds)
    verify_host(host)
    assert print_program(parse_program(print_program(host))) == print_program(host)
    x = np.array(data.draw(st.lists(st.integers(-50, 50), min_size=2, max_size=9)), np.int64)
    wanted = np.zeros(8, np.int64)
    run(host, [x, wanted, len(x), 1])
    np.testing.assert_array_equal(replay(host, x), wanted)


@tried(6, 60, *pieces(2))
def test_values_are_those_of_compiled_code(values: list[Expr], conds: list[Expr]) -> None:
    model = ByHand(program(values, conds), {})
    for x in (np.array([3, -4], np.int64), np.arange(-20, 5, dtype=np.int64)):
        np.testing.assert_array_equal(model.replayed.run([x])[0], model.compiled.run([x])[0])


@pytest.mark.parametrize("v", [N, Load(X, (index(0),))], ids=["a size", "an element"])
def test_a_value_used_exponentially_often_is_computed_once(v: Expr) -> None:
    for k in range(100):
        v = maximum(v + v, M) - index(k) * v
    code = write_launch(program([v] * 4, []), 1, 1)
    assert len(code.data) < 20_000
