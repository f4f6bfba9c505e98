"""Transforms with constant matrices take in what they read, as much of it as they read."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.running import same_results

from weft.codegen.interp import run
from weft.driver.function import NativeFunction
from weft.ir import Const, const, maximum
from weft.loop import Alloc, Buffer, Program, print_program, statements
from weft.lower import lower
from weft.ops.convolutions.winograd import conv2d_winograd, pack_winograd_weight
from weft.schedule import schedule_program
from weft.support.dtypes import f32
from weft.targets import can_run, cpu, parse_target
from weft.te import compute, placeholder, to_program

WIDE = cpu("avx512")
HERE = next(t for t in (WIDE, cpu("avx2"), cpu("sse4")) if can_run(t))


def mixed(height: int, width: int, images: int = 1) -> Program:
    """A layer of 3 x 3 taps whose tiles have up to four rows and columns of outputs, and what follows it."""
    x, u = placeholder((images, 2, height, width, 16), f32, "x"), placeholder((6, 6, 1, 32, 32), f32, "u")
    b = placeholder((2, 16), f32, "b")
    y = conv2d_winograd(x, u, b, tile=4, kernel=(3, 3), channels=32, block=16, pads=(1, 1, 1, 1), mixed=True)
    return to_program(
        [x, u, b], [compute(y.shape, lambda *i: maximum(y[i], const(0.0, f32)), "relu", dtype=f32)], "layer"
    )


def allocated(program: Program) -> list[int]:
    """The elements of each buffer that is allocated."""
    made = [s.buffer for f in program.functions for s in statements(f.body) if isinstance(s, Alloc)]
    return [int(n.value) for b in made for n in b.shape if isinstance(n, Const)]


@pytest.mark.parametrize("block", [16, 32, 64])
def test_across_the_vector_nothing_more_is_computed(block: int) -> None:
    """The first half of a weight's transform is read down its columns: a vector of them, for the one row in use."""
    w = placeholder((64, 20, 3, 3), f32, "w")
    program = to_program([w], [pack_winograd_weight(w, tile=4, block=block)], "pack")
    flat = lower(schedule_program(program, WIDE).program, WIDE)
    assert allocated(flat) == [6 * 3 * WIDE.lanes(32)]


def test_channels_may_be_blocks_of_their_own() -> None:
    """So they are for a target without vectors; no loop is left along such a block where tiles of other sizes are cut apart."""
    x, u = placeholder((1, 2, 6, 7, 1), f32, "x"), placeholder((6, 6, 3, 2, 1), f32, "u")
    y = conv2d_winograd(x, u, tile=4, kernel=(3, 3), channels=3, block=1, pads=(1, 1, 1, 1), mixed=True)
    program = to_program([x, u], [compute(y.shape, lambda *i: maximum(y[i], const(0.0, f32)), "relu")], "layer")
    same_results(program, schedule_program(program, parse_target("c")).program)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("height", "width", "images"), [(6, 9, 1), (7, 10, 2), (5, 8, 1), (4, 11, 3)])
def test_tiles_of_several_sizes_compute_what_the_formulas_say(height: int, width: int, images: int) -> None:
    program = mixed(height, width, images)
    scheduled = schedule_program(program, HERE).program
    rng = np.random.default_rng(0)
    shapes = [[int(getattr(n, "value", 0)) for n in p.shape] for p in program.entry.params if isinstance(p, Buffer)]
    given = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    results = [np.zeros_like(given[-1]) for _ in range(2)]
    for threads, y in enumerate(results, 1):
        NativeFunction(scheduled, HERE)(*given[:-1], y, threads=threads)
    np.testing.assert_array_equal(results[0], results[1])
    run(program, given)
    np.testing.assert_allclose(results[0], given[-1], rtol=1e-4, atol=1e-3)


def test_each_size_of_tiles_has_loops_of_its_own() -> None:
    text = print_program(schedule_program(mixed(4, 11), WIDE).program)
    outer = [line for line in text.splitlines() if line.startswith(("    for ", "    with block"))]
    assert len(outer) == 1 + 2 + 2 + 2  # the padded input; for two sizes of columns inputs, products and outputs
    assert "winograd_columns" in text
    halves = [line for line in text.splitlines() if "= alloc(" in line and ("columns" in line or "rows" in line)]
    assert len(halves) == 4
    assert all('"register"' in line for line in halves)
