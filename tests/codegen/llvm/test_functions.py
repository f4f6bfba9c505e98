"""Functions of `ir.expr.pure_functions` that the target has are computed as declared; others are refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, elementwise, machine_for, same

from weft.codegen.llvm.ir_module import llvm_text
from weft.ir import INTRINSICS, Apply
from weft.loop import Function, Program
from weft.support.dtypes import DType, bf16, bool_, f16, f32, f64, i8, i32, i64, u8
from weft.support.errors import LoweringError
from weft.targets import cpu

COUNT = 48


def samples(dtype: DType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    special = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3.9999, 1e-40, 65504.0, 2.0**23, -7.1]
    rest = np.random.default_rng(1).standard_normal(COUNT - len(special)) * 20
    with np.errstate(over="ignore"):
        return np.concatenate([special, rest]).astype(dtype.numpy)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lanes", [1, 3, 4, 16, 24])
def test_native_functions(name: str, lanes: int) -> None:
    target = TARGETS[name]
    functions: list[Function] = []
    expected = {}
    for dtype in (f16, bf16, f32, f64):
        x = samples(dtype)
        operands = [x, np.roll(x, 7), np.roll(x, 3)]
        for fn in sorted(f for f in target.isa.native if INTRINSICS[f].accepts(dtype)):
            known = INTRINSICS[fn]
            out = bool_ if known.predicate else dtype
            title, given = f"{fn}_{dtype}", operands[: known.arity]
            if fn == "ldexp":
                given = [x, np.rint(np.nan_to_num(np.roll(x, 7).astype(np.float64)).clip(-160, 160)).astype(x.dtype)]
            if fn == "max_number":  # which it is where one is NaN is free, as is the sign of zero
                given = [np.where(a == a, a, a[:1]) + x.dtype.type(0) for a in given]
            functions.append(
                elementwise(title, [dtype] * known.arity, out, lanes, COUNT, lambda *a, fn=fn: Apply(fn, tuple(a)))
            )
            with np.errstate(all="ignore"):
                expected[title] = given, np.asarray(known.reference(*given)).astype(out.numpy)
    machine = machine_for(functions, target)
    wrong = []
    for title, (given, want) in expected.items():
        got = np.zeros_like(want)
        call(machine, title, *given, got)
        if not same(got, want):
            wrong.append(title)
    assert wrong == []


@pytest.mark.parametrize("dtype", [i8, i32, i64, u8], ids=str)
def test_integer_absolute_value(dtype: DType) -> None:
    x = np.array([0, 1, 2, 100, 5, 6, 7, 8]).astype(dtype.numpy)
    if dtype.kind == "int":
        x = np.concatenate([x, -x])
    for lanes in (1, 4):
        f = elementwise("f", [dtype], dtype, lanes, len(x), lambda a: Apply("abs", (a,)))
        got = np.zeros_like(x)
        call(machine_for([f], TARGETS["sse4"]), "f", x, got)
        assert same(got, np.abs(x))


def test_a_function_the_target_lacks_is_named() -> None:
    f = elementwise("f", [f32], f32, 4, 8, lambda a: Apply("tanh", (a,)))
    with pytest.raises(LoweringError) as error:
        llvm_text(Program((f,)), cpu("avx2"))
    assert str(error.value) == (
        "function f: the target cpu -mattr=avx2 has no tanh\n  hint: expand it before code generation"
    )
