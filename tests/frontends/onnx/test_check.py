"""What the importer says about graphs that are damaged, or that need what Weft does not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper
from tests.frontends.onnx.nodes import (
    Inputs,
    check_like_runtime,
    float_inputs,
    floats,
    imported,
    int64s,
    model_of,
    node,
    ops,
)

from weft.frontends.onnx.call import Call, Results
from weft.frontends.onnx.importer import LATE_HINT, from_onnx
from weft.frontends.onnx.registry import TABLE
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant
from weft.ops import LARGEST_FOLD
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
        node("ImageDecoder", "x", "a"),
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
        "  ImageDecoder (ai.onnx 17), 1 node: /a\n"
        "  FusedMagic (com.example 3), 5 nodes: /c0, /c1, /c2 and 2 more\n"
        "  Nonsense (org.nowhere (not imported)), 1 node: /y\n"
        "  hint: `python -m weft.frontends.onnx.table` lists those it has; export the model without these, "
        "or as functions of ONNX's standard operators; weft.register_op gives Weft a formula of one, and "
        "`weft inspect MODEL --support` prints it to be filled in"
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


def test_a_translation_that_needs_a_value_tells_who_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weft's own all do with values that only a run tells; others may not."""

    def of_known_length(c: Call) -> Results:
        return c.add("reshape", c.input(0), shape=(int(c.number_at(1, "the length")),))

    entry = TABLE["", "DFT"]
    monkeypatch.setitem(TABLE, ("", "DFT"), replace(entry, translate=of_known_length))
    inputs = {"x": (1, (1, 6, 1)), "n": (TensorProto.INT64, ())}
    hint = (
        "\n  hint: Weft needs it to compile the model; export the model with it as a constant, "
        "or fix the shapes it depends on"
    )
    assert message(model_of([node("DFT", "x n")], inputs)) == (
        f"DFT /y: the length (n) is an input of the model, so it is not known before the model runs{hint}"
    )
    assert message(model_of([node("Abs", "n", "m"), node("DFT", "x m")], inputs)) == (
        f"DFT /y: the length (m) is computed by Abs /m, so it is not known before the model runs{hint}"
    )


def test_sizes_of_which_only_a_run_tells_that_they_fit() -> None:
    inputs = {"x": (1, (6, 2)), "n": (TensorProto.INT64, (2,)), "b": (1, (4, 3, 2))}
    assert message(model_of([node("Reshape", "x n", "r"), node("Concat", "r b", axis=0)], inputs)).endswith(
        f"hint: {LATE_HINT}"
    )


DAMAGED_HINT = "\n  hint: the model is damaged, or whatever wrote it is wrong: export or download it again"


def with_attribute(change: Callable[[AttributeProto], None]) -> str:
    """Returns what is said of a Gemm whose attribute `beta` is changed."""
    model = model_of([node("Gemm", "x w b", beta=0.5)], float_inputs(x=(2, 2), w=(2, 2), b=(2,)))
    change(model.graph.node[0].attribute[0])
    return message(model)


def test_attribute_without_a_type() -> None:
    said = with_attribute(lambda a: a.ClearField("type"))
    assert said == f"Gemm /y: its attribute 'beta' does not say of what type it is; Gemm takes FLOAT{DAMAGED_HINT}"


@pytest.mark.parametrize("kind", ["INT", "STRING", "FLOATS", "TENSOR", "GRAPH"])
def test_attribute_of_another_type(kind: str) -> None:
    said = with_attribute(lambda a: setattr(a, "type", AttributeProto.AttributeType.Value(kind)))
    assert said == f"Gemm /y: its attribute 'beta' is of type {kind}; Gemm takes FLOAT{DAMAGED_HINT}"


def test_attribute_of_a_function_outside_of_one() -> None:
    said = with_attribute(lambda a: setattr(a, "ref_attr_name", "outer"))
    assert said == f"Gemm /y: its attribute 'beta' stands for 'outer' of a function, but it is in none{DAMAGED_HINT}"


def test_attribute_that_came_with_a_later_operator_set() -> None:
    made = node("Shape", "x", start=1)  # since operator set 15
    assert from_onnx(model_of([made], float_inputs(x=(2, 3)), opset=13)).outputs[0].static_shape == (1,)
    made.attribute[0].type = AttributeProto.INTS
    said = message(model_of([made], float_inputs(x=(2, 3)), opset=13))
    assert said == f"Shape /y: its attribute 'start' is of type INTS; Shape takes INT{DAMAGED_HINT}"


def test_missing_attribute() -> None:
    model = model_of([node("Cast", "x")], float_inputs(x=(2,)))
    assert message(model) == f"Cast /y: its attribute 'to' is missing{DAMAGED_HINT}"


def test_text_attribute_that_is_no_text() -> None:
    model = model_of([node("DepthToSpace", "x", blocksize=2, mode=b"C\xffD")], float_inputs(x=(1, 4, 2, 2)))
    assert message(model) == f"DepthToSpace /y: its attribute 'mode' is not text in UTF-8{DAMAGED_HINT}"


def test_too_many_or_too_few_inputs_and_outputs() -> None:
    inputs = float_inputs(x=(2, 2))
    assert message(model_of([node("Mean", "")], inputs)) == f"Mean /y: its input 0 is missing{DAMAGED_HINT}"
    assert (
        message(model_of([node("Relu", "x x")], inputs))
        == f"Relu /y: it has 2 inputs, and Relu has 1 at most{DAMAGED_HINT}"
    )
    made = node("Relu", "x", "y z")
    assert message(model_of([made], inputs)) == f"Relu /y: it has 2 outputs, and Relu has 1 at most{DAMAGED_HINT}"
    idle = helper.make_node("Constant", [], [], value_int=3)
    assert message(model_of([idle, node("Relu", "x")], inputs)) == f"Constant ?: its output 0 is missing{DAMAGED_HINT}"


@pytest.mark.parametrize("version", [0, -1, 1 << 31, (1 << 63) - 1])
def test_operator_set_that_is_no_version(version: int) -> None:
    model = model_of([node("Relu", "x")], float_inputs(x=(2,)))
    model.opset_import.add(domain="com.example", version=version)
    assert message(model) == f"the model uses operator set {version} of com.example, which is no version{DAMAGED_HINT}"


def test_what_does_not_fit_is_described_not_dumped() -> None:
    model = model_of([node("Split", "x s", "y z")], float_inputs(x=(4,)), weights={"s": np.ones((3, 50), np.int64)})
    assert len(message(model)) < 600
    assert repr(CompileTimeConstant(np.arange(9), "w")) == "w: i64[9]"
    assert repr(CompileTimeConstant(np.arange(3), "w")) == "w: i64[3] = (0, 1, 2)"
    assert repr(CompileTimeConstant(np.array(0.5, np.float32))) == "a constant: f32[] = (0.5,)"


TOO_LARGE = "\n  hint: make it smaller: look for a size that is damaged, or that was given too large"


def test_input_that_no_process_could_hold() -> None:
    model = model_of([node("Relu", "x")], float_inputs(x=("n", 24)))
    with pytest.raises(ModelError) as caught:
        from_onnx(model, {"n": 10**20})
    assert str(caught.value) == (
        f"input x: a tensor (100000000000000000000, 24) of f32 takes 9.6e+21 bytes, more than a process can address{TOO_LARGE}"
    )
    with pytest.raises(ModelError, match=r"18446744073709551618, 24.*more than a process can address"):
        from_onnx(model, {"n": 2**64 + 2})  # which is 2 where numbers have 64 bits
    empty = model_of([node("Relu", "x")], float_inputs(x=(0, 1 << 62)))
    assert "takes 1.84e+19 bytes, more than a process can address" in message(empty)


def test_result_that_no_process_could_hold() -> None:
    weights = {"s": np.array([1 << 40, 1 << 40], np.int64)}
    said = message(model_of([node("Expand", "x s")], float_inputs(x=(1,)), weights=weights))
    assert said == (
        "Expand /y: a tensor (1099511627776, 1099511627776) of f32 takes 4.84e+24 bytes, more than a process can address; "
        f"given x: f32[1]{TOO_LARGE}"
    )


def test_distances_beyond_any_tensor() -> None:
    """Numbers of which the sums and products would be other numbers where those have 64 bits."""
    far = (1 << 63) - 1
    padded = model_of([node("Pad", "x p")], float_inputs(x=(4,)), weights={"p": int64s(far, far)})
    assert message(padded) == (
        f"Pad /y: pads are ({far}, {far}), and {far} is beyond any tensor; given x: f32[4]{TOO_LARGE}"
    )
    tiled = model_of([node("Tile", "x r")], float_inputs(x=(1 << 40,)), weights={"r": int64s(1 << 24)})
    assert "16777216 times the size 1099511627776 is more than a process can address" in message(tiled)
    pooled = node("MaxPool", "x", kernel_shape=[2], dilations=[1 << 62])
    assert f"dilations are ({1 << 62},)" in message(model_of([pooled], float_inputs(x=(1, 1, 4))))
    widened = node("ConvTranspose", "x w", strides=[1 << 31])
    model = model_of([widened], float_inputs(x=(1, 1, 1 << 33)), weights={"w": floats(1, 1, 2)})
    assert "2147483648 times the size 8589934591 is more than a process can address" in message(model)


def test_long_sequences_are_not_made_while_importing() -> None:
    """A range and an identity matrix of any length, and a table for resampling that would not fit."""
    ends = {"a": np.array(2), "b": np.array(1 << 40), "c": np.array(3)}
    graph = from_onnx(model_of([node("Range", "a b c", "r"), node("Add", "r x")], {"x": (7, (1,))}, weights=ends))
    assert graph.outputs[0].static_shape == (-(-((1 << 40) - 2) // 3),)
    graph = from_onnx(model_of([node("EyeLike", "x", k=-1)], float_inputs(x=(1 << 22, 1 << 22))))
    assert graph.outputs[0].static_shape == (1 << 22, 1 << 22)
    resized = node("Resize", "x - - s", mode="cubic")
    said = message(model_of([resized], float_inputs(x=(4,)), weights={"s": int64s(1 << 40)}))
    assert said == (
        "Resize /y: resampling dimension 0 of x: f32[4], along 1099511627776 elements, is not supported; 4194304 are the most"
    )


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32, np.float64])
def test_a_range_is_the_same_however_long(dtype: type) -> None:
    for count in (LARGEST_FOLD, LARGEST_FOLD + 1):
        limit = 5 - 3 * count if np.issubdtype(dtype, np.integer) else 5 - 0.3 * count + 0.1
        step = -3 if np.issubdtype(dtype, np.integer) else -0.3
        ends: Inputs = {n: np.array(v, dtype) for n, v in (("a", 5), ("b", limit), ("c", step))}
        _, (found,) = imported(model_of([node("Range", "a b c", "y")], {}, weights=ends), {})
        assert found.shape == (count,)
        np.testing.assert_array_equal(found, (ends["a"] + np.arange(count) * ends["c"]).astype(dtype))


def test_missing_input() -> None:
    assert (
        message(model_of([node("Gemm", "x")], float_inputs(x=(2, 2))))
        == f"Gemm /y: its input 1 is missing{DAMAGED_HINT}"
    )


def test_map_input() -> None:
    model = model_of([node("Identity", "x")], {})
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, (2,))
    model.graph.input.append(helper.make_value_info("x", helper.make_map_type_proto(TensorProto.INT64, tensor)))
    assert message(model) == (
        "the input 'x' is a map; only tensors, sequences of them and optional ones are supported\n"
        "  hint: export the model with tensors for inputs"
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


def test_names_of_the_model_are_kept() -> None:
    model = model_of([node("Relu", "x", "hidden"), node("Softmax", "hidden")], float_inputs(x=(2, 3)))
    graph = from_onnx(onnx.shape_inference.infer_shapes(model))
    assert [n.output.name for n in graph.nodes] == ["hidden", "y"]
    assert [n.source for n in graph.nodes] == ["Relu /hidden", "Softmax /y"]
    assert graph.output_names == ["y"]
