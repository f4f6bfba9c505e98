"""Models of late sizes and of control flow, run in each form that a host program has, and compared with ONNX's own semantics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tests.host_programs import interpret_model, linked

from weft.driver.build import Compilation, build
from weft.driver.host_model import replay_model
from weft.driver.options import CompileOptions
from weft.loop import parse_program, print_program, verify
from weft.runtime import Model
from weft.targets import parse_target

Array: TypeAlias = "np.ndarray[Any, Any]"
Values: TypeAlias = Mapping[str, Array]

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Info: TypeAlias = tuple[str, int, Sequence[int | str | None]]


def infos(given: Sequence[Info]) -> list[onnx.ValueInfoProto]:
    """Returns descriptions of tensors: names, types and shapes."""
    return [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in given]


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Info],
    outputs: Sequence[Info],
    constants: Mapping[str, object] | None = None,
) -> onnx.GraphProto:
    """Returns a graph, such as the body of a loop."""
    weights = [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in (constants or {}).items()]
    return helper.make_graph(list(nodes), "g", infos(inputs), infos(outputs), weights)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Info],
    outputs: Sequence[Info],
    constants: Mapping[str, object] | None = None,
) -> onnx.ModelProto:
    """Returns a model of one graph."""
    opset = helper.make_opsetid("", 21)
    return helper.make_model(graph(nodes, inputs, outputs, constants), opset_imports=[opset], ir_version=10)


class Ways:
    """A model compiled, and its host program replayed from bytes, and interpreted: the results must be the same."""

    def __init__(
        self, proto: onnx.ModelProto, target: str | None = None, rtol: float = 1e-6, atol: float = 0.0
    ) -> None:
        """Compiles *proto*; *rtol* and *atol* are how far the interpreter, which rounds each product, may be from code."""
        self.rtol, self.atol = rtol, atol
        self.reference = ReferenceEvaluator(proto)
        options = CompileOptions(verify=True)
        self.made: Compilation = build(proto, options=options) if target is None else build(proto, target, options)
        self.models: list[Model] = []
        if target is None:
            self.models = [Model(self.made.package, threads=1), Model(replay_model(self.made), threads=1)]
        else:
            self.models = [Model(replay_model(build(proto, parse_target(target), options)), threads=1)]
        self.program = linked(self.made)
        verify(self.program, flat=True)
        text = print_program(self.made.host)
        assert print_program(parse_program(text)) == text

    def run(self, feed: Values) -> list[Array]:
        """Returns the outputs, which all forms agree on."""
        first, *others = [m.run([feed[s.name] for s in m.inputs]) for m in self.models for _ in range(2)]
        for made in others:
            for a, b in zip(first, made, strict=True):
                np.testing.assert_array_equal(a, b)
        for a, b in zip(first, interpret_model(self.program, self.made, feed), strict=True):
            np.testing.assert_allclose(a, b, rtol=self.rtol, atol=self.atol, strict=True)
        return first

    def check(self, *feeds: Values, wanted: Sequence[Sequence[Array]] | None = None) -> None:
        """Compares the outputs for each feed with those *wanted*, by default what ONNX's reference evaluator makes."""
        expected = [self.reference.run(None, dict(f)) for f in feeds] if wanted is None else wanted
        for feed, arrays in zip(feeds, expected, strict=True):
            for found, one in zip(self.run(feed), arrays, strict=True):
                assert (found.shape, found.dtype) == (one.shape, one.dtype)
                np.testing.assert_allclose(found, one, rtol=10 * self.rtol, atol=self.atol)
