"""Dead code, common subexpressions and constant folding."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.checks import apply_pass, constant, ops, random_array, scalar
from tests.graph.oracle import Oracle

from weft.cost import LARGEST_FOLDED_GROWTH, SMALLEST_DEFERRED
from weft.graph import Constant, Graph, eliminate_dead_code, print_graph
from weft.graph.core.graph_values import Deferred
from weft.graph.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.rewriting.call_patterns import is_known
from weft.support.dtypes import f32


def test_dead_code() -> None:
    g = Graph()
    x = g.input("x", (3,), f32)
    g.add("exp", [g.add("neg", [x])])
    g.output(g.add("relu", [x]), "y")
    made = apply_pass(g, eliminate_dead_code, exact=True)
    assert ops(made) == ["relu"]
    assert eliminate_dead_code(made) is made


def test_one_live_output_keeps_the_node() -> None:
    g = Graph()
    x = g.input("x", (5,), f32)
    g.output(g.add_many("split", [x], axis=0, sizes=(2, 3))[1], "y")
    assert ops(eliminate_dead_code(g)) == ["split"]


def test_equal_calls_are_made_once() -> None:
    g = Graph()
    x = g.input("x", (3,), f32)
    a = g.add("mul", [g.add("relu", [x]), scalar(g, 2.0)])
    b = g.add("mul", [g.add("relu", [x]), scalar(g, 2.0)])
    g.output(g.add("add", [a, b]), "y")
    assert print_graph(apply_pass(g, eliminate_common_subexpressions, exact=True)) == (
        "graph main(x: f32[3]) -> (y):\n"
        "  constant = constant f32[] 2.\n"
        "  relu: f32[3] = relu(x)\n"
        "  mul: f32[3] = mul(relu, constant)\n"
        "  add: f32[3] = add(mul, mul)\n"
        "  return y=add\n"
    )


def test_different_calls_stay_apart() -> None:
    g = Graph()
    x = g.input("x", (3, 3), f32)
    for k, (left, right) in enumerate([(0.0, -0.0), (1.0, 2.0)]):
        g.output(g.add("add", [x, scalar(g, left)]), f"a{k}")
        g.output(g.add("add", [x, scalar(g, right)]), f"b{k}")
    g.output(g.add("leaky_relu", [x], alpha=0.5), "c")
    g.output(g.add("leaky_relu", [x], alpha=0.25), "d")
    g.output(g.add("sub", [x, g.inputs[0]]), "e")
    assert len(apply_pass(g, eliminate_common_subexpressions, exact=True).nodes) == 7


def test_parameters_are_never_merged() -> None:
    g = Graph()
    x = g.input("x", (3,), f32)
    array = np.ones(3, np.float32)
    g.output(g.add("add", [x, g.parameter(array, "p")]), "a")
    g.output(g.add("add", [x, g.parameter(array, "q")]), "b")
    assert len(eliminate_common_subexpressions(g).nodes) == 2


def test_large_constants_are_compared_by_identity() -> None:
    g = Graph()
    x = g.input("x", (2000,), f32)
    array = random_array((2000,))
    for k, a in enumerate([array, array, array.copy()]):
        g.output(g.add("add", [x, g.constant(a)]), f"y{k}")
    assert len(eliminate_common_subexpressions(g).nodes) == 2


def test_constants_are_folded() -> None:
    g = Graph()
    x = g.input("x", (3,), f32)
    c = g.add("sqrt", [g.add("add", [constant(g, 3, positive=True), scalar(g, 1.0)])], name="root")
    g.output(g.add("mul", [x, c]), "y")
    oracle = Oracle()
    made = apply_pass(g, lambda h: fold_constants(h, oracle), exact=True)
    assert ops(made) == ["mul"]
    assert oracle.calls == ["add", "sqrt"]
    assert made.nodes[0].inputs[1].name == "root"  # type: ignore[union-attr]


def test_reshape_of_a_constant_is_a_view() -> None:
    g = Graph()
    x, c = g.input("x", (2, 3), f32), constant(g, 6)
    g.output(g.add("add", [x, g.add("reshape", [c], shape=(2, 3))]), "y")
    made = apply_pass(g, lambda h: fold_constants(h, Oracle()), exact=True)
    folded = made.nodes[0].inputs[1]
    assert isinstance(folded, Constant)
    assert np.shares_memory(folded.array, c.array)


def test_a_large_transposition_is_a_view() -> None:
    g = Graph()
    rows = LARGEST_FOLDED_GROWTH // 4 // 256
    x, c = g.input("x", (2, 256), f32), constant(g, rows, 256)
    g.output(g.add("matmul", [x, g.add("transpose", [c], perm=(1, 0))]), "y")
    folded = fold_constants(g, Oracle()).nodes[0].inputs[1]
    assert isinstance(folded, Constant)
    assert np.shares_memory(folded.array, c.array)
    np.testing.assert_array_equal(folded.array, c.array.T)


@pytest.mark.parametrize("kind", ["growth", "symbolic"])
def test_what_is_not_folded(kind: str) -> None:
    g = Graph()
    if kind == "growth":
        y = g.add("expand", [scalar(g, 1.0)], shape=(LARGEST_FOLDED_GROWTH,))
    else:
        g.input("x", (g.dim("n"),), f32)
        y = g.add("expand", [scalar(g, 1.0)], shape=(g.dim("n"),))
    g.output(y, "y")
    assert fold_constants(g, Oracle()) is g


def test_what_is_made_of_a_parameter_follows_it() -> None:
    g = Graph()
    p = g.parameter(np.full((2, 3), 4, np.float32), "p")
    g.output(g.add("sqrt", [g.add("reshape", [p], shape=(6,))]), "y")
    (made,) = fold_constants(g, Oracle()).outputs
    assert isinstance(made, Constant)
    assert not made.is_fixed
    assert not is_known(made)
    np.testing.assert_array_equal(made.array, np.full(6, 2, np.float32))
    p.bind(np.full((2, 3), 9, np.float32))
    np.testing.assert_array_equal(made.array, np.full(6, 3, np.float32))


def test_large_results_may_be_deferred() -> None:
    g = Graph()
    x, c = g.input("x", (4, 64 * 256), f32), constant(g, 256, 256)
    turned = g.add("reshape", [g.add("transpose", [c], perm=(1, 0))], shape=(4, 64 * 256))
    g.output(g.add("add", [x, g.add("neg", [turned])]), "y")
    oracle = Oracle()
    made = apply_pass(g, lambda h: fold_constants(h, oracle, defer=True), exact=True)
    folded = made.nodes[0].inputs[1]
    assert isinstance(folded, Deferred)
    assert folded.nbytes >= SMALLEST_DEFERRED
    room = np.zeros(folded.extents, np.float32)
    folded.write(room)
    np.testing.assert_array_equal(room, -c.array.T.reshape(4, -1))
    assert folded.array is not folded.array
    assert eliminate_common_subexpressions(made).nodes[0].inputs[1] is folded


def test_small_results_are_never_deferred() -> None:
    g = Graph()
    g.output(g.add("add", [g.input("x", (8,), f32), g.add("neg", [constant(g, 8)])]), "y")
    folded = fold_constants(g, Oracle(), defer=True).nodes[0].inputs[1]
    assert not isinstance(folded, Deferred)


def test_an_output_may_become_a_constant() -> None:
    g = Graph()
    g.output(g.add("neg", [constant(g, 3)]), "y")
    made = apply_pass(g, lambda h: fold_constants(h, Oracle()), exact=True)
    assert ops(made) == []
    assert isinstance(made.outputs[0], Constant)
