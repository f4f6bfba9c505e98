"""Small ONNX models for tests of the importer, and running them by the reference interpreter and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from weft.driver.checking.reference import run_graph
from weft.frontends.onnx.importer import from_onnx
from weft.graph import Graph

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Inputs: TypeAlias = Mapping[str, Array]

IR_VERSION = 10


def floats(*shape: int, seed: int = 0) -> Array:
    """Returns normally distributed float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def int64s(*values: int) -> Array:
    """Returns a vector of int64."""
    return np.array(values, np.int64)


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> NodeProto:
    """Makes a node; names are separated by blanks, and "-" stands for an input or output that is left out."""
    read, made = ([("" if n == "-" else n) for n in given.split()] for given in (inputs, outputs))
    return helper.make_node(op, read, made, f"/{made[0]}", **attributes)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[int, Sequence[int | str | None]]],
    outputs: Sequence[str] = ("y",),
    weights: Inputs | None = None,
    opset: int = 17,
) -> ModelProto:
    """Makes a model; inputs are given by their element type and shape, the outputs' types are left open."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, kind, list(shape)) for name, (kind, shape) in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION)


def float_inputs(**shapes: Sequence[int | str | None]) -> dict[str, tuple[int, Sequence[int | str | None]]]:
    """Declares float32 inputs of the shapes given."""
    return {name: (TensorProto.FLOAT, shape) for name, shape in shapes.items()}


def single(op: str, inputs: Inputs, weights: Inputs | None = None, opset: int = 17, **attributes: Any) -> ModelProto:
    """Makes a model of one node of one output, its inputs in the order given: those of *inputs*, then *weights*."""
    kinds = {n: (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()}
    return model_of(
        [node(op, " ".join([*inputs, *(weights or {})]), **attributes)], kinds, weights=weights, opset=opset
    )


def imported(model: ModelProto, inputs: Inputs) -> tuple[Graph, list[Array]]:
    """Imports *model* and returns its graph and the graph's outputs for *inputs*."""
    graph = from_onnx(model)
    return graph, run_graph(graph, inputs)


def by_runtime(model: ModelProto, inputs: Inputs, *, optimized: bool = True) -> list[Array]:
    """Returns what ONNX Runtime computes, node by node as the model has them if not *optimized*."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    typed = onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(typed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, dict(inputs))
    return found


def check_like_runtime(model: ModelProto, inputs: Inputs, rtol: float = 1e-5, atol: float = 1e-6) -> Graph:
    """Compares with ONNX Runtime: types, shapes and values; returns the graph."""
    graph, found = imported(model, inputs)
    wanted = by_runtime(model, inputs)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    return graph


def ops(graph: Graph) -> list[str]:
    """Returns the operators of a graph in order."""
    return [n.op for n in graph.nodes]
