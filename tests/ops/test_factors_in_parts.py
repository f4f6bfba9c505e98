"""Float32 in parts of bf16: no bit is lost, and products of parts are as near as those of the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.cost.graph.rounded import split_factors
from weft.driver.checking.reference import run_operator
from weft.ops.dot_products import factors_in_parts

Array = np.ndarray[Any, np.dtype[Any]]


def split(x: Array, block: int = 32) -> Array:
    (made,) = run_operator("split_in_parts", [x], block=block)
    return made


def spread(*shape: int, seed: int = 0) -> Array:
    """Numbers of many magnitudes and both signs."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)).astype(np.float32)


def test_costs_count_the_parts_and_pairs_there_are() -> None:
    assert split_factors.PARTS == factors_in_parts.PARTS
    assert len(factors_in_parts.LEFT_PARTS) == split_factors.PAIRS
    pairs = {*zip(factors_in_parts.LEFT_PARTS, factors_in_parts.RIGHT_PARTS, strict=True)}
    assert pairs == {(i, j) for i in range(3) for j in range(3 - i)}


def test_parts_add_up_to_the_number() -> None:
    special = np.array([0.0, -0.0, 1.0, 1 - 2**-24, 1 + 2**-23, 2**-100, 3e38, -255.4999], np.float32)
    x = np.concatenate([spread(2000), special])
    parts = split(x.reshape(1, -1), x.size)[0, 0].astype(np.float64)
    np.testing.assert_array_equal(parts.sum(axis=0), x.astype(np.float64))
    assert (np.abs(parts[1:]) <= np.abs(parts[:-1]) * 2.0**-7).all()


def test_blocks_are_filled_up_with_zeros() -> None:
    parts = split(np.ones((2, 40), np.float32))
    assert parts.shape == (2, 2, 3, 32)
    np.testing.assert_array_equal(parts[:, 1, :, 8:].astype(np.float32), 0)


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0x7F800001, 0x7F800000])
def test_what_is_no_finite_number_is_none_in_parts(bits: int) -> None:
    x = np.full((1, 32), np.uint32(bits).view(np.float32))
    with np.errstate(invalid="ignore"):
        parts = split(x)
    assert np.isnan(parts.astype(np.float32).sum(axis=2)).all()


@pytest.mark.parametrize(("rows", "depth", "columns", "blocks"), [(5, 96, 20, 1), (3, 128, 16, 4), (4, 40, 33, 1)])
def test_products_are_as_near_as_those_in_float32(rows: int, depth: int, columns: int, blocks: int) -> None:
    a, b = spread(rows, depth), spread(depth, columns, seed=1)
    (panels,) = run_operator("pack_matrix_parts", [b], block=16, depth=32)
    (turned,) = run_operator("pack_matrix_parts", [np.ascontiguousarray(b.T)], block=16, depth=32, trans=True)
    np.testing.assert_array_equal(panels, turned)
    found = np.zeros((rows, columns), np.float32)
    for n in range(blocks):
        sizes = {"columns": columns, "block": n, "blocks": blocks}
        found += run_operator("matmul_in_parts", [split(a), panels], **sizes)[0]
    exact, size = a.astype(np.float64) @ b, np.abs(a.astype(np.float64)) @ np.abs(b)
    assert (np.abs(found - exact) / size).max() <= 2 * (np.abs(a @ b - exact) / size).max() + 2.0**-23


def test_convolutions_are_as_near_as_those_in_float32() -> None:
    x, w = spread(1, 32, 5, 6), spread(20, 32, 3, 3, seed=1)
    window = {"strides": (2, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
    (exact,) = run_operator("conv2d", [x.astype(np.float64), w.astype(np.float64)], **window)
    (size,) = run_operator("conv2d", [np.abs(x).astype(np.float64), np.abs(w).astype(np.float64)], **window)
    (panels,) = run_operator("pack_conv_weight_parts", [w], in_block=32, out_block=16)
    parts = split(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2, 4, 5)
    (found,) = run_operator("conv2d_in_parts", [parts, panels], **window)
    found = found.transpose(0, 1, 4, 2, 3).reshape(1, 32, *exact.shape[2:])[:, :20]
    (single,) = run_operator("conv2d", [x, w], **window)
    assert (np.abs(found - exact) / size).max() <= 2 * (np.abs(single - exact) / size).max() + 2.0**-22
