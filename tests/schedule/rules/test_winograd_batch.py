"""Products between small transforms, patch by patch: the result stays the same, and what lies between the stages is small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weft.codegen.interp import run
from weft.driver.function import NativeFunction
from weft.ir import INDEX, Const, Expr, Var, apply, const, index, maximum
from weft.loop import Alloc, Buffer, Program, parse_program, print_program, statements
from weft.lower import lower
from weft.ops.convolutions.winograd import conv2d_winograd
from weft.schedule import schedule_program
from weft.support.dtypes import f32, i16
from weft.targets import Target, can_run, cpu
from weft.te import Tensor, compute, placeholder, to_program

HERE = next(t for t in (cpu("avx512"), cpu("avx2"), cpu("sse4")) if can_run(t))
Patch = tuple[int, int, int]


def layer(patch: Patch | None, strides: tuple[int, int] = (1, 1), images: int = 1) -> tuple[list[Tensor], list[Tensor]]:
    """A layer of 32 channels on 10 x 11 positions, which tiles of 2 x 2 outputs overhang, and what follows it."""
    taps, phases = (3, 1) if strides == (1, 1) else (2, 4)
    n = 2 + taps - 1
    x, u = placeholder((images, 2, 10, 11, 16), f32, "x"), placeholder((n, n, 1, 32 * phases, 32), f32, "u")
    b = placeholder((2, 16), f32, "b")
    y = conv2d_winograd(
        x, u, b, tile=2, kernel=(3, 3), channels=32, block=16, strides=strides, pads=(1, 1, 1, 1), patch=patch
    )
    return [x, u, b], [compute(y.shape, lambda *i: maximum(y[i], const(0.0, f32)), "relu", dtype=f32)]


def scheduled(target: Target, *arguments: object) -> Program:
    inputs, outputs = layer(*arguments)  # type: ignore[arg-type]
    return schedule_program(to_program(inputs, outputs, "layer"), target).program


def arrays(program: Program) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [[int(getattr(s, "value", 0)) for s in p.shape] for p in program.entry.params if isinstance(p, Buffer)]
    return [*[rng.standard_normal(s).astype(np.float32) for s in shapes[:-1]], np.zeros(shapes[-1], np.float32)]


CASES = [
    ((1, 1, 6), (1, 1), 1),
    ((1, 2, 6), (1, 1), 1),
    ((1, 2, 2), (1, 1), 2),
    ((2, 1, 4), (1, 1), 2),
    ((1, 1, 3), (2, 2), 1),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("patch", "strides", "images"), CASES)
def test_patches_compute_the_same(patch: Patch, strides: tuple[int, int], images: int) -> None:
    made = []
    for p in (None, patch):
        program = scheduled(HERE, p, strides, images)
        given = arrays(program)
        function = NativeFunction(program, HERE)
        results = [np.zeros_like(given[-1]) for _ in range(2)]
        for threads, y in enumerate(results, 1):
            function(*given[:-1], y, threads=threads)
        np.testing.assert_array_equal(results[0], results[1])
        made.append(results[0])
    assert made[0].any()
    np.testing.assert_array_equal(made[0], made[1])


def test_the_interpreter_agrees_and_the_text_reads_back() -> None:
    program = scheduled(HERE, (1, 1, 3), (2, 2))
    text = print_program(program)
    assert print_program(parse_program(text)) == text
    given = arrays(program)
    expected = given[-1].copy()
    NativeFunction(program, HERE)(*given[:-1], expected)
    run(program, given)
    np.testing.assert_allclose(given[-1], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("patch", "volumes"), [((2, 1, 3), 1), ((4, 2, 1), 1), ((1, 1, 3), 2)])
def test_frames_that_a_patch_reads_are_transformed_in_it(patch: Patch, volumes: int) -> None:
    x, u = placeholder((volumes, 1, 4, 5, 6, 8), f32, "x"), placeholder((4, 4, 1, 3 * 8, 16), f32, "u")
    window, ones = (3, 3, 3), (1, 1, 1)
    y = conv2d_winograd(x, u, tile=2, kernel=window, channels=16, block=8, strides=ones, pads=2 * ones, patch=patch)
    plain = to_program([x, u], [y], "layer")
    given, expected = arrays(plain), arrays(plain)
    run(plain, expected)
    program = schedule_program(plain, HERE).program
    NativeFunction(program, HERE)(*given)
    np.testing.assert_allclose(given[-1], expected[-1], rtol=1e-5, atol=1e-4)
    interpreted = arrays(plain)
    run(program, interpreted)
    np.testing.assert_allclose(interpreted[-1], expected[-1], rtol=1e-5, atol=1e-4)
    found = [s.buffer for f in lower(program, HERE).functions for s in statements(f.body) if isinstance(s, Alloc)]
    frames, tiles = patch[0] + 2, patch[1] * patch[2]
    assert max(int(getattr(s, "value", 0)) for b in found for s in b.shape) <= 16 * frames * tiles * 16


def picture_layer(patch: Patch) -> tuple[Program, tuple[Var, Var]]:
    """A layer of 16 channels on a picture of any sides, behind which SiLU reads each output twice."""
    h, w = Var("h", INDEX), Var("w", INDEX)
    x, u = placeholder((1, 2, h, w, 8), f32, "x"), placeholder((4, 4, 1, 16, 16), f32, "u")
    y = conv2d_winograd(x, u, tile=2, kernel=(3, 3), channels=16, block=8, pads=(1, 1, 1, 1), patch=patch)
    one = const(1.0, f32)
    gate = compute(y.shape, lambda *i: one / (one + apply("exp", -y[i])), "gate", dtype=f32)
    return to_program([x, u], [compute(y.shape, lambda *i: y[i] * gate[i], "silu", dtype=f32)], "layer"), (h, w)


@pytest.mark.parametrize("patch", [(1, 1, 3), (1, 2, 2)])
def test_pictures_of_any_sides_are_computed_patch_by_patch(patch: Patch) -> None:
    plain, _ = picture_layer(patch)
    program = schedule_program(plain, HERE).program
    function, rng = NativeFunction(program, HERE), np.random.default_rng(0)
    u = rng.standard_normal((4, 4, 1, 16, 16)).astype(np.float32)
    for sides in ((1, 1), (5, 9), (12, 6)):
        x = rng.standard_normal((1, 2, *sides, 8)).astype(np.float32)
        made, wanted, interpreted = (np.zeros((1, 2, *sides, 8), np.float32) for _ in range(3))
        function(x, u, made, *sides)
        run(plain, [x, u, wanted, *sides])
        run(program, [x, u, interpreted, *sides])
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(interpreted, wanted, rtol=1e-5, atol=1e-5)
    found = [s.buffer for f in lower(program, HERE).functions for s in statements(f.body) if isinstance(s, Alloc)]
    assert all(isinstance(s, Const) for b in found for s in b.shape)


def test_what_lies_between_the_stages_is_one_patch() -> None:
    def largest(patch: Patch | None) -> int:
        flat = lower(scheduled(HERE, patch), HERE)
        found = [s.buffer for f in flat.functions for s in statements(f.body) if isinstance(s, Alloc)]
        return max(int(getattr(s, "value", 0)) for b in found for s in b.shape)

    assert largest(None) >= 16 * 30 * 32
    assert 16 * 6 * 32 <= largest((1, 1, 6)) < 16 * 12 * 32


def test_few_patches_share_each_stage_instead() -> None:
    def kinds(cores: int) -> list[str]:
        text = print_program(scheduled(replace(HERE, cores=cores), (1, 1, 6)))
        return [line.split(" in ")[1].split("(")[0] for line in text.splitlines() if line.startswith("    for ")]

    assert kinds(2) == ["parallel"]
    assert kinds(8) == ["range"]


def parallel_loops(program: Program) -> list[str]:
    """The loops that run in parallel, as their lines say, with their depth as indentation."""
    return [line for line in print_program(program).splitlines() if " in parallel(" in line]


def batched(rows: Expr, patch: Patch, cores: int) -> list[str]:
    """The parallel loops of a layer of a batch of any size, on pictures of *rows* and 24 columns."""
    x, u = placeholder((Var("n", INDEX), 2, rows, 24, 8), f32, "x"), placeholder((4, 4, 1, 16, 16), f32, "u")
    y = conv2d_winograd(x, u, tile=2, kernel=(3, 3), channels=16, block=8, pads=(1, 1, 1, 1), patch=patch)
    program = schedule_program(to_program([x, u], [y], "layer"), replace(HERE, cores=cores)).program
    return parallel_loops(program)


def test_patches_of_a_batch_are_shared_where_one_image_has_enough() -> None:
    assert len(batched(index(24), (1, 2, 12), cores=3)) == 1  # six patches, of which each thread has two
    assert len(batched(index(24), (1, 2, 12), cores=8)) > 1  # each stage, of all images


def test_patches_of_an_image_are_shared_where_those_of_the_batch_can_not_be() -> None:
    """An image may have no rows at all, so that what a fused loop computes is not known to differ in its iterations."""
    [loop] = batched(Var("h", INDEX) // 2, (1, 1, 4), cores=2)
    assert loop.startswith(" " * 8)
    assert "h" in loop.split("parallel")[1]


@pytest.mark.parametrize("patch", [None, (1, 1, 6)])
def test_integers_have_dot_products(patch: Patch | None) -> None:
    target = cpu("avx2").having(features=tuple(f for f in cpu("avx2").isa.features if f != "+avxvnni"))
    x, u = placeholder((1, 2, 10, 11, 16), i16, "x"), placeholder((4, 4, 2, 16, 16, 2), i16, "u")
    y = conv2d_winograd(x, u, tile=2, kernel=(3, 3), channels=32, block=16, pads=(1, 1, 1, 1), patch=patch)
    program = to_program([x, u], [y], "layer")
    s = schedule_program(program, target)
    assert "x86.dot_i16i16_8x2" in str(s.program)
    rng = np.random.default_rng(0)
    sizes = [[int(getattr(n, "value", 0)) for n in t.shape] for t in (x, u, y)]
    given = [rng.integers(-255, 256, size).astype(np.int16) for size in sizes[:2]]
    made = [np.zeros(sizes[2], np.int32) for _ in range(2)]
    run(program, [*given, made[0]])
    if can_run(target):
        NativeFunction(s.program, target)(*given, made[1])
        np.testing.assert_array_equal(made[0], made[1])
