"""Random models of one operator: the shapes that nobody tuned for, from a seed."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from inputs import Entry, seed_of
from onnx import ModelProto, TensorProto, helper, numpy_helper, shape_inference

OPSET = 17
SMALLEST, LARGEST = 2e6, 4e8
"""Floating-point operations of a contraction, convolution or depthwise convolution: 0.01 to a few milliseconds a run."""
FEWEST, MOST = 20_000, 2_000_000
"""Elements that a reduction reads."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One operator on given shapes: its class, inputs and weights by shape, attributes, and its work."""

    kind: str
    operator: str
    inputs: dict[str, Shape]
    weights: dict[str, Shape]
    flops: float
    attributes: dict[str, Any] = field(default_factory=dict)
    axes: Shape | None = None

    @property
    def label(self) -> str:
        """Return the shapes and attributes as text."""
        shapes = [*self.inputs.values(), *self.weights.values()]
        parts = ["x".join(map(str, shape)) or "1" for shape in shapes]
        parts += [f"{name}={value}" for name, value in self.attributes.items()]
        if self.axes is not None:
            parts.append(f"axes={list(self.axes)}")
        return f"{self.operator} {' '.join(parts)}".replace(", ", ",")

    def entry(self, name: str) -> Entry:
        """Return the entry of the benchmark's manifest."""
        inputs = [{"name": n, "shape": list(s), "dtype": "float32"} for n, s in self.inputs.items()]
        return {"name": name, "inputs": inputs, "outputs": ["y"], "flops": self.flops}

    def model(self, name: str) -> ModelProto:
        """Return the ONNX model, its weights seeded by *name*."""
        rng = np.random.default_rng(seed_of(name))
        held = [numpy_helper.from_array(_weight(rng, shape, name), name) for name, shape in self.weights.items()]
        names = [*self.inputs, *self.weights]
        attributes = dict(self.attributes)
        if self.axes is not None and self.operator == "ReduceSum":  # an input since opset 13
            held.append(numpy_helper.from_array(np.array(self.axes, np.int64), "axes"))
            names.append("axes")
        elif self.axes is not None:
            attributes["axes"] = list(self.axes)
        node = helper.make_node(self.operator, names, ["y"], **attributes)
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in self.inputs.items()]
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph([node], name, values, [output], held)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        return shape_inference.infer_shapes(made, strict_mode=True)


def _weight(rng: np.random.Generator, shape: Shape, name: str) -> np.ndarray:
    scale = 1.0 / math.sqrt(max(1, math.prod(shape[1:]))) if len(shape) > 1 else 1.0
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def random_cases(seed: int, count: int) -> list[Case]:
    """Return *count* operators, of the classes in turn; those of a smaller count are the first of a larger's."""
    rng = np.random.default_rng(seed)
    makers: tuple[Callable[[np.random.Generator], Case], ...] = (
        *(contraction, convolution, depthwise, reduction),
        other_rank,
    )
    return [_within_bounds(makers[n % len(makers)], rng) for n in range(count)]


def _within_bounds(make: Callable[[np.random.Generator], Case], rng: np.random.Generator) -> Case:
    while True:
        case = make(rng)
        if case.kind == "reduction" or SMALLEST <= case.flops <= LARGEST:
            return case


def contraction(rng: np.random.Generator) -> Case:
    """Return a matrix product: by a constant, of two inputs, or a batch of them."""
    m, k, n = _size(rng, 1, 700), _size(rng, 8, 1500), _size(rng, 8, 1500)
    form = rng.choice(["constant", "gemm", "dynamic", "batched"])
    if form == "constant":
        batch = (int(rng.integers(1, 9)),) if rng.random() < 0.3 else ()
        flops = 2.0 * math.prod(batch) * m * k * n
        return Case("contraction", "MatMul", {"a": (*batch, m, k)}, {"b": (k, n)}, flops)
    if form == "gemm":
        return Case("contraction", "Gemm", {"a": (m, k)}, {"b": (n, k), "c": (n,)}, 2.0 * m * k * n, {"transB": 1})
    batch = (int(rng.integers(2, 17)),) if form == "batched" else ()
    flops = 2.0 * math.prod(batch) * m * k * n
    return Case("contraction", "MatMul", {"a": (*batch, m, k), "b": (*batch, k, n)}, {}, flops)


def convolution(rng: np.random.Generator) -> Case:
    """Return a convolution of two dimensions: strided, dilated or grouped now and then."""
    group = int(rng.choice([1, 1, 1, 1, 2, 3, 4, 8]))
    inner, outer = (max(1, _size(rng, 3, 320) // group) * group for _ in range(2))
    height = _size(rng, 5, 90)
    width = height if rng.random() < 0.5 else _size(rng, 5, 90)
    kernels = [(1, 1), (1, 1), (3, 3), (3, 3), (3, 3), (5, 5), (7, 7), (1, 3), (3, 1), (2, 2), (4, 4), (1, 7)]
    kernel = kernels[int(rng.integers(len(kernels)))]
    window = _window(rng, kernel, dilated=0.2)
    return _convolution("convolution", rng, (inner, outer, group), (height, width), kernel, window)


def depthwise(rng: np.random.Generator) -> Case:
    """Return a depthwise convolution."""
    channels = _size(rng, 8, 700)
    height = _size(rng, 7, 120)
    width = height if rng.random() < 0.5 else _size(rng, 7, 120)
    kernels = [(3, 3), (3, 3), (3, 3), (5, 5), (7, 7), (1, 5), (5, 1)]
    kernel = kernels[int(rng.integers(len(kernels)))]
    window = _window(rng, kernel, dilated=0.2)
    return _convolution("depthwise", rng, (channels, channels, channels), (height, width), kernel, window)


def other_rank(rng: np.random.Generator) -> Case:
    """Return a convolution of lines or of volumes: strided, dilated, grouped or depthwise now and then."""
    lines = rng.random() < 0.6
    group = int(rng.choice([1, 1, 1, 1, 2, 4]))
    inner, outer = (max(1, _size(rng, 3, 512 if lines else 128) // group) * group for _ in range(2))
    if rng.random() < 0.2:
        inner = outer = group = _size(rng, 8, 700)
    if lines:
        size: Shape = (_size(rng, 20, 6000),)
        kernel: Shape = (int(rng.choice([1, 2, 3, 3, 3, 4, 5, 7, 9, 15, 31])),)
    else:
        size = tuple(_size(rng, 3, 40) for _ in range(3))
        kernel = (int(rng.choice([1, 2, 3, 3, 3])),) * 3
    return _convolution("other rank", rng, (inner, outer, group), size, kernel, _window(rng, kernel, dilated=0.2))


def _window(rng: np.random.Generator, kernel: Shape, dilated: float) -> tuple[int, int, Shape]:
    """Return a stride, a dilation and pads, the same at both ends."""
    stride = 2 if rng.random() < 0.3 else 1
    dilation = 2 if max(kernel) > 1 and rng.random() < dilated else 1
    keep = rng.random() < 0.7
    pads = tuple((k - 1) * dilation // 2 if keep else 0 for k in kernel)
    return stride, dilation, (*pads, *pads)


def _convolution(
    kind: str, rng: np.random.Generator, channels: Shape, size: Shape, kernel: Shape, window: tuple[int, int, Shape]
) -> Case:
    inner, outer, group = channels
    stride, dilation, pads = window
    batch = int(rng.choice([1, 1, 1, 2, 3, 4, 8]))
    out = [
        (s + 2 * p - dilation * (k - 1) - 1) // stride + 1
        for s, k, p in zip(size, kernel, pads[: len(size)], strict=True)
    ]
    flops = 2.0 * batch * outer * math.prod(max(0, o) for o in out) * (inner // group) * math.prod(kernel)
    weights: dict[str, Shape] = {"w": (outer, inner // group, *kernel)}
    if rng.random() < 0.5:
        weights["bias"] = (outer,)
    each = len(size)
    attributes = {"strides": [stride] * each, "pads": list(pads), "dilations": [dilation] * each, "group": group}
    if min(out) < 1:
        flops = 0.0  # out of bounds: another is drawn
    return Case(kind, "Conv", {"x": (batch, inner, *size)}, weights, flops, attributes)


def reduction(rng: np.random.Generator) -> Case:
    """Return a reduction over some axes, a softmax, or a layer normalization."""
    while True:
        shape = tuple(_size(rng, 2, 400) for _ in range(int(rng.integers(2, 5))))
        if FEWEST <= math.prod(shape) <= MOST:
            break
    rank, flops = len(shape), float(math.prod(shape))
    operator = str(rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "Softmax", "LayerNormalization"]))
    if operator == "Softmax":
        axis = int(rng.choice([-1, -1, int(rng.integers(-rank, 0))]))
        return Case("reduction", operator, {"x": shape}, {}, flops, {"axis": axis})
    if operator == "LayerNormalization":
        axis = -1 if rank == 2 or rng.random() < 0.7 else -2
        normalized = shape[axis:]
        return Case(
            "reduction", operator, {"x": shape}, {"scale": normalized, "bias": normalized}, flops, {"axis": axis}
        )
    chosen = rng.permutation(rank)[: int(rng.integers(1, rank + 1))]
    attributes = {"keepdims": int(rng.integers(0, 2))}
    return Case("reduction", operator, {"x": shape}, {}, flops, attributes, tuple(sorted(int(a) for a in chosen)))


def _size(rng: np.random.Generator, low: int, high: int) -> int:
    """Return a size from *low* to *high*, small ones as likely as large ones; rarely a multiple of anything."""
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))
