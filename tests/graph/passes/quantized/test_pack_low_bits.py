"""Weights of few bits are packed as they are, and kernels take them apart."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.checks import apply_pass, ops
from tests.graph.oracle import Oracle
from tests.graph.passes.quantized.quantized_graphs import random_bytes

from weft.codegen.interp import run
from weft.cost import Choosing, Tile, TileProblem, taken_apart_plans, tile_plans
from weft.graph import Graph, Value
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.passes.quantized.pack_low_bits import pack_low_bits
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.schedule.rules import carry_out
from weft.support.dtypes import f32, u8
from weft.targets import cpu
from weft.te import placeholder, to_program

COLUMNS, BLOCKS, BYTES = 7, 3, 4


def packed(graph: Graph) -> Graph:
    return fold_constants(pack_low_bits(graph, Choosing(cpu("sse4"))), Oracle())


def product(g: Graph, q: Value, bits: int, *shape: int, zero: bool = False) -> Value:
    of_blocks = np.random.default_rng(1).uniform(0.5, 1, (2, COLUMNS, BLOCKS)).astype(np.float32)
    given = [g.constant(x) for x in (of_blocks if zero else of_blocks[:1])]
    x = g.input("x", (*shape, BLOCKS * BYTES * 8 // bits), f32)
    return g.add("matmul_bits", [x, q, *given], bits=bits)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize(("bits", "shape"), [(4, (3,)), (8, (2, 3)), (2, ()), (1, (1,))])
def test_weights_stay_packed(bits: int, shape: tuple[int, ...], zero: bool) -> None:
    g = Graph()
    q = g.constant(random_bytes(u8, (COLUMNS, BLOCKS, BYTES)), "q")
    g.output(product(g, q, bits, *shape, zero=zero), "y")
    made = apply_pass(g, packed)
    assert ops(made) == ["matmul_bits_packed"]
    assert next(c.dtype for c in made.constants()) is u8


def test_weights_that_are_computed_stay_as_they_are() -> None:
    g = Graph()
    g.output(product(g, g.input("q", (COLUMNS, BLOCKS, BYTES), u8), 4, 3), "y")
    assert ops(apply_pass(g, packed)) == ["matmul_bits"]


def test_the_schedule_takes_a_byte_apart_once() -> None:
    a, p, s = placeholder((16, 64), f32, "a"), placeholder((2, 2, 16, 32), u8, "p"), placeholder((2, 2, 32), f32, "s")
    (y,) = OPERATORS["matmul_bits_packed"]([a, p, s], {"bits": 4, "columns": 64})
    planner = Choosing(cpu("avx512"))
    text = str(carry_out(to_program([a, p, s], [y], "product"), planner).program)
    assert "field in unrolled(0, 2)" in text
    (tile,) = [q.chosen.decision for q in planner.questions if isinstance(q.chosen.decision, Tile)]
    assert tile.rows > 8, "taking weights apart is shared by many rows"


@pytest.mark.parametrize(("rows", "by_panels"), [(1, False), (None, True), (200, True)])
def test_many_rows_have_panels_taken_apart_before(rows: int | None, by_panels: bool) -> None:
    assert taken_apart_plans(rows, cpu("avx512"))[0].decision.by_panels is by_panels


@pytest.mark.parametrize("rows", [1, 20])
def test_a_panel_is_computed_where_it_is_used(rows: int) -> None:
    a, p, s = placeholder((rows, 24), f32, "a"), placeholder((9, 3, 4, 16), u8, "p"), placeholder((9, 3, 16), f32, "s")
    (y,) = OPERATORS["matmul_bits_packed"]([a, p, s], {"bits": 4, "columns": 140, "by_panels": True})
    program = to_program([a, p, s], [y], "product")
    scheduled = schedule_program(program, cpu("avx512")).program
    made = np.random.default_rng(0)
    given = [made.standard_normal((rows, 24)).astype(np.float32), random_bytes(u8, (9, 3, 4, 16))]
    given += [made.standard_normal((9, 3, 16)).astype(np.float32)]
    results = [np.zeros((rows, 140), np.float32) for _ in range(2)]
    for text, result in zip((program, scheduled), results, strict=True):
        run(text, [*given, result])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-4)
    nests = [line for line in str(scheduled).splitlines() if line.startswith("    for ")]
    assert len(nests) == 1, "a panel is computed inside the loop over panels"


def test_conversions_favour_more_rows() -> None:
    def rows(conversions: int) -> int:
        p = TileProblem(64, 1, 64, 64, 4, right_bytes=1 << 14, conversions=conversions)
        return min(tile_plans(p, cpu("avx512")), key=lambda c: c.cycles).decision.rows

    assert rows(8) > rows(0)
