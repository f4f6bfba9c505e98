"""Write small ONNX models in code: a graph builder and the usual parameterised layers.

The layers are written the way PyTorch's exporter writes them (same operators, same attributes, weights as
initializers, scalars as ``Constant`` nodes), so that a model made here exercises the importer as a real one would.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8

Dim = int | str
Attribute = int | float | str | Sequence[int] | onnx.TensorProto


class GraphBuilder:
    """Collects nodes and weights and turns them into a checked ``onnx.ModelProto``.

    Values are named by strings; ``rng`` is the seeded generator all weights come from.
    """

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self.rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._renamed: dict[str, str] = {}

    def input(self, name: str, shape: Sequence[Dim], dtype: int = TensorProto.FLOAT) -> str:
        """Declare a model input; a string in `shape` is a symbolic dimension."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, value: str, name: str, dtype: int = TensorProto.FLOAT) -> None:
        """Make `value` the model output `name`; its shape is inferred."""
        self._renamed[value] = name
        self._outputs.append(helper.make_tensor_value_info(name, dtype, None))

    def weight(self, array: npt.NDArray[np.generic], name: str | None = None) -> str:
        """Add `array` as an initializer."""
        name = name or f"weight_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def normal(self, shape: Sequence[int], std: float, mean: float = 0.0) -> str:
        """Add a normally distributed float32 initializer."""
        return self.weight((self.rng.standard_normal(tuple(shape)) * std + mean).astype(np.float32))

    def uniform(self, shape: Sequence[int], low: float, high: float) -> str:
        """Add a uniformly distributed float32 initializer."""
        return self.weight(self.rng.uniform(low, high, tuple(shape)).astype(np.float32))

    def constant(self, array: npt.NDArray[np.generic]) -> str:
        """Add `array` as a ``Constant`` node."""
        return self.op("Constant", value=numpy_helper.from_array(array))

    def scalar(self, value: float) -> str:
        """Add a rank-0 float32 ``Constant`` node."""
        return self.constant(np.asarray(value, np.float32))

    def int64s(self, values: int | Sequence[int]) -> str:
        """Add an int64 ``Constant`` node: rank 0 for an int, rank 1 for a sequence."""
        return self.constant(np.asarray(values, np.int64))

    def op(self, op_type: str, *inputs: str, **attributes: Attribute) -> str:
        """Add a node with one output and return that output."""
        return self._node(op_type, inputs, 1, attributes)[0]

    def split(self, value: str, sizes: Sequence[int], axis: int) -> list[str]:
        """Add a ``Split`` node and return its outputs."""
        return self._node("Split", (value, self.int64s(sizes)), len(sizes), {"axis": axis})

    def model(self) -> onnx.ModelProto:
        """Return the model, checked, with the shapes of its outputs inferred."""
        self._rename()
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._weights)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="weft")
        model = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        del model.graph.value_info[:]
        onnx.checker.check_model(model)
        return model

    def _node(self, op_type: str, inputs: Sequence[str], count: int, attributes: Mapping[str, Attribute]) -> list[str]:
        name = f"/{op_type}_{len(self._nodes)}"
        outputs = [f"{name}_output_{i}" for i in range(count)]
        node = helper.make_node(op_type, list(inputs), outputs, name=name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self._nodes.append(node)
        return outputs

    def _rename(self) -> None:
        """Give the outputs' values their names, wherever nodes mention them."""
        for node in self._nodes:
            node.input[:] = [self._renamed.get(value, value) for value in node.input]
            node.output[:] = [self._renamed.get(value, value) for value in node.output]


def conv(
    g: GraphBuilder,
    x: str,
    channels: tuple[int, int],
    kernel: int = 3,
    stride: int = 1,
    *,
    padding: int | None = None,
    groups: int = 1,
    bias: bool = False,
) -> str:
    """Add a square 2-D convolution (in, out) with He-normal weights; "same" padding unless told otherwise."""
    inner, outer = channels[0] // groups, channels[1]
    pad = (kernel - 1) // 2 if padding is None else padding
    weight = g.normal((outer, inner, kernel, kernel), (2.0 / (inner * kernel * kernel)) ** 0.5)
    rest = [g.normal((outer,), 0.05)] if bias else []
    return g.op("Conv", x, weight, *rest, **_window(kernel, stride, pad), group=groups)


def conv_transpose(g: GraphBuilder, x: str, channels: tuple[int, int], kernel: int, stride: int, padding: int) -> str:
    """Add a square 2-D transposed convolution (in, out), scaled so that the output is as large as the input."""
    fan_in = max(1, channels[0] * kernel * kernel // (stride * stride))
    weight = g.normal((*channels, kernel, kernel), (2.0 / fan_in) ** 0.5)
    return g.op("ConvTranspose", x, weight, **_window(kernel, stride, padding), group=1)


def batch_norm(g: GraphBuilder, x: str, channels: int, scale: tuple[float, float] = (0.5, 1.0)) -> str:
    """Add a batch normalization for inference, with scales uniform in `scale` and statistics near (0, 1)."""
    parameters = (
        g.uniform((channels,), *scale),
        g.normal((channels,), 0.1),
        g.normal((channels,), 0.1),
        g.uniform((channels,), 0.8, 1.2),
    )
    return g.op("BatchNormalization", x, *parameters, epsilon=1e-5, momentum=0.9, training_mode=0)


def gemm(g: GraphBuilder, x: str, features: tuple[int, int]) -> str:
    """Add a linear layer (in, out) on a matrix, with bias: y = x W^T + b."""
    weight, bias = g.normal((features[1], features[0]), features[0] ** -0.5), g.normal((features[1],), 0.02)
    return g.op("Gemm", x, weight, bias, alpha=1.0, beta=1.0, transB=1)


def linear(g: GraphBuilder, x: str, features: tuple[int, int]) -> str:
    """Add a linear layer (in, out) on a tensor of any rank: a product and a bias of its own."""
    bias, weight = g.normal((features[1],), 0.02), g.normal(features, features[0] ** -0.5)
    return g.op("Add", bias, g.op("MatMul", x, weight))


def _window(kernel: int, stride: int, padding: int) -> dict[str, list[int]]:
    return {
        "dilations": [1, 1],
        "kernel_shape": [kernel] * 2,
        "pads": [padding] * 4,
        "strides": [stride] * 2,
    }
