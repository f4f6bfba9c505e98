"""Products in matrix registers: tiles that divide the rows, remainders of columns, convolutions, and vectors elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.schedule.compiling import HERE
from tests.schedule.running import same_results
from tests.support.jit import load
from tests.support.machines import AMX

from weft.codegen.llvm.backend import BACKEND
from weft.cost import Candidate, Choosing, MatrixTile, MatrixTileProblem, matrix_tile_plans
from weft.driver.function import NativeFunction
from weft.ir import Var
from weft.loop import Program, parse_program
from weft.lower import lower
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.schedule.rules import apply_plan, carry_out
from weft.support.dtypes import DType, bf16, f32, i8, i32, u8
from weft.targets import Target, cpu
from weft.targets.scopes import CPU_SCOPES
from weft.te import compute, placeholder, to_program

KINDS = [(bf16, bf16), (u8, i8), (i8, i8)]
has_tiles = pytest.mark.skipif(not HERE.has("amx-tile"), reason="this machine has no matrix registers")


def product(sizes: Sequence[int], kinds: tuple[DType, DType], *, epilogue: bool = True) -> Program:
    """A product, with an epilogue that adds to each column: of rows, steps of a tile, panels of a width, and columns."""
    rows, steps, panels, block, columns = sizes
    group = 32 // kinds[0].bits
    a = placeholder((rows, steps * 16 * group), kinds[0], "a")
    b = placeholder((panels, steps * 16, block, group), kinds[1], "b")
    (y,) = OPERATORS["matmul_grouped"]([a, b], {"columns": columns})
    if not epilogue:
        return to_program([a, b], [y], "product")
    c = placeholder((columns,), y.dtype, "c")
    return to_program([a, b, c], [compute((rows, columns), lambda i, j: y[i, j] + c[j], "z")], "product")


def convolution(size: int, kernel: int, stride: int, block: int = 32, panels: int = 1) -> Program:
    """A convolution in bf16 of 64 channels of which 32 stand side by side, padded, to *block* in *panels*, and as many again."""
    x, w = (
        placeholder((1, 2, size, size, 32), bf16, "x"),
        placeholder((2 * panels, 2, kernel, kernel, 16, block // panels, 2), bf16, "w"),
    )
    window = {"strides": (stride, stride), "pads": (kernel // 2,) * 4, "panels": panels}
    (y,) = OPERATORS["conv2d_grouped"]([x, w], window)
    return to_program([x, w], [compute(y.shape, lambda *i: y[i] * 2, "z")], "convolution")


def in_tiles(program: Program, machine: Target = AMX, tile: MatrixTile | None = None) -> Program:
    """Schedules *program* in tiles, even where so few products would be faster in vectors: in *tile*, if that is given."""

    def choose(found: Sequence[Candidate[Any]]) -> Candidate[Any]:
        tiled = [c for c in found if isinstance(c.decision, MatrixTile) and (c.decision.rows or c.decision == tile)]
        tiled = [c for c in tiled if tile is None or c.decision == tile]
        assert tiled or not isinstance(found[0].decision, MatrixTile)
        return min(tiled or found, key=lambda c: c.cycles)

    made = schedule_program(program, machine, choose).program
    assert ("x86.amx" in str(made)) is (tile is None or tile.rows > 0)
    return made


def arrays(program: Program) -> list[Any]:
    """Small whole numbers, whose sums are exact in any order."""
    rng, found = np.random.default_rng(0), []
    for p in program.functions[0].params:
        low = 0 if p.dtype is u8 else -8
        found.append(rng.integers(low, 9, [int(str(s)) for s in p.shape]).astype(p.dtype.numpy))  # type: ignore[union-attr]
    return found


def wanted(a: Any, b: Any, c: Any) -> Any:
    panels, groups, block, group = b.shape
    matrix = b.transpose(1, 3, 0, 2).reshape(groups * group, panels * block)[:, : len(c)]
    return a.astype(np.int32) @ matrix.astype(np.int32) + c


def product_of_parts(sizes: Sequence[int]) -> Program:
    """A product of factors in parts, with an epilogue that adds to each column: of rows, steps of a tile, and columns."""
    rows, steps, columns = sizes
    a = placeholder((rows, steps, 3, 32), bf16, "a")
    b = placeholder((-(-columns // 16), steps, 3, 16, 16, 2), bf16, "b")
    (y,) = OPERATORS["matmul_in_parts"]([a, b], {"columns": columns})
    c = placeholder((columns,), f32, "c")
    return to_program([a, b, c], [compute((rows, columns), lambda i, j: y[i, j] + c[j], "z")], "product")


PARTS = [(32, 2, 32), (14, 1, 40), (19, 2, 16)]
"""Rows, steps of a tile, and columns."""


@pytest.mark.parametrize("sizes", PARTS[:2])
def test_the_schedule_multiplies_pairs_of_parts(sizes: Sequence[int]) -> None:
    program = product_of_parts(sizes)
    same_results(program, in_tiles(program))


@has_tiles
@pytest.mark.parametrize("sizes", PARTS)
def test_machine_code_multiplies_pairs_of_parts(sizes: Sequence[int]) -> None:
    program, target = product_of_parts(sizes), cpu("avx512")
    given = arrays(program)
    load(lower(in_tiles(program, target), target, verify=True), target)[1](*given)
    a, b = (x.astype(np.int64) for x in given[:2])
    left, right = a.transpose(2, 0, 1, 3), b.transpose(2, 0, 4, 1, 3, 5).reshape(3, b.shape[0] * 16, *a.shape[1:2], 32)
    made = sum(np.einsum("mkt,nkt->mn", left[i], right[j]) for i in range(3) for j in range(3 - i))
    np.testing.assert_array_equal(given[3], made[:, : sizes[2]] + given[2])


def test_a_pair_of_parts_shares_a_factor_with_the_next() -> None:
    """Of six pairs of parts, each of 2 x 2 products, fourteen of twenty-four tiles are loaded."""
    text = BACKEND.write(lower(in_tiles(product_of_parts((32, 4, 32))), AMX), AMX).text
    assert [text.count(f"call void @llvm.x86.{op}(") for op in ("tdpbf16ps", "tileloadd64")] == [24, 14]


SIZES = [
    (32, 2, 2, 32, 64),
    (7, 1, 1, 16, 16),
    (14, 2, 3, 32, 90),
    (19, 1, 2, 16, 27),
    (48, 1, 2, 16, 27),
    (32, 2, 1, 16, 10),
]
"""Rows, of which 19 are filled up to whole tiles, steps of a tile, panels of a width, and columns."""


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("sizes", SIZES[1:4])
def test_the_schedule_computes_what_the_formula_says(sizes: tuple[int, ...], kinds: tuple[DType, DType]) -> None:
    program = product(sizes, kinds)
    same_results(program, in_tiles(program))


@has_tiles
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_machine_code_multiplies_tiles(sizes: tuple[int, ...], kinds: tuple[DType, DType]) -> None:
    program = product(sizes, kinds)
    given, target = arrays(program), cpu("avx512")
    load(lower(in_tiles(program, target), target, verify=True), target)[1](*given)
    np.testing.assert_array_equal(given[3], wanted(*given[:3]))


@has_tiles
@pytest.mark.parametrize(("size", "kernel", "stride"), [(14, 1, 1), (7, 3, 1), (14, 3, 2), (16, 1, 2)])
def test_convolutions_are_products_of_the_places_of_a_row(size: int, kernel: int, stride: int) -> None:
    program, target = convolution(size, kernel, stride), cpu("avx512")
    by_tiles, by_vectors = arrays(program), arrays(program)
    vectors = target.having(scopes=CPU_SCOPES)
    load(lower(in_tiles(program, target), target, verify=True), target)[1](*by_tiles)
    load(lower(schedule_program(program, vectors).program, vectors), vectors)[1](*by_vectors)
    np.testing.assert_array_equal(by_tiles[-1], by_vectors[-1])


LINES = [
    (32, MatrixTile(4, 1, 1, lines=2)),
    (32, MatrixTile(4, 1, 1, lines=3, wide=1)),
    (64, MatrixTile(2, 2, 1, lines=1, wide=2)),
    (64, MatrixTile(2, 2, 1, lines=2, wide=1)),
]
"""Channels of a panel, and tiles of some lines of an image and of a part of a panel."""


@pytest.mark.parametrize(("block", "tile"), LINES)
def test_lines_share_parts_of_a_panel(block: int, tile: MatrixTile) -> None:
    program = convolution(4, 1, 1, block)
    same_results(program, in_tiles(program, AMX, tile))


@has_tiles
@pytest.mark.parametrize(("block", "tile"), LINES)
def test_machine_code_of_lines_and_parts_of_a_panel(block: int, tile: MatrixTile) -> None:
    program, target = convolution(4, 3, 1, block), cpu("avx512")
    by_tiles, by_vectors = arrays(program), arrays(program)
    vectors = target.having(scopes=CPU_SCOPES)
    load(lower(in_tiles(program, target, tile), target, verify=True), target)[1](*by_tiles)
    load(lower(schedule_program(program, vectors).program, vectors), vectors)[1](*by_vectors)
    np.testing.assert_array_equal(by_tiles[-1], by_vectors[-1])


@has_tiles
@pytest.mark.parametrize("tile", [MatrixTile(4, 1, 1, lines=2, wide=2), MatrixTile()])
def test_a_block_of_panels(tile: MatrixTile) -> None:
    program, target = convolution(4, 3, 1, 64, panels=4), cpu("avx512")
    by_tiles, plain = arrays(program), arrays(program)
    load(lower(in_tiles(program, target, tile), target, verify=True), target)[1](*by_tiles)
    load(lower(program, target), target)[1](*plain)
    np.testing.assert_array_equal(by_tiles[-1], plain[-1])


def test_lines_are_held_at_once_where_few_places_are_in_each() -> None:
    problem = MatrixTileProblem(
        bf16, bf16, f32, rows=14, columns=16, width=16, groups=1152, inner=16, others=14, lines=14
    )
    best = min(matrix_tile_plans(problem, AMX), key=lambda c: c.cycles).decision
    assert (best.rows, best.lines, best.columns) == (14, 4, 1)


def test_tiles_are_a_decision() -> None:
    program, planner = product((32, 4, 2, 32, 64), (bf16, bf16)), Choosing(AMX)
    s = carry_out(program, planner)
    (asked,) = [q for q in planner.questions if isinstance(q.chosen.decision, MatrixTile)]
    assert asked.chosen.decision == MatrixTile(16, 2, 1)
    assert len(asked.candidates) > 5, "tiles are open to a search"
    assert str(apply_plan(program, planner.plan).program) == str(s.program)


@pytest.mark.parametrize(("width", "inner"), [(24, 16), (32, 8)])
def test_what_does_not_fill_tiles_is_computed_in_vectors(width: int, inner: int) -> None:
    problem = MatrixTileProblem(bf16, bf16, f32, rows=32, columns=2, width=width, groups=inner, inner=inner, others=1)
    assert [c.decision.rows for c in matrix_tile_plans(problem, AMX)] == [0]


def test_other_machines_have_vectors_alone() -> None:
    problem = MatrixTileProblem(u8, i8, i32, rows=32, columns=2, width=32, groups=32, inner=32, others=1)
    assert [c.decision.rows for c in matrix_tile_plans(problem, cpu("avx2"))] == [0]


def test_factors_are_loaded_again_after_a_configuration() -> None:
    nests = [
        f"""    {t} = alloc("tile", f32[256])
    call("x86.amx_zero_f32_{rows}x16", {t}.at(0), 16)
    call("x86.amx_bf16_{rows}x16x32", {t}.at(0), A.at(0), B.at(0), 16, 32, 32)
    call("x86.amx_store_f32_{rows}x16", {to}.at(0), {t}.at(0), 16, 16)
"""
        for t, to, rows in (("T", "D", 16), ("U", "E", 8))
    ]
    program = parse_program("def f(A: bf16[512], B: bf16[512], D: f32[256], E: f32[256]):\n" + "".join(nests))
    made = BACKEND.write(lower(program, AMX), AMX).text
    assert made.count("call void @llvm.x86.tileloadd64(") == 4


@has_tiles
@pytest.mark.parametrize("kinds", KINDS)
def test_results_without_an_epilogue_are_stored_from_tiles(kinds: tuple[DType, DType]) -> None:
    target = cpu("avx512")
    for columns, stored_at_once in ((64, True), (60, False)):
        program = product((32, 2, 2, 32, columns), kinds, epilogue=False)
        made = in_tiles(program, target)
        assert ("local" not in str(made)) is stored_at_once
        given = arrays(program)
        load(lower(made, target, verify=True), target)[1](*given)
        np.testing.assert_array_equal(given[2], wanted(given[0], given[1], np.zeros(columns, given[2].dtype)))


def test_rows_that_no_tile_divides_are_filled_up() -> None:
    problem = MatrixTileProblem(
        bf16, bf16, f32, rows=197, columns=48, width=64, groups=384, inner=384, others=1, left_stride=1536
    )
    best = min(matrix_tile_plans(problem, AMX), key=lambda c: c.cycles).decision
    assert best.rows == 16
    lines = replace(problem, left_stride=0)  # places of a window overlap: there are no rows to fill up
    assert [c.decision.rows for c in matrix_tile_plans(lines, AMX)] == [0]


@has_tiles
def test_any_number_of_rows() -> None:
    n, target = Var("n"), cpu("avx512")
    a, b = placeholder((n, 64), bf16, "a"), placeholder((2, 32, 32, 2), bf16, "b")
    (y,) = OPERATORS["matmul_grouped"]([a, b], {"columns": 64})
    program = to_program([a, b], [compute((n, 64), lambda i, j: y[i, j] * 2, "z")], "product")
    run = NativeFunction(in_tiles(program, target), target)
    rng = np.random.default_rng(0)
    right = rng.integers(-8, 9, (2, 32, 32, 2)).astype(bf16.numpy)
    for rows in (1, 5, 16, 17, 64, 100):
        left = rng.integers(-8, 9, (rows, 64)).astype(bf16.numpy)
        found = np.empty((rows, 64), np.float32)
        run(left, right, found, rows)
        np.testing.assert_array_equal(found, 2 * wanted(left, right, np.zeros(64, np.float32)))


def test_transposed_results_are_stored_from_vectors() -> None:
    a, b = placeholder((32, 64), bf16, "a"), placeholder((2, 32, 32, 2), bf16, "b")
    (y,) = OPERATORS["matmul_grouped"]([a, b], {"columns": 64})
    made = in_tiles(to_program([a, b], [compute((64, 32), lambda j, i: y[i, j], "z")], "product"))
    assert "local" in str(made)
