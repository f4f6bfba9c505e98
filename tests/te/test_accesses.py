"""Accesses that are guarded, gathered or predicated, and reducers of one's own: verified, scheduled, compiled."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.schedule.random_steps import step
from tests.schedule.running import disordered
from tests.te.running import Array

from weft import te
from weft.codegen.interp import run
from weft.driver.function import build_function
from weft.ir import Expr, all_of, cast, const, maximum, select
from weft.loop import Program, parse_program, verify
from weft.loop.alpha_equivalence import check_same
from weft.schedule import Schedule, schedule_program
from weft.support.dtypes import f32, i64
from weft.targets import parse_target
from weft.te import Tensor


@dataclass(frozen=True)
class Example:
    """Tensors, values of the inputs, and what NumPy makes of them. Numbers are small integers, so sums are exact."""

    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    arrays: Sequence[Array]
    wanted: Sequence[Array]

    def check(self, program: Program, run_it: Callable[..., None]) -> None:
        found = [np.full(w.shape, 77).astype(w.dtype) for w in self.wanted]
        run_it(program, [*self.arrays, *found])
        for got, wanted in zip(found, self.wanted, strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=str(program))


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def padded_stencil() -> Example:
    """A guarded read of an intermediate result, one element outside of it on either side."""
    x = te.placeholder((5, 6), f32, "X")
    a = te.compute((5, 6), lambda i, j: x[i, j] * 2.0, "A")
    p = te.compute((7, 6), lambda i, j: select(all_of([i > 0, i < 6]), a[i - 1, j], -1.0), "P")
    y = te.compute((5, 6), lambda i, j: p[i, j] + p[i + 2, j] - a[i, j], "Y")
    v = numbers(5, 6)
    big = np.pad(v * 2, ((1, 1), (0, 0)), constant_values=-1)
    return Example([x], [y], [v], [big[:-2] + big[2:] - v * 2])


def guarded_both_ways() -> Example:
    """A concatenation, and a shift by a guard inside a reduction."""
    a, b = te.placeholder((3, 4), f32, "A"), te.placeholder((4, 4), f32, "B")
    c = te.compute((7, 4), lambda i, j: select(i < 3, a[i, j], b[i - 3, j]), "C")
    k = te.reduce_axis(4, "k")
    y = te.compute((7,), lambda i: te.sum_(select(all_of([k <= i, i < 6]), c[i + 1, k], 0.0), [k]), "Y")
    u, v = numbers(3, 4), numbers(4, 4, seed=1)
    both = np.concatenate([u, v])
    wanted = [both[i + 1, : i + 1].sum() if i < 6 else 0 for i in range(7)]
    return Example([a, b], [y], [u, v], [np.array(wanted, np.float32)])


def masked_rows() -> Example:
    """Predicated reductions, of which some reduce nothing: they keep the identity."""
    x, n = te.placeholder((4, 5), f32, "X"), te.placeholder((4,), i64, "N")
    k, q = te.reduce_axis(5, "k"), te.reduce_axis(5, "q")
    top = te.compute((4,), lambda i: te.max_(x[i, k], [k], where=k < n[i]), "top")
    total = te.compute((4,), lambda i: te.sum_(maximum(x[i, q], top[i]), [q], where=q < n[i]), "total")
    v, m = numbers(4, 5), np.array([5, 2, 0, 1])
    best = [v[i, : m[i]].max(initial=-np.inf) for i in range(4)]
    sums = [np.maximum(v[i, : m[i]], best[i]).sum() for i in range(4)]
    return Example([x, n], [top, total], [v, m], [np.array(best, np.float32), np.array(sums, np.float32)])


def gathered_product() -> Example:
    """A matrix product of the rows that a table names, with a gathered scale."""
    x, w = te.placeholder((6, 3), f32, "X"), te.placeholder((3, 4), f32, "W")
    s, t = te.placeholder((6,), f32, "S"), te.placeholder((5,), i64, "T")
    a = te.compute((6, 3), lambda i, j: x[i, j] + 1.0, "A")
    k = te.reduce_axis(3, "k")
    y = te.compute((5, 4), lambda i, j: te.sum_(a[t[i], k] * w[k, j] * s[t[i]], [k]), "Y")
    u, v, z, rows = numbers(6, 3), numbers(3, 4, seed=1), numbers(6, seed=2), np.array([5, 0, 0, 2, 3])
    return Example([x, w, s, t], [y], [u, v, z, rows], [((u + 1) * z[:, None])[rows] @ v])


def guarded_gather() -> Example:
    """Indices that may be out of range are read only where they are not."""
    x, t = te.placeholder((4,), f32, "X"), te.placeholder((6,), i64, "T")

    def fn(i: Expr) -> Expr:
        return select(all_of([t[i] >= 0, t[i] < 4]), x[t[i]], -5.0)

    y = te.compute((6,), fn, "Y")
    z = te.compute((6,), lambda i: y[i] * 2.0 + y[5 - i], "Z")
    v, w = numbers(4), np.array([3, -1, 0, 4, 2, 9])
    picked = np.where((w >= 0) & (w < 4), v[np.clip(w, 0, 3)], np.float32(-5))
    return Example([x, t], [z], [v, w], [picked * 2 + picked[::-1]])


def moments() -> Example:
    """A reducer of three values: how many, their sum, and the sum of their squares."""
    together = te.reducer(
        lambda a, b: (a[0] + b[0], a[1] + b[1], a[2] + b[2]), lambda t: tuple([const(0, x) for x in t]), "moments"
    )
    x, k = te.placeholder((4, 6), f32, "X"), te.reduce_axis(6, "k")
    n, s, q = te.compute_many(
        (4,), lambda i: together((const(1, i64), x[i, k], x[i, k] * x[i, k]), [k], where=x[i, k] > 0.0), "moments"
    )
    y = te.compute((4,), lambda i: cast(n[i], f32) * q[i] - s[i] * s[i], "Y")
    v = numbers(4, 6)
    kept = np.where(v > 0, v, 0)
    wanted = (v > 0).sum(1) * (kept**2).sum(1) - kept.sum(1) ** 2
    return Example([x], [y], [v], [wanted.astype(np.float32)])


def two_best() -> Example:
    """The largest and the second largest value, by a reducer that is no sum."""
    x, k = te.placeholder((5, 7), f32, "X"), te.reduce_axis(7, "k")

    def combine(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, ...]:
        above = a[0] > b[0]
        first, other = select(above, a[0], b[0]), select(above, b[0], a[0])
        return first, maximum(other, select(above, a[1], b[1]))

    best = te.reducer(combine, lambda t: tuple([te.lowest(d) for d in t]), "two_best")
    first, second = te.compute_many((5,), lambda i: best((x[i, k], te.lowest(f32)), [k]), "best")
    v = numbers(5, 7)
    ranked = np.sort(v, axis=1)
    return Example([x], [first, second], [v], [ranked[:, -1], ranked[:, -2]])


EXAMPLES: dict[str, Callable[[], Example]] = {
    f.__name__: f
    for f in (
        padded_stencil,
        guarded_both_ways,
        masked_rows,
        gathered_product,
        guarded_gather,
        moments,
        two_best,
    )
}


def interpreted(program: Program, values: list[Any]) -> None:
    run(disordered(program), values)


def compiled(program: Program, values: list[Any]) -> None:
    build_function(program)(*values)


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> Example:
    return EXAMPLES[request.param]()


def test_text_and_results(example: Example) -> None:
    program = te.to_program(example.inputs, example.outputs)
    verify(program)
    check_same(parse_program(str(program)), program)
    example.check(program, interpreted)
    example.check(program, compiled)


def test_scheduled_by_rule(example: Example) -> None:
    s = schedule_program(te.to_program(example.inputs, example.outputs), parse_target("cpu"))
    verify(s.program)
    example.check(s.program, interpreted)
    example.check(s.program, compiled)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(4))
def test_scheduled_at_random(example: Example, seed: int) -> None:
    s, r = Schedule(te.to_program(example.inputs, example.outputs)), random.Random(seed)
    for _ in range(20):
        step(s, r)
    verify(s.program)
    example.check(s.program, interpreted)
    if seed == 0:
        example.check(s.program, compiled)
