"""The text of expressions: parentheses, constants, names, and what is refused when read."""

from __future__ import annotations

import pytest

from weft import ir
from weft.ir import Expr, Names, Var, apply, const, index, parse_expr, print_expr
from weft.ir.text.parser import TextError
from weft.ir.text.printer import shortest
from weft.support.dtypes import DType, bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8
from weft.support.errors import ParseError

X, Y, P, Q, F = Var("x"), Var("y"), Var("p", bool_), Var("q", bool_), Var("f", f32)
SCOPE = {"x": X, "y": Y, "p": P, "q": Q, "f": F}

TEXTS = [
    (ir.Add(ir.Add(X, Y), X), "x + y + x"),
    (ir.Sub(X, ir.Sub(Y, X)), "x - (y - x)"),
    (ir.Mul(ir.Add(X, Y), X), "(x + y) * x"),
    (ir.FloorMod(ir.FloorDiv(X, Y), X), "x // y % x"),
    (ir.Mul(X, ir.FloorDiv(Y, X)), "x * (y // x)"),
    (ir.BitAnd(ir.BitOr(X, Y), X), "(x | y) & x"),
    (ir.BitOr(ir.BitOr(X, Y), X), "x | y | x"),
    (ir.ShiftLeft(ir.Add(X, Y), X), "x + y << x"),
    (ir.Add(ir.ShiftRight(X, Y), X), "(x >> y) + x"),
    (ir.Lt(ir.BitXor(X, Y), X), "x ^ y < x"),
    (ir.Eq(ir.Lt(X, Y), P), "(x < y) == p"),
    (ir.And(ir.And(P, Q), P), "p and q and p"),
    (ir.And(P, ir.And(Q, P)), "p and (q and p)"),
    (ir.Or(ir.And(P, Q), P), "p and q or p"),
    (ir.And(ir.Or(P, Q), P), "(p or q) and p"),
    (ir.Not(ir.Eq(P, Q)), "not p == q"),
    (ir.Eq(ir.Not(P), Q), "(not p) == q"),
    (ir.Not(ir.And(P, Q)), "not (p and q)"),
    (ir.Not(X), "~x"),
    (ir.Not(ir.Add(X, Y)), "~(x + y)"),
    (ir.Neg(ir.Neg(X)), "--x"),
    (ir.Mul(ir.Neg(X), Y), "-x * y"),
    (ir.Neg(ir.Mul(X, Y)), "-(x * y)"),
    (ir.Neg(index(3)), "neg(3)"),
    (ir.Sub(X, index(-3)), "x - -3"),
    (ir.Min(X, ir.Max(Y, X)), "min(x, max(y, x))"),
    (ir.TruncDiv(X, ir.TruncMod(Y, X)), "truncdiv(x, truncmod(y, x))"),
    (ir.Select(P, X, Y), "select(p, x, y)"),
    (ir.Cast(X, i8), "i8(x)"),
    (ir.Cast(const(3, i8), i32), "cast(i32, i8(3))"),
    (ir.Cast(ir.Broadcast(X, 4), f32.with_lanes(4)), "f32x4(broadcast(x, 4))"),
    (ir.Reinterpret(F, i32), "reinterpret(i32, f)"),
    (ir.Ramp(X, index(1), 8), "ramp(x, 1, 8)"),
    (apply("fma", F, 2.0, -0.5), "fma(f, 2.0, -0.5)"),
    (const(True, bool_), "True"),
    (const(-128, i8), "i8(-128)"),
    (const(-(1 << 63), i64), "-9223372036854775808"),
    (const(-0.0, f32), "-0.0"),
    (const(0.1, f32), "0.1"),
    (const(0.1, f16), "f16(0.1)"),
    (const(0.1, bf16), "bf16(0.1)"),
    (const(0.1, f64), "f64(0.1)"),
    (const(1e-30, f32), "1e-30"),
    (const(float("nan"), f32), 'f32("nan")'),
    (const(float("-inf"), f64), 'f64("-inf")'),
]


@pytest.mark.parametrize(("e", "text"), TEXTS, ids=[t for _, t in TEXTS])
def test_text(e: Expr, text: str) -> None:
    assert print_expr(e) == text
    assert parse_expr(text, SCOPE) is e


@pytest.mark.parametrize(
    ("text", "e"),
    [("x > y", ir.Lt(Y, X)), ("x >= y", ir.Le(Y, X)), ("f64(3)", const(3.0, f64)), ("\n (x\n+ y)\n", ir.Add(X, Y))],
)
def test_other_ways_to_write(text: str, e: Expr) -> None:
    assert parse_expr(text, SCOPE) is e


@pytest.mark.parametrize("dtype", [f16, bf16, f32, f64], ids=str)
def test_shortest_decimal_reads_back(dtype: DType) -> None:
    for k in range(2000):
        value = const((k * 0.37 + 1e-3) * 1.7 ** (k % 15 - 11), dtype).value  # type: ignore[attr-defined]
        assert const(float(shortest(value, dtype)), dtype).value == value  # type: ignore[attr-defined]
    assert shortest(float(const(1 / 3, f32).value), f32) == "0.33333334"  # type: ignore[attr-defined]


def test_names_are_unique_identifiers() -> None:
    names = Names(taken=["b"])
    wanted = ["a", "a", "a_1", "a", "b", "for", "f32", "i8x4", "min", "conv1/out:0", "0", "", "größe", "x"]
    assert [names.of(Var(n)) for n in wanted] == [
        "a", "a_1", "a_1_1", "a_2", "b_1", "for_1", "f32_1", "i8x4_1", "min_1", "conv1_out_0", "_0", "_", "gr__e", "x",
    ]  # fmt: skip


def test_repr_is_text_if_it_is_not_too_long() -> None:
    e: Expr = X
    assert repr(e + 1) == "x + 1"
    for _ in range(60):
        e = ir.Add(e, e)
    assert repr(e) == "<Add of type i64, too large to show>"


ERRORS = [
    ("x +", 1, 1, "invalid syntax\n    x +\n    ^"),
    ("x < y < x", 1, 1, "comparisons cannot be chained\n    x < y < x\n    ^\n  hint: join them by `and`"),
    ("x + sin(x", 1, 8, "'(' was never closed\n    x + sin(x\n           ^"),
    ("x + foo(x)", 1, 5, "there is no function `foo`\n    x + foo(x)\n        ^"),
    ("(x +\n z)", 2, 2, "`z` is not defined here\n     z)\n     ^"),
    ("x + f", 1, 1, "`+` takes two operands of one type, not i64 and f32\n    x + f\n    ^\n  hint: cast one of them"),
    ("not x", 1, 1, "`not` takes bool types, not i64\n    not x\n    ^"),
    ("~f", 1, 1, "`~` takes int types, not f32\n    ~f\n    ^"),
    ("+x", 1, 1, "there is no unary `+`\n    +x\n    ^"),
    ("i8(300)", 1, 4, "300 is not of type i8\n    i8(300)\n       ^"),
    ("u8(-1)", 1, 4, "-1 is not of type u8\n    u8(-1)\n       ^"),
    ("i32(0.5)", 1, 5, "0.5 is not of type i32\n    i32(0.5)\n        ^"),
    ('f32("one")', 1, 5, "'one' is not a number\n    f32(\"one\")\n        ^"),
    ("1e300", 1, 1, '1e+300 is too large for f32\n    1e300\n    ^\n  hint: write f32("inf") for infinity'),
    ("'a'", 1, 1, "expected a number, not `'a'`\n    'a'\n    ^"),
    ("min(x)", 1, 1, "`min` takes 2 arguments, not 1\n    min(x)\n    ^"),
    ("neg(x, x)", 1, 1, "`neg` takes 1 argument, not 2\n    neg(x, x)\n    ^"),
    ("cast(x, x)", 1, 6, "expected a type such as f32 or i8x16, not `x`\n    cast(x, x)\n         ^"),
    ("broadcast(x, y)", 1, 14, "expected a positive number of lanes, not `y`\n    broadcast(x, y)\n                 ^"),
    ("[x]", 1, 1, "expected an expression, not `[x]`\n    [x]\n    ^"),
    ("exp(x)", 1, 1, "exp does not take i64\n    exp(x)\n    ^"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), ERRORS, ids=[t for t, *_ in ERRORS])
def test_error(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_expr(text, SCOPE)
    assert str(caught.value) == f"line {line}, column {column}: {message}"
    assert (caught.value.line, caught.value.column) == (line, column)
    assert isinstance(caught.value, ParseError)


def test_types_in_text() -> None:
    assert parse_expr("i16(x) + i16(5)", SCOPE) is ir.Add(ir.Cast(X, i16), const(5, i16))
    assert parse_expr("u8(x)", SCOPE).dtype is u8
