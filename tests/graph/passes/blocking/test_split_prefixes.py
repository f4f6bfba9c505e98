"""Prefix sums on grids are those of chunks, which threads combine side by side, and of the chunks' sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.graph.checks import apply_pass, one_output, ops
from tests.support.devices import needs_opencl

import weft
from weft.cost import Choosing, PrefixChunk, cheapest, prefix_chunk_plans
from weft.graph import Graph, print_graph
from weft.graph.passes.blocking.split_prefixes import split_prefixes
from weft.ir import Expr, Var
from weft.support.dtypes import DType, f16, f32, i64
from weft.targets.cuda_machines import cuda

H200 = cuda("sm_90")


def prefixes(op: str, shape: tuple[int | Expr, ...], dtype: DType = f32, **attributes: Any) -> Graph:
    g = Graph()
    return one_output(g, g.add(op, [g.input("x", shape, dtype)], **attributes))


def split(g: Graph) -> Graph:
    return split_prefixes(g, Choosing(H200))


def test_text_before_and_after() -> None:
    assert print_graph(apply_pass(prefixes("cumsum", (512,)), split)) == (
        "graph main(x: f32[512]) -> (y):\n"
        "  reshape: f32[32, 16] = reshape(x, shape=(32, 16))\n"
        "  reduce_sum: f32[32] = reduce_sum(reshape, axes=(1,), keepdims=False)\n"
        "  cumsum_1: f32[32] = cumsum(reduce_sum, axis=0, exclusive=True, reverse=False)\n"
        "  reshape_1: f32[32, 1] = reshape(cumsum_1, shape=(32, 1))\n"
        "  cumsum_2: f32[32, 16] = cumsum(reshape, reshape_1, axis=1)\n"
        "  cumsum: f32[512] = reshape(cumsum_2, shape=(512,))\n"
        "  return y=cumsum\n"
    )


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((1003,), 0), ((2, 700, 3), -2), ((600, 20), 0)])
def test_of_any_axis(shape: tuple[int, ...], axis: int, reverse: bool, exclusive: bool) -> None:
    g = prefixes("cumsum", shape, i64, axis=axis, exclusive=exclusive, reverse=reverse)
    assert ops(apply_pass(g, split, exact=True)).count("cumsum") > 1


def test_products_are_padded_with_ones() -> None:
    assert "reduce_prod" in ops(apply_pass(prefixes("cumprod", (1003,)), split))


def test_sums_of_chunks_are_taken_apart_in_turn() -> None:
    made = split(prefixes("cumsum", (1 << 20,)))
    assert ops(made).count("reduce_sum") == 3
    assert all(n.inputs[0].static_shape[-1] < 1000 for n in made.nodes if n.op == "cumsum")  # type: ignore[index,union-attr]


def test_halves_are_added_as_float32() -> None:
    made = apply_pass(prefixes("cumsum", (512,), f16), split)
    assert {n.output.dtype for n in made.nodes if n.op == "cumsum"} == {f32}


KEPT: dict[str, Graph] = {
    "few elements": prefixes("cumsum", (64,)),
    "slices for all threads": prefixes("cumsum", (4, 1 << 20)),
    "an open size": prefixes("cumsum", (Var("n"),)),
}


@pytest.mark.parametrize("what", KEPT)
def test_others_are_kept(what: str) -> None:
    assert split(KEPT[what]) is KEPT[what]


def test_longer_prefixes_have_longer_chunks() -> None:
    chunks = [cheapest(list(prefix_chunk_plans(n, 1, 4, H200))).decision for n in (50, 1 << 10, 1 << 24)]
    found = [c.elements for c in chunks if isinstance(c, PrefixChunk)]
    assert found[0] == 1 < found[1] < found[2]


@needs_opencl
@pytest.mark.parametrize("n", [4096, 100_003])
def test_on_a_device(n: int) -> None:
    x = np.random.default_rng(0).standard_normal((n,)).astype(np.float32)
    found = weft.compile(prefixes("cumsum", (n,)), target="opencl -device=any")(x)
    np.testing.assert_allclose(found, np.cumsum(x, dtype=np.float64), rtol=1e-5, atol=1e-4)
