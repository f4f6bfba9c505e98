"""Panels of a B operand that lies in memory as it is are packed where its rows share sets of a cache, and are used often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.schedule.compiling import HERE
from tests.schedule.running import same_results
from tests.support.jit import load

from weft import te
from weft.cost import Candidate, Choosing, Order, PackPanel, TileProblem, cheapest, pack_panel_plans
from weft.loop import Alloc, Buffer, Program, Stmt, statements
from weft.lower import lower
from weft.schedule import carry_out
from weft.targets import Target, cpu

AVX2 = cpu("avx2").having(
    fma_per_cycle=2,
    l1=32 << 10,
    l2=512 << 10,
    l2_speed=32.0,
    scattered_part=0.45,
    l3=8 << 20,
    l3_speed=24.0,
    memory_speed=6.0,
    set_period=4096,
    read_ahead=4096,
)


def product(batch: int, rows: int, depth: int, columns: int) -> Program:
    w, x = te.placeholder((rows, depth), name="w"), te.placeholder((batch, depth, columns), name="x")
    k = te.reduce_axis(depth, "k")
    y = te.compute((batch, rows, columns), lambda n, i, j: te.sum_(w[i, k] * x[n, k, j], [k]), "y")
    z = te.compute((batch, rows, columns), lambda n, i, j: y[n, i, j] + 1.0, "z")
    return te.to_program([w, x], [z], "product")


def packing(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
    wanted = (PackPanel(pack=True), Order(by_rows=False))  # whole rows one after another would read whole rows of B
    return next((c for c in candidates if c.decision in wanted), cheapest(candidates))


def copies(body: Stmt) -> list[Buffer]:
    return [a.buffer for a in statements(body) if isinstance(a, Alloc) and a.buffer.name == "x_local"]


def decided(program: Program, target: Target = AVX2) -> list[bool]:
    planner = Choosing(target)
    carry_out(program, planner)
    return [s.decision.pack for s in planner.plan.steps if isinstance(s.decision, PackPanel)]


def problem(rows: int, depth: int, columns: int) -> TileProblem:
    p = TileProblem(row=rows, column=1, last=columns, depth=depth, element_bytes=4)
    return replace(p, left_stride=depth * 4, right_stride=columns * 4, right_bytes=depth * columns * 4)


def ratio(rows: int, depth: int, columns: int) -> float:
    plain, packed = [c.cycles for c in pack_panel_plans(problem(rows, depth, columns), AVX2)]
    return packed / plain


def test_rows_that_share_a_set_are_packed() -> None:
    """Measured on one core of AMD's Zen 3: 256 rows take 0.4, 16 0.6, 256 times rows of another length 0.7, 8 1.3."""
    assert ratio(256, 1024, 4096) < 0.5
    assert 0.5 < ratio(16, 128, 4096) < 0.8
    assert 0.7 < ratio(256, 1024, 3600) < 1.0
    assert ratio(8, 256, 784) > 1.1


def test_it_is_decided_for_rows_of_b_alone() -> None:
    assert decided(product(1, 256, 64, 1024)) == [True]
    assert decided(product(1, 8, 64, 1000)) == [False]
    assert decided(product(1, 1, 64, 1024)) == decided(product(1, 12, 1, 48)) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("batch", "rows", "depth", "columns"), [(1, 13, 40, 64), (3, 26, 17, 100), (2, 7, 9, 33), (1, 12, 2, 48)]
)
def test_packed_panels(batch: int, rows: int, depth: int, columns: int) -> None:
    program = product(batch, rows, depth, columns)
    s = carry_out(program, Choosing(AVX2, packing))
    (panel,) = copies(s.program.entry.body)
    assert panel.scope == "local"
    same_results(program, s.program)
    made = np.random.default_rng(0)
    w = made.integers(0, 5, (rows, depth)).astype(np.float32)
    x = made.integers(0, 5, (batch, depth, columns)).astype(np.float32)
    z = np.empty((batch, rows, columns), np.float32)
    load(lower(s.program, HERE, verify=True), HERE)[1](w, x, z)
    np.testing.assert_array_equal(z, w @ x + 1)


def test_a_panel_takes_no_more_than_its_columns() -> None:
    """Before it is multiplied by the rows, and not the whole of B."""
    s = carry_out(product(1, 24, 32, 64), Choosing(AVX2, packing))
    flat = lower(s.program, AVX2, verify=True)
    (panel,) = [b for f in flat.functions for b in copies(f.body)]
    (elements,) = panel.shape
    assert int(str(elements)) in {32 * 8 * v for v in (1, 2, 3, 4)}
