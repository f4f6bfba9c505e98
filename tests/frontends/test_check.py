"""What the importer says about graphs that are damaged, or that need what Weft does not have."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.frontends.nodes import check_like_runtime, float_inputs, floats, model_of, node, ops

from weft.frontends.dispatch import to_graph
from weft.frontends.onnx import from_onnx
from weft.graph.graph import UNFIT
from weft.support.errors import ModelError, UnsupportedOperators

CHECKER = "\n  hint: the model is damaged or was cut; check it with onnx.checker.check_model"


def message(model: ModelProto) -> str:
    with pytest.raises(ModelError) as caught:
        from_onnx(model)
    return str(caught.value)


def test_dangling_input() -> None:
    model = model_of([node("Relu", "x", "a"), node("Add", "a lost")], float_inputs(x=(2,)))
    assert message(model) == f"Add /y: reads 'lost', which no node of the model makes{CHECKER}"


def test_dangling_output() -> None:
    model = model_of([node("Relu", "x", "a")], float_inputs(x=(2,)))
    assert message(model) == f"test: the output 'y' is not made by any node{CHECKER}"


def test_cycle() -> None:
    nodes = [node("Add", "x c", "a"), node("Relu", "a", "b"), node("Neg", "b", "c"), node("Exp", "c")]
    assert message(model_of(nodes, float_inputs(x=(2,)))) == (
        "test: the nodes Add /a -> Relu /b -> Neg /c -> Add /a form a cycle\n"
        "  hint: an ONNX graph must have none; write a recurrence with Loop or Scan"
    )


def test_value_made_twice() -> None:
    model = model_of([node("Relu", "x", "a"), node("Neg", "x", "a"), node("Exp", "a")], float_inputs(x=(2,)))
    model.graph.node[1].name = "/other"
    assert message(model) == (
        "Neg /other: makes 'a', which Relu /a makes already\n"
        "  hint: every value of an ONNX model has one maker; rename one of them"
    )


def test_nodes_in_any_order() -> None:
    nodes = [node("Exp", "b"), node("Neg", "a", "b"), node("Relu", "x", "a")]
    assert ops(from_onnx(model_of(nodes, float_inputs(x=(2,))))) == ["relu", "neg", "exp"]


def test_deep_graph() -> None:
    nodes = [node("Neg", f"v{k}", f"v{k + 1}") for k in range(3000)]
    model = model_of(list(reversed(nodes)), float_inputs(v0=(2,)), ["v3000"])
    assert len(from_onnx(model).nodes) == 3000


def test_no_outputs() -> None:
    model = model_of([node("Relu", "x")], float_inputs(x=(2,)), outputs=[])
    assert message(model) == "test: the model's graph is empty: it has no outputs\n  hint: export the model again"


def test_empty_input_that_is_read() -> None:
    model = model_of([node("Relu", "x")], float_inputs(x=(2, 0)))
    assert message(model) == (
        "the input 'x' has a dimension of size 0: x: f32[2, 0]\n"
        "  hint: there is nothing to compute for an empty tensor; give it another size with shapes={...}"
    )


def test_empty_input_that_only_gives_its_type() -> None:
    model = model_of([node("CastLike", "x like")], {"x": (1, (2,)), "like": (TensorProto.INT64, (0,))}, opset=19)
    assert ops(from_onnx(model)) == ["cast"]


def test_operator_set_that_is_too_new() -> None:
    model = model_of([node("Relu", "x")], float_inputs(x=(2,)), opset=99)
    assert message(model) == (
        "the model uses ONNX operator set 99; the newest that Weft knows is 28\n"
        "  hint: export it again with opset_version=28 or lower"
    )


def test_all_unsupported_operators_at_once() -> None:
    nodes = [
        node("StringNormalizer", "x", "a"),
        node("Relu", "x", "b"),
        *[node("FusedMagic", "b", f"c{k}", domain="com.example") for k in range(5)],
        node("Nonsense", "x", domain="org.nowhere"),
    ]
    model = model_of(nodes, float_inputs(x=(2,)))
    model.opset_import.append(helper.make_opsetid("com.example", 3))
    with pytest.raises(UnsupportedOperators) as caught:
        from_onnx(model)
    assert str(caught.value) == (
        "the model uses 3 operators that Weft does not have:\n"
        "  StringNormalizer (ai.onnx 17), 1 node: /a\n"
        "  FusedMagic (com.example 3), 5 nodes: /c0, /c1, /c2 and 2 more\n"
        "  Nonsense (org.nowhere (not imported)), 1 node: /y\n"
        "  hint: `python -m weft.frontends.onnx.table` lists those it has; export the model without these, "
        "or as functions of ONNX's standard operators"
    )


def test_unsupported_operator_in_a_branch_and_in_a_function() -> None:
    branch = helper.make_graph([node("Odd", "x", "r", domain="d")], "g", [], [helper.make_empty_tensor_value_info("r")])
    nodes = [node("If", "c", "a", then_branch=branch, else_branch=branch), node("F", "a", domain="local")]
    model = model_of(nodes, {"x": (1, (2,)), "c": (TensorProto.BOOL, ())})
    body = helper.make_function(
        "local", "F", ["p"], ["q"], [node("Even", "p", "q", domain="d")], [helper.make_opsetid("", 17)]
    )
    model.functions.append(body)
    with pytest.raises(UnsupportedOperators) as caught:
        from_onnx(model)
    assert "  Even (d (not imported)), 1 node: /q\n" in str(caught.value)
    assert "  Odd (d (not imported)), 2 nodes: /r, /r\n" in str(caught.value)


def test_shapes_that_do_not_fit() -> None:
    model = model_of([node("Add", "a b")], float_inputs(a=(2, 3), b=(4, 3)))
    assert message(model) == (
        "Add /y: the shapes (2, 3) and (4, 3) do not broadcast together; given a: f32[2, 3], b: f32[4, 3]\n"
        f"  hint: {UNFIT}"
    )


def test_types_that_do_not_fit() -> None:
    model = model_of([node("Add", "a b")], {"a": (TensorProto.FLOAT, (2,)), "b": (TensorProto.INT64, (2,))})
    assert message(model) == (
        f"Add /y: add takes two tensors of one type, not f32 and i64; given a: f32[2], b: i64[2]\n  hint: {UNFIT}"
    )


def test_shape_that_is_known_only_at_run_time() -> None:
    inputs = {"x": (1, (6,)), "n": (TensorProto.INT64, (2,))}
    hint = (
        "\n  hint: Weft needs it to compile the model; export the model with it as a constant, "
        "or fix the shapes it depends on"
    )
    assert message(model_of([node("Reshape", "x n")], inputs)) == (
        f"Reshape /y: the new shape (n) is an input of the model, so it is not known before the model runs{hint}"
    )
    assert message(model_of([node("Abs", "n", "m"), node("Reshape", "x m")], inputs)) == (
        f"Reshape /y: the new shape (m) is computed by Abs /m, so it is not known before the model runs{hint}"
    )


def test_missing_input() -> None:
    assert message(model_of([node("Gemm", "x")], float_inputs(x=(2, 2)))) == "Gemm /y: its input 1 is missing"


def test_sequence_input() -> None:
    model = model_of([node("Identity", "x")], {})
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, (2,))
    model.graph.input.append(helper.make_value_info("x", helper.make_sequence_type_proto(tensor)))
    assert message(model) == (
        "the input 'x' is a sequence; only tensors are supported\n  hint: export the model with tensors for inputs"
    )


def test_unnamed_nodes_go_by_their_output() -> None:
    made = helper.make_node("Add", ["a", "b"], ["y"])
    assert message(model_of([made], float_inputs(a=(2,), b=(3,)))).startswith("Add y: the shapes (2) and (3)")


def test_a_weight_that_is_also_an_input_is_constant() -> None:
    model = model_of([node("Add", "x w")], float_inputs(x=(2,), w=(2,)), weights={"w": floats(2)})
    model.ir_version = 3
    graph = from_onnx(model)
    assert [v.name for v in graph.inputs] == ["x"]
    check_like_runtime(model, {"x": floats(2, seed=1)})


def test_something_that_is_no_model() -> None:
    with pytest.raises(ModelError) as caught:
        to_graph(3)
    assert str(caught.value) == (
        "an object of type int is not a model that Weft can read\n"
        "  hint: give the path or the bytes of an ONNX file, or an onnx.ModelProto"
    )


def test_names_of_the_model_are_kept() -> None:
    model = model_of([node("Relu", "x", "hidden"), node("Softmax", "hidden")], float_inputs(x=(2, 3)))
    graph = from_onnx(onnx.shape_inference.infer_shapes(model))
    assert [n.output.name for n in graph.nodes] == ["hidden", "y"]
    assert [n.source for n in graph.nodes] == ["Relu /hidden", "Softmax /y"]
    assert graph.output_names == ["y"]
