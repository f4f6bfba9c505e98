"""Just enough of an ONNX interpreter in jax.numpy for the benchmark's models, to be traced by jax.jit."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax import lax
from onnx import helper, numpy_helper

LEAST_ARGUMENT = 1024  # tensors of this many elements are arguments, as in any JAX program; smaller ones constants
Attributes = dict[str, Any]
IMAGES = ("NCHW", "OIHW", "NCHW")


def load(path: str) -> tuple[Callable[..., list[Any]], dict[str, Any]]:
    """Return a function (parameters, *inputs) -> outputs, and its parameters."""
    graph = onnx.load(path).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constants]
    outputs = [value.name for value in graph.output]
    steps = []
    for node in graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Constant":
            constants[node.output[0]] = numpy_helper.to_array(attributes["value"])
        else:
            steps.append((node.op_type, attributes, list(node.input), list(node.output)))
    turn_weights(steps, constants)
    parameters = {name: jax.device_put(a) for name, a in constants.items() if a.size >= LEAST_ARGUMENT}

    def function(parameters: dict[str, Any], *arrays: Any) -> list[Any]:
        values = {"": None} | constants | parameters | dict(zip(inputs, arrays, strict=True))
        for operator, attributes, arguments, results in steps:
            result = OPERATORS[operator](attributes, *(values[name] for name in arguments))
            values.update(zip(results, result if isinstance(result, tuple) else (result,), strict=True))
        return [values[name] for name in outputs]

    return function, parameters


def turn_weights(steps: list[tuple[str, Attributes, list[str], list[str]]], constants: dict[str, np.ndarray]) -> None:
    """Transpose, once and for all, the weights that only one Gemm uses and uses transposed."""
    uses = [name for _, _, arguments, _ in steps for name in arguments]
    for operator, attributes, arguments, _ in steps:
        if operator == "Gemm" and attributes.get("transB") and arguments[1] in constants:
            if uses.count(arguments[1]) == 1:
                constants[arguments[1]] = np.ascontiguousarray(constants[arguments[1]].T)
                attributes["transB"] = 0


def padding(attributes: Attributes, rank: int = 2) -> list[tuple[int, int]]:
    pads = attributes.get("pads", [0] * 2 * rank)
    return [(pads[i], pads[i + rank]) for i in range(rank)]


def conv(at: Attributes, x: Any, w: Any, b: Any = None) -> Any:
    y = lax.conv_general_dilated(
        x,
        w,
        at.get("strides", [1, 1]),
        padding(at),
        rhs_dilation=at.get("dilations", [1, 1]),
        dimension_numbers=IMAGES,
        feature_group_count=at.get("group", 1),
    )
    return y if b is None else y + b.reshape(1, -1, 1, 1)


def conv_transpose(at: Attributes, x: Any, w: Any, b: Any = None) -> Any:
    kernel, pads = w.shape[2:], padding(at)
    y = lax.conv_general_dilated(
        x,
        jnp.flip(w, (2, 3)).swapaxes(0, 1),
        (1, 1),
        [(kernel[i] - 1 - pads[i][0], kernel[i] - 1 - pads[i][1]) for i in range(2)],
        lhs_dilation=at.get("strides", [1, 1]),
        dimension_numbers=IMAGES,
    )
    return y if b is None else y + b.reshape(1, -1, 1, 1)


def max_pool(at: Attributes, x: Any) -> Any:
    window, strides = (1, 1, *at["kernel_shape"]), (1, 1, *at["strides"])
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, [(0, 0), (0, 0), *padding(at)])


def batch_norm(at: Attributes, x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    factor = scale / jnp.sqrt(variance + at.get("epsilon", 1e-5))
    return x * factor.reshape(1, -1, 1, 1) + (bias - mean * factor).reshape(1, -1, 1, 1)


def layer_norm(at: Attributes, x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + at.get("epsilon", 1e-5)) * scale + bias


def gemm(at: Attributes, a: Any, b: Any, c: Any = None) -> Any:
    y = jnp.matmul(a.T if at.get("transA") else a, b.T if at.get("transB") else b)
    y = y if at.get("alpha", 1.0) == 1.0 else y * at["alpha"]
    if c is None:
        return y
    return y + (c if at.get("beta", 1.0) == 1.0 else at["beta"] * c)


def reshape(at: Attributes, x: Any, shape: np.ndarray) -> Any:
    return x.reshape([x.shape[i] if size == 0 else int(size) for i, size in enumerate(shape)])


def flatten(at: Attributes, x: Any) -> Any:
    return x.reshape(math.prod(x.shape[: at.get("axis", 1)]), -1)


OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": lambda at, a, b: a + b,
    "BatchNormalization": batch_norm,
    "Cast": lambda at, x: x.astype(helper.tensor_dtype_to_np_dtype(at["to"])),
    "Concat": lambda at, *x: jnp.concatenate(x, at["axis"]),
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Div": lambda at, a, b: a / b,
    "Erf": lambda at, x: lax.erf(x),
    "Flatten": flatten,
    "Gather": lambda at, x, index: jnp.take(x, index, at.get("axis", 0)),
    "Gemm": gemm,
    "GlobalAveragePool": lambda at, x: x.mean((2, 3), keepdims=True),
    "LayerNormalization": layer_norm,
    "MatMul": lambda at, a, b: jnp.matmul(a, b),
    "MaxPool": max_pool,
    "Mul": lambda at, a, b: a * b,
    "Relu": lambda at, x: jnp.maximum(x, 0),
    "Reshape": reshape,
    "Sigmoid": lambda at, x: jax.nn.sigmoid(x),
    "Softmax": lambda at, x: jax.nn.softmax(x, at.get("axis", -1)),
    "Split": lambda at, x, sizes: tuple(jnp.split(x, np.cumsum(sizes)[:-1], at.get("axis", 0))),
    "Sub": lambda at, a, b: a - b,
    "Tanh": lambda at, x: jnp.tanh(x),
    "Transpose": lambda at, x: x.transpose(at["perm"]),
}
