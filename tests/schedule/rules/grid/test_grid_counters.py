"""Kernels that the rules make for grids move what their tiles need, meet no bank twice, and wait no more often than they must."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lower.threaded import run_case
from tests.schedule.programs import Array, Case, case, matmul

from weft import te
from weft.codegen.interp.threads.counters import Counters
from weft.cost import SharedTile, parse_plan
from weft.lower import lower
from weft.schedule import apply_plan, schedule_program
from weft.support.dtypes import f32
from weft.targets.grid_machines import OPENCL

SECTOR = 32
FLOATS = SECTOR // 4


def counted(of: Case, tile: SharedTile | None = None) -> Counters:
    """The counters of a computation in *tile*, else as the rules schedule it."""
    if tile is None:
        scheduled = schedule_program(of.program, OPENCL)
    else:
        scheduled = apply_plan(of.program, parse_plan(f"*: ThreadBlock(threads=256, lanes=1)\nC: {tile}\n"))
    return run_case(of, lower(scheduled.program, OPENCL), OPENCL)


def check_product(n: int, tile: SharedTile) -> None:
    found = counted(matmul(n, n, n), tile)
    high, wide = tile.high, tile.wide
    blocks = n // high * (n // wide)
    assert found.of_buffer["A"] == blocks * high * n // FLOATS  # each block fetches its rows and its columns once
    assert found.of_buffer["B"] == blocks * wide * n // FLOATS
    assert found.of_buffer["C"] == found.stores == n * n // FLOATS
    assert (found.conflicts, found.ways, found.divergent) == (0, 1, 0)
    assert found.barriers == blocks * 2 * (n // tile.depth)


TILES = (
    SharedTile(8, 8, 4, 4, 16),
    SharedTile(8, 8, 8, 4, 8),
    SharedTile(4, 16, 4, 2, 32),
    SharedTile(16, 8, 2, 4, 16, unroll=True),
    SharedTile(16, 16, 2, 2, 16),
    SharedTile(8, 8, 8, 8, 8, unroll=True, lanes=4, run=4),
    SharedTile(8, 4, 8, 8, 16, unroll=True, lanes=4, across=2, run=4),
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_a_product_reaches_the_optimum_of_its_tile(tile: SharedTile) -> None:
    check_product(64, tile)


SHARING = (
    SharedTile(8, 8, 4, 4, 16, lanes=4, run=4, parts=2),
    SharedTile(8, 8, 4, 4, 8, lanes=4, run=4, groups=4),
    SharedTile(8, 8, 2, 2, 16, lanes=4, groups=2),
    SharedTile(8, 8, 4, 4, 16, lanes=4, run=4, parts=2, groups=2),
)


@pytest.mark.parametrize("tile", SHARING, ids=str)
def test_terms_that_are_shared_are_fetched_once_and_meet_no_bank_twice(tile: SharedTile) -> None:
    n, terms = 32, 128
    found = counted(matmul(n, n, terms), tile)
    blocks = n // tile.high * (n // tile.wide)
    assert found.of_buffer["A"] == blocks * tile.high * terms // FLOATS
    assert found.of_buffer["B"] == blocks * tile.wide * terms // FLOATS
    assert (found.conflicts, found.ways) == (0, 1)
    fetches = 2 * blocks * terms // tile.steps
    assert found.barriers == fetches + (tile.groups > 1) * blocks * tile.parts


@pytest.mark.slow
def test_a_product_of_512() -> None:
    check_product(512, SharedTile(8, 16, 8, 4, 16))


def image_product(channels: int, size: int, made: int) -> Case:
    """A convolution of 3 x 3, whose weights lie by taps, then by channels."""
    x = te.placeholder((channels, size + 2, size + 2), f32, "X")
    w = te.placeholder((3, 3, channels, made), f32, "W")
    c, i, j = te.reduce_axis(channels, "c"), te.reduce_axis(3, "i"), te.reduce_axis(3, "j")
    y = te.compute((made, size, size), lambda o, p, q: te.sum_(x[c, p + i, q + j] * w[i, j, c, o], [i, j, c]), "C")

    def expected(u: Array, v: Array) -> list[Array]:
        patches = np.lib.stride_tricks.sliding_window_view(u, (3, 3), (1, 2))
        return [np.einsum("cpqij,ijco->opq", patches, v)]

    return case([x, w], [y], expected)


@pytest.mark.parametrize(("channels", "size"), [(16, 16), pytest.param(64, 56, marks=pytest.mark.slow)])
def test_a_convolution_fetches_its_weights_once_a_block(channels: int, size: int) -> None:
    tile = SharedTile(8, 8, 4, 2, 16)
    found = counted(image_product(channels, size, 32), tile)
    blocks = size * -(-size // 16)
    assert found.of_buffer["W"] == blocks * 9 * channels * 32 // FLOATS
    assert found.barriers == blocks * 2 * 9 * (channels // tile.depth)


def softmax_without_exponentials(rows: int, n: int) -> Case:
    """The accesses of softmax, with sums that are exact in any order."""
    x = te.placeholder((rows, n), f32, "X")
    k, q = te.reduce_axis(n, "k"), te.reduce_axis(n, "q")
    largest = te.compute((rows,), lambda i: te.max_(x[i, k], [k]), "M")
    e = te.compute((rows, n), lambda i, j: x[i, j] - largest[i], "E")
    total = te.compute((rows,), lambda i: te.sum_(e[i, q], [q]), "T")
    y = te.compute((rows, n), lambda i, j: e[i, j] - total[i], "Y")

    def expected(v: Array) -> list[Array]:
        powers = v - v.max(1, keepdims=True)
        return [powers - powers.sum(1, keepdims=True)]

    return case([x], [y], expected)


@pytest.mark.parametrize(
    ("rows", "n"), [(32, 256), (64, 16), (9, 1024), pytest.param(1024, 1000, marks=pytest.mark.slow)]
)
def test_softmax_reads_and_writes_each_element_once(rows: int, n: int) -> None:
    """In one kernel, whose threads keep what they read; they wait twice for each of two reductions, or once for a few values."""
    found = counted(softmax_without_exponentials(rows, n))
    whole = rows * n // FLOATS
    assert found.of_buffer == {"X": whole, "Y": whole}
    assert (found.conflicts, found.ways) == (0, 1)
    assert found.barriers <= rows * 4
