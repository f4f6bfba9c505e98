"""Functions that call one another: what they make is counted before it is made."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper
from tests.driver.budgets.bombs import OPSET, model_of, tensor

from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError

node = helper.make_node


def function(name: str, nodes: Sequence[NodeProto]) -> FunctionProto:
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["x"], ["y"], nodes, opsets)


def call(name: str, given: str, made: str) -> NodeProto:
    return node(name, [given], [made], domain="own")


def doubling(count: int) -> ModelProto:
    """Returns a model of *count* functions, each of which calls the one before twice."""
    functions = [function("f0", [node("Abs", ["x"], ["y"])])]
    for k in range(1, count):
        functions.append(function(f"f{k}", [call(f"f{k - 1}", "x", "t"), call(f"f{k - 1}", "t", "y")]))
    return model_of([call(f"f{count - 1}", "v0", "v1")], "v1", functions=functions)


def circle(count: int) -> ModelProto:
    functions = [function(f"f{k}", [call(f"f{(k + 1) % count}", "x", "y")]) for k in range(count)]
    return model_of([call("f0", "v0", "v1")], "v1", functions=functions)


def message(model: ModelProto) -> str:
    with pytest.raises(ModelError) as raised:
        from_onnx(model)
    return str(raised.value)


def test_functions_that_double_each_other() -> None:
    start = time.process_time()
    assert message(doubling(30)) == (
        "f29 v1: its functions call others many times over: written out, the model has 1,610,612,735 nodes; 131,072 is the most"
        "\n  hint: no exporter writes such a model: do not load one that you do not trust"
    )
    assert "countless nodes" in message(doubling(62))
    assert time.process_time() - start < 1


def test_functions_that_make_as_many_nodes_as_others_have() -> None:
    assert len(from_onnx(doubling(8)).nodes) == 1 << 7


def test_a_function_that_calls_itself() -> None:
    assert message(circle(1)) == (
        "f0 y: the function own.f0 calls itself"
        "\n  hint: the model is damaged, or whatever wrote it is wrong: export or download it again"
    )


def test_functions_in_a_circle() -> None:
    assert message(circle(3)).startswith(
        "f0 y: the functions own.f0 -> own.f1 -> own.f2 -> own.f0 call one another in a circle\n"
    )
    assert "own.f7 -> ... -> own.f0 call" in message(circle(1000))


def test_a_function_that_calls_itself_in_a_branch() -> None:
    out = tensor("z", [4, 5])
    branch = helper.make_graph([call("f0", "x", "z")], "branch", [], [out])
    other = helper.make_graph([node("Abs", ["x"], ["z"])], "other", [], [out])
    body = [
        node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [False])),
        node("If", ["c"], ["y"], then_branch=branch, else_branch=other),
    ]
    model = model_of([call("f0", "v0", "v1")], "v1", functions=[function("f0", body)])
    assert "the function own.f0 calls itself" in message(model)


def test_a_long_chain_of_functions() -> None:
    functions = [function("f0", [node("Abs", ["x"], ["y"])])]
    functions += [function(f"f{k}", [call(f"f{k - 1}", "x", "y")]) for k in range(1, 2000)]
    assert message(model_of([call("f1999", "v0", "v1")], "v1", functions=functions)) == (
        "bomb: functions and nested graphs lie 2000 deep inside one another; 64 is the most"
        "\n  hint: export the model with its functions inlined, and with fewer graphs inside one another"
    )
    deep = model_of([call("f63", "v0", "v1")], "v1", functions=functions[:64])
    assert [n.op for n in from_onnx(deep).nodes] == ["abs"]


def nested(graph: GraphProto, depth: int) -> GraphProto:
    """Returns *graph* in *depth* branches, one inside the other."""
    for _ in range(depth):
        branch = node("If", ["c"], ["z"], then_branch=graph, else_branch=graph)
        branch.attribute[0].g.CopyFrom(
            helper.make_graph([node("Abs", ["v0"], ["z"])], "other", [], [tensor("z", [4, 5])])
        )
        graph = helper.make_graph([branch], "branch", [], [tensor("z", [4, 5])])
    return graph


def test_deeply_nested_graphs() -> None:
    inner = helper.make_graph([node("Neg", ["v0"], ["z"])], "inner", [], [tensor("z", [4, 5])])
    branch = node("If", ["c"], ["v1"], then_branch=nested(inner, 30), else_branch=nested(inner, 1))
    model = model_of([branch], "v1", constants={"c": np.array(True)})
    assert [n.op for n in from_onnx(model).nodes] == ["neg"]


def loops(depth: int) -> GraphProto:
    """Returns the body of a loop with *depth* others inside one another, of a few iterations each."""
    inner = node("Loop", ["trips", "", "s"], ["r"], body=loops(depth - 1)) if depth else node("Neg", ["s"], ["r"])
    given = [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), tensor("s", [4, 5])]
    made = [tensor("on", [], TensorProto.BOOL), tensor("r", [4, 5])]
    return helper.make_graph([node("Identity", ["go"], ["on"]), inner], "body", given, made)


def test_loops_inside_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.frontends.onnx.expansion.MOST_NODES", 5000)
    model = model_of(
        [node("Loop", ["trips", "", "v0"], ["v1"], body=loops(4))], "v1", constants={"trips": np.int64(16)}
    )
    assert "its loops, one inside the other, make too many nodes when they are written out" in message(model)
