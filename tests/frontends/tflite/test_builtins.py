"""Operators that TensorFlow Lite's converter seldom writes equal its interpreter's; see `make_builtins`."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from tests.frontends.tflite.flat_writer import buffer_of

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph
from weft.frontends.tflite.schema import BUILTINS

with np.load(io.BytesIO(lzma.decompress((Path(__file__).parent / "builtins.npz.xz").read_bytes()))) as _archive:
    ARRAYS: Final[dict[str, Any]] = dict(_archive)


@pytest.mark.parametrize("case", sorted(name.removesuffix(".model") for name in ARRAYS if name.endswith(".model")))
def test_operator(case: str) -> None:
    graph, want = to_graph(ARRAYS[f"{case}.model"].tobytes()), ARRAYS[f"{case}.output0"]
    (got,) = run_graph(graph, {v.name: ARRAYS[f"{case}.input{k}"] for k, v in enumerate(graph.inputs)})
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_products_of_complex_numbers() -> None:
    codes = [(min(BUILTINS.index(kind), 127), None, 1, BUILTINS.index(kind)) for kind in ("RFFT2D", "MUL")]
    tensors = [([4, 8], 0, None, "x"), ([2], 2, 1, "n"), ([4, 5], 8, None, "t"), ([4, 5], 8, None, "y")]
    graph = (tensors, [0], [3], [(0, [0, 1], [2]), (1, [2, 2], [3])])
    lengths = np.array([4, 8], np.int32).tobytes()
    made = to_graph(buffer_of((3, codes, [graph], "", [(), (lengths,)]), b"TFL3"))
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    (got,) = run_graph(made, {"x": x})
    want = np.fft.rfft2(x) ** 2
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-4, atol=1e-4)


def transposed_by_hand(x: Any, weight: Any, bias: Any, stride: tuple[int, int], same: bool) -> Any:
    """Returns MediaPipe's transposed convolution of [1, H, W, in] with [out, h, w, in]: as large as its windows reach."""
    (_, rows, columns, _), (outputs, h, w, _) = x.shape, weight.shape
    whole = np.zeros((stride[0] * (rows - 1) + h, stride[1] * (columns - 1) + w, outputs))
    for i in range(rows):
        for j in range(columns):
            whole[i * stride[0] :, j * stride[1] :][:h, :w] += np.einsum("ohwc,c->hwo", weight, x[0, i, j])
    cut = [max(k - s, 0) if same else 0 for k, s in zip((h, w), stride, strict=True)]
    ends = [(c // 2, n - (c - c // 2)) for c, n in zip(cut, whole.shape, strict=False)]
    return (whole[ends[0][0] : ends[0][1], ends[1][0] : ends[1][1]] + bias)[None]


def of_mediapipe(stride: tuple[int, int], same: bool, weight: Any, bias: Any) -> bytes:
    """Returns a model of a transposed convolution of [1, 5, 4, 6], whose settings are numbers, and no FlexBuffer."""
    settings = np.array([1 if same else 2, stride[1], stride[0]], np.int32).tobytes()
    custom = BUILTINS.index("CUSTOM")
    tensors = [([1, 5, 4, 6], 0, None, "x"), ([3, 2, 3, 6], 0, 1, "w"), ([3], 0, 2, "b"), ([1, 1, 1, 3], 0, None, "y")]
    graph = (tensors, [0], [3], [(None, [0, 1, 2], [3], None, None, settings)])
    codes = [(custom, "Convolution2DTransposeBias", 1, custom)]
    return buffer_of((3, codes, [graph], "", [(), (weight.tobytes(),), (bias.tobytes(),)]), b"TFL3")


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("stride", [(2, 2), (3, 1), (1, 3)], ids=str)
def test_transposed_convolutions_of_mediapipe(stride: tuple[int, int], same: bool) -> None:
    """The networks that cut people out of their background have them."""
    random = np.random.default_rng(0)
    x, weight, bias = (random.standard_normal(s).astype(np.float32) for s in ((1, 5, 4, 6), (3, 2, 3, 6), 3))
    (got,) = run_graph(to_graph(of_mediapipe(stride, same, weight, bias)), {"x": x})
    np.testing.assert_allclose(got, transposed_by_hand(x, weight, bias, stride, same), rtol=1e-4, atol=1e-4)


def test_a_stored_transposed_convolution_of_mediapipe() -> None:
    weight, bias = np.arange(108, dtype=np.float32).reshape(3, 2, 3, 6), np.arange(3, dtype=np.float32)
    stored = (Path(__file__).parent / "networks" / "transposed_with_bias.tflite").read_bytes()
    assert stored == of_mediapipe((2, 2), True, weight, bias)
