"""Matrix products on panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.graph.checks import apply_pass, constant, one_output, ops, scalar
from tests.graph.machines import WIDE
from tests.graph.oracle import Oracle

from weft.cost import Candidate, Choosing, PanelProblem, RightOperand, panel_plans
from weft.graph import Graph, Value, print_graph
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.passes.pack_matrices import pack_matrices
from weft.support.dtypes import DType, bf16, f16, f32, i64
from weft.targets import Target, cpu, parse_target

FOUR = cpu("sse4")
"""A machine with vectors of four floats."""


def prefer_swapped(found: Sequence[Candidate[Any]]) -> Candidate[Any]:
    """Takes the transposed product where it is among the candidates."""
    return next((c for c in found if c.decision == RightOperand("swapped")), found[0])


def packed(graph: Graph) -> Graph:
    return fold_constants(pack_matrices(graph, Choosing(FOUR)), Oracle())


def built(build: Callable[[Graph, Value], Value], *shape: int) -> Graph:
    g = Graph()
    return one_output(g, build(g, g.input("x", shape, f32)))


def gemm(g: Graph, x: Value, rows: int, columns: int, c: Value | None = None, **attributes: Any) -> Value:
    shape = (columns, rows) if attributes.get("trans_b") else (rows, columns)
    return g.add("gemm", [x, constant(g, *shape, name="w"), c], **attributes)


def test_panel_width() -> None:
    columns = (2, 10, 16, 17, 32, 48, 80, 96, 100, 128, 768, 1000, 2600)

    def widths(target: str) -> list[int]:
        return [panel_plans(PanelProblem(n, 32), parse_target(target))[0].decision.columns for n in columns]

    assert widths("cpu -mattr=avx512") == [2, 16, 16, 32, 32, 48, 48, 48, 64, 64, 64, 64, 64]
    assert widths("cpu -mattr=avx2") == [2, 16, 16, 24, 16, 24, 16, 24, 16, 16, 24, 24, 24]


def test_panel_width_of_few_rows() -> None:
    target = parse_target("cpu -mattr=avx2")

    def width(rows: int | None, bits: int = 32) -> int:
        return panel_plans(PanelProblem(857, bits, rows, 427), target)[0].decision.columns

    assert [width(n) for n in (3, 4, 7, 8, 128, None)] == [24] * 6
    assert [width(n) for n in (5, 6)] == [16] * 2  # one tile of all rows, for three vectors too high
    assert width(5, bits=16) == width(None, bits=16)


def test_text_before_and_after() -> None:
    g = built(lambda g, x: g.add("relu", [gemm(g, x, 5, 20, constant(g, 20, name="b"), trans_b=True)]), 3, 5)
    assert print_graph(apply_pass(g, packed)) == (
        "graph main(x: f32[3, 5]) -> (y):\n"
        "  w_packed = constant f32[2, 5, 12]\n"
        "  b = constant f32[20]\n"
        "  gemm: f32[3, 20] = matmul_packed(x, w_packed, b, columns=20)\n"
        "  relu: f32[3, 20] = relu(gemm)\n"
        "  return y=relu\n"
    )


def heads(g: Graph, x: Value, perm: tuple[int, ...]) -> Value:
    return g.add("transpose", [x], perm=perm)


PACKED: dict[str, tuple[tuple[int, ...], Callable[[Graph, Value], Value], list[str]]] = {
    "vector": ((5,), lambda g, x: g.add("matmul", [x, constant(g, 5, 6)]), ["matmul_packed"]),
    "batch": ((2, 3, 5), lambda g, x: g.add("matmul", [x, constant(g, 5, 6)]), ["matmul_packed"]),
    "batch of weights": ((2, 3, 5), lambda g, x: g.add("matmul", [x, constant(g, 4, 1, 5, 7)]), ["matmul_packed"]),
    "gemm": ((3, 5), lambda g, x: gemm(g, x, 5, 6), ["matmul_packed"]),
    "both transposed": (
        (5, 3),
        lambda g, x: gemm(g, x, 5, 6, trans_a=True, trans_b=True),
        ["transpose", "matmul_packed"],
    ),
    "factors": (
        (3, 5),
        lambda g, x: gemm(g, x, 5, 6, constant(g, 6), alpha=0.5, beta=2.0),
        ["matmul_packed", "mul", "add"],
    ),
    "full c": ((3, 5), lambda g, x: gemm(g, x, 5, 6, constant(g, 3, 6)), ["matmul_packed", "add"]),
    "zero c": ((3, 5), lambda g, x: gemm(g, x, 5, 6, g.constant(np.zeros(6, np.float32))), ["matmul_packed"]),
    "attention": (
        (2, 8, 4),
        lambda g, x: g.add("matmul", [x, g.add("transpose", [x], perm=(0, 2, 1))]),
        ["transpose", "pack_matrix", "matmul_packed"],
    ),
    "one row": (
        (2, 1, 4),
        lambda g, x: g.add("matmul", [x, g.add("transpose", [g.add("expand", [x], shape=(2, 3, 4))], perm=(0, 2, 1))]),
        ["expand", "einsum"],
    ),
    "one row, heads inside": (
        (1, 3, 2, 4),
        lambda g, x: g.add(
            "matmul",
            [g.add("reduce_sum", [g.add("transpose", [x], perm=(0, 2, 1, 3))], axes=(2,)), heads(g, x, (0, 2, 3, 1))],
        ),
        ["transpose", "reduce_sum", "einsum"],
    ),
    "one row, depth apart": (
        (3, 1, 3),
        lambda g, x: g.add("matmul", [x, heads(g, g.add("expand", [x], shape=(3, 3, 3)), (1, 0, 2))]),
        ["expand", "transpose", "matmul"],
    ),
    "one column": ((3, 5), lambda g, x: g.add("matmul", [x, constant(g, 5, 1)]), ["matmul"]),
    "times a vector": ((3, 5), lambda g, x: g.add("matmul", [x, constant(g, 5)]), ["matmul"]),
}


@pytest.mark.parametrize("what", PACKED)
def test_products(what: str) -> None:
    shape, build, expected = PACKED[what]
    assert ops(apply_pass(built(build, *shape), packed)) == expected


def test_rows_may_be_symbolic() -> None:
    g = Graph()
    x = g.input("x", (g.dim("n"), 5), f32)
    assert ops(apply_pass(one_output(g, gemm(g, x, 5, 6)), packed)) == ["matmul_packed"]


@pytest.mark.parametrize(("rows", "op"), [(1, "einsum"), (None, "matmul_packed")])
def test_many_rows_or_an_unknown_number_are_not_multiplied_with_keys_as_they_lie(rows: int | None, op: str) -> None:
    """With rows in vectors a transposed copy is soon worth its time, of a symbolic number of keys as well: it is in panels."""
    g = Graph()
    queries = g.input("q", (2, g.dim("m") if rows is None else rows, 4), f32)
    keys = g.add("transpose", [g.input("k", (2, g.dim("n"), 4), f32)], perm=(0, 2, 1))
    assert op in [n.op for n in packed(one_output(g, g.add("matmul", [queries, keys]))).nodes]


@pytest.mark.parametrize(("perm", "op"), [((0, 2, 1), "matmul_packed"), (None, "matmul")])
def test_constant_rows_are_multiplied_with_keys_in_panels(perm: tuple[int, ...] | None, op: str) -> None:
    """As learned queries are; a matrix that lies in rows, such as an image in a pointwise convolution, is read as it lies."""
    g = Graph()
    k = g.input("k", (2, 64, 64), f32)
    keys = k if perm is None else g.add("transpose", [k], perm=perm)
    made = packed(one_output(g, g.add("matmul", [constant(g, 2, 128, 64), keys])))
    assert ops(made)[-1] == op


def test_a_shared_weight_is_packed_once() -> None:
    g = Graph()
    x, w = g.input("x", (3, 5), f32), constant(g, 5, 5, name="w")
    y = g.add("matmul", [g.add("relu", [g.add("matmul", [x, w])]), w])
    made = apply_pass(one_output(g, y), packed)
    assert [c.name for c in made.constants()] == ["w_packed"]


def test_an_embedding_that_is_the_last_weight_is_held_once() -> None:
    g = Graph()
    ids = g.input("ids", (2, 3), i64)
    words = constant(g, 300, 1024, name="words")
    x = g.add("reshape", [g.add("gather", [words, ids])], shape=(6, 1024))
    y = g.add("gemm", [g.add("mul", [x, scalar(g, 0.1)]), words], trans_b=True)
    made = apply_pass(one_output(g, y), packed)
    assert ops(made) == ["unpack_matrix", "gather", "reshape", "mul", "matmul_packed"]
    assert [c.name for c in made.constants()] == ["words_packed", "constant"]


PRODUCTS = {
    "as it lies": ["gemm"],
    "panels": ["pack_matrix", "matmul_packed"],
    "swapped": ["pack_matrix", "matmul_packed", "transpose"],
}


@pytest.mark.parametrize(
    ("machine", "rows", "form"),
    [
        (FOUR, 1, "as it lies"),
        (FOUR, 16, "swapped"),
        (FOUR, 64, "swapped"),
        (WIDE, 16, "panels"),
        (WIDE, 64, "swapped"),
    ],
)
def test_parameters_are_held_once_unless_panels_are_much_faster(machine: Target, rows: int, form: str) -> None:
    """Panels would be held beside them; the rows may be packed instead."""
    g = Graph()
    x, w = g.input("x", (rows, 256), f32), g.parameter(constant(g, 256, 256).array, "w")
    one_output(g, g.add("gemm", [x, w, None], trans_b=True))
    made = pack_matrices(g, Choosing(machine))
    assert ops(made) == PRODUCTS[form]
    assert any(v is w for n in made.nodes for v in n.inputs if n.op != "pack_matrix") is (form != "panels")


SWAPPED: dict[str, tuple[tuple[int, ...], Callable[[Graph, Value, Value], Value], list[str]]] = {
    "gemm": ((9, 32), lambda g, x, w: g.add("gemm", [x, w, None], trans_b=True), []),
    "bias": ((9, 32), lambda g, x, w: g.add("gemm", [x, w, constant(g, 24)], trans_b=True), ["add"]),
    "factors": (
        (9, 32),
        lambda g, x, w: g.add("gemm", [x, w, constant(g, 24)], alpha=0.5, beta=2.0, trans_b=True),
        ["mul", "mul", "add"],
    ),
    "matmul": ((9, 32), lambda g, x, w: g.add("matmul", [x, g.add("transpose", [w], perm=(1, 0))]), []),
    "images": ((1, 9, 32), lambda g, x, w: g.add("matmul", [x, g.add("transpose", [w], perm=(1, 0))]), []),
}


@pytest.mark.parametrize("what", SWAPPED)
def test_the_transposed_product_means_the_same(what: str) -> None:
    shape, build, behind = SWAPPED[what]
    g = Graph()
    made = one_output(g, build(g, g.input("x", shape, f32), g.input("w", (24, 32), f32)))
    swapped = apply_pass(made, lambda graph: pack_matrices(graph, Choosing(FOUR, prefer_swapped)))
    assert [op for op in ops(swapped) if op != "transpose"] == ["pack_matrix", "matmul_packed", *behind]


@pytest.mark.parametrize(("rows", "op"), [(1, "gemm"), (16, "gemm"), (64, "matmul_packed")])
def test_matrices_whose_columns_lie_side_by_side_are_packed_for_many_rows(rows: int, op: str) -> None:
    g = Graph()
    x, w = g.input("x", (rows, 64), f32), g.input("w", (96, 64), f32)
    one_output(g, g.add("gemm", [x, w, None], trans_b=True))
    assert op in ops(apply_pass(g, packed))


def test_products_over_nothing_have_no_transposed_form() -> None:
    g = Graph()
    x, w = g.input("x", (9, 0), f32), g.input("w", (24, 0), f32)
    one_output(g, g.add("gemm", [x, w, None], trans_b=True))
    assert "transpose" not in ops(pack_matrices(g, Choosing(FOUR, prefer_swapped)))


@pytest.mark.parametrize(
    ("dtype", "rows", "apart"), [(bf16, 64, True), (bf16, 4, False), (f16, 64, False), (f32, 64, False)]
)
def test_many_rows_have_panels_of_bf16_widened_before(dtype: DType, rows: int, apart: bool) -> None:
    g, weight = Graph(), np.random.default_rng(0).standard_normal((24, 40)).astype(dtype.numpy)
    made = packed(one_output(g, g.add("matmul", [g.input("x", (rows, 24), dtype), g.constant(weight, "w")])))
    [product] = [n for n in made.nodes if n.op == "matmul_packed"]
    assert product.attribute("by_panels") is apart
