"""Folds give what the formulas give: on the samples of every operator that has one, and on symbolic sizes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from tests.ops.samples import SAMPLES
from tests.support.ulps import ulps_off

from weft.driver.checking.reference import run_operator
from weft.graph import dim_text
from weft.graph.builder import CompileTimeConstant, sizes_array
from weft.graph.builder.partial_evaluator import fold
from weft.ir import INDEX, Expr, Var
from weft.ops import LARGEST_FOLD, OPERATORS, NotFoldable
from weft.support.dtypes import DType, bool_, f16, f32, i32, i64

N, T = Var("n", INDEX), Var("t", INDEX)
FOLDED: Final = sorted(name for name, op in OPERATORS.items() if op.fold is not None)
ULPS: Final = {"power": 2.0, "reduce_sum": 16.0, "reduce_prod": 16.0, "cumsum": 16.0}
"""How far apart two correct results of float32 may be, where the order of additions or the library's function decides."""


def folded(op: str, *inputs: Any, **attributes: Any) -> list[CompileTimeConstant]:
    return fold(op, [v if isinstance(v, CompileTimeConstant) else constant(v) for v in inputs], attributes)


def constant(value: Any, dtype: DType | None = None) -> CompileTimeConstant:
    """A constant of numbers, or of integers and index expressions where one is symbolic."""
    if isinstance(value, list) and any(isinstance(v, Expr) for v in value):
        return CompileTimeConstant(sizes_array(value), dtype=dtype)
    array = np.asarray(value)
    return CompileTimeConstant(array if dtype is None else array.astype(dtype.numpy))


def shown(made: list[CompileTimeConstant]) -> str:
    """The type and the elements of each result."""
    elements = [", ".join(dim_text(e) if isinstance(e, Expr) else str(e) for e in k.array.flat) for k in made]
    return "; ".join(f"{k.dtype}{list(k.array.shape)} {e}" for k, e in zip(made, elements, strict=True))


@pytest.mark.parametrize("name", FOLDED)
def test_a_fold_gives_what_the_formula_gives(name: str) -> None:
    compared = 0
    for sample in SAMPLES[name]:
        arrays = [None if a is None else a.astype(np.float32) if a.dtype.kind == "f" else a for a in sample.inputs]
        given = [None if a is None else CompileTimeConstant(a) for a in arrays]
        if sum(a.size for a in arrays if a is not None) > LARGEST_FOLD:
            continue
        try:
            made = fold(name, given, dict(sample.attributes))
        except NotFoldable:
            continue
        wanted = run_operator(name, arrays, **sample.attributes)
        compared += 1
        assert len(made) == len(wanted)
        for found, exact in zip(made, wanted, strict=True):
            assert (found.array.dtype, found.array.shape) == (exact.dtype, exact.shape)
            if exact.dtype == np.float32 and name in ULPS:
                with np.errstate(all="ignore"):
                    assert (ulps_off(found.array, exact.astype(np.float64), f32) <= ULPS[name]).all()
            else:
                np.testing.assert_array_equal(found.array, exact)
    assert compared, f"no sample of {name} in tests/ops/samples.py is small enough to be folded"


def test_arithmetic_on_symbolic_sizes() -> None:
    sizes = constant([N, 4, T])
    assert shown(folded("mul", sizes, constant(2))) == "i64[3] (n * 2), 8, (t * 2)"
    assert (
        shown(folded("div", folded("mul", sizes, constant(6))[0], constant(4)))
        == "i64[3] ((n * 3) // 2), 6, ((t * 3) // 2)"
    )
    assert shown(folded("reduce_prod", sizes, axes=(0,), keepdims=False)) == "i64[] ((n * t) * 4)"
    assert shown(folded("concat", sizes, constant([7]), axis=0)) == "i64[4] n, 4, t, 7"
    assert shown(folded("gather", sizes, constant([2, 0]), axis=0)) == "i64[2] t, n"
    assert shown(folded("less", constant([0]), constant([N]))) == "bool[1] True"
    assert shown(folded("where", constant([True, False]), constant([N]), constant([-1]))) == "i64[2] n, -1"


def test_sizes_that_a_model_converts_to_floats() -> None:
    wide = folded("cast", constant([N, 6]), dtype=f32)[0]
    assert wide.dtype is f32
    assert shown(folded("div", folded("mul", wide, constant(4.0, f32))[0], constant(2.0, f32))) == "f32[2] (n * 2), 12"
    assert shown(folded("cast", folded("floor", wide)[0], dtype=i32)) == "i32[2] n, 6"
    with pytest.raises(NotFoldable):
        folded("div", wide, constant(4.0, f32))
    half = folded("cast", constant([N]), dtype=f16)[0]
    assert shown(folded("mul", half, half)) == "f16[1] (n * n)"


def test_refused() -> None:
    calls: list[tuple[str, list[CompileTimeConstant]]] = [
        ("less", [constant([3]), constant([N])]),
        ("div", [constant([N]), constant([0])]),
        ("mul", [constant([N]), constant(0.5, f32)]),
        ("abs", [constant([N - T])]),
        ("logical_not", [constant([N], bool_)]),
        ("gather", [constant([1, 2]), constant([2])]),
        ("relu", [constant([1])]),
    ]
    for op, inputs in calls:
        with pytest.raises(NotFoldable):
            folded(op, *inputs, **({"axis": 0} if op == "gather" else {}))
    with pytest.raises(NotFoldable):
        folded("full", shape=(LARGEST_FOLD + 1,), value=0, dtype=i64)
