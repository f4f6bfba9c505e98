"""The memory plan: no value is overwritten while it is needed, and little memory is wasted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from tests.graph.checks import constant, one_output, random_inputs
from tests.graph.oracle import run_graph, run_planned
from tests.support.sampling import tried

from weft.graph import Graph, MemoryPlan, Place, Value, dim_text, find_in_place, fuse, plan_memory
from weft.graph.memory.best_fit import Lifetime, most_live, place
from weft.ir import ONE, Const
from weft.ops import TensorType
from weft.support.alignment import ALIGNMENT
from weft.support.dtypes import f32


def planned(graph: Graph, *, in_place: bool = False) -> MemoryPlan:
    """Plans the memory of *graph* and runs it in that memory."""
    fused = fuse(graph)
    plan = plan_memory(fused, in_place=find_in_place(fused) if in_place else None)
    inputs = random_inputs(graph)
    for a, b in zip(run_graph(graph, inputs), run_planned(fused, plan, inputs), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)
    return plan


def product(g: Graph, x: Value) -> Value:
    """A kernel of its own."""
    return g.add("matmul", [x, constant(g, 16, 16)])


def chain(length: int) -> Graph:
    g = Graph()
    x = g.input("x", (g.dim("n"), 16), f32)
    for _ in range(length):
        x = product(g, x)
    return one_output(g, x)


def residual() -> Graph:
    g = Graph()
    x = product(g, g.input("x", (4, 16), f32))
    for _ in range(2):
        x = g.add("add", [product(g, product(g, x)), x])
    return one_output(g, product(g, x))


def test_workspaces_live_in_their_step_alone() -> None:
    fused = fuse(chain(3))
    workspaces = {g.key: [1000, 10] for g in fused.groups}
    plan = plan_memory(fused, workspaces=workspaces)
    assert [len(plan.workspaces[step]) for step in range(3)] == [2, 2, 2]
    inner = [b for b in plan.buffers if b.value.name.endswith("workspace")]
    assert [(b.start, b.end, b.size) for b in inner] == [(s, s, n) for s in range(3) for n in (1024, 64)]
    assert dim_text(plan.size) == "((128 * n) + 1088)"
    assert len({plan.locations[b.value].offset for b in inner}) == 2


def test_text_of_a_plan() -> None:
    assert str(planned(chain(4))) == (
        "buffer    type        bytes     steps  offset\n"
        "matmul    f32[n, 16]  (64 * n)  0-1    0\n"
        "matmul_1  f32[n, 16]  (64 * n)  1-2    (64 * n)\n"
        "matmul_2  f32[n, 16]  (64 * n)  2-3    0\n"
        "arena (128 * n) bytes, lower bound (128 * n)\n"
    )


def test_places() -> None:
    graph = chain(2)
    plan = planned(graph)
    fused = fuse(graph)
    first, second = fused.groups
    found = [plan.locations[v] for v in (*first.inputs, *first.outputs, *second.outputs)]
    assert [(w.place, w.number) for w in found] == [
        (Place.INPUT, 0),
        (Place.CONSTANT, 0),
        (Place.ARENA, 0),
        (Place.OUTPUT, 0),
    ]


def test_in_place() -> None:
    apart, together = planned(residual()), planned(residual(), in_place=True)
    assert (dim_text(apart.size), dim_text(together.size)) == ("768", "512")
    assert [(a.name, b.name) for a, b in together.in_place.items()] == [("add", "matmul"), ("add_1", "add")]
    assert [b.value.name for b in together.buffers] == ["matmul", "matmul_1", "matmul_3"]


def test_only_reads_at_the_same_index_are_in_place() -> None:
    g = Graph()
    x = product(g, g.input("x", (16, 16), f32))
    y = g.add("add", [x, g.add("transpose", [x], perm=(1, 0))])
    g.output(g.add("transpose", [g.add("matmul", [y, y])], perm=(1, 0)), "y")
    assert not planned(g, in_place=True).in_place


def test_a_view_of_a_part_is_not_overwritten_in_place() -> None:
    g = Graph()
    whole = product(g, g.input("x", (2, 16), f32))
    part = g.add("slice", [whole], starts=(1,), ends=(2,), axes=(0,))
    y = g.add("exp", [part])
    g.output(g.add("transpose", [product(g, y)], perm=(1, 0)), "y")
    g.output(g.add("transpose", [y], perm=(1, 0)), "z")
    assert not planned(g, in_place=True).in_place


def test_a_view_begins_inside_its_root() -> None:
    g = Graph()
    whole = product(g, g.input("x", (3, 16), f32))
    part = g.add("slice", [whole], starts=(2,), ends=(3,), axes=(0,))
    g.output(product(g, part), "y")
    plan = planned(g)
    assert dim_text(plan.locations[part].offset) == "128"
    assert plan.locations[part].place is Place.ARENA


def test_sizes_of_different_symbols_lie_apart() -> None:
    g = Graph()
    n, m = g.dim("n"), g.dim("m")
    for k, size in enumerate((n, m, n * m)):
        x = (
            g.input(f"x{k}", (size, 16), f32)
            if k < 2
            else g.add("exp", [g.add("expand", [g.inputs[0]], shape=(m, n, 16))])
        )
        g.output(product(g, product(g, x)), f"y{k}")
    plan = planned(g)
    assert dim_text(plan.size) == "(((64 * n) + (64 * m)) + (128 * (m * n)))"


def test_sizes_are_rounded_up_to_cache_lines() -> None:
    g = Graph()
    x = g.input("x", (1, 3), f32)
    y = g.add("matmul", [g.add("matmul", [x, constant(g, 3, 5)]), constant(g, 5, 3)])
    plan = planned(one_output(g, y))
    assert dim_text(plan.size) == str(ALIGNMENT)


def test_an_empty_plan() -> None:
    g = Graph()
    plan = planned(one_output(g, g.add("relu", [g.input("x", (2,), f32)])))
    assert dim_text(plan.size) == "0"
    assert plan.buffers == ()


def lifetime(size: int, start: int, length: int) -> Lifetime:
    value = Value("v", TensorType((Const(size, ONE.dtype),), f32))
    return Lifetime(value, size * ALIGNMENT, ONE, start, start + length)


LIFETIMES = st.lists(st.builds(lifetime, st.integers(0, 20), st.integers(0, 30), st.integers(0, 8)), max_size=30)


@tried(38, 150, LIFETIMES)
def test_buffers_that_live_together_never_overlap(buffers: list[Lifetime]) -> None:
    offsets, total = place(buffers)
    for a in buffers:
        assert 0 <= offsets[a.value] <= total - a.size
        for b in buffers:
            if a is not b and a.overlaps(b) and a.size and b.size:
                apart = offsets[a.value] + a.size <= offsets[b.value] or offsets[b.value] + b.size <= offsets[a.value]
                assert apart
    assert total >= most_live(buffers)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(5))
def test_little_is_wasted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    buffers = [
        lifetime(int(rng.integers(1, 50)), int(rng.integers(0, 200)), int(rng.integers(1, 12))) for _ in range(200)
    ]
    assert place(buffers)[1] <= 1.15 * most_live(buffers)
