"""Tensors that statements compute: their effects, functions of the program that they call, and what schedules may do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.te.running import Array, results

from weft import te
from weft.codegen.interp import run
from weft.driver.function import build_function
from weft.ir import ONE, ZERO, Expr, Var, index
from weft.loop import Buffer, Call, For, Function, If, Let, LoopKind, Stmt, for_, parse_program, seq, store, verify
from weft.loop.alpha_equivalence import check_same
from weft.loop.nodes import load
from weft.schedule import Schedule, schedule_program
from weft.support.dtypes import f32, i64
from weft.support.errors import ScheduleError, ToolchainError, TypeMismatch, VerifyError
from weft.targets import parse_target
from weft.te import OpClass, Tensor, classify


def sort_function(n: int, m: int) -> Function:
    """Sorts each row by insertion, which no index formula says."""
    a, b = Buffer("a", (n, m), f32), Buffer("b", (n, m), f32)
    i, j, k = Var("i"), Var("j"), Var("k")
    left, right = Var("left", f32), Var("right", f32)
    swap = seq(store(b, (i, k), right), store(b, (i, k + 1), left))
    compare = Let(left, load(b, i, k), Let(right, load(b, i, k + 1), If(right < left, swap, None)))
    bubble = for_(j, m, For(k, ZERO, index(m - 1) - j, LoopKind.SERIAL, compare, ()))
    c = Var("c")
    copy = for_(c, m, store(b, (i, c), load(a, i, c)))
    return Function("sort_rows", (a, b), for_(i, n, seq(copy, bubble)))


def sorted_rows(a: Tensor, n: int, m: int) -> Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        return Call("sort_rows", (te.whole(ins[0]), te.whole(outs[0])))

    (made,) = te.extern([(n, m)], [a], body, [f32], "sorted", functions=[sort_function(n, m)])
    return made


def median_example() -> tuple[list[Tensor], list[Tensor], Callable[[Array], Array]]:
    """Formulas before and after a call."""
    x = te.placeholder((4, 5), f32, "X")
    a = te.compute((4, 5), lambda i, j: x[i, j] * 2.0, "A")
    s = sorted_rows(a, 4, 5)
    y = te.compute((4,), lambda i: s[i, 2] + 1.0, "Y")
    return [x], [y], lambda v: np.median(v * 2, axis=1).astype(np.float32) + 1


def test_text(golden: Callable[[str], None]) -> None:
    inputs, outputs, _ = median_example()
    program = te.to_program(inputs, outputs)
    verify(program)
    check_same(parse_program(str(program)), program)
    golden(str(program))


def test_a_call_of_a_function_of_the_program() -> None:
    inputs, outputs, oracle = median_example()
    v = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    np.testing.assert_array_equal(results(inputs, outputs, v)[0], oracle(v))
    found = np.empty(4, np.float32)
    build_function(te.to_program(inputs, outputs))(v, found)
    np.testing.assert_array_equal(found, oracle(v))


def test_scheduled_around() -> None:
    inputs, outputs, oracle = median_example()
    s = schedule_program(te.to_program(inputs, outputs), parse_target("cpu"))
    v, found = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32), np.empty(4, np.float32)
    build_function(s.program)(v, found)
    np.testing.assert_array_equal(found, oracle(v))


def test_statements_of_its_own_with_several_results() -> None:
    """Puts the positive numbers first, in order, and counts them."""
    x = te.placeholder((6,), f32, "X")

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        (a,), (kept, count) = ins, outs
        i, z = Var("i"), Var("z")
        so_far = load(count, ZERO)
        keep = seq(store(kept, (so_far,), load(a, i)), store(count, (ZERO,), so_far + ONE))
        start = seq(store(count, (ZERO,), 0), for_(z, 6, store(kept, (z,), 0.0)))
        return seq(start, for_(i, 6, If(load(a, i) > 0.0, keep, None)))

    kept, count = te.extern([(6,), (1,)], [x], body, [f32, i64], "kept")
    v = np.array([1, -1, 3, 0, 2, -5], np.float32)
    found = results([x], [kept, count], v)
    compiled: list[Array] = [np.empty(6, np.float32), np.empty(1, np.int64)]
    build_function(te.to_program([x], [kept, count]))(v, *compiled)
    for first, second in (found, compiled):
        np.testing.assert_array_equal(first, [1, 3, 2, 0, 0, 0])
        assert second[0] == 3


def test_a_symbol_from_elsewhere_is_interpreted_with_a_library() -> None:
    x = te.placeholder((3,), f32, "X")

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        return Call("negate", (te.whole(ins[0]), te.whole(outs[0])))

    (y,) = te.extern([(3,)], [x], body, [f32])
    program = te.to_program([x], [y])
    verify(program)

    def negate(source: tuple[Array, int], target: tuple[Array, int]) -> None:
        target[0][target[1] : target[1] + 3] = -source[0][source[1] : source[1] + 3]

    v, found = np.arange(3, dtype=np.float32), np.empty(3, np.float32)
    run(program, [v, found], library={"negate": negate})
    np.testing.assert_array_equal(found, -v)
    with pytest.raises(ToolchainError, match="negate"):
        build_function(program)


def test_schedules_leave_it_alone() -> None:
    inputs, outputs, _ = median_example()
    s = Schedule(te.to_program(inputs, outputs))
    block, before, after = s.block("sorted"), s.block("A"), s.block("Y")
    assert s.loops(block) == ()
    for attempt in (
        lambda: s.compute_inline(block),
        lambda: s.compute_at(block, s.loops(after)[0]),
        lambda: s.reverse_compute_at(block, s.loops(before)[0]),
        lambda: s.reverse_compute_inline(block),
        lambda: s.compute_inline(before),
        lambda: s.cache_write(block, "local"),
    ):
        with pytest.raises(ScheduleError):
            attempt()
    s.cache_read(block, "A", "local")
    s.parallel(s.loops(before)[0])
    verify(s.program)


def test_its_declared_effects_are_trusted_and_checked() -> None:
    inputs, outputs, _ = median_example()
    text = str(te.to_program(inputs, outputs))
    assert "reads(A[0:4, 0:5])" in text
    broken = text.replace("reads(A[0:4, 0:5])", "reads(X[0:4, 0:5])")
    with pytest.raises(VerifyError, match="sorted passes on A outside of the regions that it declares"):
        verify(parse_program(broken))


def test_it_is_opaque() -> None:
    assert classify(sorted_rows(te.placeholder((4, 5), f32), 4, 5).op) is OpClass.OPAQUE


def test_refuses_other_buffers() -> None:
    x, stray = te.placeholder((3,), f32, "X"), Buffer("stray", (3,), f32)

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        return store(outs[0], (ZERO,), load(stray, ZERO))

    (y,) = te.extern([(3,)], [x], body, [f32], "y")
    with pytest.raises(TypeMismatch, match="y uses the buffer stray, which is neither an input nor an output of it"):
        te.to_program([x], [y])


def test_refuses_shapes_without_types() -> None:
    with pytest.raises(TypeMismatch, match="y has 2 shapes and 1 data types"):
        te.extern([(3,), (4,)], [], lambda ins, outs: store(outs[0], (ZERO,), 0.0), [f32], "y")


def test_refuses_two_functions_of_one_name() -> None:
    x = te.placeholder((4, 5), f32, "X")
    y = sorted_rows(sorted_rows(x, 4, 5), 4, 5)
    with pytest.raises(TypeMismatch, match="two functions of the program are called sort_rows"):
        te.to_program([x], [y])


def turned_rows(n: int, m: int) -> tuple[Tensor, Tensor]:
    """Each row backwards, by statements of one row."""
    x = te.placeholder((n, m), f32, "X")

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer], i: Expr) -> Stmt:
        j = Var("j")
        return for_(j, m, store(outs[0], (i, j), load(ins[0], i, index(m - 1) - j)))

    return x, te.extern([(n, m)], [x], body, [f32], "turned", along=(0,))[0]


def test_slices_are_spatial_and_threads_share_them(golden: Callable[[str], None]) -> None:
    x, y = turned_rows(6, 5)
    s = Schedule(te.to_program([x], [y]))
    (rows,) = s.loops(s.block("turned"))
    s.parallel(rows)
    verify(s.program)
    golden(str(s.program))
    v = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    np.testing.assert_array_equal(results([x], [y], v)[0], v[:, ::-1])


def test_refuses_slices_that_its_tensors_have_not_in_common() -> None:
    x = te.placeholder((3,), f32, "X")
    with pytest.raises(TypeMismatch, match="y computes slices along dimension 0, in which its tensors have different"):
        te.extern([(3,), (4,)], [x], lambda ins, outs, i: store(outs[0], (i,), 0.0), [f32, f32], "y", along=(0,))
