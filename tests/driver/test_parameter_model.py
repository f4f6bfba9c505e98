"""Models with parameters: constants that passes made of them follow them, and what is read as it lies is an input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pytest
from tests.graph.oracle import Oracle

from weft.driver.build import build
from weft.driver.options import CompileOptions, check_options
from weft.driver.parameter_model import compile_parameters
from weft.graph import Constant, Graph, Value
from weft.graph.core.graph_state import State
from weft.graph.passes.bind_parameters import bind_parameters
from weft.support.dtypes import f32

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Make: TypeAlias = Callable[[Graph, Callable[..., Value]], Value]


def product(g: Graph, weight: Callable[..., Value]) -> Value:
    y = g.add("matmul", [g.input("x", (9, 32), f32), g.add("transpose", [weight(24, 32)], perm=(1, 0))])
    return g.add("add", [y, weight(24)])


def scaled_product(g: Graph, weight: Callable[..., Value]) -> Value:
    y = g.add("matmul", [g.input("x", (9, 32), f32), weight(32, 24)])
    return g.add("mul", [y, g.constant(np.full((), 0.125, np.float32))])


def convolutions(g: Graph, weight: Callable[..., Value]) -> Value:
    y = g.input("x", (1, 16, 20, 20), f32)
    for kernel in (3, 1):
        y = g.add("conv2d", [y, weight(16, 16, kernel, kernel), weight(16)], pads=(kernel // 2,) * 4)
    return y


def tied_table(g: Graph, weight: Callable[..., Value]) -> Value:
    table = weight(64, 32)
    x = g.add("gather", [table, g.constant(np.arange(7)[None])], axis=0)
    return g.add("matmul", [g.add("add", [x, g.input("x", (1, 7, 32), f32)]), g.add("transpose", [table], perm=(1, 0))])


CASES: Final[dict[str, Make]] = {f.__name__: f for f in (product, scaled_product, convolutions, tied_table)}


def made_by(make: Make, arrays: dict[str, Array] | None) -> tuple[Graph, dict[str, Any]]:
    """Returns a graph and its weights: constants with the elements of *arrays*, else parameters with random ones."""
    g, found, rng = Graph(), dict[str, Any](), np.random.default_rng(0)

    def weight(*shape: int) -> Value:
        name = f"w{len(found)}"
        drawn = rng.standard_normal(shape, np.float32)
        found[name] = g.parameter(drawn, name) if arrays is None else g.constant(arrays[name], name)
        return found[name]  # type: ignore[no-any-return]

    g.output(make(g, weight), "y")
    return g, found


def by_constants(make: Make, arrays: dict[str, Array], x: Array) -> Array:
    """Returns the reference's result with weights that never change."""
    g, _ = made_by(make, arrays)
    known: dict[Value, Array] = {g.inputs[0]: x}
    for node in g.nodes:
        given = [None if v is None else v.array if isinstance(v, Constant) else known[v] for v in node.inputs]
        known.update(zip(node.outputs, Oracle().evaluate(node.operator, given, node.keywords), strict=True))
    return known[g.outputs[0]]


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", CASES)
def test_results_follow_the_parameters(name: str, level: int) -> None:
    g, parameters = made_by(CASES[name], None)
    model = compile_parameters(g, check_options(opt_level=level), threads=1)
    rng = np.random.default_rng(1)
    x = rng.standard_normal([int(s.value) for s in g.inputs[0].shape], np.float32)  # type: ignore[attr-defined]
    for _ in range(2):
        arrays = {n: p.array for n, p in parameters.items()}
        (made,) = model.run([x, *[arrays[n] for n in model.bound]])
        np.testing.assert_allclose(made, by_constants(CASES[name], arrays, x), rtol=1e-3, atol=1e-3)
        for p in parameters.values():
            p.bind(rng.standard_normal(p.extents, np.float32))
        model.refresh()


@pytest.mark.parametrize("name", CASES)
def test_calls_pack_nothing(name: str) -> None:
    g, _ = made_by(CASES[name], None)
    fused = build(g, options=CompileOptions()).fused
    assert not [n.op for n in fused.graph.nodes if n.operator.prepares]
    assert all(v.rank == 1 for v in fused.graph.inputs[1:])


def test_inputs_for_parameters_come_before_the_states() -> None:
    g = Graph()
    x, h = g.input("x", (3,), f32), g.input("h", (3,), f32)
    p, q = (g.parameter(np.ones(3, np.float32), name) for name in "pq")
    total = g.add("add", [g.add("mul", [x, p]), g.add("mul", [h, q])])
    g.output(g.add("add", [total, p]), "y")
    g.output(total, "h_next")
    g.states.append(State("h"))
    made = bind_parameters(g)
    assert [v.name for v in made.inputs] == ["x", "p", "q", "h"]
    assert not made.constants()


def test_a_graph_without_parameters_stays_as_it_is() -> None:
    g = Graph()
    g.output(g.add("relu", [g.input("x", (3,), f32)]), "y")
    assert bind_parameters(g) is g
