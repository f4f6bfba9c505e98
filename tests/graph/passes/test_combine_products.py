"""Products of one tensor on a grid become one, whose parts are read as slices: of columns, or of heads."""

from __future__ import annotations

import pytest
from tests.graph.checks import apply_pass, constant, ops
from tests.graph.oracle import Oracle

from weft.cost import Choosing, CombineProducts, combine_product_plans
from weft.graph import Graph
from weft.graph.passes.combine_products import combine_products
from weft.support.dtypes import bf16, f32
from weft.targets import Target, cpu
from weft.targets.cuda_machines import cuda


def layers(*columns: int, bias: bool = True, rows: int = 16, heads: int = 0) -> Graph:
    """Returns layers of one tensor, whose results are in heads of so many elements."""
    g = Graph()
    x = g.input("x", (2, rows, 24), f32)
    for n, wide in enumerate(columns):
        y = g.add("matmul", [x, constant(g, 24, wide, name=f"w{n}")])
        y = g.add("add", [y, constant(g, wide, name=f"b{n}")]) if bias else y
        y = g.add("reshape", [y], shape=(2, rows, wide // heads, heads)) if heads else y
        g.output(g.add("relu", [y]), f"y{n}")
    return g


SM_90 = cuda("sm_90")


def combined(graph: Graph, target: Target = SM_90) -> Graph:
    return apply_pass(graph, lambda g: combine_products(g, Oracle(), Choosing(target)))


@pytest.mark.parametrize("bias", [True, False])
def test_layers_are_one_product(bias: bool) -> None:
    made = combined(layers(32, 16, 16, bias=bias))
    assert ops(made) == ["matmul", *["add"] * bias, *["slice", "relu"] * 3]
    assert made.nodes[0].output.static_shape == (2, 16, 64)


def test_heads_are_slices_of_heads() -> None:
    """No slice of columns is left, which would be copied before it is reshaped."""
    made = combined(layers(32, 16, heads=8))
    assert ops(made) == ["matmul", "add", "reshape", "slice", "relu", "slice", "relu"]
    assert [n.output.rank for n in made.nodes if n.op == "slice"] == [4, 4]


def test_heads_across_products_stay_slices_of_columns() -> None:
    uneven = Graph()
    x = uneven.input("x", (2, 16, 24), f32)
    for n, (wide, heads) in enumerate(((12, 6), (16, 8))):
        y = uneven.add("matmul", [x, constant(uneven, 24, wide, name=f"w{n}")])
        uneven.output(uneven.add("relu", [uneven.add("reshape", [y], shape=(2, 16, wide // heads, heads))]), f"y{n}")
    assert [n.output.rank for n in combined(uneven).nodes if n.op == "slice"] == [3, 3]


@pytest.mark.parametrize("target", [cpu("avx2"), cpu("avx512")], ids=["avx2", "avx512"])
def test_processors_keep_their_products(target: Target) -> None:
    graph = layers(32, 16)
    assert combined(graph, target) is graph


def test_what_others_read_is_left() -> None:
    g = Graph()
    x = g.input("x", (2, 16, 24), f32)
    w, v = constant(g, 24, 32, name="w"), constant(g, 24, 32, name="v")
    g.output(g.add("relu", [g.add("matmul", [x, w])]), "a")
    g.output(g.add("relu", [g.add("matmul", [x, v])]), "b")
    g.output(g.add("relu", [w]), "z")
    assert combined(g) is g, "its columns would be held twice"
    h = Graph()
    x = h.input("x", (2, 16, 24), f32)
    h.output(h.add("matmul", [x, constant(h, 24, 32, name="w")]), "a")
    h.output(h.add("relu", [h.add("matmul", [x, constant(h, 24, 32, name="v")])]), "b")
    assert combined(h) is h, "a result would be copied"


def test_few_blocks_are_one_launch() -> None:
    chosen = min(combine_product_plans(128, 768, [768] * 3, cuda("sm_90")), key=lambda c: c.cycles)
    assert chosen.decision == CombineProducts(combine=True)


def test_many_rows_are_one_launch_in_fragments() -> None:
    """Tiles of float32 fill the device a little better for each matrix by itself; fragments are so fast that launches count."""
    forms = [combine_product_plans(4096, 768, [768] * 3, SM_90, factors)[0].decision for factors in (f32, bf16)]
    assert forms == [CombineProducts(combine=False), CombineProducts(combine=True)]
