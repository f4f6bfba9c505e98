"""Models of 16-bit floats: each node is as exact as its type, whatever it computes on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.frontends.onnx.nodes import int64s, model_of, node
from tests.support.ulps import ulps_off

import weft
from weft.support.dtypes import DType, bf16, f16

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Exact: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One node: its inputs, of which those in `weights` are constants, and what it is to compute, in float64."""

    op: str
    exact: Exact
    inputs: Sequence[Array]
    weights: Sequence[Array] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 20

    def arrays(self, dtype: DType) -> tuple[list[Array], list[Array]]:
        """Returns the inputs and the weights, floats as *dtype*."""
        inputs, weights = (
            [np.asarray(a).astype(dtype.numpy) if np.asarray(a).dtype.kind == "f" else np.asarray(a) for a in given]
            for given in (self.inputs, self.weights)
        )
        return inputs, weights

    def model(self, dtype: DType) -> tuple[ModelProto, dict[str, Array]]:
        """Returns the node as a model, and inputs for it."""
        inputs, weights = self.arrays(dtype)
        feeds = {f"x{k}": a for k, a in enumerate(inputs)}
        held = {f"w{k}": a for k, a in enumerate(weights)}
        kinds = {n: (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()}
        made = node(self.op, " ".join([*feeds, *held]), **self.attributes)
        return model_of([made], kinds, weights=held, opset=self.opset), feeds


def normal(*shape: int, scale: float = 1.0, mean: float = 0.0) -> Array:
    return np.asarray(np.random.default_rng(0).standard_normal(shape) * scale + mean)


def full(value: float, *shape: int) -> Array:
    return np.full(shape, float(value))


def normalised(x: Array, axes: int | tuple[int, ...], epsilon: float = 1e-5) -> Array:
    mean = x.mean(axes, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + epsilon))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def lrn(x: Array) -> Array:
    c = x.shape[1]
    sums = [np.square(x[:, max(0, k - 1) : k + 2]).sum(1) for k in range(c)]
    return np.asarray(x / (1 + 1e-4 / 3 * np.stack(sums, 1)) ** 0.75)


AXIS: list[Array] = [int64s(1)]
REDUCED = {"keepdims": 0}

CASES: dict[str, Case] = {
    "InstanceNormalization": Case(
        "InstanceNormalization", lambda x, s, b: normalised(x, (2, 3)), [normal(1, 2, 256, 256)], [full(1, 2), full(0, 2)]
    ),
    "InstanceNormalization, a large mean": Case(
        "InstanceNormalization", lambda x, s, b: normalised(x, (2, 3)) * 3, [normal(1, 2, 32, 32, scale=3, mean=200)],
        [full(3, 2), full(0, 2)],
    ),
    "LayerNormalization": Case(
        "LayerNormalization", lambda x, s, b: normalised(x, -1) * s + b, [normal(2, 768, scale=900)],
        [normal(768), normal(768)], {"axis": -1},
    ),
    "GroupNormalization": Case(
        "GroupNormalization", lambda x, s, b: normalised(x.reshape(1, 2, -1), 2).reshape(x.shape) * 3 + 1,
        [normal(1, 4, 16, 16, scale=900)], [full(3, 4), full(1, 4)], {"num_groups": 2}, 21,
    ),
    "RMSNormalization": Case(
        "RMSNormalization", lambda x, s: x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5) * s,
        [normal(2, 768, scale=900)], [normal(768)], {}, 23,
    ),
    "BatchNormalization": Case(
        "BatchNormalization", lambda x, s, b, m, v: (x - m[0]) / np.sqrt(v[0] + 1e-5) * 7 + 1,
        [np.linspace(60000, 65000, 20).reshape(1, 2, 10)], [full(7, 2), full(1, 2), full(60000, 2), full(10000, 2)],
    ),
    "LpNormalization": Case(
        "LpNormalization", lambda x: x / np.sqrt(np.square(x).sum(-1, keepdims=True)), [normal(3, 500, scale=900)]
    ),
    "LRN": Case("LRN", lrn, [normal(1, 6, 3, 3, scale=900)], (), {"size": 3}),
    "ReduceMean of 768 times 100": Case("ReduceMean", lambda x, a: x.mean(1), [full(100, 2, 768)], AXIS, REDUCED),
    "ReduceL2": Case("ReduceL2", lambda x, a: np.sqrt(np.square(x).sum(1)), [normal(3, 1000, scale=500)], AXIS, REDUCED),
    "ReduceLogSumExp": Case(
        "ReduceLogSumExp", lambda x, a: np.log(np.exp(x - x.max()).sum(1)) + x.max(), [full(9, 2, 5000)], AXIS, REDUCED
    ),
    "ReduceProd": Case(
        "ReduceProd", lambda x, a: x.prod(1), [np.tile([200.0, 300, 0.01, 0.02, 1.5], (2, 8))], AXIS, REDUCED
    ),
    "CumSum": Case("CumSum", lambda x, a: np.cumsum(x, 1), [normal(2, 4096)], [np.array(1)]),
    "GlobalAveragePool": Case("GlobalAveragePool", lambda x: x.mean((2, 3), keepdims=True), [full(6, 1, 2, 112, 112)]),
    "AveragePool": Case("AveragePool", lambda x: x[..., :1, :1], [full(2000, 1, 2, 7, 7)], (), {"kernel_shape": [7, 7]}),
    "LpPool": Case(
        "LpPool", lambda x: np.sqrt(np.square(x).sum((2, 3), keepdims=True)), [normal(1, 2, 7, 7, scale=900)], (),
        {"kernel_shape": [7, 7]},
    ),
    "LpPool of order 3": Case(
        "LpPool", lambda x: np.cbrt((np.abs(x) ** 3).sum((2, 3), keepdims=True)), [normal(1, 2, 7, 7, scale=900)], (),
        {"kernel_shape": [7, 7], "p": 3},
    ),
    "Mean": Case("Mean", lambda *xs: sum(xs) / 3, [full(60000, 4), full(50000, 4), full(65000, 4)]),
    "Softmax of equal logits": Case("Softmax", softmax, [full(7, 2, 5000)]),
    "LogSoftmax": Case("LogSoftmax", lambda x: np.log(softmax(x)), [normal(2, 5000)]),
    "Gemm": Case(
        "Gemm", lambda a, b, c: 0.01 * a @ b + 0.3 * c, [full(100, 3, 512)], [full(100, 512, 8), normal(3, 8, scale=90)],
        {"alpha": 0.01, "beta": 0.3},
    ),
    "Pow": Case("Pow", lambda x, n: x**3, [normal(500, scale=5)], [np.array(3.0)]),
    "Div by a constant": Case("Div", lambda x, n: x / n, [normal(500, scale=5)], [np.array(3.0)]),
    "MeanVarianceNormalization": Case(
        "MeanVarianceNormalization", lambda x: normalised(x, (0, 2, 3), 0), [normal(2, 2, 20, 20, scale=300)], (),
        {"axes": [0, 2, 3]},
    ),
    "MeanVarianceNormalization, a large mean": Case(
        "MeanVarianceNormalization", lambda x: normalised(x, (0, 2, 3), 0), [normal(1, 2, 20, 20, mean=2000, scale=3)],
    ),
    "DequantizeLinear": Case(
        "DequantizeLinear", lambda x, s: x * s, [np.array([1_000_000, -2_000_001], np.int32)], [np.array(0.001)], {}, 21
    ),
    "HardSwish": Case("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), [normal(500, scale=4)]),
    "Mish": Case("Mish", lambda x: x * np.tanh(np.log1p(np.exp(x))), [normal(500, scale=4)]),
}  # fmt: skip


def check(model: ModelProto, feeds: Mapping[str, Array], exact: Array, dtype: DType) -> None:
    found = weft.compile(model, cache=False, threads=1)(**feeds)
    assert ulps_off(np.asarray(found), exact, dtype).max() <= 1


@pytest.mark.sampled(7)
@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_rounded_once(name: str, dtype: DType) -> None:
    case = CASES[name]
    inputs, weights = case.arrays(dtype)
    exact = case.exact(*[a.astype(np.float64) for a in (*inputs, *weights)])
    check(*case.model(dtype), exact, dtype)
