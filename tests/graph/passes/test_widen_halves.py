"""Convolutions of halves have their operands in float32; the result is the same, rounded once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.checks import apply_pass, ops
from tests.graph.oracle import Oracle

from weft.cost import Choosing
from weft.graph import Graph
from weft.graph.passes.pack_matrices import pack_matrices
from weft.graph.passes.widen_halves import widen_halves
from weft.support.dtypes import bf16, f16, f32
from weft.targets import cpu


def halves(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("op", ["conv2d", "conv_transpose2d"])
@pytest.mark.parametrize("bias", [False, True])
def test_a_convolution_of_halves(op: str, bias: bool) -> None:
    g = Graph()
    w, b = g.constant(halves(4, 4, 3, 3), "w"), g.constant(halves(4, seed=1), "b") if bias else None
    y = g.add("relu", [g.add(op, [g.input("x", (1, 4, 5, 6), f16), w, b], pads=(1, 1, 1, 1))])
    g.output(y, "y")
    made = apply_pass(g, lambda graph: widen_halves(graph, Oracle()), exact=True)
    assert ops(made) == ["cast", op, "cast", "relu"]
    assert {c.dtype for c in made.constants()} == {f32}, "constants are converted while compiling"


def test_others_stay_as_they_are() -> None:
    g = Graph()
    x = g.input("x", (1, 4, 5, 6), f16)
    computed = g.add("conv2d", [x, g.input("w", (4, 4, 3, 3), f16)])
    single = g.add("conv2d", [g.add("cast", [x], dtype=f32), g.constant(halves(4, 4, 3, 3).astype(np.float32))])
    g.output(computed, "computed")
    g.output(single, "single")
    assert widen_halves(g, Oracle()) is g


@pytest.mark.parametrize("dtype", [f16, bf16])
def test_a_product_keeps_its_weight_in_halves(dtype: object) -> None:
    kind = f16 if dtype is f16 else bf16
    g = Graph()
    w, b = (g.constant(halves(*shape).astype(kind.numpy)) for shape in ((6, 20), (20,)))
    g.output(g.add("gemm", [g.input("x", (3, 6), kind), w, b]), "y")
    made = apply_pass(g, lambda graph: pack_matrices(graph, Choosing(cpu("sse4"))), exact=True)
    assert ops(made) == ["pack_matrix", "cast", "cast", "matmul_packed", "cast"]
    (product,) = [n for n in made.nodes if n.op == "matmul_packed"]
    assert [None if v is None else v.dtype for v in product.inputs] == [f32, kind, f32]
