"""Nodes that the processor beside a device computes: what goes step by step, what the device lacks, and what is between these."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from weft.cost import Choosing, Following, RunOn
from weft.graph import Graph, Node, Value, place_nodes
from weft.support.dtypes import DType, f32, f64, i64
from weft.targets import Target, parse_target

CUDA = parse_target("cuda -arch=sm_90+cpu -cores=2")
WEBGPU = parse_target("webgpu+cpu -cores=2")


def placed(graph: Graph, target: Target = CUDA, *, is_region: bool = False) -> set[str]:
    """Returns the operators of the nodes that are placed on the processor."""
    return {n.op for n in place_nodes(graph, Choosing(target), is_region=is_region)}


def image(graph: Graph, size: int = 256, dtype: DType = f32) -> Value:
    return graph.input("x", (1, 3, size, size), dtype)


def convolved(graph: Graph, x: Value) -> Value:
    w = graph.constant(np.ones((16, 3, 3, 3), np.float32))
    made = graph.add("conv2d", [x, w, None], strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1), group=1)
    return graph.add("relu", [made])


def test_what_many_threads_compute_stays_on_the_device() -> None:
    graph = Graph()
    graph.output(graph.add("sigmoid", [convolved(graph, image(graph))]), "y")
    assert placed(graph) == set()


def test_what_goes_step_by_step_is_the_processors() -> None:
    graph = Graph()
    y = convolved(graph, image(graph))
    flat = graph.add("reshape", [y], shape=(16 * 256 * 256,))
    graph.output(graph.add("cumsum", [flat], axis=0, exclusive=False, reverse=False), "sums")
    graph.output(y, "y")
    assert placed(graph) == {"cumsum"}


def test_small_nodes_between_are_not_worth_two_copies() -> None:
    """Nodes that the device computes in no time stay with those around them, large ones do not."""

    def between(size: int) -> set[str]:
        graph = Graph()
        x = graph.input("x", (size,), f32)
        sums = graph.add("cumsum", [x], axis=0, exclusive=False, reverse=False)
        graph.output(graph.add("cumsum", [graph.add("tanh", [sums])], axis=0, exclusive=False, reverse=False), "y")
        return placed(graph)

    assert between(1000) == {"cumsum", "tanh"}
    assert between(1000) == between(100_000)


def test_steps_that_are_fewer_than_a_copy_takes_stay() -> None:
    graph = Graph()
    y = convolved(graph, image(graph))
    sums = graph.add("cumsum", [y], axis=1, exclusive=False, reverse=False)  # sixteen steps for each place
    graph.output(convolved_again(graph, sums), "y")
    assert placed(graph) == set()


def convolved_again(graph: Graph, x: Value) -> Value:
    w = graph.constant(np.ones((8, 16, 3, 3), np.float32))
    return graph.add("conv2d", [x, w, None], strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1), group=1)


def doubles() -> Graph:
    graph = Graph()
    x = graph.input("x", (512, 512), f32)
    wide = graph.add("cast", [graph.add("matmul", [x, x])], dtype=f64)
    graph.output(graph.add("matmul", [graph.add("cast", [graph.add("tanh", [wide])], dtype=f32), x]), "y")
    return graph


def test_types_that_the_device_lacks_are_the_processors() -> None:
    assert placed(doubles(), WEBGPU) == {"cast", "tanh"}
    assert placed(doubles(), CUDA) == set()


def test_what_lowering_refuses_is_the_processors() -> None:
    graph = Graph()
    x = graph.input("x", (65536, 8), f32)
    product = graph.add("matmul", [x, graph.constant(np.ones((8, 8), np.float32))])
    found = graph.add("cumsum", [product], axis=1, exclusive=False, reverse=False)
    graph.output(graph.add("softmax", [found], axis=-1), "y")
    asked: list[str] = []

    def refused(node: Node) -> bool:
        asked.append(node.op)
        return True

    assert {n.op for n in place_nodes(graph, Choosing(CUDA))} == set()
    assert {n.op for n in place_nodes(graph, Choosing(CUDA), refused)} >= {"cumsum"}
    assert asked == ["cumsum"]  # the rest has threads


def test_what_a_region_is_given_and_leaves_is_the_devices() -> None:
    """A model's inputs may be anywhere, those of a region are copied."""

    def steps(count: int) -> Graph:
        graph = Graph()
        x = graph.input("x", (count,), f32)
        graph.output(graph.add("cumsum", [x], axis=0, exclusive=False, reverse=False), "y")
        return graph

    assert placed(steps(100)) == {"cumsum"}
    assert placed(steps(100), is_region=True) == set()
    assert placed(steps(100_000), is_region=True) == {"cumsum"}


@pytest.mark.parametrize("make", [doubles])
def test_a_plan_is_followed(make: Callable[[], Graph]) -> None:
    choosing = Choosing(WEBGPU)
    found = place_nodes(make(), choosing)
    assert len(choosing.questions) == 5
    assert all(isinstance(q.chosen.decision, RunOn) for q in choosing.questions)
    again = place_nodes(make(), Following(choosing.plan))
    assert {n.op for n in again} == {n.op for n in found}


def test_indices_of_64_bits() -> None:
    graph = Graph()
    x = graph.input("x", (1, 4096), f32)
    best, at = graph.add_many("top_k", [x], k=5, axis=1, largest=True)
    graph.output(best, "best")
    graph.output(at, "at")
    assert at.dtype is i64
    assert placed(graph) == {"top_k"}
