"""Operators over windows and regions that data places: against ONNX Runtime, and sums written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.frontends.onnx.nodes import Array, check_like_runtime, floats, imported, int64s, single

import weft
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError, WeftError

REGIONS = np.array([[0, 0, 9, 9], [2.5, 1, 4, 7.75], [-3, 4, 2, 30], [5, 5, 5, 5]], np.float32)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("samples", [0, 2])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_regions(mode: str, samples: int, coordinates: str) -> None:
    feeds = {"x": np.abs(floats(2, 3, 8, 10)), "rois": REGIONS, "images": int64s(0, 1, 1, 0)}
    attributes: dict[str, Any] = {"mode": mode, "sampling_ratio": samples, "spatial_scale": 0.75}
    model = single(
        "RoiAlign", feeds, output_height=3, output_width=2, coordinate_transformation_mode=coordinates, **attributes
    )
    check_like_runtime(model, feeds, rtol=1e-4, atol=1e-5)


def test_a_region_of_an_image_that_is_not_there() -> None:
    feeds = {"x": floats(2, 1, 4, 4), "rois": REGIONS[:1]}
    model = single("RoiAlign", feeds, {"images": int64s(2)})
    with pytest.raises(WeftError, match=r"RoiAlign /y: .*image"):
        weft.compile(model)


def columns(x: Array, kernel: int, stride: int, pad: int, dilation: int) -> Array:
    """Returns the windows of images [N, C, H, W] as [N, C * kernel * kernel, windows]."""
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    reach = dilation * (kernel - 1) + 1
    rows, across = ((s - reach) // stride + 1 for s in x.shape[2:])
    found = [
        x[:, :, i * dilation :, j * dilation :][:, :, ::stride, ::stride][:, :, :rows, :across]
        for i in range(kernel)
        for j in range(kernel)
    ]
    return np.stack(found, 2).reshape(x.shape[0], -1, rows * across)


WINDOWS = [(3, 1, 0, 1), (2, 2, 1, 1), (3, 2, 1, 2), (1, 3, 0, 1)]


@pytest.mark.parametrize(("kernel", "stride", "pad", "dilation"), WINDOWS)
def test_windows_added_up_are_the_transpose_of_windows_taken(kernel: int, stride: int, pad: int, dilation: int) -> None:
    x = floats(2, 3, 7, 8)
    taken = columns(x, kernel, stride, pad, dilation)
    given = floats(*taken.shape, seed=1)
    weights = {"image": int64s(7, 8), "block": int64s(kernel, kernel)}
    attributes = {"strides": [stride] * 2, "pads": [pad] * 4, "dilations": [dilation] * 2}
    (made,) = imported(single("Col2Im", {"c": given}, weights, 18, **attributes), {"c": given})[1]
    np.testing.assert_allclose((made * x).sum(), (given * taken).sum(), rtol=1e-4)


def test_windows_that_do_not_fit() -> None:
    model = single("Col2Im", {"c": floats(1, 8, 5)}, {"image": int64s(4, 4), "block": int64s(2, 2)}, 18)
    with pytest.raises(ModelError, match=r"the tensor of windows has the shape \(1, 8, 5\), not \(1, 8, 9\)"):
        from_onnx(model)


@pytest.mark.parametrize(("kernel", "stride", "pad", "dilation"), WINDOWS)
def test_offsets_of_whole_elements_are_a_convolution_of_the_moved_image(
    kernel: int, stride: int, pad: int, dilation: int
) -> None:
    x, taken = floats(2, 4, 7, 8), columns(np.roll(floats(2, 4, 7, 8), (-1, 2), (2, 3)), kernel, stride, pad, dilation)
    reach = dilation * (kernel - 1) + 1
    sizes = [(s + 2 * pad - reach) // stride + 1 for s in (7, 8)]
    offsets = np.zeros((2, 2, kernel * kernel, 2, *sizes), np.float32)
    offsets[:, 0, :, 0], offsets[:, 0, :, 1] = 1, -2  # the first two channels; the others stay
    taken[:, 2 * kernel * kernel :] = columns(x, kernel, stride, pad, dilation)[:, 2 * kernel * kernel :]
    weight, scale = floats(6, 2, kernel, kernel, seed=1), np.float32(0.5)
    feeds = {"x": x, "w": weight, "o": offsets.reshape(2, -1, *sizes)}
    more = {"b": floats(6, seed=2), "m": np.full((2, 2 * kernel * kernel, *sizes), scale)}
    attributes = {"strides": [stride] * 2, "pads": [pad] * 4, "dilations": [dilation] * 2}
    model = single("DeformConv", feeds, more, 19, group=2, offset_group=2, **attributes)
    (made,) = imported(model, feeds)[1]
    product = np.einsum("gof,ngfp->ngop", weight.reshape(2, 3, -1), taken.reshape(2, 2, -1, taken.shape[2]) * scale)
    wanted = product.reshape(2, 6, *sizes) + more["b"][:, None, None]
    inside = rolled_inside(sizes, kernel, stride, pad, dilation)
    np.testing.assert_allclose(made[..., inside], wanted[..., inside], rtol=1e-4, atol=1e-5)
    assert inside.any()


def rolled_inside(sizes: list[int], kernel: int, stride: int, pad: int, dilation: int) -> Array:
    """Returns the windows none of whose moved elements is where rolling took one around the image's end."""
    ends = []
    for n, (size, by) in enumerate(((7, 1), (8, -2))):
        begin = np.arange(sizes[n]) * stride - pad
        last = begin + dilation * (kernel - 1)
        ends.append((np.minimum(begin, begin + by) >= 0) & (np.maximum(last, last + by) < size))
    return np.asarray(ends[0][:, None] & ends[1])


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_determinants(n: int) -> None:
    x = floats(3, 2, n, n) if n else np.zeros((3, 2, 1, 1), np.float32)
    if n == 7:
        x[0, 0, 0, 0], x[1, 1, 3] = 0, x[1, 1, 2]  # a pivot is exchanged, and a matrix is singular
    graph, (made,) = imported(single("Det", {"x": x}, opset=22), {"x": x})
    np.testing.assert_allclose(made, np.linalg.det(x.astype(np.float64)), rtol=1e-4, atol=1e-4)
    assert [n.op for n in graph.nodes] == ["det"]


def test_largest_elements_of_regions() -> None:
    """Halves are rounded up, parts overlap, and a region that is turned round has one element."""
    x, session = floats(2, 3, 9, 11), pytest.importorskip("onnxruntime")
    rois = np.array(
        [[0, 2, 1, 9, 8], [1, 0.5, 1.5, 6.5, 7], [1, -4, -3, 3, 2], [0, 12, 12, 30, 40], [0, 8, 8, 2, 2]], np.float32
    )
    model = single("MaxRoiPool", {"x": x, "rois": rois}, opset=21, pooled_shape=[3, 4], spatial_scale=0.75)
    (made,) = imported(model, {"x": x, "rois": rois})[1]
    (wanted,) = session.InferenceSession(model.SerializeToString()).run(None, {"x": x, "rois": rois})
    np.testing.assert_array_equal(made, wanted)
