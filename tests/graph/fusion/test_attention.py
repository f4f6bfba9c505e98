"""Attention is one group where that pays: both products, the softmax between them, and what rearranges their factors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.graph.checks import one_output, random_inputs
from tests.graph.fusion.test_fuse import names
from tests.graph.oracle import run_fused, run_graph

from weft.cost import Choosing
from weft.graph import FusedGraph, Graph, Value, fuse
from weft.support.dtypes import bf16, f32
from weft.targets.grid_machines import OPENCL

HEADS, LENGTH, SIZE = 2, 12, 8


def fused(g: Graph, *, whole: bool = True) -> FusedGraph:
    """Fuses for a machine with threads, and checks that the groups compute what the nodes do."""
    made = fuse(g, Choosing(OPENCL), whole_attention=whole)
    inputs = random_inputs(g)
    for a, b in zip(run_graph(g, inputs), run_fused(made, inputs), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)
    return made


def factors(g: Graph) -> tuple[Value, Value, Value]:
    q, k, v = (g.input(n, (1, LENGTH, HEADS, SIZE), f32) for n in "qkv")
    return q, k, v


def written_out(g: Graph, *, axis: int = 3) -> tuple[Value, Value]:
    """Returns the weights and the result of an attention, its heads split and joined by transpositions."""
    heads = ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
    q, k, v = (g.add("transpose", [x], perm=p) for x, p in zip(factors(g), heads, strict=True))
    scores = g.add("add", [g.add("matmul", [q, k]), g.input("bias", (LENGTH, LENGTH), f32)])
    weights = g.add("softmax", [scores], axis=axis)
    return weights, g.add("transpose", [g.add("matmul", [weights, v])], perm=(0, 2, 1, 3))


def test_it_is_one_group() -> None:
    g = Graph()
    made = fused(one_output(g, written_out(g)[1]))
    assert names(made) == ["transpose+transpose+transpose+matmul+add+softmax+matmul+transpose"]


def test_a_machine_without_threads_has_several() -> None:
    g = Graph()
    assert len(fused(one_output(g, written_out(g)[1]), whole=False).groups) > 1


def test_a_conversion_of_the_result_is_part_of_its_epilogue() -> None:
    g = Graph()
    made = fused(one_output(g, g.add("cast", [written_out(g)[1]], dtype=bf16)))
    assert names(made) == ["transpose+transpose+transpose+matmul+add+softmax+matmul+transpose+cast"]


def test_a_result_that_others_read_as_it_is_is_converted_apart() -> None:
    g = Graph()
    result = written_out(g)[1]
    g.output(result, "y")
    made = fused(one_output(g, g.add("cast", [result], dtype=bf16)))
    assert names(made) == ["transpose+transpose+transpose+matmul+add+softmax+matmul+transpose", "cast"]


def test_factors_of_16_bits_are_stored_before_fragments_take_them() -> None:
    g = Graph()
    q, k, v = (g.add("cast", [g.input(n, (2, LENGTH, SIZE), f32)], dtype=bf16) for n in "qkv")
    scores = g.add("matmul_summed", [q, k], trans=True)
    made = fused(one_output(g, g.add("matmul_summed", [g.add("softmax", [scores], axis=2), v])))
    assert names(made) == ["cast", "cast", "cast", "matmul_summed+softmax+matmul_summed"]


def weights_are_an_output() -> Graph:
    g = Graph()
    weights, result = written_out(g)
    g.output(weights, "weights")
    g.output(result, "y")
    return g


def along_the_queries() -> Graph:
    g = Graph()
    return one_output(g, written_out(g, axis=2)[1])


def weights_are_used_twice() -> Graph:
    g = Graph()
    weights, result = written_out(g)
    g.output(result, "y")
    g.output(g.add("abs", [weights]), "z")
    return g


@pytest.mark.parametrize("build", [weights_are_an_output, along_the_queries, weights_are_used_twice])
def test_what_needs_the_weights_in_memory_is_kept_apart(build: Callable[[], Graph]) -> None:
    made = fused(build())
    assert not any("matmul" in n and "softmax" in n for n in names(made))
