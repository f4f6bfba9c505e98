"""Symbolic sizes: their names, numbers for them, and the shape arithmetic that exporters write, which must vanish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto
from tests.frontends.onnx.nodes import (
    by_runtime,
    check_like_runtime,
    float_inputs,
    floats,
    imported,
    int64s,
    model_of,
    node,
    ops,
)

from weft.driver.checking.reference import run_graph
from weft.frontends.onnx.importer import from_onnx
from weft.graph import UNFIT, verify_graph
from weft.support.dim import Dim
from weft.support.errors import InputError, ModelError


def relu(**shapes: Sequence[int | str | None]) -> ModelProto:
    return model_of([node("Relu", "x")], float_inputs(**shapes))


def text_of(model: ModelProto, shapes: Mapping[str, int | Sequence[int | str | Dim]] | None = None) -> str:
    return ", ".join(repr(v) for v in from_onnx(model, shapes).inputs)


def message(model: ModelProto, shapes: dict[str, int | Sequence[int | str]]) -> str:
    with pytest.raises(ModelError) as caught:
        from_onnx(model, shapes)
    return str(caught.value)


def test_names_of_symbolic_sizes() -> None:
    assert text_of(relu(x=("batch", None, "seq len", 4))) == "x: f32[batch, x_dim1, seq_len, 4]"


def test_a_negative_size_is_symbolic() -> None:
    """PaddlePaddle's exporter writes -1 for a size that it does not know."""
    assert text_of(relu(x=(-1, 3))) == "x: f32[x_dim0, 3]"


def test_question_marks_are_no_name() -> None:
    """Several of them are sizes that need not be equal."""
    assert text_of(relu(x=("?", 3, "?"))) == "x: f32[x_dim0, 3, x_dim2]"


def test_names_that_differ_in_their_signs_are_sizes_of_their_own() -> None:
    model = model_of([node("Concat", "a b c", axis=0)], float_inputs(a=("n - 1", 4), b=("n + 1", 4), c=("n_1", 4)))
    assert text_of(model) == "a: f32[n_1_, 4], b: f32[n_1__, 4], c: f32[n_1, 4]"
    assert text_of(model, {"n + 1": 3, "n_1": 5}) == "a: f32[n_1_, 4], b: f32[3, 4], c: f32[5, 4]"


def test_a_size_is_given_by_the_name_that_the_graph_has_for_it() -> None:
    model = relu(x=("n + 1", None))
    assert text_of(model, {"n_1": 3, "x_dim1": 5}) == "x: f32[3, 5]"
    assert message(model, {"n_1": 3, "n + 1": 4}) == (
        "shapes gives the dimension 'n + 1' both 3 and 4\n  hint: give one size for each name"
    )


def test_a_range_for_a_dimension_without_a_name() -> None:
    model = model_of([node("Relu", "x.1")], {"x.1": (1, (None, 3))})
    fixed = model_of([node("Relu", "x.1")], {"x.1": (1, (1, 3))})
    for given in (model, fixed):
        assert text_of(given, {"x.1": (Dim(1, 4), 3)}) == "x.1: f32[x_1_dim0, 3]"


def test_one_name_is_one_size() -> None:
    model = model_of([node("Add", "a b")], float_inputs(a=("n", 4), b=("n", 4)))
    graph = from_onnx(model)
    assert graph.inputs[0].shape[0] is graph.inputs[1].shape[0]
    assert not graph.requirements
    other = from_onnx(model_of([node("Add", "a b")], float_inputs(a=("n",), b=("m",))))
    assert [r.message for r in other.requirements] == ["Add /y: the sizes n and m must be equal, but are {0} and {1}"]


def test_numbers_for_symbolic_sizes() -> None:
    model = relu(x=("batch", 3, "h", "w"))
    assert text_of(model, {"batch": 4}) == "x: f32[4, 3, h, w]"
    assert text_of(model, {"x": (1, 3, 8, 8)}) == "x: f32[1, 3, 8, 8]"
    assert text_of(model, {"x": ("n", 3, 8, "w")}) == "x: f32[n, 3, 8, w]"


def test_a_shape_given_to_one_input_holds_for_the_name() -> None:
    model = model_of([node("Add", "a b")], float_inputs(a=("n", 4), b=("n", 4)))
    assert text_of(model, {"a": (7, 4)}) == "a: f32[7, 4], b: f32[7, 4]"


def test_unknown_rank_needs_a_shape() -> None:
    model = relu(x=(1,))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert text_of(model, {"x": (2, 3)}) == "x: f32[2, 3]"
    assert message(model, {}) == (
        "the model does not say how many dimensions the input 'x' has\n"
        '  hint: give its shape: shapes={"x": (1, 3, 224, 224)}'
    )


def test_wrong_shapes() -> None:
    model = relu(x=("batch", 3))
    known = "\n  hint: inputs: x; symbolic dimensions: batch"
    assert message(model, {"bach": 4}) == f"shapes has 'bach', which is no symbolic dimension of the model{known}"
    assert message(model, {"y": (1, 3)}) == f"shapes has 'y', which is no input of the model{known}"
    assert message(model, {"x": (1, 3, 4)}) == (
        "shapes gives the input 'x' 3 dimensions, but it has 2: (batch, 3)\n"
        "  hint: give as many sizes as the model declares"
    )
    assert message(model, {"batch": 2, "x": (3, 3)}) == (
        "shapes gives the dimension 'batch' both 2 and 3\n  hint: give one size for each name"
    )
    assert message(model, {"batch": -1}) == (
        "the input 'x' has a dimension of size -1: (batch, 3)\n  hint: give it a size of 0 or more"
    )


def test_values_that_decide_shapes() -> None:
    inputs = {"x": (1, (2, 6)), "shape": (TensorProto.INT64, (3,))}
    model = model_of([node("Reshape", "x shape")], inputs)
    graph = from_onnx(model, values={"shape": int64s(3, 2, 2)})
    assert [repr(v) for v in (*graph.inputs, *graph.outputs)] == ["x: f32[2, 6]", "y: f32[3, 2, 2]"]


def test_wrong_values() -> None:
    model = relu(x=(2,))
    for values, wanted in [
        ({"z": floats(2)}, "the model has no input 'z'\n  hint: its inputs are: x"),
        (
            {"x": int64s(1, 2)},
            "the input 'x' is of type f32, but its value is of i64\n"
            "  hint: export the model again, with one type for both",
        ),
        (
            {"x": np.array(["a", "b"])},
            "the value of the input 'x' is of type <U1, which is not supported\n"
            "  hint: give it as numbers of one of ONNX's types",
        ),
    ]:
        with pytest.raises(ModelError) as caught:
            from_onnx(model, values=values)
        assert str(caught.value) == wanted


def constant(name: str, *values: int) -> NodeProto:
    return node("Constant", "", name, value_ints=list(values))


def shape_of(x: str, k: int, out: str) -> list[NodeProto]:
    """Dimension k of x as a vector of one element, as exporters write it."""
    return [
        node("Shape", x, f"{out}_shape"),
        node("Constant", "", f"{out}_k", value_int=k),
        node("Gather", f"{out}_shape {out}_k", f"{out}_dim", axis=0),
        constant(f"{out}_zero", 0),
        node("Unsqueeze", f"{out}_dim {out}_zero", out),
    ]


CHAINS: dict[str, tuple[list[NodeProto], Sequence[int | str], str]] = {
    "flatten to batch": (
        [*shape_of("x", 0, "n"), constant("rest", -1), node("Concat", "n rest", "s", axis=0), node("Reshape", "x s")],
        ("n", 4, 6), "f32[n, 24]",
    ),
    "split heads": (
        [
            *shape_of("x", 0, "n"), *shape_of("x", 1, "t"), constant("h", 2, 3),
            node("Concat", "n t h", "s", axis=0), node("Reshape", "x s"),
        ],
        ("n", "t", 6), "f32[n, t, 2, 3]",
    ),
    "product of sizes": (
        [
            *shape_of("x", 0, "n"), *shape_of("x", 1, "t"), node("Mul", "n t", "nt"), constant("rest", -1),
            node("Concat", "nt rest", "s", axis=0), node("Reshape", "x s"),
        ],
        ("n", "t", 6), "f32[(n * t), 6]",
    ),
    "half of a size": (
        [
            *shape_of("x", 0, "n"), *shape_of("x", 2, "c"), constant("two", 2), node("Div", "c two", "half"),
            node("Cast", "half", "half32", to=TensorProto.INT32), node("Cast", "half32", "half64", to=TensorProto.INT64),
            constant("rest", -1), node("Concat", "n rest two half64", "s", axis=0), node("Reshape", "x s"),
        ],
        ("n", 4, 6), "f32[n, 4, 2, 3]",
    ),
    "slice of a shape": (
        [
            node("Shape", "x", "sh"), constant("a", 0), constant("b", 2),
            node("Slice", "sh a b", "front"), constant("rest", -1), node("Concat", "front rest", "s", axis=0),
            node("Reshape", "x s"),
        ],
        ("n", "t", 6), "f32[n, t, 6]",
    ),
    "expand with -1 filled in": (
        [
            constant("want", 1, -1, 6), node("Shape", "x", "sh"), constant("minus", -1),
            node("Equal", "want minus", "open"), node("Where", "open sh want", "s"), node("Expand", "x s"),
        ],
        ("n", "t", 6), "f32[n, t, 6]",
    ),
    "zeros like": (
        [
            node("Shape", "x", "sh"), node("ConstantOfShape", "sh", "z"), node("Add", "x z"),
        ],
        ("n", "t", 6), "f32[n, t, 6]",
    ),
    "positions": (
        [
            node("Shape", "x", "sh"), node("Constant", "", "one", value_int=1), node("Gather", "sh one", "t", axis=0),
            node("Constant", "", "zero", value_int=0), node("Range", "zero t one", "p"),
            node("Cast", "p", "pf", to=TensorProto.FLOAT), constant("last", 1),
            node("Unsqueeze", "pf last", "column"), node("Add", "x column"),
        ],
        ("n", "t", 6), "f32[n, t, 6]",
    ),
    "positions in floats": (
        [
            *shape_of("x", 2, "c"), constant("axis", 0), node("Squeeze", "c axis", "count"),
            node("Cast", "count", "limit", to=TensorProto.FLOAT),
            node("Constant", "", "zero", value_float=0.0), node("Constant", "", "one", value_float=1.0),
            node("Range", "zero limit one", "p"), node("Mul", "x p"),
        ],
        ("n", 2, "t"), "f32[n, 2, t]",
    ),
    "a size scaled in floats": (
        [
            *shape_of("x", 1, "t"), node("Cast", "t", "tf", to=TensorProto.FLOAT),
            node("Constant", "", "two", value_float=2.0), node("Mul", "tf two", "d"), node("Floor", "d", "e"),
            node("Div", "e two", "f"), node("Cast", "f", "back", to=TensorProto.INT64), constant("rest", -1),
            node("Concat", "rest back", "s", axis=0), node("Reshape", "x s"),
        ],
        ("n", "t", 6), "f32[(n * 6), t]",
    ),
    "padding that is not below zero, in floats": (
        [
            *shape_of("x", 1, "t"), node("Cast", "t", "tf", to=TensorProto.FLOAT),
            node("Constant", "", "five", value_float=5.0), node("Sub", "five tf", "lacking"),
            node("Constant", "", "none", value_float=0.0), node("Clip", "lacking none", "f"),
            node("Cast", "f", "more", to=TensorProto.INT64), constant("zeros", 0, 0, 0, 0), constant("end", 0),
            node("Concat", "zeros more end", "p", axis=0), node("Pad", "x p"),
        ],
        ("n", 3, 6), "f32[n, 5, 6]",
    ),
    "at most so many": (
        [
            *shape_of("x", 1, "t"), node("Constant", "", "low", value_int=1), node("Constant", "", "high", value_int=4),
            node("Clip", "t low high", "end"), constant("zero", 0), constant("one", 1), node("Slice", "x zero end one"),
        ],
        ("n", "t", 6), "f32[n, min(t, 4), 6]",
    ),
    "all but the last": (
        [
            *shape_of("x", 1, "t"), constant("one", 1), node("Sub", "t one", "end"), constant("zero", 0),
            node("Slice", "x zero end one"),
        ],
        ("n", "t", 6), "f32[n, (t - 1), 6]",
    ),
    "split of a symbolic size": (
        [node("Split", "x", "y z", axis=2)], ("n", "t", 6), "f32[n, t, 3]",
    ),
    "size": (
        [
            node("Size", "x", "count"), constant("flat", -1), node("Reshape", "count flat", "s"), node("Reshape", "x s"),
        ],
        ("n", 4, 6), "f32[(n * 24)]",
    ),
    "shape with start and end": (
        [
            node("Shape", "x", "front", start=0, end=-1), constant("rest", -1, 3),
            node("Concat", "front rest", "s", axis=0), node("Reshape", "x s"),
        ],
        ("n", "t", 6), "f32[n, t, 2, 3]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_shape_arithmetic_vanishes(name: str) -> None:
    nodes, shape, wanted = CHAINS[name]
    outputs = ["y", "z"] if name.startswith("split of") else ["y"]
    model = model_of(nodes, float_inputs(x=shape), outputs)
    x = floats(*[{"n": 2, "t": 5}.get(s, s) if isinstance(s, str) else s for s in shape])  # type: ignore[arg-type]
    graph, found = imported(model, {"x": x})
    verify_graph(graph)
    assert repr(graph.outputs[0]) == f"y: {wanted}"
    assert not {"gather", "sizes", "div", "concat", "equal"} & set(ops(graph))
    for a, b in zip(found, by_runtime(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(a, b)


def test_rows_of_a_table_up_to_a_symbolic_size() -> None:
    nodes = [*shape_of("x", 1, "t"), constant("zero", 0), node("Slice", "table zero t", "rows"), node("Add", "x rows")]
    model = model_of(nodes, float_inputs(x=("n", "t", 3)), weights={"table": floats(8, 3)})
    graph = check_like_runtime(model, {"x": floats(2, 5, 3)})
    assert repr(graph.outputs[0]) == "y: f32[n, t, 3]"
    with pytest.raises(InputError) as caught:
        run_graph(graph, {"x": floats(2, 9, 3)})
    assert str(caught.value) == (
        "Slice /rows: takes elements 0 to 9 of dimension 0, which has 8\n  hint: give inputs whose sizes agree"
    )


def test_the_last_rows_before_a_symbolic_size() -> None:
    nodes = [
        *shape_of("x", 0, "t"), constant("one", 1), node("Sub", "t one", "before"), constant("zero", 0),
        node("Slice", "table before t zero", "row"), node("Mul", "x row"),
    ]  # fmt: skip
    model = model_of(nodes, float_inputs(x=("t", 3)), weights={"table": floats(8, 3)})
    for t in (1, 8):
        graph = check_like_runtime(model, {"x": floats(t, 3)})
    assert [r.message for r in graph.requirements] == [
        "Slice /row: takes elements {0} to {1} of dimension 0, which has {2}"
    ]


@pytest.mark.parametrize("rows", [1, 2])
def test_rows_are_repeated_by_a_symbolic_size(rows: int) -> None:
    """As PyTorch writes `repeat(batch, 1)`, of weights too."""
    nodes = [
        *shape_of("x", 0, "n"),
        constant("one", 1),
        node("Concat", "n one", "times", axis=0),
        node("Relu", "x", "r"),
    ]
    nodes += [node("Tile", "table times", "t"), node("Tile", "r times", "s"), node("Concat", "t s", axis=0)]
    model = model_of(nodes, float_inputs(x=("n", 3)), weights={"table": floats(rows, 3)})
    for n in (1, 4):
        graph = check_like_runtime(model, {"x": floats(n, 3)})
    assert repr(graph.outputs[0]) == f"y: f32[({'n' if rows == 1 else '(n * 2)'} + (n * n)), 3]"


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
def test_resize_to_symbolic_sizes(coordinates: str, mode: str) -> None:
    nodes = [
        node("Shape", "like", "front", start=0, end=4),
        node("Resize", "x - - front", "y", mode=mode, coordinate_transformation_mode=coordinates, nearest_mode="floor"),
    ]
    model = model_of(nodes, float_inputs(x=(1, 2, "h", 4), like=(1, 2, "H", "W")), opset=18)
    for h, w in ((7, 3), (2, 9)):
        check_like_runtime(model, {"x": floats(1, 2, 5, 4), "like": floats(1, 2, h, w)}, rtol=1e-4, atol=1e-5)


def test_resize_that_needs_tables() -> None:
    made = node("Resize", "x - s", mode="cubic", antialias=1)
    scales = {"s": np.array([1, 1, 2, 2], np.float32)}
    assert message(model_of([made], float_inputs(x=(1, 2, "h", 4)), weights=scales, opset=18), {}) == (
        "Resize /y: resampling dimension 2 of x: f32[1, 2, h, 4], of symbolic size, by mode cubic, half_pixel is not supported\n"
        '  hint: give it a number: shapes={"x": (1, 3, 224, 224)}'
    )
    made = node("Resize", "x - s")
    scales = {"s": np.array([1, 1, 1.5, 2], np.float32)}
    assert message(model_of([made], float_inputs(x=(1, 2, "h", 4)), weights=scales, opset=18), {}) == (
        "Resize /y: a symbolic size scaled by 1.5 is not supported\n"
        '  hint: give it a number: shapes={"x": (1, 3, 224, 224)}'
    )


def test_sizes_as_data() -> None:
    nodes = [node("Shape", "x", "sh"), node("Cast", "sh", "f", to=TensorProto.FLOAT), node("ReduceMean", "f", "m"),
             node("Mul", "x m")]  # fmt: skip
    graph = check_like_runtime(model_of(nodes, float_inputs(x=("n", 3))), {"x": floats(4, 3)})
    assert ops(graph) == ["sizes", "cast", "reduce_mean", "mul"]


def test_a_shape_as_an_output() -> None:
    graph = check_like_runtime(model_of([node("Shape", "x")], float_inputs(x=("n", 3))), {"x": floats(4, 3)})
    assert ops(graph) == ["sizes"]
    graph = check_like_runtime(model_of([node("Shape", "x")], float_inputs(x=(4, 3))), {"x": floats(4, 3)})
    assert ops(graph) == []


def test_a_size_that_does_not_divide() -> None:
    nodes = [constant("s", -1, 4), node("Reshape", "x s")]
    assert message(model_of(nodes, float_inputs(x=(3, 5))), {}) == (
        f"Reshape /y: (3, 5) can't be reshaped to (3, 4): the sizes differ; given x: f32[3, 5]\n  hint: {UNFIT}"
    )


def test_batch_of_a_whole_network_stays_symbolic() -> None:
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("GlobalAveragePool", "c", "p"),
        node("Flatten", "p", "f"),
        node("Gemm", "f v", "y", transB=1),
    ]
    weights = {"w": floats(8, 3, 3, 3), "v": floats(5, 8)}
    model = model_of(nodes, float_inputs(x=("batch", 3, "h", "w_")), weights=weights)
    graph = check_like_runtime(model, {"x": floats(2, 3, 9, 8)}, rtol=1e-4)
    assert repr(graph.outputs[0]) == "y: f32[batch, 5]"
