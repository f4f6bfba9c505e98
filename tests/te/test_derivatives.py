"""The table of derivatives, row by row, against finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.te.differences import check_gradient
from tests.te.running import results

from weft import ir, te
from weft.ir import INTRINSICS, Expr, Reinterpret, apply, cast, const, eq, maximum, minimum, select
from weft.support.dtypes import f32, f64, u64
from weft.support.errors import GradientError
from weft.te.derivatives import INTRINSIC_ROWS, OPERATOR_ROWS, derivative

POINTS = {
    "log": [0.1, 1.0, 3.0],
    "log2": [0.1, 1.0, 3.0],
    "log1p": [-0.5, 0.1, 3.0],
    "sqrt": [0.1, 1.0, 3.0],
    "rsqrt": [0.1, 1.0, 3.0],
    "asin": [-0.5, 0.1, 0.9],
    "acos": [-0.5, 0.1, 0.9],
    "acosh": [1.1, 2.0, 3.0],
    "atanh": [-0.5, 0.1, 0.9],
}
ANYWHERE = [-1.7, 0.3, 2.2]
CONTINUOUS = [f for f in INTRINSICS.values() if f.accepts(f64) and not f.predicate]


def test_every_function_of_floats_has_a_row() -> None:
    assert set(INTRINSIC_ROWS) == {f.name for f in CONTINUOUS}


def test_every_operator_of_floats_has_a_row() -> None:
    classes = [c for c in ir.Binary.__subclasses__() if "node_fields" in vars(c)]  # no drafts of nodes
    takes_floats = {c for c in classes if c.kinds in ("number", "float")} - {ir.Comparison}
    assert takes_floats | {ir.Neg, ir.Cast, ir.Select} == set(OPERATOR_ROWS)


@pytest.mark.parametrize("name", [f.name for f in CONTINUOUS if f.arity == 1])
def test_functions_of_one_operand(name: str) -> None:
    points = np.array(POINTS.get(name, ANYWHERE))
    x = te.placeholder(points.shape, f64, "X")
    y = te.compute(points.shape, lambda i: apply(name, x[i] * 0.5 + x[i] * 0.5), "Y")
    check_gradient(y, [x], [points])


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("pow", [0.5, 2.0, 3.0], [1.5, -2.0, 0.3]),
        ("fmod", [5.3, -5.3, 5.3], [2.0, 2.0, -2.0]),
        ("copysign", [1.5, -1.5, 0.3], [2.0, 2.0, -0.7]),
    ],
)
def test_functions_of_two_operands(name: str, left: list[float], right: list[float]) -> None:
    a, b = te.placeholder((3,), f64, "A"), te.placeholder((3,), f64, "B")
    check_gradient(te.compute((3,), lambda i: apply(name, a[i], b[i])), [a, b], [np.array(left), np.array(right)])


def test_multiply_and_add() -> None:
    a, b, c = (te.placeholder((3,), f64, n) for n in "ABC")
    y = te.compute((3,), lambda i: apply("fma", a[i], b[i] * a[i], c[i]))
    check_gradient(y, [a, b, c], [np.array(ANYWHERE), np.array([1.0, -2.0, 0.5]), np.array([0.1, 0.2, 0.3])])


OPERATORS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": lambda a, b: a + b * 2.0,
    "-": lambda a, b: 1.0 - a - b,
    "*": lambda a, b: a * b * a,
    "/": lambda a, b: (a + 1.0) / b / (a * a + 1.0),
    "max": maximum,
    "min": lambda a, b: minimum(a * 2.0, b),
    "neg": lambda a, b: -(a * -b),
    "select": lambda a, b: select(a < b, a * a, b * 3.0),
    "select, one side": lambda a, b: select(a < b, a * b, 1.0),
    "cast": lambda a, b: cast(cast(a, f64) * b, f64),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    a, b = te.placeholder((3,), f64, "A"), te.placeholder((3,), f64, "B")
    y = te.compute((3,), lambda i: OPERATORS[name](a[i], b[i]))
    check_gradient(y, [a, b], [np.array(ANYWHERE), np.array([1.0, -2.0, 2.5])])


X = te.placeholder((1,), f64, "X")


def slope(fn: Callable[[Expr], Expr], point: float) -> float:
    """The derivative of *fn* that the table gives, at a point."""
    (dx,) = te.gradient(te.compute((1,), lambda i: fn(X[i])), [X])
    return float(results([X], [dx], np.array([point]))[0][0])


def test_where_there_is_no_derivative() -> None:
    assert slope(lambda x: apply("abs", x), 0.0) == 0.0
    assert slope(lambda x: maximum(x, 0.0), 0.0) == 0.0
    assert slope(lambda x: minimum(x, 0.0), 0.0) == 0.0
    assert slope(lambda x: apply("floor", x), 1.0) == 0.0


def test_powers_at_the_border_of_their_domain() -> None:
    assert slope(lambda x: apply("pow", x, 2.0), 0.0) == 0.0
    assert slope(lambda x: apply("pow", x, 1.0), 0.0) == 1.0
    assert slope(lambda x: apply("pow", x, x * 0.0), 0.0) == 0.0
    assert slope(lambda x: apply("pow", const(0.0, f64), x), 1.0) == 0.0


def test_a_condition_guards_the_derivative_too() -> None:
    assert slope(lambda x: select(x > 0.0, apply("sqrt", x), 0.0), 0.0) == 0.0


def test_what_is_no_float_has_none() -> None:
    x = X[0]
    assert derivative(cast(cast(x, u64), f64), x, const(1.0, f64)) is None
    assert derivative(select(x < 1.0, const(2.0, f64), 3.0), x, const(1.0, f64)) is None
    assert derivative(cast(eq(x, 0.0), f32), x, const(1.0, f64)) is None


def test_bits_have_no_derivative() -> None:
    with pytest.raises(GradientError) as caught:
        derivative(Reinterpret(x := X[0], f64), x, const(1.0, f64))
    assert str(caught.value) == "there is no derivative of Reinterpret\n  hint: give it a row in te/derivatives.py"


def test_a_deep_expression() -> None:
    x = X[0]
    e: Expr = x
    for _ in range(5000):
        e = e * 0.5 + x
    assert derivative(e, x, const(1.0, f64)) is not None
