"""Operators on blocked channels and packed matrices: each undoes the other, and computes what the plain one does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.naive import Array, blocks, conv, conv_transpose, windows

from weft.driver.checking.reference import run_operator


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(op: str, *inputs: Array | None, **attributes: Any) -> Array:
    (made,) = run_operator(op, inputs, **attributes)
    return made


def close(a: Array, b: Array) -> None:
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channels", [4, 5, 8])
def test_channels_in_blocks(channels: int) -> None:
    x = floats(2, channels, 3, 2)
    packed = run("pack_channels", x, block=4)
    np.testing.assert_array_equal(packed, blocks(x, 1, 4))
    np.testing.assert_array_equal(run("unpack_channels", packed, channels=channels), x)


def test_the_first_channels_of_each_group() -> None:
    x = floats(2, 6, 3, 2, 4)
    for kept in (5, 7, 8):
        wanted = np.moveaxis(x.reshape(2, 3, 2, 3, 2, 4), -1, 3).reshape(2, 3, 8, 3, 2)[:, :, :kept]
        np.testing.assert_array_equal(run("unpack_groups", x, group=3, kept=kept), wanted)


@pytest.mark.parametrize("size", [4, 6])
def test_vectors_in_blocks(size: int) -> None:
    np.testing.assert_array_equal(run("pack_vector", floats(size), block=4), blocks(floats(size), 0, 4))


@pytest.mark.parametrize("shape", [(4, 8, 3, 3), (6, 5, 1, 2)])
def test_convolution_weights_in_blocks(shape: tuple[int, ...]) -> None:
    w = floats(*shape)
    wanted = blocks(blocks(w, 1, 2), 0, 4)
    np.testing.assert_array_equal(run("pack_conv_weight", w, in_block=2, out_block=4), wanted)


@pytest.mark.parametrize("channels", [4, 6])
def test_depthwise_weights_in_blocks(channels: int) -> None:
    w = floats(channels, 1, 3, 2)
    np.testing.assert_array_equal(run("pack_depthwise_weight", w, block=4), blocks(w[:, 0], 0, 4))


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("columns", [8, 9])
def test_matrices_in_panels(columns: int, trans: bool) -> None:
    b = floats(5, columns)
    packed = run("pack_matrix", b.T.copy() if trans else b, block=4, trans=trans)
    np.testing.assert_array_equal(packed, np.moveaxis(blocks(b, 1, 4), 0, 1))
    np.testing.assert_array_equal(run("unpack_matrix", packed, columns=columns), b)
    np.testing.assert_array_equal(run("unpack_matrix", packed, columns=columns, trans=True), b.T)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("columns", [8, 9])
def test_matmul_by_panels(columns: int, bias: bool) -> None:
    b, v = floats(5, columns), floats(columns, seed=1) if bias else None
    packed = run("pack_matrix", b, block=4)
    for a in (floats(3, 5), floats(2, 3, 5), floats(5)):
        close(run("matmul_packed", a, packed, v, columns=columns), a @ b + (0 if v is None else v))


def test_matmul_by_panels_in_batches() -> None:
    a, b = floats(2, 3, 4, 5), floats(3, 5, 6, seed=1)
    packed = run("pack_matrix", b, block=4)
    assert packed.shape == (3, 2, 5, 4)
    close(run("matmul_packed", a, packed, columns=6), a @ b)
    close(run("matmul_packed", a[0, 0], packed, columns=6), a[0, 0] @ b)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("strides", "pads", "dilations"), [((1, 1), (1, 1, 1, 1), (1, 1)), ((2, 1), (0, 2, 1, 0), (2, 1))]
)
def test_blocked_convolution(strides: Any, pads: Any, dilations: Any, bias: bool, group: int) -> None:
    x, w, b = floats(2, 8, 7, 6), floats(8, 8 // group, 3, 2, seed=1), floats(8, seed=2)
    packed = run("pack_conv_weight", w, in_block=4, out_block=4)
    y = run(
        "conv2d_blocked",
        blocks(x, 1, 4),
        packed,
        blocks(b, 0, 4) if bias else None,
        strides=strides,
        pads=pads,
        dilations=dilations,
        group=group,
    )
    wanted = conv(x, w, b if bias else None, strides, pads, dilations, group)
    close(run("unpack_channels", y, channels=8), wanted)


def test_blocked_convolution_of_padded_channels() -> None:
    x, w = floats(1, 3, 5, 5), floats(6, 3, 3, 3, seed=1)
    packed = run("pack_conv_weight", w, in_block=4, out_block=4)
    y = run("conv2d_blocked", blocks(x, 1, 4), packed, None)
    close(run("unpack_channels", y, channels=6), conv(x, w, None, (1, 1), (0, 0, 0, 0), (1, 1), 1))
    assert not y[:, 1, :, :, 2:].any()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("strides", "pads", "dilations"), [((1, 1), (1, 1, 1, 1), (1, 1)), ((2, 2), (0, 1, 1, 0), (1, 2))]
)
def test_blocked_depthwise_convolution(strides: Any, pads: Any, dilations: Any, bias: bool) -> None:
    x, w, b = floats(1, 6, 6, 7), floats(6, 1, 3, 3, seed=1), floats(6, seed=2)
    packed = run("pack_depthwise_weight", w, block=4)
    y = run(
        "depthwise_conv2d_blocked",
        blocks(x, 1, 4),
        packed,
        blocks(b, 0, 4) if bias else None,
        strides=strides,
        pads=pads,
        dilations=dilations,
    )
    wanted = conv(x, w, b if bias else None, strides, pads, dilations, 6)
    close(run("unpack_channels", y, channels=6), wanted)


@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "extra"),
    [
        ((4, 4), (2, 2), (1, 1, 1, 1), (0, 0)),
        ((3, 2), (2, 1), (0, 1, 1, 0), (1, 0)),
        ((4, 4), (1, 1), (0, 0, 0, 0), (0, 0)),
        ((2, 3), (3, 3), (0, 0, 0, 0), (0, 1)),
    ],
)
def test_blocked_transposed_convolution(kernel: Any, strides: Any, pads: Any, extra: Any) -> None:
    x, w, b = floats(2, 6, 3, 4), floats(6, 5, *kernel, seed=1), floats(5, seed=2)
    wanted = conv_transpose(x, w, b, strides, pads, (1, 1), 1, extra)
    plain = run("conv_transpose2d", x, w, b, strides=strides, pads=pads, output_padding=extra)
    close(plain, wanted)
    packed = run("pack_conv_transpose_weight", w, in_block=4, out_block=4, strides=strides)
    y = run(
        "conv_transpose2d_blocked",
        blocks(x, 1, 4),
        packed,
        blocks(b, 0, 4),
        kernel=kernel,
        strides=strides,
        pads=pads,
        output_padding=extra,
    )
    close(run("unpack_channels", y, channels=5), wanted)


def test_pools_carry_blocks_along() -> None:
    x = floats(2, 6, 5, 6)
    how: dict[str, Any] = {"kernel": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)}
    for op, of, value in (("max_pool2d", np.max, -np.inf), ("avg_pool2d", np.sum, 0.0), ("sum_pool2d", np.sum, 0.0)):
        plain = run(op, x, **how)
        if op != "avg_pool2d":
            close(plain, windows(x, (3, 2), (2, 1), (1, 0, 1, 1), of, value))
        y = run(op, blocks(x, 1, 4), **how)
        close(run("unpack_channels", y, channels=6), plain)
