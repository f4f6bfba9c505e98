"""The whole pipeline on scheduled programs: each pass keeps their meaning, and what comes out is what was asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.lower.running import inputs_of, results
from tests.lower.scheduled import SCHEDULED

from weft.ir import Var
from weft.loop import Alloc, Buffer, Function, Let, Program, Stmt, for_, print_program, store, verify
from weft.loop.nodes import load
from weft.lower import PASSES, ProgramReport, lower
from weft.support.dtypes import f32
from weft.targets import cpu


@pytest.mark.sampled(4)
@pytest.mark.parametrize("level", ["avx512", "sse4"])
@pytest.mark.parametrize("name", SCHEDULED)
def test_every_pass_keeps_the_meaning(name: str, level: str) -> None:
    program = SCHEDULED[name]()
    values = inputs_of(program)
    expected = results(program, values)

    def check(report: ProgramReport) -> None:
        if report.changed:
            for x, y in zip(expected, results(report.after, values), strict=True):
                np.testing.assert_allclose(
                    x.astype(np.float64), y.astype(np.float64), 1e-6, err_msg=f"after {report.name}"
                )

    flat = lower(program, cpu(level), verify=True, trace=check)
    verify(flat, flat=True)


@pytest.mark.parametrize("name", ["product", "product-tails", "convolution-copied", "concatenation"])
def test_lowered(name: str, golden: Callable[[str], None]) -> None:
    golden(print_program(lower(SCHEDULED[name](), cpu("avx512"))))


def test_a_lowered_program_lowers_to_itself() -> None:
    once = lower(SCHEDULED["product"](), cpu("avx512"))
    assert print_program(lower(once, cpu("avx512"))) == print_program(once)


def test_reports_name_each_pass_and_tell_what_changed() -> None:
    reports: list[ProgramReport] = []
    lower(Program(SCHEDULED["arg-max"]().functions), cpu("avx512"), trace=reports.append)
    assert [r.name for r in reports] == [p.name for p in PASSES]
    by_name = {r.name: r for r in reports}
    assert by_name["vectorize"].text().endswith("(unchanged)\n")
    assert "def main(" in by_name["flatten_buffers"].text()
    assert all(r.seconds >= 0 for r in reports)


def test_unrolled_loops_are_written_out_where_asked() -> None:
    program = SCHEDULED["product"]()
    flat = lower(program, cpu("avx512"), verify=True, unroll=True)
    assert "unrolled" not in print_program(flat)
    values = inputs_of(program)
    for x, y in zip(results(program, values), results(flat, values), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_program_may_be_deeper_than_the_stack() -> None:
    a, c = Buffer("A", (4,), f32), Buffer("C", (4,), f32)
    i = Var("i")
    names = [Var("x", f32) for _ in range(1500)]
    body: Stmt = store(c, [i], names[-1])
    for v, w in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
        body = Let(v, w + load(a, i), body)
    body = for_(i, 4, Let(names[0], load(a, i), body))
    for _ in range(1500):
        body = Alloc(Buffer("T", (4,), f32), body)
    flat = lower(Program((Function("main", (a, c), body),)), cpu("avx512"))
    values = inputs_of(flat)
    np.testing.assert_array_equal(results(flat, values)[1], results(flat, values)[0] * 1500)
