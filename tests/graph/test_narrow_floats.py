"""Passes over graphs of 16-bit floats: constants are combined where that is exact; nothing rounds or overflows on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pytest
from tests.graph.checks import one_output, ops
from tests.graph.oracle import run_graph
from tests.support.ulps import ulps_off

from weft.cost import Choosing
from weft.graph import Constant, Graph, Value, simplify_calls
from weft.graph.passes.fold_scale_and_shift import fold_scale_and_shift
from weft.graph.passes.pack_matrices import pack_matrices
from weft.support.dtypes import DType, bf16, f16
from weft.targets import cpu

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Build: TypeAlias = Callable[[Graph, Value], Value]

NARROW: Final = pytest.mark.parametrize("dtype", [f16, bf16], ids=str)


def constant(g: Graph, like: Value, *values: float) -> Constant:
    array = np.array(values) if len(values) > 1 else np.array(values[0])
    return g.constant(array.astype(like.dtype.numpy))


def conv(g: Graph, x: Value, weight: float = 3.0) -> Value:
    """A convolution of two channels with a kernel of one element, which multiplies each of them."""
    w = np.array([[weight, 0], [0, weight]]).reshape(2, 2, 1, 1)
    return g.add("conv2d", [x, g.constant(w.astype(x.dtype.numpy))])


def batch_norm(g: Graph, x: Value, scale: float, shift: float, mean: float) -> Value:
    given = [constant(g, x, v, v) for v in (scale, shift, mean, 1.0)]
    return g.add("batch_norm", [x, *given], epsilon=0.0)


def after(build: Build, run: Callable[[Graph], Graph], x: Array, dtype: DType) -> tuple[list[str], Array]:
    """Returns the operators that a pass leaves of a graph over *x*, and what they compute."""
    g = Graph()
    made = run(one_output(g, build(g, g.input("x", x.shape, dtype))))
    return ops(made), run_graph(made, [x.astype(dtype.numpy)])[0]


IMAGE: Final = np.linspace(-40, 120, 50).reshape(1, 2, 5, 5)

SCALED: Final[dict[str, tuple[Build, list[str]]]] = {
    "by a power of two": (lambda g, x: g.add("mul", [conv(g, x), constant(g, x, 0.25)]), ["conv2d"]),
    "by a power of two, shifted": (lambda g, x: batch_norm(g, conv(g, x), 2.0, 1.0, 0.5), ["conv2d"]),
    "a bias": (lambda g, x: g.add("add", [conv(g, x), constant(g, x, 0.1)]), ["conv2d"]),
    "by a number that rounds the weight": (
        lambda g, x: g.add("mul", [conv(g, x), constant(g, x, 1.7)]),
        ["conv2d", "mul"],
    ),
    "by one that the weight overflows with": (
        lambda g, x: g.add(
            "mul", [conv(g, g.add("mul", [x, constant(g, x, 2.0**-20)]), 2.0**14), constant(g, x, 64.0)]
        ),
        ["mul", "conv2d", "mul"],
    ),
    "normalized": (lambda g, x: batch_norm(g, conv(g, x), 1.7, 0.3, 20.0), ["conv2d", "scale_and_shift"]),
    "normalized, large": (lambda g, x: batch_norm(g, x, 1000.0, -50000.0, 90.0), ["scale_and_shift"]),
}


@pytest.mark.parametrize("name", SCALED)
def test_scales_and_shifts(name: str) -> None:
    """A weight is scaled only where it keeps all its digits."""
    build, left = SCALED[name]
    found, _ = after(build, fold_scale_and_shift, IMAGE, f16)
    assert found == left


@NARROW
@pytest.mark.parametrize("name", SCALED)
def test_scaling_rounds_no_more_than_nodes_do(name: str, dtype: DType) -> None:
    build, _ = SCALED[name]
    x = IMAGE.astype(dtype.numpy).astype(np.float64)
    (_, before), (_, now) = (after(build, run, x, dtype) for run in (lambda g: g, fold_scale_and_shift))
    assert ulps_off(now, before.astype(np.float64), dtype).max() <= 1.5


@NARROW
def test_batch_norm_of_large_numbers(dtype: DType) -> None:
    """`x * scale` is beyond float16, `x * scale + shift` is not."""
    x = np.linspace(60, 90, 50).reshape(1, 2, 5, 5).astype(dtype.numpy).astype(np.float64)
    _, found = after(SCALED["normalized, large"][0], fold_scale_and_shift, x, dtype)
    rounded = np.array([1000.0, -50000.0, 90.0]).astype(dtype.numpy).astype(np.float64)
    assert ulps_off(found, (x - rounded[2]) * rounded[0] + rounded[1], dtype).max() <= 1


@NARROW
@pytest.mark.parametrize("exponent", [2.0, 3.0, 4.0])
def test_powers(exponent: float, dtype: DType) -> None:
    x = IMAGE.astype(dtype.numpy).astype(np.float64) / 16
    _, found = after(lambda g, v: g.add("power", [v, constant(g, v, exponent)]), simplify_calls, x, dtype)
    exact = x.astype(dtype.numpy).astype(np.float64) ** exponent
    assert ulps_off(found, exact, dtype).max() <= 0.51


@NARROW
def test_divisions(dtype: DType) -> None:
    """The reciprocal of a number is a float as good as it only for powers of two."""
    for by, left in ((4.0, ["mul"]), (3.0, ["div"])):
        found, y = after(lambda g, x, by=by: g.add("div", [x, constant(g, x, by)]), simplify_calls, IMAGE, dtype)  # type: ignore[misc]
        assert found == left
        exact = IMAGE.astype(dtype.numpy).astype(np.float64) / by
        assert ulps_off(y, exact, dtype).max() <= 0.51


@NARROW
def test_products_with_factors(dtype: DType) -> None:
    """A product is beyond float16, what it is scaled to is not: such a one is not taken apart."""
    a = np.full((3, 64), 100.0)

    def scaled(g: Graph, x: Value) -> Value:
        w = g.constant(np.full((64, 4), 100.0).astype(dtype.numpy))
        return g.add("gemm", [x, w, g.constant(np.full(4, 7.0).astype(dtype.numpy))], alpha=0.01, beta=0.1)

    found, y = after(scaled, lambda g: pack_matrices(g, Choosing(cpu("sse4"))), a, dtype)
    assert found == ["gemm"]
    assert ulps_off(y, np.full((3, 4), 6400.7), dtype).max() <= 1
