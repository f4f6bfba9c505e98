"""Quantised weights of floats: kept in bytes where reading them takes longest, else dequantised while compiling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.graph.checks import apply_pass, constant, ops
from tests.graph.oracle import Oracle
from tests.graph.passes.quantized.quantized_graphs import dequantized, random_bytes

from weft.cost import Choosing, narrow_weight_plans
from weft.graph import Graph, Value
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.passes.quantized.place_weight_dequantization import place_weight_dequantization
from weft.support.dtypes import DType, f32, i8, u8
from weft.targets import cpu

SMALL = cpu("sse4").having(l2=64, l3=128, memory_speed=0.5)
"""A machine on which any weight is read from memory."""

LARGE = cpu("sse4").having(l2=1 << 30, l3=1 << 30)
"""One on which none is."""

Scale = float | np.ndarray
Build = Callable[[Graph, Value, Value], Value]


def placed(build: Build, dtype: DType, shape: tuple[int, ...], scale: Scale, zero: int, machine: object) -> Graph:
    g, x_shape = Graph(), (3, 8) if len(shape) == 2 else (1, 4, 5, 5)
    w = g.constant(random_bytes(dtype, shape), "w")
    factor = scale if isinstance(scale, float) else g.constant(scale.astype(np.float32))
    g.output(build(g, g.input("x", x_shape, f32), dequantized(g, w, factor, zero)), "y")
    target = SMALL if machine is SMALL else LARGE
    return apply_pass(g, lambda graph: fold_constants(place_weight_dequantization(graph, Choosing(target)), Oracle()))


def gemm(g: Graph, x: Value, w: Value) -> Value:
    return g.add("gemm", [x, w, constant(g, 6)], trans_b=True)


PRODUCTS: dict[str, tuple[Build, tuple[int, ...], Scale]] = {
    "matmul": (lambda g, x, w: g.add("matmul", [x, w]), (8, 6), 0.02),
    "scale of columns": (lambda g, x, w: g.add("matmul", [x, w]), (8, 6), np.linspace(0.01, 0.1, 6)),
    "gemm": (gemm, (6, 8), 0.02),
    "gemm, scale of columns": (gemm, (6, 8), np.linspace(0.01, 0.1, 6).reshape(6, 1)),
}


@pytest.mark.parametrize("zero", [0, 5, -3])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_keep_their_bytes(name: str, zero: int) -> None:
    build, shape, scale = PRODUCTS[name]
    made = placed(build, i8, shape, scale, zero, SMALL)
    assert ops(made)[0] == "matmul_bits"
    product = made.nodes[0]
    assert product.inputs[1] is not None
    assert product.inputs[1].dtype is u8
    assert (len(product.inputs) == 3) == (zero == 0), "the middle of all bytes needs no zero point"


@pytest.mark.parametrize("name", PRODUCTS)
def test_weights_that_stay_in_cache_are_dequantised_while_compiling(name: str) -> None:
    build, shape, scale = PRODUCTS[name]
    assert "matmul_bits" not in ops(placed(build, u8, shape, scale, 128, LARGE))


OTHERS: dict[str, tuple[Build, tuple[int, ...], Scale]] = {
    "convolution": (lambda g, x, w: g.add("conv2d", [x, w], pads=(1, 1, 1, 1)), (6, 4, 3, 3), 0.02),
    "transposed": (lambda g, x, w: g.add("conv_transpose2d", [x, w]), (4, 6, 2, 2), 0.02),
    "scale along the reduction": (
        lambda g, x, w: g.add("matmul", [x, w]),
        (8, 6),
        np.linspace(0.01, 0.1, 8).reshape(8, 1),
    ),
    "scaled product": (lambda g, x, w: g.add("gemm", [x, w, None], alpha=0.5), (8, 6), 0.02),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_weights_are_dequantised_while_compiling(name: str) -> None:
    build, shape, scale = OTHERS[name]
    made = placed(build, i8, shape, scale, 3, SMALL)
    assert len(ops(made)) == 1
    assert made.nodes[0].inputs[1] is not None
    assert made.nodes[0].inputs[1].dtype is f32


def test_folding_does_not_mind_what_it_grows_by() -> None:
    g = Graph()
    w = g.constant(np.ones((1 << 10, 1 << 10), np.int8), "w")
    x = g.input("x", (400, 1 << 10), f32)
    g.output(g.add("matmul", [x, dequantized(g, w, 0.5, 0)]), "y")
    made = place_weight_dequantization(g, Choosing(LARGE))
    assert [n.operator.prepares for n in made.nodes] == [True, False]


def test_the_choice_depends_on_rows() -> None:
    def kept(rows: int | None) -> bool:
        machine = cpu("avx512").having(l2=1 << 21, l3=1 << 25, memory_speed=8.0, fma_per_cycle=2)
        return narrow_weight_plans(rows, 1 << 24, machine)[0].decision.kept

    assert kept(1)
    assert not kept(10_000)
    assert not kept(None)
