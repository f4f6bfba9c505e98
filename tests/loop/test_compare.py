"""Comparison up to names, and the canonical text that goes into cache keys."""

from __future__ import annotations

import pytest

from weft.ir import Expr, Var
from weft.loop import Eval, Function, Program, canonical_text, is_same, parse_program
from weft.loop.alpha_equivalence import check_same
from weft.support.errors import VerifyError

TEXT = """
def main(A: f32[8, n], C: f32[8]):
    for i in range(0, 8):
        for k in parallel(0, n, note=1):
            with block("C", v=spatial(8, i), w=reduce(n, k)):
                with init():
                    C[v] = 0.0
                C[v] = C[v] + A[v, w]

def f(x: i64):
    eval_(x)
"""


RENAMED = """
def main(X: f32[8, m], out: f32[8]):
    for a in range(0, 8):
        for b in parallel(0, m, note=1):
            with block("C", p=spatial(8, a), q=reduce(m, b)):
                with init():
                    out[p] = 0.0
                out[p] = out[p] + X[p, q]

def f(y: i64):
    eval_(y)
"""


def test_names_do_not_matter() -> None:
    a, b = parse_program(TEXT), parse_program(RENAMED)
    check_same(a, b)
    assert canonical_text(a) == canonical_text(b)


def test_the_name_of_a_block_matters_to_schedules_only() -> None:
    a, b = parse_program(TEXT), parse_program(TEXT.replace('"C"', '"D"'))
    assert not is_same(a, b)
    assert canonical_text(a) == canonical_text(b)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("8, n]", "9, n]"),
        ("C: f32[8]", 'C: buffer("local", f32[8])'),
        ("C: f32[8]", 'C: buffer("global", f32[8], strides=(1,))'),
        ("parallel", "range"),
        ("note=1", "note=2"),
        ("note=1", "other=1"),
        ("reduce(n", "spatial(n"),
        ("C[v] = 0.0", "C[v] = -0.0"),
        ("C[v] + A[v, w]", "A[v, w] + C[v]"),
        ("A[v, w]", "A[w, v]"),
        ("w=reduce(n, k)):", "w=reduce(n, k), where=(k < 3)):"),
        ("eval_(x)", "pass"),
        ("def f(", "def g("),
        ("x: i64", "x: f64"),
    ],
)
def test_everything_else_matters(old: str, new: str) -> None:
    a, b = parse_program(TEXT), parse_program(TEXT.replace(old, new))
    assert not is_same(a, b)
    assert canonical_text(a) != canonical_text(b)


def difference(old: str, new: str) -> str:
    with pytest.raises(VerifyError) as caught:
        check_same(parse_program(TEXT), parse_program(TEXT.replace(old, new)))
    return str(caught.value)


def test_the_first_difference_is_shown() -> None:
    assert difference("C[v] + A[v, w]", "C[v] * A[v, w]") == (
        "in main:\n    C[v] + A[v, w]\n  is not\n    C[v] * A[v, w]\n"
        "  in\n    C[v] = C[v] + A[v, w]\n  in\n    C[v] = C[v] * A[v, w]"
    )
    assert difference("note=1", "note=2") == (
        "in main:\n    1\n  is not\n    2\n"
        "  in\n    for k in parallel(0, n, note=1):\n  in\n    for k in parallel(0, n, note=2):"
    )
    assert difference("def f", "def g") == "the function f against g"
    assert difference("\ndef f(x: i64):\n    eval_(x)\n", "") == "2 functions against 1"
    assert difference("parallel", "unrolled").startswith(
        "in main:\n    parallel\n  is not\n    unrolled\n  in\n    for k in"
    )


def test_variables_match_one_to_one() -> None:
    x, y, z = Var("x"), Var("y"), Var("z")
    assert is_same(x + y, y + z)
    assert not is_same(x + y, z + z)
    assert not is_same(z + z, x + y)


def test_canonical_text_is_linear_in_what_is_shared() -> None:
    x = Var("x")
    e: Expr = x
    for _ in range(100):
        e = e + e
    program = Program((Function("main", (x,), Eval(e)),))
    assert canonical_text(program).count("\n") == 103
    assert is_same(program, program)
