"""Reductions scheduled without search: whatever the shape and the axes, in the interpreter and as machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st
from tests.schedule.compiling import HERE
from tests.schedule.running import disordered
from tests.support.jit import load
from tests.support.sampling import tried

from weft import te
from weft.codegen.interp import run
from weft.cost import Accumulators, accumulator_plans, cheapest
from weft.driver.function import build_function
from weft.ir import ONE, Ramp, Var
from weft.loop import For, LoopKind, Program, Store, loads, statements, verify
from weft.lower import lower
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.schedule.cursors.tree import block_path, loops_on
from weft.schedule.rules.block_facts import block_of
from weft.support.dtypes import f32
from weft.targets import cpu, parse_target

Array = npt.NDArray[Any]
Oracle = Callable[..., Array]
SIZES = [1, 2, 3, 5, 7, 8, 11, 13, 16, 17, 24, 31, 33, 51, 64, 67]
LARGEST = 1500  # elements: the interpreter takes milliseconds


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))


def layer_norm(x: Array, axis: int) -> Array:
    over = tuple(range(axis % x.ndim, x.ndim))
    centred = x - x.mean(over, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(over, keepdims=True) + 1e-5))


REDUCERS: dict[str, Oracle] = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
    "reduce_l2": lambda x, **kw: np.sqrt(np.sum(x * x, **kw)),
    "reduce_l1": lambda x, **kw: np.sum(np.abs(x), **kw),
}
ROWWISE: dict[str, Oracle] = {"softmax": softmax, "layer_norm": layer_norm}
PLACES: dict[str, Oracle] = {"argmax": np.argmax, "argmin": np.argmin}


def program_of(name: str, shape: tuple[int, ...], attributes: dict[str, Any], *, open_batch: bool) -> Program:
    """The loops of an operator, its first size a symbol on demand."""
    n = Var("n")
    x = te.placeholder((n, *shape[1:]) if open_batch else shape)
    return te.to_program([x], OPERATORS[name]([x], attributes), name, [n] if open_batch else [])


def check(name: str, x: Array, attributes: dict[str, Any], wanted: Array, *, open_batch: bool = False) -> None:
    program = program_of(name, x.shape, attributes, open_batch=open_batch)
    sizes = [x.shape[0]] if open_batch else []
    for target in (cpu("avx512"), cpu("sse4"), HERE):
        scheduled = schedule_program(program, target).program
        verify(scheduled)
        outputs = [np.full(wanted.shape, 77).astype(p.dtype.numpy) for p in program.entry.params[1 : 1 + outs(program)]]
        if target is HERE:
            load(lower(scheduled, target, verify=True), target)[1](x, *outputs, *sizes)
        else:
            run(disordered(scheduled), [x, *outputs, *sizes])
        np.testing.assert_allclose(outputs[0], wanted, rtol=2e-5, atol=2e-6, err_msg=str(scheduled))


def outs(program: Program) -> int:
    return len([p for p in program.entry.params if not isinstance(p, Var)]) - 1


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    shape: list[int] = []
    for _ in range(draw(st.integers(1, 4))):
        room = LARGEST // int(np.prod([1, *shape]))
        shape.append(draw(st.sampled_from([s for s in SIZES if s <= room])))
    return tuple(draw(st.permutations(shape)))


def values(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape).astype(np.float32)


@tried(15, 60, st.sampled_from(sorted(REDUCERS)), shapes(), st.data())
def test_reductions_over_any_axes(name: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1), label="axes")))
    keepdims = data.draw(st.booleans(), label="keepdims")
    open_batch = data.draw(st.booleans(), label="open batch")
    x = values(shape)
    wanted = np.asarray(REDUCERS[name](x.astype(np.float64), axis=axes, keepdims=keepdims))
    check(name, x, {"axes": axes, "keepdims": keepdims}, wanted, open_batch=open_batch)


@tried(7, 25, st.sampled_from(sorted(ROWWISE)), shapes(), st.data())
def test_rows_of_any_length(name: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), -1), label="axis")
    open_batch = data.draw(st.booleans(), label="open batch") and axis > -len(shape)
    x = values(shape)
    check(name, x, {"axis": axis}, ROWWISE[name](x.astype(np.float64), axis), open_batch=open_batch)


@tried(5, 15, st.sampled_from(sorted(PLACES)), shapes(), st.data())
def test_places_of_the_largest_and_smallest(name: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1), label="axis")
    x = np.random.default_rng(1).integers(-5, 5, shape).astype(np.float32)  # many are equal: the first counts
    check(name, x, {"axis": axis, "keepdims": False}, np.asarray(PLACES[name](x, axis)))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_sum", "softmax"])
@pytest.mark.parametrize("place", [0, 15, 16, 47, 48, 50])
def test_a_nan_anywhere_in_a_row_is_in_its_result(name: str, place: int) -> None:
    attributes: dict[str, Any] = {"axis": 1} if name == "softmax" else {"axes": (1,)}
    program = program_of(name, (3, 51), attributes, open_batch=False)
    x = values((3, 51))
    x[1, place] = np.nan
    y = np.zeros((3, 51 if name == "softmax" else 1), np.float32)
    load(lower(schedule_program(program, HERE).program, HERE), HERE)[1](x, y)
    assert np.isnan(y[1]).all()
    assert not np.isnan(y[[0, 2]]).any()


@pytest.mark.parametrize("size", [1, 7, 16, 51, 300])
def test_the_largest_of_infinities(size: int) -> None:
    x = np.full((2, size), -np.inf, np.float32)
    check("reduce_max", x, {"axes": (1,)}, x[:, :1])


def vector_loops(program: Program) -> int:
    return sum(isinstance(s, For) and s.kind is LoopKind.VECTORIZED for s in statements(program.entry.body))


def test_the_last_dimensions_are_reduced_as_one() -> None:
    """Their sizes need not fill vectors each: all that is reduced is read by contiguous vectors."""
    x = te.placeholder((25, 69, 2), f32, "x")
    program = lower(schedule_program(te.to_program([x], OPERATORS["reduce_sum"]([x], {})), HERE).program, HERE)
    reads = [
        n
        for s in statements(program.entry.body)
        if isinstance(s, Store)
        for n in loads(s.value)
        if n.buffer.name == "x"
    ]
    assert reads
    assert all(isinstance(i, Ramp) and i.stride is ONE for n in reads for i in n.indices)


def test_elements_of_several_dimensions_are_computed_as_one_row() -> None:
    """Six elements fill no vector, but 8 x 6 of them fill several: no step of the rows goes along the last dimension alone."""
    x = np.random.default_rng(7).standard_normal((5, 8, 6)).astype(np.float32)
    check("layer_norm", x, {"axis": 1}, layer_norm(x, 1))
    s = schedule_program(program_of("layer_norm", (5, 8, 6), {"axis": 1}, open_batch=False), cpu("avx2"))
    for ref in s.blocks():
        if block_of(s, ref).name in ("norm_centred", "layer_norm"):
            assert s.extent(s.loops(ref)[-1]) == 8


@pytest.mark.parametrize(("shape", "axis"), [((8, 9, 25, 6), 2), ((8, 16, 40, 20), 1), ((16, 300, 7), 1)])
def test_a_softmax_along_any_axis_is_one_pass(shape: tuple[int, ...], axis: int) -> None:
    """What a slice needs is computed while it is near, in vectors along the last axis, and its sums stay in registers."""
    x = te.placeholder(shape, f32, "x")
    s = schedule_program(te.to_program([x], OPERATORS["softmax"]([x], {"axis": axis})), cpu("avx512"))
    loops = [loops_on(block_path(s.function, r)) for r in s.blocks()]
    assert all(f[0] is loops[0][0] for f in loops)
    assert all(f[-1].kind is LoopKind.VECTORIZED for f in loops)
    verify(s.program)


def test_a_short_row_leaves_the_lanes_to_another_axis() -> None:
    """Two elements side by side fill no vector: the many others that are reduced, far apart, do."""
    x = te.placeholder((3, 241, 6, 2), f32, "x")
    s = schedule_program(
        te.to_program([x], OPERATORS["reduce_max"]([x], {"axes": (1, 3), "keepdims": True})), cpu("avx512")
    )
    widest = max(
        int(getattr(f.extent, "value", 0))
        for f in statements(s.function.body)
        if isinstance(f, For) and f.kind is LoopKind.VECTORIZED
    )
    assert widest >= 64
    verify(s.program)


def test_reductions_beside_contractions_are_in_lanes_too() -> None:
    a, b = te.placeholder((64, 48), name="A"), te.placeholder((48, 32), name="B")
    k, m = te.reduce_axis(48, "k"), te.reduce_axis(48, "m")
    product = te.compute((64, 32), lambda i, j: te.sum_(a[i, k] * b[k, j], [k]), "P")
    total = te.compute((64,), lambda i: te.sum_(a[i, m], [m]), "T")
    program = te.to_program([a, b], [product, total], "both")
    alone = te.to_program([a, b], [product], "one")
    more = vector_loops(schedule_program(program, HERE).program) - vector_loops(schedule_program(alone, HERE).program)
    assert more > 1
    x, y = values((64, 48)), values((48, 32))
    p, t = np.zeros((64, 32), np.float32), np.zeros(64, np.float32)
    load(lower(schedule_program(program, HERE).program, HERE), HERE)[1](x, y, p, t)
    np.testing.assert_allclose(p, x @ y, rtol=1e-5)
    np.testing.assert_allclose(t, x.sum(1), rtol=1e-5)


@pytest.mark.parametrize(("extent", "vectors"), [(5, 1), (16, 1), (35, 3), (51, 4), (128, 8), (164, 6), (1000, 7)])
def test_vectors_are_as_many_as_hide_latency_without_idle_lanes(extent: int, vectors: int) -> None:
    found = cheapest(list(accumulator_plans(extent, 16, cpu("avx512"))))
    assert found.decision == Accumulators(vectors)


def test_rows_of_unknown_length_have_few_accumulators() -> None:
    """A row that is shorter than all of them would combine those that it does not use."""
    found = cheapest(list(accumulator_plans(64, 8, cpu("avx2"), is_open=True)))
    assert found.decision == Accumulators(4)
    assert cheapest(list(accumulator_plans(64, 8, cpu("avx2")))).decision == Accumulators(8)


def test_the_axis_that_vectors_run_along_is_no_row() -> None:
    """Two reductions of columns share all of their axes with the result."""
    x = te.placeholder((61, 1337), f32, "x")
    (y,) = OPERATORS["reduce_log_sum_exp"]([x], {"axes": (0,)})
    s = schedule_program(te.to_program([x], [y]), parse_target("cpu"))
    v, found = np.random.default_rng(0).standard_normal((61, 1337)).astype(np.float32), np.empty((1, 1337), np.float32)
    build_function(s.program)(v, found)
    np.testing.assert_allclose(found, np.log(np.exp(v).sum(0, keepdims=True)), rtol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
@pytest.mark.parametrize("open_batch", [False, True])
def test_short_rows_go_through_each_step_together(name: str, open_batch: bool) -> None:
    """All exponentials of some rows are computed before the sum of the first, whose lanes are combined meanwhile."""
    x = np.random.default_rng(5).standard_normal((37, 20)).astype(np.float32)
    check(name, x, {"axis": -1}, ROWWISE[name](x, axis=-1), open_batch=open_batch)
    program = program_of(name, (37, 20), {"axis": -1}, open_batch=open_batch)
    s = schedule_program(program, cpu("avx512"))
    (outer, inner, *_) = loops_on(block_path(s.function, s.blocks()[-1]))
    assert outer.kind != "vectorized"
    assert inner.extent.value > 1  # type: ignore[attr-defined]
