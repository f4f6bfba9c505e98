"""The computations of the benchmark on GPUs: each as an ONNX model, its inputs, and what it is in PyTorch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).resolve().parents[1]
sys.path.append(str(FOLDER))  # the benchmarks of other machines

from convolutions import CONVOLUTIONS, DEPTHWISE  # noqa: E402
from inputs import make_inputs  # noqa: E402

from weft.driver.options import PRECISIONS  # noqa: E402

Arrays = dict[str, np.ndarray]
ONNX = FOLDER / "onnx"
TYPES: dict[str, tuple[int, Any]] = {
    "fp32": (TensorProto.FLOAT, np.float32),
    "tf32": (TensorProto.FLOAT, np.float32),
    "fp16": (TensorProto.FLOAT16, np.float16),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
}
"""By the names of precisions: tf32 is a way of multiplying float32."""

GEMMS = (1024, 2048, 4096, 8192)
NETWORKS = ("resnet18", "mobilenet_v1", "dqn", "dcgan", "mlp", "lstm_lm", "bert_base", "gpt2_decode256")
OWN_BATCH = {"mlp": 64}
"""The batch of a network's own file, where it is not 1."""
IN_TORCH: dict[str, Callable[..., Any]] = {
    "MatMul": lambda torch, x, w: torch.matmul(x, w),
    "Softmax": lambda torch, x: torch.softmax(x, -1),
    "LayerNormalization": lambda torch, x, w, b: torch.nn.functional.layer_norm(x, x.shape[-1:], w, b),
    "Attention": lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
}


@dataclass(frozen=True)
class Case:
    """A computation: its name and precision, the model and its inputs when asked, operations and bytes that it takes at least.

    `in_torch` makes a function of PyTorch, given the module `torch`: of the inputs in order, and the weights. Where a case
    `rounds`, its model is of float32, and it is the compiler that takes the precision.
    """

    name: str
    precision: str
    model: Callable[[], onnx.ModelProto]
    inputs: Callable[[], Arrays]
    flops: float = 0.0
    nbytes: float = 0.0
    weights: Arrays = field(default_factory=dict)
    rounds: bool = False
    in_torch: Callable[[Any], Callable[..., Any]] = field(kw_only=True)

    @property
    def tolerance(self) -> float:
        """The greatest difference of two results, beside the largest value."""
        return {"fp32": 2e-5, "tf32": 5e-3, "fp16": 5e-3, "bf16": 4e-2, "int8": 0.0}[self.precision]

    @property
    def compiled_for(self) -> str:
        """Weft's option `precision`."""
        wanted = self.rounds or self.precision == "tf32"
        return self.precision if wanted and self.precision in PRECISIONS else "model"


def random(shapes: Mapping[str, Sequence[int]], precision: str) -> Arrays:
    """Returns seeded normal values."""
    rng = np.random.default_rng(0)
    return {n: rng.standard_normal(s, np.float32).astype(TYPES[precision][1]) for n, s in shapes.items()}


def of_nodes(
    nodes: Sequence[onnx.NodeProto], shapes: Mapping[str, Sequence[int]], precision: str, weights: Arrays
) -> onnx.ModelProto:
    """Returns a model of a few nodes that makes `y`."""
    kind = TYPES[precision][0]
    inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in shapes.items()]
    output = helper.make_tensor_value_info("y", kind, None)
    constants = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(list(nodes), "case", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def one_operator(op: str, name: str, precision: str, shapes: Mapping[str, Sequence[int]], **facts: Any) -> Case:
    """Returns the case of one operator, all of whose operands are inputs."""
    flops, nbytes, attributes = facts.pop("flops", 0.0), facts.pop("nbytes", 0.0), facts
    node = helper.make_node(op, list(shapes), ["y"], **attributes)
    return Case(
        f"{name}_{precision}",
        precision,
        partial(of_nodes, [node], shapes, precision, {}),
        partial(random, shapes, precision),
        flops,
        nbytes,
        in_torch=lambda torch: partial(IN_TORCH[op], torch),
    )


def bytes_product(n: int) -> Case:
    """Returns the product of bytes whose right factor has the terms of each column side by side, as a layer's weights do."""
    shapes = {"x": (n, n), "w": (n, n)}

    def model() -> onnx.ModelProto:
        nodes = [
            helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
            helper.make_node("MatMulInteger", ["x", "t"], ["y"]),
        ]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT8, s) for name, s in shapes.items()]
        graph = helper.make_graph(
            nodes, "case", inputs, [helper.make_tensor_value_info("y", TensorProto.INT32, (n, n))]
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)

    def inputs() -> Arrays:
        rng = np.random.default_rng(0)
        return {name: rng.integers(-128, 128, s, np.int8) for name, s in shapes.items()}

    return Case(
        f"gemm{n}_int8",
        "int8",
        model,
        inputs,
        2.0 * n**3,
        6.0 * n * n,
        in_torch=lambda torch: lambda x, w: torch._int_mm(x, w.t()),
    )


def convolution(name: str, precision: str, batch: int, *, rounds: bool = False) -> Case:
    """Returns a convolution with a bias and a ReLU: of float32 whose factors the compiler rounds, or else of *precision*."""
    size, inner, outer, kernel, stride = CONVOLUTIONS[name]
    return _convolution(
        f"{name}_b{batch}", precision, (batch, inner, size, size), (outer, inner, kernel, stride), rounds
    )


def depthwise(name: str, batch: int) -> Case:
    """Returns a depthwise convolution of float32 with a bias and a ReLU; its time is that of the memory, at best."""
    size, channels, stride = DEPTHWISE[name]
    return _convolution(f"{name}_b{batch}", "fp32", (batch, channels, size, size), (channels, 1, 3, stride))


def _convolution(
    name: str,
    precision: str,
    image: tuple[int, int, int, int],
    window: tuple[int, int, int, int],
    rounds: bool = False,
) -> Case:
    """Returns the convolution of an *image* [N, C, H, W] by *window*: channels out, channels of a group, size, stride."""
    (batch, channels, size, _), (outer, inner, kernel, stride) = image, window
    stored = "fp32" if rounds else precision
    made = random({"w": (outer, inner, kernel, kernel), "b": (outer,)}, stored)
    weights = {"w": (made["w"] * np.float32((inner * kernel * kernel) ** -0.5)).astype(made["w"].dtype), "b": made["b"]}
    pad, to, group = kernel // 2, size // stride, channels // inner
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2, pads=[pad] * 4, group=group),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    shapes = {"x": image}

    def in_torch(torch: Any) -> Callable[..., Any]:
        return lambda x, w, b: torch.relu(torch.nn.functional.conv2d(x, w, b, stride, pad, groups=group))

    flops = 2.0 * batch * to * to * outer * inner * kernel * kernel if group == 1 else 0.0
    nbytes = 4.0 * batch * channels * (size * size + to * to) if group > 1 else 0.0
    model, inputs = partial(of_nodes, nodes, shapes, stored, weights), partial(random, shapes, stored)
    return Case(f"{name}_{precision}", precision, model, inputs, flops, nbytes, weights, rounds, in_torch=in_torch)


def network(name: str, batch: int, precision: str) -> Case:
    """Returns one of the benchmark's networks, for so many rows.

    Its ONNX file is made where there is none, which needs PyTorch; the inputs are those that the file was made with.
    """
    path = ONNX / (f"{name}.onnx" if batch == OWN_BATCH.get(name, 1) else f"{name}_b{batch}.onnx")

    def entry() -> tuple[Any, Any]:
        import models  # needs PyTorch

        rows = models.MODELS[name].of_batch(batch)
        return rows, {"name": name, "inputs": rows.inputs, "outputs": rows.outputs}

    def model() -> onnx.ModelProto:
        if not path.is_file():
            import models

            path.parent.mkdir(exist_ok=True)
            rows, facts = entry()
            own = path.with_suffix(f".{os.getpid()}.onnx")  # processes that compile other precisions write it, too
            models.write(facts, rows, own)
            own.replace(path)
        return onnx.load(path)

    def in_torch(_: Any) -> Callable[..., Any]:
        import models

        made: Callable[..., Any] = models.build(name, models.MODELS[name]).cuda().eval()
        return made

    return Case(
        f"{name}_b{batch}_{precision}",
        precision,
        model,
        lambda: make_inputs(entry()[1]),
        rounds=True,
        in_torch=in_torch,
    )


def all_cases() -> Iterator[Case]:
    """Yields all cases, the most telling first: a benchmark may end before the last."""
    for precision, (_, kind) in TYPES.items():
        size = np.dtype(kind).itemsize
        for n in GEMMS:
            facts = {"flops": 2.0 * n**3, "nbytes": 3.0 * n * n * size}
            yield one_operator("MatMul", f"gemm{n}", precision, {"x": (n, n), "w": (n, n)}, **facts)
    yield from [bytes_product(n) for n in GEMMS]
    for name in CONVOLUTIONS:
        for batch in (1, 32):
            yield convolution(name, "fp32", batch)
        for precision in ("tf32", "bf16"):
            if precision in PRECISIONS:
                yield convolution(name, precision, 32, rounds=True)
    yield from [depthwise(name, batch) for name in DEPTHWISE for batch in (1, 32)]
    for precision in ("fp32", "fp16"):
        size = np.dtype(TYPES[precision][1]).itemsize
        for rows, columns in ((4096, 1024), (4096, 4096)):
            x, facts = (rows, columns), {"nbytes": 2.0 * rows * columns * size}
            yield one_operator("Softmax", f"softmax{rows}x{columns}", precision, {"x": x}, axis=-1, **facts)
            normed = {"x": x, "w": (columns,), "b": (columns,)}
            yield one_operator("LayerNormalization", f"norm{rows}x{columns}", precision, normed, axis=-1, **facts)
        for length in (128, 512, 2048):
            heads = (1, 12, length, 64)
            flops = 4.0 * 12 * length * length * 64
            yield one_operator("Attention", f"attention{length}", precision, dict.fromkeys("qkv", heads), flops=flops)
    for precision in ("fp32", *[p for p in ("tf32", "bf16") if p in PRECISIONS]):
        for batch in (1, 32):
            yield from [network(name, batch, precision) for name in NETWORKS]


def case_of(name: str) -> Case:
    """Returns the case called *name*."""
    return next(c for c in all_cases() if c.name == name)
