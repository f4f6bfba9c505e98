"""Grouped-query attention: the queries that share a head are multiplied by it at once, and heads are not repeated."""

from __future__ import annotations

import pytest
from tests.graph.checks import apply_pass, one_output, ops

from weft.graph import Graph, Value
from weft.graph.passes.group_queries import group_queries
from weft.support.dtypes import f32

HEADS, TIMES = 2, 3


def repeated(g: Graph, heads: Value, by: str) -> Value:
    b, h, n, d = heads.shape
    if by == "repeat":
        return g.add("repeat", [heads], axis=1, times=TIMES)
    order = (b, h, 1, n, d) if by == "expand" else (b, 1, h, n, d)
    wide = (b, h, TIMES, n, d) if by == "expand" else (b, TIMES, h, n, d)
    made = g.add("expand", [g.add("reshape", [heads], shape=order)], shape=wide)
    return g.add("reshape", [made], shape=(b, HEADS * TIMES, n, d))


def product(by: str, *, transposed: bool, rows: int = 5, heads: int = HEADS * TIMES) -> Graph:
    g = Graph()
    k = g.input("k", (2, HEADS, 7, 4), f32)
    right = repeated(g, k, by)
    if transposed:
        right = g.add("transpose", [right], perm=(0, 1, 3, 2))
    q = g.input("q", (2, heads, rows, 4 if transposed else 7), f32)
    return one_output(g, g.add("matmul", [q, right]))


@pytest.mark.parametrize("by", ["expand", "repeat"])
@pytest.mark.parametrize("rows", [1, 5])
def test_heads_are_not_repeated(by: str, rows: int) -> None:
    made = apply_pass(product(by, transposed=False, rows=rows), group_queries)
    assert ops(made) == ["reshape", "matmul", "reshape"]
    made = apply_pass(product(by, transposed=True, rows=rows), group_queries)
    assert ops(made) == ["transpose", "reshape", "matmul", "reshape"]


@pytest.mark.parametrize(
    "graph",
    [product("all in turn", transposed=False), product("repeat", transposed=True, heads=1)],
    ids=["order", "broadcast"],
)
def test_others_stay(graph: Graph) -> None:
    assert apply_pass(graph, group_queries) is graph
