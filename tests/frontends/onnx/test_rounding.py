"""Every operator of ONNX on 16-bit floats: what it gives is what it gives in float32, rounded once.

The inputs and attributes are those of ONNX's own cases, with the types of the inputs changed where the operator allows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
import onnx.defs
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.backend.test.case.test_case import TestCase
from tests.frontends.onnx.test_onnx_cases import arrays, cases, is_refused

from weft.driver.checking.reference import run_graph
from weft.frontends.onnx import translations  # noqa: F401  (the latter fills TABLE)
from weft.frontends.onnx.importer import from_onnx
from weft.frontends.onnx.registry import TABLE

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

CASES_EACH: Final = 3

FUNCTIONS: Final = [
    "AffineGrid",
    "Attention",
    "CausalConvWithState",
    "Celu",
    "LinearAttention",
    "NegativeLogLikelihoodLoss",
    "RotaryEmbedding",
    "Shrink",
    "SoftmaxCrossEntropyLoss",
    "SwiGLU",
]
"""Operators that ONNX defines as functions of others."""

WITHOUT_PRECISION: Final = {"BitCast", "If", "Loop", "Scan"}
"""Operators that read bits, or are made of nodes that round each for itself."""

HALVES: Final[dict[int, np.dtype[Any]]] = {
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
}


def plain(case: TestCase) -> ModelProto:
    assert case.model is not None
    return case.model


def is_one_node(case: TestCase) -> bool:
    return len(plain(case).graph.node) == 1


def halved(case: TestCase, kind: int) -> list[int]:
    """Returns which inputs of the case's node are of float32, and may be of *kind*."""
    graph = plain(case).graph
    [node] = graph.node
    schema = onnx.defs.get_schema(node.op_type, plain(case).opset_import[0].version)
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    wanted = "tensor(float16)" if kind == TensorProto.FLOAT16 else "tensor(bfloat16)"
    names = [n for n in node.input if n]
    formal = [schema.inputs[min(k, len(schema.inputs) - 1)].type_str for k, n in enumerate(node.input) if n]
    given = {i.name: i.type.tensor_type.elem_type for i in graph.input}
    fits = {n: wanted in allowed.get(t, ()) for n, t in zip(names, formal, strict=True)}
    return [k for k, i in enumerate(graph.input) if given[i.name] == TensorProto.FLOAT and fits.get(i.name, False)]


def pairs(case: TestCase, kind: int) -> Iterator[tuple[ModelProto, dict[str, Array], dict[str, Array]]]:
    """Yields the case's node with inputs of *kind*, and its inputs: as these are, and as float32."""
    assert case.data_sets
    which = halved(case, kind)
    model = ModelProto()
    model.CopyFrom(plain(case))
    for k in which:
        model.graph.input[k].type.tensor_type.elem_type = kind
    names = [i.name for i in model.graph.input]
    for inputs, _ in case.data_sets if which else ():
        given = arrays(inputs)
        with np.errstate(all="ignore"):
            rough = {
                n: a.astype(HALVES[kind]) if k in which else a
                for k, (n, a) in enumerate(zip(names, given, strict=True))
            }
            yield model, rough, {n: a.astype(given[k].dtype) for k, (n, a) in enumerate(rough.items())}


def run(model: ModelProto, feeds: dict[str, Array]) -> list[Array]:
    graph = from_onnx(model)
    with np.errstate(all="ignore"):
        return run_graph(graph, {v.name: feeds[v.name] for v in graph.inputs})


@pytest.mark.sampled(30)
@pytest.mark.parametrize(
    "op",
    sorted({name for domain, name in TABLE if not domain and onnx.defs.has(name)} - WITHOUT_PRECISION | set(FUNCTIONS)),
)
def test_rounded_once(op: str) -> None:
    for case in [c for c in cases().get(op, []) if not is_refused(c) and is_one_node(c)][:CASES_EACH]:
        for kind in HALVES:
            for model, rough, exact in pairs(case, kind):
                for y, e in zip(run(model, rough), run(plain(case), exact), strict=True):
                    with np.errstate(all="ignore"):
                        wanted = e.astype(y.dtype).astype(np.float64)
                    np.testing.assert_array_equal(y.astype(np.float64), wanted, err_msg=case.name)


def test_a_type_that_no_input_tells_is_that_of_the_first() -> None:
    """A state that begins as zeros has the type of what it is computed from, though its operator computes in float32."""
    node = helper.make_node(
        "LinearAttention", ["q", "k", "v"], ["y", "state"], q_num_heads=2, kv_num_heads=2, update_rule="linear"
    )
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, [1, 3, 8]) for n in "qkv"]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, None) for n in ("y", "state")]
    model = helper.make_model(
        helper.make_graph([node], "g", infos, outputs),
        opset_imports=[helper.make_opsetid("", onnx.defs.onnx_opset_version())],
    )
    assert [v.dtype.name for v in from_onnx(model).outputs] == ["f16", "f16"]
