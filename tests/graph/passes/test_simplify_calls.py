"""Simplification: each rule drops or cheapens what it should, and keeps the meaning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops, scalar

from weft.graph import Graph, Value, print_graph, simplify_calls
from weft.support.dtypes import f32, f64, i64

Build = Callable[[Graph, Value], Value]


def built(build: Build, shape: tuple[int, ...] = (2, 3, 4)) -> Graph:
    g = Graph()
    return one_output(g, build(g, g.input("x", shape, f32)))


def twice_transposed(g: Graph, x: Value) -> Value:
    return g.add("transpose", [g.add("transpose", [x], perm=(1, 2, 0))], perm=(2, 0, 1))


def unhidden(g: Graph) -> Value:
    """Tells which rows of a mask hide all, as it is exported; the mask hides nothing."""
    bias = g.add("full", [], shape=(3, 4), value=0.0)
    return g.add("equal", [g.add("reduce_max", [bias], axes=(1,), keepdims=True), scalar(g, float("-inf"))])


DROPPED: dict[str, Build] = {
    "identity": lambda g, x: g.add("identity", [x]),
    "cast to the same type": lambda g, x: g.add("cast", [x], dtype=f32),
    "expand to the same shape": lambda g, x: g.add("expand", [x], shape=(1, 3, 4)),
    "concat of one": lambda g, x: g.add("concat", [x], axis=1),
    "reshape to the same shape": lambda g, x: g.add("reshape", [x], shape=(2, 3, 4)),
    "reshape there and back": lambda g, x: g.add("reshape", [g.add("reshape", [x], shape=(6, 4))], shape=(2, 3, 4)),
    "transpose there and back": twice_transposed,
    "transpose to the same order": lambda g, x: g.add("transpose", [x], perm=(0, 1, 2)),
    "slice of all": lambda g, x: g.add("slice", [x], starts=(0,), ends=(9,), axes=(1,)),
    "pad by nothing": lambda g, x: g.add("pad", [x], pads=(0,) * 6),
    "tile once": lambda g, x: g.add("tile", [x], repeats=(1, 1, 1)),
    "plus zero": lambda g, x: g.add("add", [x, scalar(g, 0.0)]),
    "zero plus": lambda g, x: g.add("add", [scalar(g, 0.0), x]),
    "plus zeros": lambda g, x: g.add("add", [x, g.constant(np.zeros((3, 4), np.float32))]),
    "minus zero": lambda g, x: g.add("sub", [x, scalar(g, 0.0)]),
    "times one": lambda g, x: g.add("mul", [x, scalar(g, 1.0)]),
    "one times": lambda g, x: g.add("mul", [scalar(g, 1.0), x]),
    "over one": lambda g, x: g.add("div", [x, scalar(g, 1.0)]),
    "power one": lambda g, x: g.add("power", [x, scalar(g, 1.0)]),
    "plus what is filled with zeros": lambda g, x: g.add("add", [x, g.add("full", [], shape=(3, 4), value=0)]),
    "choice by no hidden row": lambda g, x: g.add("where", [unhidden(g), scalar(g, 0.0), x]),
    "choice by a constant": lambda g, x: g.add("where", [g.constant(np.ones((3, 4), np.bool_)), x, scalar(g, 0.0)]),
    "split into one": lambda g, x: g.add("split", [x], axis=1, sizes=(3,)),
}


@pytest.mark.parametrize("what", DROPPED)
def test_what_changes_nothing_is_dropped(what: str) -> None:
    made = apply_pass(built(DROPPED[what]), simplify_calls, exact=True)
    assert ops(made) == []
    assert made.outputs == made.inputs


KEPT: dict[str, Build] = {
    "cast": lambda g, x: g.add("cast", [x], dtype=f64),
    "reversal": lambda g, x: g.add("slice", [x], starts=(-1,), ends=(-9,), axes=(1,), steps=(-1,)),
    "times zero": lambda g, x: g.add("mul", [x, scalar(g, 0.0)]),
    "zero minus": lambda g, x: g.add("sub", [scalar(g, 0.0), x]),
    "plus one broadcast": lambda g, x: g.add("add", [x, g.constant(np.zeros((5, 2, 3, 4), np.float32))]),
    "power of a tensor": lambda g, x: g.add("power", [g.add("abs", [x]), constant(g, 4)]),
    "power 7": lambda g, x: g.add("power", [x, scalar(g, 7.0)]),
    "choice of another shape": lambda g, x: g.add("where", [g.constant(np.ones((5, 1, 1, 1), np.bool_)), x, x]),
    "choice by a mask": lambda g, x: g.add("where", [g.constant(np.eye(3, 4, dtype=np.bool_)), x, scalar(g, 0.0)]),
    "over zero": lambda g, x: g.add("div", [x, scalar(g, 0.0)]),
    "over a tiny number": lambda g, x: g.add("div", [x, scalar(g, 1e-42)]),
}


@pytest.mark.parametrize("what", KEPT)
def test_what_matters_is_kept(what: str) -> None:
    graph = built(KEPT[what])
    assert ops(apply_pass(graph, simplify_calls)) == ops(graph)


CHEAPER: dict[str, tuple[Build, list[str]]] = {
    "power 2": (lambda g, x: g.add("power", [x, scalar(g, 2.0)]), ["mul"]),
    "power 3": (lambda g, x: g.add("power", [x, scalar(g, 3.0)]), ["mul", "mul"]),
    "power 1/2": (lambda g, x: g.add("power", [g.add("abs", [x]), scalar(g, 0.5)]), ["abs", "sqrt"]),
    "relu twice": (lambda g, x: g.add("relu", [g.add("relu", [x])]), ["relu"]),
    "over 3": (lambda g, x: g.add("div", [x, scalar(g, 3.0)]), ["mul"]),
    "transposes": (
        lambda g, x: g.add("transpose", [g.add("transpose", [x], perm=(1, 0, 2))], perm=(2, 1, 0)),
        ["transpose"],
    ),
    "reshapes": (lambda g, x: g.add("reshape", [g.add("reshape", [x], shape=(24,))], shape=(4, 6)), ["reshape"]),
    "gather": (
        lambda g, x: g.add("gather", [x, g.constant(np.asarray(-1, np.int64))], axis=1),
        ["slice", "reshape"],
    ),
}


@pytest.mark.parametrize("what", CHEAPER)
def test_what_is_cheaper_is_chosen(what: str) -> None:
    build, expected = CHEAPER[what]
    assert ops(apply_pass(built(build), simplify_calls)) == expected


@pytest.mark.parametrize("trans_b", [False, True])
def test_a_product_takes_the_transposition_of_its_right_hand_matrix(trans_b: bool) -> None:
    g = Graph()
    x, w, b = (g.input(name, shape, f32) for name, shape in (("x", (2, 3)), ("w", (3, 3)), ("b", (3,))))
    one_output(g, g.add("gemm", [x, g.add("transpose", [w], perm=(1, 0)), b], trans_b=trans_b))
    made = apply_pass(g, simplify_calls)
    product = next(n for n in made.nodes if n.op == "gemm")
    assert product.inputs[1] is made.inputs[1]
    assert product.attribute("trans_b") is not trans_b


def test_gather_outside_is_kept() -> None:
    g = built(lambda g, x: g.add("gather", [x, g.constant(np.asarray(3, np.int64))], axis=1))
    assert ops(apply_pass(g, simplify_calls)) == ["gather"]


def test_exact_divides_by_powers_of_two_alone() -> None:
    g = Graph()
    x = g.input("x", (3,), f32)
    g.output(g.add("div", [x, scalar(g, 3.0)]), "a")
    g.output(g.add("div", [x, scalar(g, -0.25)]), "b")
    made = apply_pass(g, lambda h: simplify_calls(h, exact=True), exact=True)
    assert ops(made) == ["div", "mul"]


@pytest.mark.parametrize(("shape", "op"), [((), "div"), ((1, 1), "div"), ((2,), "mul")])
def test_one_number_is_divided_as_the_model_says(shape: tuple[int, ...], op: str) -> None:
    """The last bit of a scale may be that of a quantization's results."""
    made = apply_pass(built(lambda g, x: g.add("div", [x, scalar(g, 255.0)]), shape), simplify_calls, exact=op == "div")
    assert ops(made) == [op]


def test_integers_are_not_multiplied_by_reciprocals() -> None:
    g = Graph()
    x = g.input("x", (3,), i64)
    g.output(g.add("div", [x, g.constant(np.asarray(2, np.int64))]), "y")
    assert ops(apply_pass(g, simplify_calls)) == ["div"]


def test_transpose_of_unit_dimensions_is_a_reshape() -> None:
    made = apply_pass(
        built(lambda g, x: g.add("transpose", [x], perm=(0, 2, 1, 3)), (2, 1, 3, 4)), simplify_calls, exact=True
    )
    assert print_graph(made) == (
        "graph main(x: f32[2, 1, 3, 4]) -> (y):\n"
        "  transpose: f32[2, 3, 1, 4] = reshape(x, shape=(2, 3, 1, 4))\n"
        "  return y=transpose\n"
    )


def test_constants_come_second() -> None:
    made = apply_pass(built(lambda g, x: g.add("add", [constant(g, 4, name="b"), x])), simplify_calls, exact=True)
    assert "add: f32[2, 3, 4] = add(x, b)\n" in print_graph(made)


def test_split_becomes_slices() -> None:
    g = Graph()
    x = g.input("x", (2, 5), f32)
    a, b = g.add_many("split", [x], axis=1, sizes=(2, 3), names=["a", "b"])
    g.output(a, "a")
    g.output(b, "b")
    assert print_graph(apply_pass(g, simplify_calls, exact=True)) == (
        "graph main(x: f32[2, 5]) -> (a, b):\n"
        "  a: f32[2, 2] = slice(x, axes=(1,), ends=(2,), starts=(0,))\n"
        "  b: f32[2, 3] = slice(x, axes=(1,), ends=(5,), starts=(2,))\n"
        "  return a=a, b=b\n"
    )


def test_known_sizes_are_constants() -> None:
    g = Graph()
    x = g.input("x", (g.dim("n"), 5), f32)
    g.output(g.add("size_of", [x], axes=(1,)), "five")
    g.output(g.add("size_of", [x], axes=(0, 1)), "both")
    assert ops(apply_pass(g, simplify_calls, exact=True)) == ["size_of"]


def test_nothing_to_do_returns_the_graph_itself() -> None:
    g = built(lambda g, x: g.add("relu", [x]))
    assert simplify_calls(g) is g


SUNK: dict[str, tuple[Build, list[str]]] = {
    "one operand": (lambda g, x: g.add("relu", [flat(g, x)]), ["exp", "relu", "reshape"]),
    "a scalar": (lambda g, x: g.add("mul", [flat(g, x), scalar(g, 2.0)]), ["exp", "mul", "reshape"]),
    "two operands": (lambda g, x: g.add("mul", [flat(g, x), flat(g, x)]), ["exp", "exp", "mul", "reshape"]),
    "a constant": (lambda g, x: g.add("add", [flat(g, x), constant(g, 6, 4)]), ["exp", "reshape", "add", "reshape"]),
    "not a broadcast": (lambda g, x: g.add("add", [flat(g, x), constant(g, 4)]), ["exp", "reshape", "add"]),
    "not an input": (lambda g, x: g.add("relu", [g.add("reshape", [x], shape=(6, 4))]), ["reshape", "relu"]),
    "not a reduction": (lambda g, x: g.add("softmax", [flat(g, x)]), ["exp", "reshape", "softmax"]),
}


def flat(g: Graph, x: Value) -> Value:
    return g.add("reshape", [g.add("exp", [x])], shape=(6, 4))


@pytest.mark.parametrize("what", SUNK)
def test_maps_come_before_reshapes(what: str) -> None:
    build, expected = SUNK[what]
    assert ops(apply_pass(built(build), simplify_calls, exact=True)) == expected


def test_merged_transposes_are_a_reshape_only_if_both_together_are() -> None:
    def build(g: Graph, x: Value) -> Value:
        return g.add("transpose", [g.add("transpose", [x], perm=(2, 1, 0, 3))], perm=(0, 2, 1, 3))

    assert ops(apply_pass(built(build, (1, 4, 2, 1)), simplify_calls, exact=True)) == ["transpose"]
    assert ops(apply_pass(built(build, (1, 1, 2, 4)), simplify_calls, exact=True)) == ["reshape"]


def test_the_tangent_of_a_softplus_is_one_operator_unless_results_are_to_stay_the_same() -> None:
    g = built(lambda g, x: g.add("mul", [x, g.add("tanh", [g.add("softplus", [x])])]))
    assert ops(apply_pass(g, simplify_calls)) == ["softplus_tanh", "mul"]
    assert simplify_calls(g, exact=True) is g
