"""`skip_zeros`: a sum leaves out the terms that a condition makes zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.schedule.compiling import HERE, check_compiled
from tests.schedule.programs import CASES, case, conv2d
from tests.schedule.refusing import refused
from tests.schedule.running import check, same_results, transition

from weft import te
from weft.ir import Expr, cast, select
from weft.loop import Program, parse_program
from weft.lower import lower
from weft.schedule import BlockRef, Schedule
from weft.support.dtypes import f16, f32


def started(program: Program, name: str) -> tuple[Schedule, BlockRef]:
    """A schedule in which the sums of a block are started by a block of its own."""
    s = Schedule(program)
    ref = s.block(name)
    s.decompose_reduction(ref, next(f for f in s.loops(ref) if f.var.name.startswith(("r", "k"))))
    return s, ref


def test_of_an_input_that_was_padded(golden: Callable[[str], None]) -> None:
    of = conv2d()
    s, ref = started(of.program, "Y")
    s.compute_inline(s.block("P"))
    before = s.program
    s.skip_zeros(ref)
    check_compiled(of, s.program)
    golden(transition(before, s.program))


def test_each_tap_has_its_own_sums_once_it_is_written_out() -> None:
    """Of three results and three taps, the first of one and the last of another are on padding: seven products are left."""
    x, w = te.placeholder((3,), f32, "X"), te.placeholder((3,), f32, "W")
    p = te.compute((5,), lambda i: select(i >= 1, select(i < 4, x[i - 1], 0.0), 0.0), "P")
    k = te.reduce_axis(3, "k")
    y = te.compute((3,), lambda i: te.sum_(p[i + k] * w[k], [k]), "Y")
    of = case([x, w], [y], lambda a, b: [np.array([a[0] * b[1] + a[1] * b[2], a @ b, a[1] * b[0] + a[2] * b[1]])])
    s, ref = started(of.program, "Y")
    s.compute_inline(s.block("P"))
    s.skip_zeros(ref)
    for f in s.loops(ref):
        s.unroll(f)
    flat = str(lower(s.program, HERE, unroll=True))
    assert flat.count(" * ") == 7
    check(of, s.program)


def test_of_both_factors_and_of_products_of_three() -> None:
    x, w = te.placeholder((4, 6), f32, "X"), te.placeholder((6,), f32, "W")
    k = te.reduce_axis(6, "k")

    def product(i: Expr) -> object:
        return te.sum_(select(i <= k, x[i, k], 0.0) * select(k < 5, w[k], 0.0) * w[k], [k])

    y = te.compute((4,), product, "Y")
    of = case([x, w], [y], lambda a, b: [np.array([sum(a[i, n] * b[n] * b[n] for n in range(i, 5)) for i in range(4)])])
    s, ref = started(of.program, "Y")
    s.skip_zeros(ref)
    assert "select(vi_1 <= vk and vk < 5, Y[vi_1] + X[vi_1, vk] * W[vk] * W[vk], Y[vi_1])" in str(s)
    check_compiled(of, s.program)


def test_of_narrow_values() -> None:
    x, w = te.placeholder((6,), f16, "X"), te.placeholder((6,), f16, "W")
    k = te.reduce_axis(6, "k")
    y = te.compute((4,), lambda i: te.sum_(cast(select(i <= k, x[k], 0.0), f32) * cast(w[k], f32), [k]), "Y")
    s, ref = started(te.to_program([x, w], [y], "narrow"), "Y")
    s.skip_zeros(ref)
    assert "select(vi_1 <= vk, Y[vi_1] + f32(X[vk]) * f32(W[vk]), Y[vi_1])" in str(s)


def test_what_is_left_out_is_not_read() -> None:
    """Beyond the end of its input, which the interpreter would refuse to read."""
    text = """
def main(X: f32[4], Y: f32[4]):
    for i in range(0, 4):
        for k in range(0, 3):
            with block("Y", v=spatial(4, i), vk=reduce(3, k)):
                Y[v] = Y[v] + select(v + vk < 4, X[v + vk], 0.0) * 2.0
"""
    s = Schedule(parse_program(text))
    before = s.program
    s.skip_zeros(s.block("Y"))
    same_results(before, s.program)


def test_refused_while_it_starts_its_sums() -> None:
    s = Schedule(conv2d().program)
    s.compute_inline(s.block("P"))
    refused(
        lambda: s.skip_zeros(s.block("Y")),
        "Y starts its sums itself",
        'with block("Y"',
        "decompose the reduction first",
    )


def test_refused_where_nothing_is_chosen() -> None:
    s, ref = started(conv2d().program, "Y")
    refused(
        lambda: s.skip_zeros(ref),
        "no factor of what Y adds is a select with zero",
        'with block("Y"',
        "inline what pads its input",
    )


@pytest.mark.parametrize("other", ["1.0", "X[v]"])
def test_refused_for_another_choice(other: str) -> None:
    text = f"""
def main(X: f32[4], Y: f32[4]):
    for i in range(0, 4):
        with block("Y", v=spatial(4, i)):
            Y[v] = Y[v] + select(v < 3, X[v], {other}) * 2.0
"""
    s = Schedule(parse_program(text))
    refused(
        lambda: s.skip_zeros(s.block("Y")),
        "no factor of what Y adds is a select with zero",
        'with block("Y"',
        "inline what pads its input",
    )


def test_refused_for_what_is_no_sum() -> None:
    s = Schedule(CASES["blur"]().program)
    refused(
        lambda: s.skip_zeros(s.block("A")), "A is not a sum", 'with block("A"', "only terms of a sum can be left out"
    )
