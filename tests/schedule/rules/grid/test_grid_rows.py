"""Rows by threads of a block: one kernel, right for every number of threads, and each element is read and written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.lower.threaded import check_threads
from tests.schedule.programs import Array, Case, case

from weft import te
from weft.cost import Candidate, RowThreads, parse_plan
from weft.ir import Expr, Var, cast
from weft.loop import For, Program, Thread, find_note, statements
from weft.ops import OPERATORS
from weft.schedule import apply_plan, plans, schedule_program
from weft.support.dtypes import f32, i32
from weft.targets import Target
from weft.targets.grid_machines import OPENCL, WEBGPU, WITHOUT_SHUFFLES


def centred_twice(*shape: int | Var, **sizes: int) -> Case:
    """The blocks of softmax, and its accesses, over the last dimension, with sums that are exact in any order."""
    n = shape[-1]
    x = te.placeholder(shape, f32, "X")
    k, q = te.reduce_axis(n, "k"), te.reduce_axis(n, "q")
    kept = (*shape[:-1], 1)
    m = te.compute(kept, lambda *i: te.max_(x[(*i[:-1], k)], [k]), "M")
    e = te.compute(shape, lambda *i: x[i] - m[(*i[:-1], 0)], "E")
    t = te.compute(kept, lambda *i: te.sum_(e[(*i[:-1], q)], [q]), "T")
    s = te.compute(kept, lambda *i: t[i] * 2.0, "S")
    y = te.compute(shape, lambda *i: e[i] - s[(*i[:-1], 0)], "Y")

    def expected(v: Array) -> list[Array]:
        below = v - v.max(-1, keepdims=True)
        return [below - 2 * below.sum(-1, keepdims=True)]

    return case([x], [y], expected, **sizes)


def scaled_sums() -> Case:
    """A reduction over two axes, one result a row, that is an output, and what the row is scaled by."""
    x, w = te.placeholder((5, 6, 8), f32, "X"), te.placeholder((6, 8), f32, "W")
    k, q = te.reduce_axis(6, "k"), te.reduce_axis(8, "q")
    t = te.compute((5,), lambda i: te.sum_(x[i, k, q], [k, q]), "T")
    y = te.compute((5, 6, 8), lambda i, j, m: (x[i, j, m] + t[i]) * w[j, m], "Y")
    return case([x, w], [y], lambda v, u: [(v + v.sum((1, 2), keepdims=True)) * u])


def rows_by_vector() -> Case:
    a, b, c = te.placeholder((24, 40), f32, "A"), te.placeholder((40,), f32, "B"), te.placeholder((24,), f32, "C")
    k = te.reduce_axis(40, "k")
    p = te.compute((24,), lambda i: te.sum_(a[i, k] * b[k], [k]), "P")
    y = te.compute((24,), lambda i: p[i] + c[i], "Y")
    return case([a, b, c], [y], lambda u, v, w: [u @ v + w])


def vector_by_columns() -> Case:
    a, b, c = te.placeholder((40,), f32, "A"), te.placeholder((40, 64), f32, "B"), te.placeholder((64,), f32, "C")
    k = te.reduce_axis(40, "k")
    p = te.compute((64,), lambda j: te.sum_(a[k] * b[k, j], [k]), "P")
    y = te.compute((64,), lambda j: p[j] + c[j], "Y")
    return case([a, b, c], [y], lambda u, v, w: [u @ v + w])


def whole() -> Case:
    x = te.placeholder((9, 50), f32, "X")
    k, q = te.reduce_axis(9, "k"), te.reduce_axis(50, "q")
    y = te.compute((), lambda: te.sum_(x[k, q], [k, q]), "Y")
    return case([x], [y], lambda v: [v.sum()])


def extremes(*shape: int) -> Case:
    """The least and the greatest of each row, or of all: two results of one reduction."""
    x = te.placeholder(shape, i32, "X")
    outputs = OPERATORS["extremes"]([x, x], {"axes": (len(shape) - 1,)})
    return case([x], outputs, lambda v: [v.min(-1), v.max(-1)])


def in_two_types(*shape: int) -> Case:
    """Rows less their sums, as they are and rounded to integers: two results of one formula."""
    x = te.placeholder(shape, f32, "X")
    k = te.reduce_axis(shape[-1], "k")
    t = te.compute(shape[:-1], lambda *i: te.sum_(x[(*i, k)], [k]), "T")
    y = te.compute(shape, lambda *i: x[i] - t[i[:-1]], "Y")
    kept = te.compute(shape, lambda *i: y[i], "Kept")
    rounded = te.compute(shape, lambda *i: cast(y[i], i32), "Rounded")

    def expected(v: Array) -> list[Array]:
        made = v - v.sum(-1, keepdims=True)
        return [made, made.astype(np.int32)]

    return case([x], [kept, rounded], expected)


CASES: dict[str, Callable[[], Case]] = {
    "rows": lambda: centred_twice(8, 96),
    "short rows": lambda: centred_twice(64, 6),
    "four dimensions": lambda: centred_twice(2, 3, 4, 20),
    "a prime length": lambda: centred_twice(3, 37),
    "any number of rows": lambda: centred_twice(Var("n"), 24, n=7),
    "rows of any length": lambda: centred_twice(5, Var("n"), n=45),
    "two axes": scaled_sums,
    "rows by a vector": rows_by_vector,
    "a vector by columns": vector_by_columns,
    "a sum of all": whole,
    "rows in two types": lambda: in_two_types(6, 96),
    "extremes of all": lambda: extremes(700),
    "extremes of rows": lambda: extremes(6, 130),
}


def kernels(program: Program) -> int:
    """The outermost loops over blocks."""
    loops = [s for s in statements(program.entry.body) if isinstance(s, For)]
    return sum((note := find_note(f.notes, Thread)) is not None and note.axis == "blockIdx.x" for f in loops)


@pytest.mark.parametrize("target", [OPENCL, WEBGPU, WITHOUT_SHUFFLES], ids=lambda t: t.name)
@pytest.mark.parametrize("name", CASES)
def test_one_kernel(name: str, target: Target) -> None:
    made = CASES[name]()
    s = schedule_program(made.program, target)
    assert kernels(s.program) == 1
    counted = check_threads(made, s.program, target)
    assert counted.ways == 1


@pytest.mark.parametrize("name", CASES)
def test_any_choice(name: str) -> None:
    """Threads that do not share a row evenly, rows that are not kept, kernels of their own: drawn from all candidates."""
    made, random = CASES[name](), Random(name)
    taken: set[object] = set()

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        if not isinstance(candidates[0].decision, RowThreads):
            return candidates[0]
        found = random.choice([c for c in candidates if c.decision not in taken] or candidates)
        taken.add(found.decision)
        return found

    for _ in range(4):
        check_threads(made, schedule_program(made.program, WITHOUT_SHUFFLES, choose).program, WITHOUT_SHUFFLES)
    assert len(taken) >= 2


def test_a_row_is_kept_in_registers() -> None:
    made = centred_twice(16, 256)
    counted = check_threads(made, schedule_program(made.program, OPENCL).program, OPENCL)
    sectors = 16 * 256 // 8
    assert counted.of_buffer == {"X": sectors, "Y": sectors}


def test_two_results_are_stored_by_the_thread_that_computes_them() -> None:
    made = in_two_types(16, 256)
    counted = check_threads(made, schedule_program(made.program, OPENCL).program, OPENCL)
    sectors = 16 * 256 // 8
    assert counted.of_buffer == {"X": sectors, "Kept": sectors, "Rounded": sectors}


def test_columns_are_read_side_by_side() -> None:
    made = vector_by_columns()
    text = "*: ThreadBlock(threads=64, lanes=1)\nY: RowThreads(threads=8, rows=32, lanes=1, held=False, across=True)\n"
    counted = check_threads(made, apply_plan(made.program, parse_plan(text)).program, OPENCL)
    assert counted.of_buffer["B"] == 40 * 64 // 8
    assert counted.ways == 1


def test_a_plan_reads_back() -> None:
    made = centred_twice(8, 96)
    first = next(plans(made.program, OPENCL))
    assert [type(step.decision) for step in first.steps][-1] is RowThreads
    again = apply_plan(made.program, parse_plan(str(first)))
    assert str(again.program) == str(schedule_program(made.program, OPENCL).program)


def test_values_of_a_row_that_are_results() -> None:
    """Two results, of which one is the other's reduction: it cannot move into the other's rows."""
    x, k = te.placeholder((6, 40), f32, "X"), te.reduce_axis(40, "k")
    t = te.compute((6,), lambda i: te.sum_(x[i, k], [k]), "T")
    y = te.compute((6, 40), lambda i, j: x[i, j] - t[i], "Y")
    made = case([x], [t, y], lambda v: [v.sum(1), v - v.sum(1, keepdims=True)])
    check_threads(made, schedule_program(made.program, OPENCL).program, OPENCL)


def test_a_sum_that_is_read_elsewhere_stays_in_global_memory() -> None:
    """The epilogue of a sum is read by a transposition, which shares no rows with it."""
    x, k = te.placeholder((6, 40), f32, "X"), te.reduce_axis(40, "k")
    t = te.compute((6,), lambda i: te.sum_(x[i, k], [k]), "T")
    u = te.compute((6,), lambda i: t[i] * 3.0, "U")

    def at(i: Expr, j: Expr) -> Expr:
        return x[j, i] - u[j]

    y = te.compute((40, 6), at, "Y")
    made = case([x], [y], lambda v: [v.T - 3 * v.sum(1)])
    check_threads(made, schedule_program(made.program, OPENCL).program, OPENCL)
