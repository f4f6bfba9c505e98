"""Convolutions by Winograd's method, in patches of any size; a strided one is one at stride 1 over the phases of its input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.naive import Array, blocks, conv

from weft.driver.checking.reference import run_operator
from weft.support.errors import ModelError

CASES = [
    ((3, 3), (2, 2), (1, 1, 1, 1), (9, 8)),
    ((2, 3), (1, 2), (0, 1, 0, 0), (6, 7)),
    ((5, 5), (3, 3), (2, 2, 1, 3), (11, 13)),
    ((4, 4), (2, 2), (0, 0, 0, 0), (8, 10)),
]


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def run(op: str, *inputs: Array | None, **attributes: Any) -> Array:
    (made,) = run_operator(op, inputs, **attributes)
    return made


@pytest.mark.parametrize(("kernel", "strides", "pads", "size"), CASES)
@pytest.mark.parametrize("block", [1, 4])
def test_phases_are_channels(
    block: int,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    size: tuple[int, int],
) -> None:
    x, w, b = floats(2, 4, *size), floats(8, 4, *kernel), floats(8)
    weight = run("split_weight_phases", w, strides=strides)
    assert weight.shape == (8, 4 * strides[0] * strides[1], *[-(-k // s) for k, s in zip(kernel, strides, strict=True)])
    y = run(
        "conv2d_winograd",
        blocks(x, 1, block),
        run("pack_winograd_weight", weight, tile=2, block=8),
        blocks(b, 0, 4),
        tile=2,
        kernel=kernel,
        channels=8,
        block=4,
        strides=strides,
        pads=pads,
        patch=(1, 2, 1),
    )
    np.testing.assert_allclose(y, blocks(conv(x, w, b, strides, pads, (1, 1), 1), 1, 4), atol=2e-4)


def test_winograd_in_doubles_is_as_exact_as_they_are() -> None:
    x, w, b = (floats(*shape).astype(np.float64) for shape in ((1, 4, 7, 9), (8, 4, 3, 3), (8,)))
    u = run("pack_winograd_weight", w, tile=4, block=8)
    sizes = {"tile": 4, "kernel": (3, 3), "channels": 8, "block": 4}
    y = run("conv2d_winograd", blocks(x, 1, 4), u, blocks(b, 0, 4), **sizes)
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, blocks(conv(x, w, b, (1, 1), (0, 0, 0, 0), (1, 1), 1), 1, 4), atol=1e-12)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("patch", [None, (1, 1, 1), (1, 2, 2), (2, 1, 3)])
@pytest.mark.parametrize("tile", [2, 3, 4])
@pytest.mark.parametrize("taps", [2, 3, 4])
def test_winograd_at_stride_one(taps: int, tile: int, patch: tuple[int, ...] | None) -> None:
    x, w, b = floats(2, 4, 7, 9), floats(8, 4, taps, taps), floats(8)
    u = run("pack_winograd_weight", w, tile=tile, block=8)
    y = run(
        "conv2d_winograd",
        blocks(x, 1, 4),
        u,
        blocks(b, 0, 4),
        tile=tile,
        kernel=(taps, taps),
        channels=8,
        block=4,
        pads=(1, 1, 0, 1),
        patch=patch,
    )
    wanted = conv(x, w, b, (1, 1), (1, 1, 0, 1), (1, 1), 1)
    np.testing.assert_allclose(y, blocks(wanted, 1, 4), atol=2e-4)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("size", [(7, 9), (6, 7), (8, 6), (2, 9), (6, 2)])
@pytest.mark.parametrize("tile", [2, 3, 4])
@pytest.mark.parametrize("taps", [2, 3])
def test_tiles_of_several_sizes(taps: int, tile: int, size: tuple[int, int]) -> None:
    images, height, width = 3, *(n + taps - 1 for n in size)
    x, w, b = floats(images, 4, height, width), floats(8, 4, taps, taps), floats(8)
    u = run("pack_winograd_weight", w, tile=tile, block=8)
    wanted = blocks(conv(x, w, b, (1, 1), (0, 0, 0, 0), (1, 1), 1), 1, 4)
    for patch in (None, (1, *(-(-n // tile) for n in size))):
        y = run(
            "conv2d_winograd",
            blocks(x, 1, 4),
            u,
            blocks(b, 0, 4),
            tile=tile,
            kernel=(taps, taps),
            channels=8,
            block=4,
            mixed=True,
            patch=patch,
        )
        np.testing.assert_allclose(y, wanted, atol=2e-4)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("tile", "taps"), [(2, 2), (2, 3), (3, 3), (4, 3)])
def test_integers_are_convolved_exactly(tile: int, taps: int, mixed: bool) -> None:
    rng = np.random.default_rng(tile)
    x = rng.integers(-255, 256, (2, 56, 7, 9)).astype(np.int16)
    w = rng.integers(-128, 128, (8, 56, taps, taps)).astype(np.int8)
    x[0], w[0], w[1] = 255, 127, -128  # the largest sums on either side, which wrap around
    y = run(
        "conv2d_winograd",
        blocks(x, 1, 4),
        run("pack_winograd_weight_groups", w, tile=tile, block=8, group=2),
        tile=tile,
        kernel=(taps, taps),
        channels=8,
        block=4,
        pads=(1, 1, 0, 1),
        mixed=mixed,
    )
    wanted = conv(x.astype(np.float64), w.astype(np.float64), np.zeros(8), (1, 1), (1, 1, 0, 1), (1, 1), 1)
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, blocks(wanted, 1, 4).astype(np.int32))


@pytest.mark.parametrize(
    ("patch", "strides", "mixed", "message"),
    [
        ((4, 1, 1), (1, 1, 1), False, "patches of 4 frames are not whole"),
        ((2, 1, 1), (2, 1, 1), False, "give a patch of one frame"),
        (None, (1, 1, 1), False, "give the frames, rows and columns"),
        ((1, 2, 2), (1, 1, 1), True, "tiles of several sizes"),
    ],
)
def test_patches_that_volumes_do_not_have_are_refused(
    patch: tuple[int, int, int] | None, strides: tuple[int, int, int], mixed: bool, message: str
) -> None:
    x, u = floats(1, 1, 6, 4, 4, 4), floats(4, 4, 1, 12, 4)
    with pytest.raises(ModelError, match=message):
        run(
            "conv2d_winograd",
            *(x, u),
            tile=2,
            kernel=(3, 3, 3),
            channels=4,
            block=4,
            strides=strides,
            pads=(1,) * 6,
            patch=patch,
            mixed=mixed,
        )
