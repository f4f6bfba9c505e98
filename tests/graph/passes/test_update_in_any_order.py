"""Scatters of grids go in any order: where sums may round differently, where threads lose no update, and where it is faster."""

from __future__ import annotations

from functools import partial

import pytest
from tests.graph.checks import one_output

from weft.cost import Choosing, UpdateOrder, cheapest, update_order_plans
from weft.graph import Graph
from weft.graph.passes.update_in_any_order import update_in_any_order
from weft.ir import Expr, Var
from weft.support.dtypes import DType, f16, f32, i32, i64
from weft.targets import Target
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import WEBGPU

H200 = cuda("sm_90")


def scatter(reduction: str, dtype: DType = f32, updates: int | Expr = 400) -> Graph:
    """Rows of a tensor, chosen by indices."""
    g = Graph()
    x, at = g.input("x", (50, 8), dtype), g.input("at", (updates, 1), i64)
    return one_output(g, g.add("scatter_nd", [x, at, g.input("u", (updates, 8), dtype)], reduction=reduction))


def in_any_order(g: Graph, target: Target = H200, *, exact: bool = False) -> bool:
    (node,) = update_in_any_order(g, Choosing(target), target, exact=exact).nodes
    return bool(node.attribute("any_order"))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
def test_each_reduction(reduction: str) -> None:
    assert in_any_order(scatter(reduction))


def test_sums_of_an_exact_model_stay_in_order() -> None:
    exact = partial(in_any_order, exact=True)
    assert not exact(scatter("add"))
    assert exact(scatter("add", i32))
    assert exact(scatter("max"))
    assert exact(scatter("none"))


def test_types_without_atomic_operations_stay_in_order() -> None:
    assert not in_any_order(scatter("add", f16))
    assert in_any_order(scatter("none", f16))
    assert in_any_order(scatter("add", i64))
    assert not in_any_order(scatter("add", i64), WEBGPU)


def test_numbers_that_are_not_known_stay_in_order() -> None:
    assert not in_any_order(scatter("add", updates=Var("n")))


def test_a_result_of_several_buffers_stays_in_order() -> None:
    g = Graph()
    x, at, u = g.input("x", (1 << 20, 64), f32), g.input("at", (400, 1), i64), g.input("u", (400, 64), f32)
    one_output(g, g.add("scatter_nd", [x, at, u], reduction="add"))
    assert in_any_order(g)
    assert not in_any_order(g, WEBGPU)


def test_few_updates_that_replace_elements_stay_in_order() -> None:
    assert not in_any_order(scatter("none", updates=2))
    by_count = [cheapest(list(update_order_plans(n, 8, 400, replaces=True, target=H200))).decision for n in (1, 1000)]
    assert by_count == [UpdateOrder(any=False), UpdateOrder(any=True)]


def test_it_is_done_once() -> None:
    once = update_in_any_order(scatter("add"), Choosing(H200), H200, exact=False)
    assert update_in_any_order(once, Choosing(H200), H200, exact=False) is once
