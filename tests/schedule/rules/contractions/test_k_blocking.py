"""Deep contractions scheduled without search: their reduction is cut in blocks, of which a panel stays in cache."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest

from weft.cost import size_of
from weft.driver.function import NativeFunction
from weft.ir import INDEX, Var, const, maximum
from weft.loop import AxisKind, Block, Buffer, For, LoopKind, Program, statements
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.schedule.rules.block_facts import contraction_of
from weft.support.dtypes import f16, f32
from weft.targets import Target, can_run, cpu
from weft.te import Tensor, compute, placeholder, to_program

MACHINES = [t for t in (cpu("avx512"), cpu("avx2"), cpu("sse4")) if can_run(t)]
ROWS = Var("n", INDEX)
Made = tuple[Sequence[Tensor], Tensor]


def product(a: Sequence[Any], b: Sequence[Any], *, op: str = "matmul", relu: bool = False) -> Made:
    x, w = placeholder(tuple(a), f32, "x"), placeholder(tuple(b), f32, "w")
    [y] = OPERATORS[op]([x, w], {})
    return [x, w], compute(y.shape, lambda *i: maximum(y[i], const(0.0, f32)), "relu", dtype=f32) if relu else y


def panels(a: Sequence[int], b: Sequence[int]) -> Made:
    """A convolution in blocks of channels, so that a panel is of several blocks."""
    x, w = placeholder(tuple(a), f32, "x"), placeholder(tuple(b), f32, "w")
    [y] = OPERATORS["conv2d_blocked"]([x, w], {})
    return [x, w], y


def scheduled(made: Made, target: Target) -> Program:
    inputs, output = made
    return schedule_program(
        to_program(inputs, [output], "deep", [ROWS] if ROWS in output.shape else []), target
    ).program


def arrays(program: Program) -> list[Any]:
    """Return values for the parameters, 37 for a size."""
    rng = np.random.default_rng(0)
    made: list[Any] = []
    for p in program.entry.params:
        if isinstance(p, Buffer):
            made.append(rng.standard_normal([37 if s is ROWS else size_of(s) for s in p.shape]).astype(np.float32))
        else:
            made.append(37)
    return made


CASES = {
    "blocks that divide": product((40, 200), (200, 150)),
    "blocks that do not": product((33, 197), (197, 40)),
    "work that follows": product((40, 200), (200, 150), relu=True),
    "one block of results": product((10, 500), (500, 30)),
    "a batch": product((3, 20, 200), (3, 200, 70)),
    "rows of two axes": product((3, 50, 200), (200, 70)),
    "rows in blocks": product((150, 200), (200, 130)),
    "rows not known": product((ROWS, 200), (200, 130)),
    "columns": panels((1, 12, 9, 9, 16), (5, 12, 3, 3, 16, 16)),
}


def packed(rows: int, depth: int, columns: int, block: int) -> Made:
    """A product with a factor of half precision in panels of *block* columns, twice as many vectors of float32."""
    x = placeholder((rows, depth), f32, "x")
    w = placeholder((columns // block, depth, block), f16, "w")
    [y] = OPERATORS["matmul_packed"]([x, w], {"columns": columns})
    return [x, w], y


def sums_of(program: Program) -> list[Block]:
    """Return the reductions of a scheduled program."""
    blocks = [b for b in statements(program.entry.body) if isinstance(b, Block)]
    return [b for b in blocks if any(a.kind is AxisKind.REDUCE for a in b.axes)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", MACHINES, ids=lambda t: t.name.split("=")[-1])
@pytest.mark.parametrize("case", CASES)
def test_blocks_compute_the_same(case: str, target: Target) -> None:
    deep, plain = (scheduled(CASES[case], target.having(l2=n)) for n in (8 << 10, 1 << 20))
    assert len(sums_of(deep)) == 2
    assert len(sums_of(plain)) == 1
    given = arrays(deep)
    place = [isinstance(p, Buffer) for p in deep.entry.params].index(True, 2)  # after both factors
    results = []
    for program, threads in ((plain, 1), (deep, 1), (deep, 2)):
        given[place] = np.zeros_like(given[place])
        NativeFunction(program, target)(*given, threads=threads)
        results.append(given[place])
    np.testing.assert_allclose(results[1], results[0], atol=2e-4)
    np.testing.assert_array_equal(results[2], results[1])
    assert results[0].any()


def test_tiles_of_a_reduction_cut_unevenly_are_those_of_products() -> None:
    """The last block of 197 steps is shorter, so that what is added has a condition; its sums still fill the registers."""
    even, uneven = (scheduled(product((96, n), (n, 64)), MACHINES[0].having(l2=16 << 10)) for n in (200, 197))
    tiles = []
    for program in (even, uneven):
        [sums] = [b for b in sums_of(program) if contraction_of(b) is not None]
        loops = [f for f in statements(program.entry.body) if isinstance(f, For) and sums in statements(f.body)]
        tiles.append([f.extent for f in loops if f.kind in (LoopKind.UNROLLED, LoopKind.VECTORIZED)])
    assert tiles[0] == tiles[1]


@pytest.mark.parametrize("block", [48, 64, 96])
def test_panels_are_parts_of_blocks_of_a_packed_factor(block: int) -> None:
    """Each product is computed once: columns of two blocks of the factor would need both blocks whole."""
    program = scheduled(packed(48, 1536, 192, block), cpu("avx2").having(l2=64 << 10))
    [sums] = [b for b in sums_of(program) if contraction_of(b) is not None]
    loops = [f for f in statements(program.entry.body) if isinstance(f, For) and sums in statements(f.body)]
    products = prod([size_of(f.extent) for f in loops])
    assert 48 * 1536 * 192 <= products < 2 * 48 * 1536 * 192
