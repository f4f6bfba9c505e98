"""A result that is read as it is, and rounded, is written in both types by the kernel that computes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.graph.checks import apply_pass, constant, ops
from tests.graph.fusion.test_fuse import names

from weft.cost import Choosing
from weft.graph import Graph, Value, fuse
from weft.graph.passes.rounded.round_beside import round_beside
from weft.support.dtypes import bf16, f32, u32
from weft.targets.grid_machines import OPENCL


def normalized(g: Graph) -> Value:
    return g.add("layer_norm", [g.input("x", (3, 8), f32)])


def beside(g: Graph, y: Value) -> Graph:
    """Returns the product of *y*, rounded, by a matrix, added to *y* as it is."""
    w = g.add("cast", [constant(g, 8, 8)], dtype=bf16)
    g.output(g.add("add", [g.add("matmul_summed", [g.add("cast", [y], dtype=bf16), w]), y]), "z")
    return g


def test_one_kernel_writes_both() -> None:
    g = Graph()
    made = apply_pass(beside(g, normalized(g)), round_beside, exact=True)
    assert ops(made) == ["layer_norm", "with_rounded", "cast", "matmul_summed", "add"]
    fused = fuse(made, Choosing(OPENCL))
    assert names(fused) == ["layer_norm+with_rounded", "cast", "matmul_summed+add"]
    assert [v.dtype for v in fused.groups[0].outputs] == [f32, bf16]


def test_all_conversions_are_the_same_result() -> None:
    g = Graph()
    y = normalized(g)
    g.output(g.add("neg", [g.add("cast", [y], dtype=bf16)]), "a")
    g.output(g.add("cast", [y], dtype=bf16), "b")
    assert ops(apply_pass(g, round_beside, exact=True)) == ["layer_norm", "with_rounded", "neg"]


def test_tf32() -> None:
    g = Graph()
    y, w = normalized(g), g.add("round_tf32", [constant(g, 8, 8)])
    g.output(g.add("add", [g.add("matmul_tf32", [g.add("round_tf32", [y]), w]), y]), "z")
    fused = fuse(apply_pass(g, round_beside, exact=True), Choosing(OPENCL))
    assert names(fused) == ["layer_norm+with_rounded", "round_tf32", "matmul_tf32+add"]
    assert [v.dtype for v in fused.groups[0].outputs] == [f32, u32]


def only_rounded(g: Graph) -> None:
    g.output(g.add("cast", [normalized(g)], dtype=bf16), "y")


def of_a_map(g: Graph) -> None:
    """What is computed element by element is computed again by whoever reads it."""
    beside(g, g.add("neg", [g.input("x", (3, 8), f32)]))


def widened(g: Graph) -> None:
    y = g.add("layer_norm", [g.input("x", (3, 8), bf16)])
    g.output(y, "y")
    g.output(g.add("cast", [y], dtype=f32), "z")


@pytest.mark.parametrize("build", [only_rounded, of_a_map, widened])
def test_others_stay_as_they_are(build: Callable[[Graph], None]) -> None:
    g = Graph()
    build(g)
    assert round_beside(g) is g
