"""Factors of attention are rounded where they are computed, if fragments are faster then."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.checks import constant, ops, random_inputs, scalar
from tests.graph.oracle import run_graph

from weft.cost import AttentionSizes, Choosing, RoundedAttention, rounded_attention_plans
from weft.graph import Graph, Value, verify_graph
from weft.graph.passes.rounded.round_attention import round_attention
from weft.support.dtypes import bf16, f32
from weft.targets import Target, cpu
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import OPENCL

SM_90 = cuda("sm_90")
ROWS, WIDTH, HEADS, SIZE = 16, 8, 2, 64


def projected(g: Graph, x: Value, name: str, *, perm: tuple[int, ...] = (0, 2, 1, 3)) -> Value:
    """Returns the product of *x* by a matrix of its own, in heads."""
    y = g.add("matmul", [x, constant(g, WIDTH, HEADS * SIZE, name=name)])
    return g.add("transpose", [g.add("reshape", [y], shape=(1, ROWS, HEADS, SIZE))], perm=perm)


def attention(*, scaled: str = "scores", keys_are_read: bool = False, given: bool = False) -> Graph:
    """Returns an attention of rows to themselves, *scaled* and masked, of projected factors, or of ones that are *given*."""
    g = Graph()
    x = g.input("x", (1, ROWS, WIDTH), f32)
    turned = (0, 2, 3, 1)
    if given:
        q, v = (g.input(n, (1, HEADS, ROWS, SIZE), f32) for n in "qv")
        k = g.input("k", (1, HEADS, SIZE, ROWS), f32)
    else:
        q, k, v = projected(g, x, "q"), projected(g, x, "k", perm=turned), projected(g, x, "v")
    q, k, v = (g.add("mul", [f, scalar(g, 0.125)]) if n == scaled else f for n, f in zip("qkv", (q, k, v), strict=True))
    scores = g.add("matmul", [q, k])
    scores = g.add("mul", [scores, scalar(g, 0.125)]) if scaled == "scores" else scores
    weights = g.add("softmax", [g.add("add", [scores, g.input("mask", (ROWS,), f32)])], axis=3)
    g.output(g.add("transpose", [g.add("matmul", [weights, v])], perm=(0, 2, 1, 3)), "y")
    if keys_are_read:
        g.output(k, "keys")
    return g


def rounded(graph: Graph, target: Target = SM_90) -> Graph:
    """Returns *graph* with what the pass makes of it, and checks that it computes the same within the rounding of factors."""
    made = round_attention(graph, Choosing(target))
    verify_graph(made)
    given = random_inputs(graph)
    for a, b in zip(run_graph(graph, given), run_graph(made, given), strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=2e-2 * np.abs(a).max())
    return made


@pytest.mark.parametrize("scaled", ["scores", "q", "k", "v"])
def test_factors_are_rounded_before_they_are_moved_and_scaled(scaled: str) -> None:
    made = rounded(attention(scaled=scaled))
    of = {n.output: n for n in made.nodes}
    first, second = [n for n in made.nodes if n.op == "matmul_summed"]
    for factor in (*first.inputs, second.inputs[1]):
        path, v = [], factor
        while v is not None and (n := of[v]).op != "matmul":
            path.append((n.op, n.output.dtype))
            v = n.inputs[0]
        assert path == [("transpose", bf16), ("reshape", bf16), ("cast", bf16)]
    assert first.output.dtype is second.output.dtype is f32
    assert ops(made).count("mul") == 1


def test_a_factor_that_others_read_is_rounded_by_a_launch_of_its_own() -> None:
    """That takes longer than fragments save, for so few rows."""
    assert "cast" not in ops(rounded(attention(keys_are_read=True)))


@pytest.mark.parametrize("target", [cpu("avx512"), OPENCL], ids=["avx512", "opencl"])
def test_machines_without_fragments_keep_float32(target: Target) -> None:
    g = attention()
    assert rounded(g, target) is g


def test_given_factors_are_rounded_where_there_are_many_rows() -> None:
    assert "cast" not in ops(rounded(attention(given=True)))
    many, one = AttentionSizes(12, 2048, 2048, SIZE, SIZE), AttentionSizes(12, 1, 257, SIZE, SIZE)
    forms = [rounded_attention_plans(a, SM_90, (12 * a.rows * SIZE, *[12 * a.keys * SIZE] * 2)) for a in (many, one)]
    assert [f[0].decision for f in forms] == [RoundedAttention(rounded=True), RoundedAttention(rounded=False)]
