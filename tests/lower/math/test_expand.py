"""Functions are expanded where the target lacks them, scalar and vector, and left alone where it has them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lower.math_harness import evaluate

from weft.codegen.interp import run
from weft.ir import Apply, Broadcast, Const, Expr, Node, Var, post_order
from weft.loop import parse_program
from weft.lower import expand_math
from weft.lower.math.expand import expand
from weft.lower.math.expansions import EXPANSIONS
from weft.support.dtypes import f32, i32
from weft.support.errors import LoweringError
from weft.targets import cpu
from weft.targets.target import PORTABLE, ROUNDING


def functions(root: Node) -> set[str]:
    return {n.fn for n in post_order(root) if isinstance(n, Apply)}


SCALAR_RESULTS = sorted(EXPANSIONS.keys() - {"pow", "fma", "fmod", "copysign", "ldexp", "max_number"})


@pytest.mark.parametrize("name", SCALAR_RESULTS)
def test_only_native_functions_remain(name: str) -> None:
    x = Var("x", f32)
    assert functions(expand(Apply(name, (x,)), PORTABLE)) <= PORTABLE
    assert functions(expand(Apply(name, (x,)), PORTABLE | ROUNDING | {"fma"})) <= PORTABLE | ROUNDING | {"fma"}


@pytest.mark.parametrize("name", SCALAR_RESULTS)
def test_a_native_function_is_left_alone(name: str) -> None:
    e = Apply(name, (Var("x", f32),))
    assert expand(e, frozenset({name})) is e


@pytest.mark.parametrize("name", SCALAR_RESULTS)
def test_vectors(name: str) -> None:
    x, v = Var("x", f32), Var("v", f32.with_lanes(8))
    wide, narrow = EXPANSIONS[name](v), EXPANSIONS[name](x)
    assert wide.dtype.lanes == 8
    inside = [n for n in post_order(wide) if isinstance(n, Expr) and not isinstance(n, Const)]
    assert all(n.dtype.lanes == 8 for n in inside if not isinstance(n, Broadcast) or n.lanes == 8)
    values = np.linspace(-3, 3, 64, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(wide, {v: values}), evaluate(narrow, {x: values}))


def test_integers_are_refused_where_they_cannot_be() -> None:
    x = Var("x", i32)
    assert expand(Apply("abs", (x,)), frozenset()) is Apply("abs", (x,))
    with pytest.raises(LoweringError) as refused:
        EXPANSIONS["abs"](x)
    assert str(refused.value) == "mathematical functions are expanded in f32 and f64, not in i32"


PROGRAM = """
def main(X: f32[64], Y: f32[64]):
    for i in range(0, 64):
        Y[i] = sigmoid(X[i] * 0.25)
"""


@pytest.mark.parametrize("level", ["avx512", "sse4"])
def test_the_pass_expands_a_program(level: str) -> None:
    target = cpu(level)
    before = parse_program(PROGRAM)
    after = expand_math(before, target)
    assert functions(before.entry.body) == {"sigmoid"}
    assert functions(after.entry.body) <= target.isa.native
    x = np.linspace(-100, 100, 64, dtype=np.float32)
    got, want = np.zeros_like(x), 1 / (1 + np.exp(-x.astype(np.float64) / 4))
    run(after, [x, got])
    np.testing.assert_allclose(got, want, rtol=3e-7)


def test_a_program_without_functions_is_left_alone() -> None:
    program = parse_program(PROGRAM.replace("sigmoid", ""))
    assert expand_math(program, cpu("avx512")) is program
