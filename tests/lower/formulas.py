"""Random formulas and random legal schedules of them, for hypothesis."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from weft import te
from weft.ir import INDEX, Expr, as_expr, cast, maximum, minimum, select
from weft.loop import Program
from weft.schedule import Schedule
from weft.support.dtypes import f32, i32, u8
from weft.support.errors import ScheduleError
from weft.te import to_program

Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def formulas(draw: Draw) -> Program:
    """A chain of operations on matrices: element-wise ones, sums of rows, products, windows, borders."""
    rows, columns = draw(st.integers(2, 9)), draw(st.integers(2, 21))
    inputs = [te.placeholder((rows, columns), f32, "A")]
    t = inputs[0]
    for n in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["map", "sum", "product", "window", "pad", "transpose", "quantize", "gather"]))
        if kind == "product":
            inputs.append(te.placeholder((t.shape[1], draw(st.integers(1, 18))), f32, f"W{n}"))
            t = _product(t, inputs[-1], f"T{n}")
        else:
            t = _OPERATIONS[kind](t, f"T{n}")
    return to_program(inputs, [te.compute(t.shape, lambda i, j: t[i, j] + 1.0, "Y")])


def _product(a: te.Tensor, b: te.Tensor, name: str) -> te.Tensor:
    r = te.reduce_axis(a.shape[1], f"{name}k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum_(a[i, r] * b[r, j], [r]), name)


def _map(a: te.Tensor, name: str) -> te.Tensor:
    return te.compute(a.shape, lambda i, j: a[i, j] * 2.0 + select(i < j, 1.0, a[i, j]), name)


def _sum(a: te.Tensor, name: str) -> te.Tensor:
    r = te.reduce_axis(a.shape[0], f"{name}r")
    s = te.compute((a.shape[1],), lambda j: te.sum_(a[r, j], [r]), f"{name}s")
    return te.compute(a.shape, lambda i, j: a[i, j] - s[j], name)


def _window(a: te.Tensor, name: str) -> te.Tensor:
    size = (a.shape[1] + 1) // 2
    r = te.reduce_axis(2, f"{name}w")

    def at(i: Expr, j: Expr) -> te.Reduction:
        return te.max_(select(j * 2 + r < a.shape[1], a[i, j * 2 + r], -100.0), [r])

    return te.compute((a.shape[0], size), at, name)


def _pad(a: te.Tensor, name: str) -> te.Tensor:
    rows, columns = a.shape

    def at(i: Expr, j: Expr) -> Expr:
        inside = (as_expr(1) <= i) & (i <= rows) & (as_expr(2) <= j) & (j < columns + 2)
        return select(inside, a[i - 1, j - 2], 0.5)

    return te.compute((rows + 2, columns + 3), at, name)


def _transpose(a: te.Tensor, name: str) -> te.Tensor:
    return te.compute((a.shape[1], a.shape[0]), lambda i, j: a[j, i] + 1.0, name)


def _quantize(a: te.Tensor, name: str) -> te.Tensor:
    """Small integers and back: types of several widths in one loop."""
    q = te.compute(a.shape, lambda i, j: cast(minimum(maximum(a[i, j], 0.0), 200.0), u8), f"{name}q")
    return te.compute(a.shape, lambda i, j: cast(cast(q[i, j], i32) * 3, f32), name)


def _gather(a: te.Tensor, name: str) -> te.Tensor:
    """Columns picked by numbers that are computed from the data."""
    last = as_expr(a.shape[1]) - 1

    def at(i: Expr, j: Expr) -> Expr:
        return a[i, minimum(maximum(cast(a[i, 0], INDEX), 0), last)] + a[i, j]

    return te.compute(a.shape, at, name)


_OPERATIONS = {
    "quantize": _quantize,
    "gather": _gather,
    "map": _map,
    "sum": _sum,
    "window": _window,
    "pad": _pad,
    "transpose": _transpose,
}


def scheduled(draw: Draw, program: Program, steps: int = 10) -> Program:
    """Applies random primitives to *program*; those that are refused are left out."""
    s = Schedule(program)
    for _ in range(steps):
        with contextlib.suppress(ScheduleError):
            _step(draw, s)
    return s.program


def _step(draw: Draw, s: Schedule) -> None:
    block = draw(st.sampled_from(s.blocks()))
    loops = list(s.loops(block))
    if not loops:
        return
    loop = draw(st.sampled_from(loops))
    other = draw(st.sampled_from(s.blocks()))
    reads = [f"T{n}" for n in range(3)] + ["A"]
    steps: dict[str, Callable[[], object]] = {
        "split": lambda: s.split(loop, [None, draw(st.integers(2, 8))]),
        "fuse": lambda: s.fuse(loops[loops.index(loop) :][:2]),
        "reorder": lambda: s.reorder(draw(st.permutations(loops))),
        "vectorize": lambda: s.vectorize(loops[-1]),
        "unroll": lambda: s.unroll(loop),
        "parallel": lambda: s.parallel(loop),
        "compute_at": lambda: s.compute_at(other, loop),
        "reverse_compute_at": lambda: s.reverse_compute_at(other, loop),
        "compute_inline": lambda: s.compute_inline(block),
        "cache_write": lambda: s.cache_write(block, "local"),
        "cache_read": lambda: s.cache_read(block, draw(st.sampled_from(reads)), "local"),
        "decompose_reduction": lambda: s.decompose_reduction(block, loop),
    }
    weights = [n for n in steps for _ in range(3 if n in ("split", "compute_at", "vectorize", "reorder") else 1)]
    steps[draw(st.sampled_from(weights))]()
