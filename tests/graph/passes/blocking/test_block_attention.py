"""Attention of scores beyond the cache is computed by blocks of rows, in loops over heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.graph.checks import one_output, ops, random_array, scalar
from tests.graph.oracle import Oracle

import weft
from weft.cost import AttentionBlock, AttentionSizes, Candidate, Choosing, attention_block_plans, cheapest
from weft.graph import Array, Graph, Value, optimize, print_graph
from weft.graph.passes.blocking import block_attention as pass_
from weft.graph.regions.region_operators import regions_of
from weft.support.dtypes import f32
from weft.targets import cpu

AVX512 = cpu("avx512")
CHOOSING = Choosing(AVX512)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


@pytest.fixture
def in_blocks_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def choose(rows: int) -> None:
        def plans(p: AttentionSizes, *_: Any) -> list[Candidate[AttentionBlock]]:
            return [Candidate(AttentionBlock(rows if p.batch * p.rows > rows else 0), 1.0)]

        monkeypatch.setattr(pass_, "attention_block_plans", plans)

    return choose


def loops_of(graph: Graph) -> list[int]:
    """Returns the iterations of the loops of *graph*, each before those inside of it."""
    found: list[int] = []
    for node in graph.nodes:
        for region in regions_of(node):
            found += [int(node.attribute("shapes")[0][0].value), *loops_of(region)]
    return found


def attention(
    q: Sequence[int],
    k: Sequence[int],
    v: Sequence[int],
    mask: Sequence[int] | None = None,
    *,
    heads_first: bool = True,
) -> Graph:
    """The attention of queries, keys and values [..., heads, rows, depth], or [..., rows, heads, depth] transposed to that."""
    g = Graph()

    def given(name: str, shape: Sequence[int]) -> Value:
        if heads_first:
            return g.input(name, shape, f32)
        *batch, heads, rows, depth = shape
        order = (*range(len(batch)), len(batch) + 1, len(batch), len(batch) + 2)
        return g.add("transpose", [g.input(name, (*batch, rows, heads, depth), f32)], perm=order)

    x, y, z = given("q", q), given("k", k), given("v", v)
    turned = g.add("transpose", [y], perm=(*range(len(k) - 2), len(k) - 1, len(k) - 2))
    scores = g.add("mul", [g.add("matmul", [x, turned]), scalar(g, 0.25)])
    if mask is not None:
        scores = g.add("add", [g.input("mask", mask, f32), scores])
    return one_output(g, g.add("matmul", [g.add("softmax", [scores], axis=-1), z]))


def expected(q: Array, k: Array, v: Array, mask: Array | float = 0.0) -> Array:
    return np.asarray(softmax(q @ np.swapaxes(k, -1, -2) * np.float32(0.25) + mask) @ v)


def check(shapes: Sequence[Sequence[int]], g: Graph, *, heads_first: bool = True) -> None:
    arrays = [random_array(s, n) for n, s in enumerate(shapes)]
    given = arrays if heads_first else [np.ascontiguousarray(np.swapaxes(a, -2, -3)) for a in arrays]
    found = weft.compile(g)(*given)
    np.testing.assert_allclose(found, expected(*arrays), rtol=2e-5, atol=2e-6)


def test_text_before_and_after(in_blocks_of: Callable[[int], None]) -> None:
    in_blocks_of(8)
    shapes = [(3, 16, 4), (3, 20, 4), (3, 20, 5)]
    made = pass_.block_attention(attention(*shapes), CHOOSING)
    assert print_graph(made).startswith("graph main(q: f32[3, 16, 4], k: f32[3, 20, 4], v: f32[3, 20, 5]) -> (y):\n")
    assert loops_of(made) == [3, 2]
    assert ops(made) == ["loop", "reshape"]
    check(shapes, attention(*shapes))


SHAPES: dict[str, tuple[Sequence[Sequence[int]], list[int]]] = {
    "a matrix": ([(64, 8), (70, 8), (70, 9)], [2]),
    "one head": ([(1, 64, 8), (1, 70, 8), (1, 70, 9)], [2]),
    "whole heads": ([(2, 32, 8), (2, 40, 8), (2, 40, 8)], [2]),
    "batches of heads": ([(2, 3, 64, 8), (2, 3, 40, 8), (2, 3, 40, 8)], [2, 3, 2]),
    "shared keys": ([(2, 3, 64, 8), (2, 1, 40, 8), (40, 8)], [2, 3, 2]),
    "a mask of rows": ([(2, 3, 64, 8), (2, 3, 40, 8), (2, 3, 40, 8), (64, 40)], [2, 3, 2]),
    "a mask of keys": ([(2, 3, 64, 8), (2, 3, 40, 8), (2, 3, 40, 8), (2, 1, 1, 40)], [2, 3, 2]),
    "a bias of heads": ([(2, 3, 64, 8), (2, 3, 40, 8), (2, 3, 40, 8), (3, 64, 40)], [2, 3, 2]),
    "a number for each row": ([(2, 3, 64, 8), (2, 3, 40, 8), (2, 3, 40, 8), (2, 3, 64, 1)], [2, 3, 2]),
}


@pytest.mark.parametrize("what", SHAPES)
def test_means_the_same(what: str, in_blocks_of: Callable[[int], None]) -> None:
    in_blocks_of(32)
    shapes, loops = SHAPES[what]
    assert loops_of(optimize(attention(*shapes), AVX512, Oracle())) == loops
    check(shapes, attention(*shapes))


def test_heads_behind_rows_are_read_where_they_lie(in_blocks_of: Callable[[int], None]) -> None:
    in_blocks_of(32)
    shapes = SHAPES["batches of heads"][0]
    made = attention(*shapes, heads_first=False)
    assert "transpose" not in ops(optimize(made, AVX512, Oracle()))
    check(shapes, made, heads_first=False)


def test_keys_are_packed_once_a_head(in_blocks_of: Callable[[int], None]) -> None:
    in_blocks_of(32)
    made = optimize(attention((2, 64, 8), (2, 70, 8), (2, 70, 32)), AVX512, Oracle())
    (heads,) = (region for node in made.nodes for region in regions_of(node))
    (blocks,) = (region for node in heads.nodes for region in regions_of(node))
    assert "pack_matrix" in ops(heads)
    assert "pack_matrix" not in ops(blocks)


KEPT: dict[str, Callable[[Graph, Value, Value], Value]] = {
    "scores that are read twice": lambda g, s, v: g.add(
        "add", [g.add("matmul", [g.add("softmax", [s], axis=-1), v]), g.add("reduce_sum", [s], axes=(-1,))]
    ),
    "another axis": lambda g, s, v: g.add("matmul", [g.add("softmax", [s], axis=-2), v]),
    "weights that are the right factor": lambda g, s, v: g.add(
        "matmul", [g.add("transpose", [v], perm=(0, 2, 1)), g.add("softmax", [s], axis=-1)]
    ),
    "known values": lambda g, s, v: g.add(
        "matmul", [g.add("softmax", [s], axis=-1), g.constant(random_array((64, 8)))]
    ),
}


@pytest.mark.parametrize("what", KEPT)
def test_others_are_kept(what: str, in_blocks_of: Callable[[int], None]) -> None:
    in_blocks_of(16)
    g = Graph()
    x = g.input("x", (2, 64, 8), f32)
    scores = g.add("matmul", [x, g.add("transpose", [x], perm=(0, 2, 1))])
    one_output(g, KEPT[what](g, scores, x))
    assert pass_.block_attention(g, CHOOSING) is g


@pytest.mark.parametrize(("sizes", "is_whole"), [((12, 128, 128, 64, 64), True), ((8, 4096, 4096, 40, 40), False)])
def test_scores_beyond_the_caches_are_blocked(sizes: tuple[int, int, int, int, int], is_whole: bool) -> None:
    found = cheapest(list(attention_block_plans(AttentionSizes(*sizes), 4, AVX512))).decision
    assert isinstance(found, AttentionBlock)
    assert (found.rows == 0) is is_whole
    assert is_whole or 2 * 4 * found.rows * sizes[2] < AVX512.caches.l3
