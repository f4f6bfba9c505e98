"""Fusion: which nodes become one kernel, by the classes of their formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.graph.checks import constant, one_output, random_inputs, scalar
from tests.graph.oracle import run_fused, run_graph

from weft.cost.fusion import LARGEST_GROUP
from weft.graph import FusedGraph, Graph, Node, Value, facts_of, fuse, verify_graph
from weft.graph.fusion.node_facts import is_rename
from weft.support.dtypes import f32, i64
from weft.te import OpClass

Build = Callable[[Graph, Value], Value]


def fused(graph: Graph) -> FusedGraph:
    """Fuses, checks the order of the groups and that each computes what its nodes do."""
    verify_graph(graph)
    made = fuse(graph)
    known = {*made.graph.inputs, *made.graph.constants(), *made.aliases}
    for g in made.groups:
        assert known.issuperset(g.inputs), g
        known.update(g.outputs)
    grouped = [n for g in made.groups for n in g.nodes]
    assert len(grouped) == len(set(grouped)) == len(made.graph.nodes) - len(made.aliases)
    inputs = random_inputs(graph)
    for a, b in zip(run_graph(graph, inputs), run_fused(made, inputs), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)
    return made


def names(made: FusedGraph) -> list[str]:
    return ["+".join(n.op for n in g.nodes) for g in made.groups]


def built(build: Build, *shape: int) -> Graph:
    g = Graph()
    return one_output(g, build(g, g.input("x", shape, f32)))


def conv(g: Graph, x: Value) -> Value:
    return g.add("conv2d", [x, constant(g, 4, 4, 3, 3, name="w"), constant(g, 4)], pads=(1, 1, 1, 1))


def gelu(g: Graph, x: Value) -> Value:
    y = g.add("add", [g.add("erf", [g.add("mul", [x, scalar(g, 0.7)])]), scalar(g, 1.0)])
    return g.add("mul", [g.add("mul", [x, y]), scalar(g, 0.5)])


def residual(g: Graph, x: Value) -> Value:
    y = g.add("relu", [conv(g, x)])
    return g.add("relu", [g.add("add", [conv(g, y), y])])


def two_convolutions(g: Graph, x: Value) -> Value:
    return g.add("relu", [g.add("add", [conv(g, x), conv(g, x)])])


def attention(g: Graph, x: Value) -> Value:
    scores = g.add("matmul", [x, g.add("transpose", [x], perm=(0, 2, 1))])
    mask = g.add("reshape", [g.add("sub", [scalar(g, 1.0), constant(g, 3)])], shape=(1, 1, 3))
    probabilities = g.add("softmax", [g.add("add", [g.add("mul", [scores, scalar(g, 0.5)]), mask])], axis=-1)
    return g.add("matmul", [probabilities, x])


def side_operand(g: Graph, x: Value) -> Value:
    return g.add("add", [conv(g, x), g.add("exp", [g.add("neg", [x])])])


def slices(g: Graph, x: Value) -> Value:
    parts = [g.add("slice", [x], starts=(3 * k,), ends=(3 * k + 3,), axes=(1,)) for k in range(2)]
    return g.add("mul", [g.add("sigmoid", [parts[0]]), g.add("tanh", [parts[1]])])


def normalized(g: Graph, x: Value) -> Value:
    return g.add("relu", [g.add("layer_norm", [g.add("add", [x, constant(g, 3)]), constant(g, 3), constant(g, 3)])])


FUSED: dict[str, tuple[tuple[int, ...], Build, list[str]]] = {
    "maps": ((2, 3), gelu, ["mul+erf+add+mul+mul"]),
    "after a contraction": ((1, 4, 5, 5), lambda g, x: gelu(g, conv(g, x)), ["conv2d+mul+erf+add+mul+mul"]),
    "residual": ((1, 4, 5, 5), residual, ["conv2d+relu", "conv2d+add+relu"]),
    "two contractions": ((1, 4, 5, 5), two_convolutions, ["conv2d", "conv2d+add+relu"]),
    "before a reduction": ((2, 3), lambda g, x: g.add("reduce_sum", [g.add("square", [x])]), ["square+reduce_sum"]),
    "after a reduction": (
        (2, 3),
        lambda g, x: g.add("sqrt", [g.add("reduce_sum", [x], axes=(1,))]),
        ["reduce_sum+sqrt"],
    ),
    "not a broadcast of a reduction": (
        (2, 3),
        lambda g, x: g.add("sub", [x, g.add("reduce_max", [x], axes=(1,))]),
        ["reduce_max", "sub"],
    ),
    "attention": ((2, 3, 4), attention, ["transpose", "sub", "matmul+mul+add", "softmax", "matmul"]),
    "side operand": ((1, 4, 5, 5), side_operand, ["conv2d+neg+exp+add"]),
    "slices": ((2, 6), slices, ["slice+slice+sigmoid+tanh+mul"]),
    "normalization": ((2, 3), normalized, ["add+layer_norm+relu"]),
    "not into a contraction": ((1, 4, 5, 5), lambda g, x: conv(g, g.add("relu", [x])), ["relu", "conv2d"]),
    "rearrangement of a streamed operand": (
        (2, 3, 4),
        lambda g, x: g.add("matmul", [g.add("transpose", [x], perm=(0, 2, 1)), constant(g, 3, 5)]),
        ["transpose+matmul"],
    ),
    "not of the other operand": (
        (2, 3, 4),
        lambda g, x: g.add("matmul", [constant(g, 5, 4), g.add("transpose", [x], perm=(0, 2, 1))]),
        ["transpose", "matmul"],
    ),
    "not what computes before a rearrangement": (
        (2, 3, 4),
        lambda g, x: g.add("matmul", [g.add("transpose", [g.add("exp", [x])], perm=(0, 2, 1)), constant(g, 3, 5)]),
        ["exp+transpose", "matmul"],
    ),
    "packing of an image": (
        (1, 4, 6, 6),
        lambda g, x: g.add("conv2d_blocked", [g.add("pack_channels", [x], block=4), constant(g, 2, 1, 3, 3, 4, 4)]),
        ["pack_channels+conv2d_blocked"],
    ),
    "transpose after a contraction": (
        (1, 4, 5, 5),
        lambda g, x: g.add("transpose", [conv(g, x)], perm=(0, 2, 3, 1)),
        ["conv2d", "transpose"],
    ),
    "not what grows": (
        (2, 1, 3),
        lambda g, x: g.add("add", [g.add("exp", [x]), constant(g, 2, 8, 3)]),
        ["exp", "add"],
    ),
    "before what shrinks": (
        (2, 8, 3),
        lambda g, x: g.add("slice", [g.add("exp", [x])], starts=(0,), ends=(1,), axes=(2,)),
        ["exp+slice"],
    ),
}


@pytest.mark.parametrize("what", FUSED)
def test_groups(what: str) -> None:
    shape, build, expected = FUSED[what]
    assert names(fused(built(build, *shape))) == expected


def test_groups_are_not_too_large() -> None:
    def build(g: Graph, x: Value) -> Value:
        for _ in range(150):
            x = g.add("tanh", [x])
        return x

    assert [len(g.nodes) for g in fused(built(build, 2)).groups] == [
        LARGEST_GROUP,
        LARGEST_GROUP,
        150 - 2 * LARGEST_GROUP,
    ]


def test_a_value_read_elsewhere_is_stored() -> None:
    g = Graph()
    y = g.add("relu", [conv(g, g.input("x", (1, 4, 5, 5), f32))])
    g.output(y, "y")
    g.output(g.add("exp", [y]), "z")
    assert names(fused(g)) == ["conv2d+relu", "exp"]


def test_outputs_have_memory_of_their_own() -> None:
    g = Graph()
    x = g.input("x", (2, 3), f32)
    y = g.add("exp", [x])
    g.output(x, "input")
    g.output(g.add("reshape", [x], shape=(6,)), "view_of_input")
    g.output(constant(g, 2), "constant")
    g.output(y, "y")
    g.output(y, "y_again")
    g.output(g.add("reshape", [y], shape=(3, 2)), "view")
    made = fused(g)
    assert sorted(names(made)) == ["exp"] + ["identity"] * 5
    assert len({made.root(v) for v in made.graph.outputs}) == 6


def test_a_view_of_a_computed_value_may_be_the_output() -> None:
    made = fused(built(lambda g, x: g.add("reshape", [g.add("exp", [x])], shape=(6,)), 2, 3))
    assert names(made) == ["exp"]
    assert [(v.name, a.source.name, a.offset) for v, a in made.aliases.items()] == [("reshape", "exp", 0)]


def test_whole_rows_are_views() -> None:
    g = Graph()
    x = g.input("x", (1, 64), f32)
    for k, (begin, end) in enumerate([(16, 32), (32, 64), (8, 16)]):
        part = g.add(
            "slice",
            [
                g.add("exp", [x]),
            ],
            starts=(begin,),
            ends=(end,),
            axes=(-1,),
        )
        g.output(g.add("neg", [g.add("transpose", [part], perm=(1, 0))]), f"y{k}")
    made = fused(g)
    assert sorted(a.offset for a in made.aliases.values()) == [0, 0, 0, 16, 32]
    assert sorted(names(made)) == ["exp", "exp", "exp+slice", "neg", "neg", "neg"]


@pytest.mark.parametrize(
    ("shape", "slicing"),
    [
        ((2, 64), {"starts": (0,), "ends": (16,), "axes": (1,)}),
        ((1, 64), {"starts": (4,), "ends": (20,), "axes": (1,)}),
        ((1, 64), {"starts": (63,), "ends": (-99,), "axes": (1,), "steps": (-1,)}),
    ],
)
def test_other_slices_are_not_views(shape: tuple[int, ...], slicing: dict[str, tuple[int, ...]]) -> None:
    made = fused(built(lambda g, x: g.add("slice", [x], **slicing), *shape))  # type: ignore[arg-type]
    assert not made.aliases


def test_a_slice_that_begins_where_only_a_run_tells_is_no_view() -> None:
    g = Graph()
    at = g.dim("at")
    x, _ = g.input("x", (64, 4), f32), g.input("long", (at,), f32)
    part = g.add("slice", [g.add("exp", [x])], starts=(at,), ends=(at + 16,), axes=(0,), steps=(1,), inside=True)
    g.output(g.add("transpose", [part], perm=(1, 0)), "y")
    assert not fused(g).aliases


def test_equal_layers_have_equal_keys() -> None:
    g = Graph()
    n, m = g.dim("n"), g.dim("m")
    a, b = g.input("a", (n, 4), f32), g.input("b", (m, 4), f32)
    for k, x in enumerate((a, b)):
        g.output(g.add("relu", [g.add("matmul", [x, constant(g, 4, 4, seed=k)])]), f"y{k}")
    first, second = fuse(g).groups
    assert first.key == second.key
    assert first.sizes == (n,)
    assert second.sizes == (m,)
    assert first.key == ("(p0: f32[s0, 4], p1: f32[4, 4]); t0 = matmul(p0, p1); t1 = relu(t0.0); return t1.0")


@pytest.mark.parametrize(
    "other",
    [
        lambda g, x: g.add("mul", [x, scalar(g, 3.0)]),
        lambda g, x: g.add("mul", [x, x]),
        lambda g, x: g.add("add", [x, scalar(g, 2.0)]),
        lambda g, x: g.add("leaky_relu", [x], alpha=2.0),
    ],
)
def test_different_workloads_have_different_keys(other: Build) -> None:
    g = Graph()
    x = g.input("x", (4,), f32)
    g.output(g.add("mul", [x, scalar(g, 2.0)]), "a")
    g.output(other(g, x), "b")
    first, second = fuse(g).groups
    assert first.key != second.key


def test_scalars_are_part_of_the_formula() -> None:
    [group] = fused(built(lambda g, x: g.add("mul", [x, scalar(g, 2.5)]), 3)).groups
    assert [v.name for v in group.inputs] == ["x"]
    inputs, outputs = group.tensors()
    assert [t.name for t in inputs] == ["p0"]
    assert outputs[0].shape == inputs[0].shape


def test_text_of_a_fused_graph() -> None:
    made = fused(built(lambda g, x: g.add("reshape", [g.add("relu", [conv(g, x)])], shape=(100,)), 1, 4, 5, 5))
    assert str(made) == (
        "1 groups, 1 distinct\n"
        "  relu: f32[1, 4, 5, 5] = conv2d+relu(x, w, constant)\n"
        "  reshape: f32[100] is relu: f32[1, 4, 5, 5] from 0\n"
    )


def node(build: Build, *shape: int) -> Node:
    return built(build, *shape).nodes[-1]


FACTS: dict[str, tuple[Node, OpClass, tuple[OpClass, ...], str]] = {
    "relu": (node(lambda g, x: g.add("relu", [x]), 2), OpClass.ELEMENTWISE, (OpClass.ELEMENTWISE,), "map"),
    "add": (
        node(lambda g, x: g.add("add", [x, constant(g, 1, 3)]), 1, 1, 3),
        OpClass.BROADCAST,
        (OpClass.ELEMENTWISE, OpClass.BROADCAST),
        "map",
    ),
    "transpose": (
        node(lambda g, x: g.add("transpose", [x], perm=(1, 0)), 2, 3),
        OpClass.INJECTIVE,
        (OpClass.INJECTIVE,),
        "rearrangement",
    ),
    "reshape": (
        node(lambda g, x: g.add("reshape", [x], shape=(6,)), 2, 3),
        OpClass.INJECTIVE,
        (OpClass.INJECTIVE,),
        "",
    ),
    "gather": (
        node(lambda g, x: g.add("gather", [x, g.constant(np.zeros(2, np.int64))]), 2, 3),
        OpClass.INJECTIVE,
        (OpClass.INJECTIVE, OpClass.BROADCAST),
        "",
    ),
    "trilu": (node(lambda g, x: g.add("trilu", [x]), 3, 3), OpClass.ELEMENTWISE, (OpClass.ELEMENTWISE,), ""),
    "softmax": (node(lambda g, x: g.add("softmax", [x]), 2, 3), OpClass.REDUCTION, (OpClass.REDUCTION,), ""),
    "conv2d": (
        node(conv, 1, 4, 5, 5),
        OpClass.COMPLEX_OUT_FUSABLE,
        (OpClass.COMPLEX_OUT_FUSABLE, OpClass.COMPLEX_OUT_FUSABLE, OpClass.BROADCAST),
        "",
    ),
}


@pytest.mark.parametrize("what", FACTS)
def test_facts(what: str) -> None:
    made, kind, reads, special = FACTS[what]
    facts = facts_of(made)
    assert (facts.kind, facts.reads) == (kind, reads)
    assert facts.is_map == (special == "map")
    assert facts.is_rearrangement == (special == "rearrangement")


def test_the_first_operand_of_a_product_is_streamed() -> None:
    made = node(lambda g, x: g.add("gemm", [x, constant(g, 4, 5), constant(g, 5)]), 3, 4)
    assert facts_of(made).streams == (True, False, False)


def test_renames() -> None:
    assert is_rename(node(lambda g, x: g.add("reshape", [x], shape=(6,)), 2, 3))
    assert is_rename(node(lambda g, x: g.add("transpose", [x], perm=(1, 0, 2)), 1, 2, 3))
    assert not is_rename(node(lambda g, x: g.add("transpose", [x], perm=(0, 2, 1)), 1, 2, 3))


def test_rows_are_looked_up_in_a_packed_table_however_many_they_are() -> None:
    """Nothing tells whether unpacking all of the table, in each call, is less than unpacking the rows."""
    g = Graph()
    ids = g.input("ids", (g.dim("n"),), i64)
    table = g.add("unpack_matrix", [constant(g, 4, 8, 16)], columns=50, trans=True)
    assert names(fuse(one_output(g, g.add("gather", [table, ids], axis=0)))) == ["unpack_matrix+gather"]


def test_a_transposition_is_fused_into_panels_of_a_matrix_of_any_width() -> None:
    """Padding makes them larger by less than a panel; a table of all pairs is larger by as much as there are pairs."""
    g = Graph()
    keys = g.add("transpose", [g.input("k", (g.dim("n"), 64), f32)], perm=(1, 0))
    assert names(fused(one_output(g, g.add("pack_matrix", [keys], block=16)))) == ["transpose+pack_matrix"]
    g = Graph()
    n, m = g.dim("n"), g.dim("m")
    x = g.add("exp", [g.input("x", (n,), f32)])
    assert names(fused(one_output(g, g.add("add", [x, g.input("y", (m, n), f32)])))) == ["exp", "add"]
