"""Models of one node of ONNX Runtime's own domain, and their comparison with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, helper
from tests.frontends.onnx.nodes import Array, Inputs, by_runtime, check_like_runtime, imported, model_of, node

from weft.frontends.onnx.contrib import MICROSOFT


def contrib_model(
    op: str,
    inputs: str,
    feeds: Inputs,
    weights: Mapping[str, Any] | None = None,
    outputs: str = "y",
    domain: str = MICROSOFT,
    **attributes: Any,
) -> ModelProto:
    """Makes a model of one node; *inputs* and *outputs* are names separated by blanks, "-" for one that is left out."""
    made = node(op, inputs, outputs, **attributes)
    made.domain = domain
    kinds = {n: (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()}
    model = model_of([made], kinds, [n for n in outputs.split() if n != "-"], weights)
    if domain:
        model.opset_import.append(helper.make_opsetid(domain, 1))
    return model


def check_equal(model: ModelProto, feeds: Inputs) -> list[Array]:
    """Compares with ONNX Runtime to the last bit; returns the outputs."""
    _, found = imported(model, feeds)
    for a, b in zip(found, by_runtime(model, feeds), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)
    return found


def check_close(model: ModelProto, feeds: Inputs) -> None:
    """Compares with ONNX Runtime, to the roundings of float32."""
    check_like_runtime(model, feeds, rtol=1e-5, atol=2e-6)


def seven_bits(shape: Sequence[int], seed: int = 0) -> Array:
    """Returns random weights of 7 bits, which times unsigned bytes make the same on all processors in ONNX Runtime.

    Without an instruction for dot products it sums pairs of products in 16 bits, which saturate for weights of 8 bits; its
    quantiser's `reduce_range` is for that.
    """
    return integers(np.int8, shape, seed, -64, 64)


def integers(
    dtype: type, shape: Sequence[int], seed: int = 0, low: int | None = None, high: int | None = None
) -> Array:
    """Returns random integers of *dtype* from *low* to below *high*, by default all that it has."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    drawn: Array = rng.integers(info.min if low is None else low, info.max + 1 if high is None else high, tuple(shape))
    return np.asarray(drawn, dtype)
