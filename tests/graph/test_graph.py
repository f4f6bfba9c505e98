"""The graph IR: building, inference, errors, verifier, printer."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.checks import constant, scalar

from weft.graph import UNFIT, Graph, Node, Parameter, Value, attribute_text, dim_text, print_graph, verify_graph
from weft.ir import Var, index
from weft.ops import OPERATORS, Operator, TensorType
from weft.support.dtypes import f32, i64
from weft.support.errors import ModelError, VerifyError
from weft.te import Tensor


def small() -> Graph:
    g = Graph("small")
    x = g.input("x", (g.dim("batch"), 4, 9, 9), f32)
    w = constant(g, 8, 4, 3, 3, name="w")
    y = g.add("conv2d", [x, w, None], source="Conv /stem/conv", strides=[2, 2], pads=(1, 1, 1, 1))
    y = g.add("add", [y, scalar(g, 1.0)])
    g.output(g.add("relu", [y], name="activated"), "y")
    return g


def test_shapes_are_inferred_with_symbolic_sizes() -> None:
    g = small()
    assert [repr(v) for v in (g.nodes[0].output, g.outputs[0])] == [
        "conv2d: f32[batch, 8, 5, 5]",
        "activated: f32[batch, 8, 5, 5]",
    ]
    assert g.outputs[0].static_shape is None
    assert g.nodes[0].inputs[1].static_shape == (8, 4, 3, 3)  # type: ignore[union-attr]


def test_a_size_is_one_variable() -> None:
    g = Graph()
    assert g.dim("n") is g.dim("n")
    assert g.dim("n") is not g.dim("m")


def test_text_of_a_graph() -> None:
    assert print_graph(small()) == (
        "graph small(x: f32[batch, 4, 9, 9]) -> (y):\n"
        "  w = constant f32[8, 4, 3, 3]\n"
        "  constant = constant f32[] 1.\n"
        "  conv2d: f32[batch, 8, 5, 5] = conv2d(x, w, none, pads=(1, 1, 1, 1), strides=(2, 2))  # Conv /stem/conv\n"
        "  add: f32[batch, 8, 5, 5] = add(conv2d, constant)\n"
        "  activated: f32[batch, 8, 5, 5] = relu(add)\n"
        "  return y=activated\n"
    )


def test_text_tells_values_of_one_name_apart() -> None:
    g = Graph()
    x = g.input("x", (2,), f32)
    y = g.add("relu", [x], name="x")
    g.output(g.add("neg", [y], name="x"), "out")
    assert print_graph(g).splitlines()[1:] == [
        "  x.1: f32[2] = relu(x)",
        "  x.2: f32[2] = neg(x.1)",
        "  return out=x.2",
    ]


def test_text_tells_parameters_from_constants() -> None:
    g = Graph()
    x = g.input("x", (2,), f32)
    p = g.parameter(np.zeros(2, np.float32), "p")
    assert isinstance(p, Parameter)
    g.output(g.add("add", [x, p]), "y")
    assert "  p = parameter f32[2] [0., 0.]\n" in print_graph(g)


def test_parameters_are_of_floats_and_keep_their_type() -> None:
    g = Graph()
    with pytest.raises(ModelError) as told:
        g.parameter(np.zeros(2, np.int64), "p")
    assert str(told.value) == "the parameter 'p' is of i64\n  hint: parameters are of floats"
    p = g.parameter(np.zeros(2, np.float32), "p")
    with pytest.raises(
        ModelError,
        match=r"^the parameter 'p' is float32\[2\], and was given float32\[3\]\n  hint: give an array of its shape and type$",
    ):
        p.bind(np.zeros(3, np.float32))


def test_error_names_the_node_and_the_shapes() -> None:
    g = Graph()
    a, b = g.input("a", (2, 3), f32), g.input("b", (4, 5), f32)
    with pytest.raises(ModelError) as caught:
        g.add("matmul", [a, b], source="MatMul /layer/matmul")
    assert str(caught.value) == (
        "MatMul /layer/matmul: matmul: the inner sizes of (2, 3) and (4, 5) differ; given a: f32[2, 3], b: f32[4, 5]\n"
        f"  hint: {UNFIT}"
    )


def test_error_for_wrong_arguments() -> None:
    g = Graph()
    x = g.input("x", (2,), f32)
    with pytest.raises(
        ModelError, match=r"^Relu r: relu: got an unexpected keyword argument 'alpha'; given x: f32\[2\]\n"
    ):
        g.add("relu", [x], source="Relu r", alpha=1.0)
    with pytest.raises(ModelError, match="there is no operator nothing"):
        g.add("nothing", [x])
    with pytest.raises(ModelError, match="split has 2 outputs, not one"):
        g.add("split", [x], axis=0, sizes=(1, 1))


def test_several_outputs() -> None:
    g = Graph()
    x = g.input("x", (5, 2), f32)
    a, b = g.add_many("split", [x], axis=0, sizes=[2, 3], names=["left", ""])
    assert (repr(a), repr(b)) == ("left: f32[2, 2]", "split: f32[3, 2]")
    assert a.producer is b.producer


def test_equal_nodes_are_shared_between_graphs() -> None:
    g = small()
    copy = g.empty_copy()
    copy.nodes = list(g.nodes)
    assert copy.inputs == g.inputs
    assert g.users()[g.inputs[0]] == [g.nodes[0]]


def test_with_inputs_infers_anew_only_where_types_differ() -> None:
    g = Graph()
    x, z = g.input("x", (2, 3), f32), g.input("z", (5, 1), f32)
    node = g.append(Node(OPERATORS["relu"], (x,), (), [x.type], ["y"], "Relu r"))
    other = node.with_inputs((z,))
    assert repr(other.output) == "y: f32[5, 1]"
    assert other.source == "Relu r"


def broken(kind: str) -> Graph:
    g = Graph("bad")
    x = g.input("x", (2, 3), f32)
    relu = OPERATORS["relu"]
    if kind == "order":
        stranger = Value("stranger", x.type)
        g.append(Node(relu, (stranger,), (), [x.type], ["y"], "Relu r"))
    elif kind == "type":
        g.append(Node(relu, (x,), (), [TensorType((index(3), index(2)), f32)], ["y"], "Relu r"))
    elif kind == "size":
        z = Value("z", TensorType((Var("n"),), f32))
        g.inputs.append(z)
        g.append(Node(relu, (z,), (), [z.type], ["y"]))
    elif kind == "twice":
        n = g.append(Node(relu, (x,), (), [x.type], ["y"]))
        g.append(n)
    elif kind == "output":
        g.output(Value("stranger", x.type), "y")
    else:
        g.input("x", (1,), i64)
    return g


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("order", "Relu r (relu): reads stranger: f32[2, 3] before it is made"),
        ("type", "Relu r (relu): y: f32[3, 2] should be f32[2, 3]"),
        ("size", "relu -> y: y: f32[n] uses the size n, which is not the graph's"),
        ("twice", "relu -> y: is in the graph twice"),
        ("output", "bad: the output y is stranger: f32[2, 3], which no node of the graph makes"),
        ("names", "bad: two inputs are called x"),
    ],
)
def test_verifier(kind: str, message: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify_graph(broken(kind))
    assert str(caught.value) == message


def test_verifier_looks_into_nested_graphs() -> None:
    def call(x: Tensor, *, body: Graph) -> Tensor:
        return x

    g = Graph()
    x = g.input("x", (2,), f32)
    g.append(Node(Operator("call", call), (x,), (("body", broken("output")),), [x.type], ["y"]))
    with pytest.raises(VerifyError, match="bad: the output y is stranger"):
        verify_graph(g)


def test_text_of_sizes_and_attributes() -> None:
    n = Var("n")
    assert dim_text((n + 1) // 2) == "((n + 1) // 2)"
    assert dim_text(n, {n: "s0"}) == "s0"
    assert attribute_text((1,)) == "(1,)"
    assert attribute_text(1) != attribute_text(1.0) != attribute_text(True)
    assert attribute_text((n, 2), {n: "s1"}) == "(s1, 2)"
