"""Rules for grids: computations, by the cheapest plan and by others, are right on the interpreter of threads, without races."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.lower.threaded import check_threads
from tests.schedule.programs import Array, Case, argmax, case, gather, matmul, pool, recurrence, rows

from weft import te
from weft.cost import NO_TILE, Candidate, SharedTile, ThreadBlock, parse_plan
from weft.ir import Var, maximum
from weft.lower import lower
from weft.schedule import apply_plan, plans, schedule_program
from weft.support.dtypes import f32
from weft.targets.grid_machines import OPENCL, WEBGPU


def product_with_bias() -> Case:
    """A product of an unknown number of rows, with what its epilogue adds, of sizes that no tile divides."""
    n = Var("n")
    a, b, c = te.placeholder((n, 21), f32, "A"), te.placeholder((21, 50), f32, "B"), te.placeholder((50,), f32, "c")
    r = te.reduce_axis(21, "r")
    p = te.compute((n, 50), lambda i, j: te.sum_(a[i, r] * b[r, j], [r]), "P")
    y = te.compute((n, 50), lambda i, j: maximum(p[i, j] + c[j], 0.0), "Y")
    return case([a, b, c], [y], lambda u, v, w: [(u @ v + w).clip(0)], n=37)


def convolution() -> Case:
    x, w = te.placeholder((1, 6, 20, 20), f32, "X"), te.placeholder((18, 6, 3, 3), f32, "W")
    c, i, j = te.reduce_axis(6, "c"), te.reduce_axis(3, "i"), te.reduce_axis(3, "j")
    y = te.compute((1, 18, 18, 18), lambda n, o, p, q: te.sum_(x[n, c, p + i, q + j] * w[o, c, i, j], [c, i, j]), "Y")

    def expected(u: Array, v: Array) -> list[Array]:
        patches = np.lib.stride_tricks.sliding_window_view(u, (3, 3), (2, 3))
        return [np.einsum("ncpqij,ocij->nopq", patches, v)]

    return case([x, w], [y], expected)


def batched() -> Case:
    a, b = te.placeholder((3, 17, 8), f32, "A"), te.placeholder((3, 8, 19), f32, "B")
    r = te.reduce_axis(8, "r")
    y = te.compute((3, 17, 19), lambda n, i, j: te.sum_(a[n, i, r] * b[n, r, j], [r]), "Y")
    return case([a, b], [y], lambda u, v: [u @ v])


def total() -> Case:
    x = te.placeholder((7, 300), f32, "X")
    r = te.reduce_axis(300, "r")
    y = te.compute((7,), lambda i: te.sum_(x[i, r], [r]), "Y")
    return case([x], [y], lambda v: [v.sum(1)])


def doubled() -> Case:
    n = Var("n")
    x = te.placeholder((n, 5, 7), f32, "X")
    y = te.compute((n, 7, 5), lambda i, j, k: x[i, k, j] * 2.0, "Y")
    return case([x], [y], lambda v: [v.swapaxes(1, 2) * 2], n=61)


CASES: dict[str, Callable[[], Case]] = {
    "argmax": argmax,
    "rows": rows,
    "recurrence": recurrence,
    "gather": gather,
    "pool": pool,
    "product": lambda: matmul(33, 20, 40),
    "product with a bias": product_with_bias,
    "convolution": convolution,
    "batch of products": batched,
    "sums of rows": total,
    "transposition": doubled,
}


@pytest.mark.parametrize("name", CASES)
def test_the_cheapest_plan(name: str) -> None:
    made = CASES[name]()
    s = schedule_program(made.program, OPENCL)
    counted = check_threads(made, s.program, OPENCL)
    assert counted.ways <= 4


@pytest.mark.parametrize("name", ["recurrence", "gather", "product with a bias", "convolution", "transposition"])
def test_indices_of_32_bits(name: str) -> None:
    made = CASES[name]()
    check_threads(made, schedule_program(made.program, WEBGPU).program, WEBGPU)


def test_threads_of_whole_loops() -> None:
    """Blocks of 64 threads would end inside of the middle loop, whose nine iterations two do not divide."""
    x = te.placeholder((5, 9, 32), f32, "X")
    y = te.compute((5, 9, 32), lambda i, j, k: x[i, j, k] + 1.0, "Y")
    made = case([x], [y], lambda v: [v + 1])
    text = str(schedule_program(made.program, OPENCL).program)
    assert 'bound(0, 45, thread="blockIdx.x")' in text
    assert 'bound(0, 32, thread="threadIdx.x")' in text
    check_threads(made, schedule_program(made.program, OPENCL).program, OPENCL)


@pytest.mark.parametrize("name", ["product with a bias", "convolution"])
@pytest.mark.parametrize("tile", [SharedTile(4, 16, 4, 2, 16), NO_TILE], ids=str)
def test_another_tile(name: str, tile: SharedTile) -> None:
    made = CASES[name]()
    taken: list[object] = []

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        found = next((c for c in candidates if c.decision == tile), candidates[0])
        taken.append(found.decision)
        return found

    check_threads(made, schedule_program(made.program, OPENCL, choose).program, OPENCL)
    assert tile in taken


def test_a_plan_reads_back_and_tells_that_it_is_for_a_grid() -> None:
    made = product_with_bias()
    first = next(plans(made.program, OPENCL))
    assert isinstance(first.steps[0].decision, ThreadBlock)
    again = apply_plan(made.program, parse_plan(str(first)))
    assert str(again.program) == str(schedule_program(made.program, OPENCL).program)


def test_blocks_are_no_larger_than_the_machine_has() -> None:
    small = replace(OPENCL, grid=replace(OPENCL.grid, block=64)) if OPENCL.grid is not None else OPENCL
    made = product_with_bias()
    check_threads(made, schedule_program(made.program, small).program, small)


@pytest.mark.parametrize(
    ("channels", "size", "made", "stride"), [(64, 56, 64, 1), (128, 28, 128, 2), (64, 56, 192, 1), (3, 64, 96, 2)]
)
def test_parts_of_images_fit_in_shared_memory(channels: int, size: int, made: int, stride: int) -> None:
    width = (size - 3) // stride + 1
    x, w = te.placeholder((channels, size, size), f32, "X"), te.placeholder((made, channels, 3, 3), f32, "W")
    c, i, j = te.reduce_axis(channels, "c"), te.reduce_axis(3, "i"), te.reduce_axis(3, "j")
    y = te.compute(
        (made, width, width),
        lambda o, p, q: te.sum_(x[c, p * stride + i, q * stride + j] * w[o, c, i, j], [c, i, j]),
        "Y",
    )
    for target in (OPENCL, WEBGPU):
        lower(schedule_program(te.to_program([x, w], [y]), target).program, target)
