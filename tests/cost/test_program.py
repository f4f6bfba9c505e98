"""The cost of a scheduled program: what its loops touch, what counts, and that the ranking is that of the clock."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from tests.support.machines import SERVER

from weft.cost import LoopNest, cost_of, nests, predict_cycles
from weft.cost.footprint import ranges_of
from weft.loop import Program, parse_program
from weft.schedule import Schedule, schedule_program
from weft.targets import cpu, host
from weft.te import compute, placeholder, reduce_axis, sum_, to_program

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def matmul(m: int = 64, n: int = 96, k: int = 80) -> Program:
    a, b, r = placeholder((m, k), name="a"), placeholder((k, n), name="b"), reduce_axis(k, "r")
    return to_program([a, b], [compute((m, n), lambda i, j: sum_(a[i, r] * b[r, j], [r]), "c")], "f")


def nest_of(text: str) -> LoopNest:
    (found,) = nests(parse_program(text).entry.body)
    return found


COPY = """def f(x: f32[64, 64], y: f32[64, 64]):
    for i in range(0, 64):
        for j in range(0, 64):
            with block("y", vi=spatial(64, i), vj=spatial(64, j)):
                y[vi, vj] = x[vj, vi]
"""


def test_bytes_are_those_of_whole_lines() -> None:
    nest = nest_of(COPY)
    x = nest.read[0]
    i, j = nest.levels
    assert x.nbytes(ranges_of([]), 64) == 64
    assert x.nbytes(ranges_of([j]), 64) == 64 * 64, "a column: a line a row"
    assert x.nbytes(ranges_of([i]), 64) == 64 * 4, "a row: its own lines"
    assert x.nbytes(ranges_of([i, j]), 64) == 64 * 64 * 4
    assert (x.stride(i), x.stride(j), nest.written.stride(j)) == (1, 64, 1)
    assert x.uses(i)


def test_a_fused_loop_is_seen_as_its_parts() -> None:
    nest = nest_of("""def f(x: f32[8, 4], y: f32[8, 4]):
    for f in range(0, 32):
        with block("y", vi=spatial(8, f // 4), vj=spatial(4, f % 4)):
            y[vi, vj] = x[vi, 0]
""")
    outer, inner = nest.levels
    assert (outer.extent, outer.scale, inner.extent, inner.scale) == (8, 4, 4, 1)
    assert nest.read[0].uses(outer)
    assert not nest.read[0].uses(inner)


def test_rows_cost_less_than_columns() -> None:
    columns = COPY
    rows = COPY.replace("x[vj, vi]", "x[vi, vj]")
    far = COPY.replace("64", "16384")
    costs = [cost_of(nest_of(t), host()).cycles for t in (rows, columns)]
    assert costs[0] <= costs[1]
    assert cost_of(nest_of(far), host()).demand.far > 0, "it fits no cache"
    assert cost_of(nest_of(columns), host()).demand.far == 0


def test_each_step_of_a_good_schedule_costs_less() -> None:
    plain = matmul()
    s = Schedule(plain)
    (block,) = s.blocks()
    i, j, r = s.loops(block)
    s.reorder([i, r, j])
    _, j_inner = s.split(j, [None, 16])
    s.vectorize(j_inner)
    ruled = schedule_program(plain, host()).program
    costs = [predict_cycles(p, host()) for p in (plain, s.program, ruled)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 10 * costs[2]
    least = 64 * 96 * 80 / host().lanes(32) / host().core.fma_per_cycle
    assert least <= costs[2] < 3 * least, "never less than the multiply-adds take"


def test_narrow_vectors_cost_more() -> None:
    costs = [
        predict_cycles(schedule_program(matmul(), t).program, t) for t in (cpu("avx512"), cpu("avx2"), cpu("sse4"))
    ]
    assert costs == sorted(costs)


def test_what_does_not_fit_the_registers_is_spilled() -> None:
    few, more, many = (predict_cycles(_tiled(rows), SERVER) for rows in (16, 32, 64))
    assert few < more
    assert many > 1.4 * few, "a sum that is spilled takes longer to store and to load again than to add to"


def _tiled(rows: int) -> Program:
    s = Schedule(matmul())
    (block,) = s.blocks()
    copy = s.cache_write(block, "register")
    i, j = s.loops(copy)
    i_outer, i_inner = s.split(i, [None, rows])
    j_outer, j_inner = s.split(j, [None, 16])
    s.reorder([i_outer, j_outer, i_inner, j_inner])
    s.compute_at(block, j_outer)
    s.set_scope(block, "register")
    _, _, a, b, r = s.loops(block)
    s.reorder([r, a, b])
    s.decompose_reduction(block, r)
    s.unroll(a)
    s.vectorize(b)
    return s.program


def test_ranks_as_the_clock_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    cost_model: Any = importlib.import_module("cost_model")
    rows = cost_model.measured(3, 16)
    assert cost_model.spearman([r.cycles for r in rows], [r.microseconds for r in rows]) >= 0.7


def test_rank_correlation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spearman: Any = importlib.import_module("cost_model").spearman
    assert spearman([1.0, 2.0, 3.0], [10.0, 20.0, 90.0]) == pytest.approx(1)
    assert spearman([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1)
    assert spearman([1.0, 2.0, 2.0, 3.0], [1.0, 2.0, 2.0, 3.0]) == pytest.approx(1)


def test_axes_of_one_loop_fill_it_together() -> None:
    """Rows of 7 x 7 places, in vectors of 16, are four vectors of which the last is nearly empty, and not a sixteenth of that."""
    nest = nest_of("""def f(x: f32[7, 7], y: f32[7, 7]):
    for o in range(0, 4):
        for i in vectorized(0, 16):
            with block("y", vi=spatial(7, (o * 16 + i) // 7), vj=spatial(7, (o * 16 + i) % 7), where=(o * 16 + i < 49)):
                y[vi, vj] = x[vi, vj]
""")
    assert cost_of(nest, SERVER).demand.stores >= 4
