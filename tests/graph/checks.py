"""What the tests of passes share: seeded inputs, and "means the same as before"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tests.graph.oracle import run_graph

from weft.graph import Array, Constant, Graph, Value, verify_graph
from weft.ir import Const, Var

RNG_SEED = 7


def random_array(shape: Sequence[int], seed: int = RNG_SEED, dtype: type[np.generic] = np.float32) -> Array:
    rng = np.random.default_rng([seed, *shape])
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 3, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def constant(g: Graph, *shape: int, name: str = "", seed: int = RNG_SEED, positive: bool = False) -> Constant:
    array = random_array(shape, seed)
    return g.constant(np.abs(array) + np.float32(0.5) if positive else array, name)


def scalar(g: Graph, value: float) -> Constant:
    return g.constant(np.asarray(value, np.float32))


def random_inputs(graph: Graph, sizes: Mapping[str, int] | None = None) -> list[Array]:
    def size(e: object) -> int:
        if isinstance(e, Const):
            return int(e.value)
        assert isinstance(e, Var)
        return (sizes or {}).get(e.name, 2)

    return [
        random_array([size(s) for s in v.shape], k, v.dtype.numpy.type) for k, v in enumerate(graph.inputs, RNG_SEED)
    ]


def apply_pass(graph: Graph, run: Callable[[Graph], Graph], *, exact: bool = False) -> Graph:
    """Runs a pass, verifies its result, and compares what both graphs compute."""
    verify_graph(graph)
    made = run(graph)
    verify_graph(made)
    check_same_meaning(graph, made, exact=exact)
    return made


def check_same_meaning(before: Graph, after: Graph, *, exact: bool = False) -> None:
    assert after.output_names == before.output_names
    assert [v.type for v in after.inputs] == [v.type for v in before.inputs]
    inputs = random_inputs(before)
    for a, b in zip(run_graph(before, inputs), run_graph(after, inputs), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-5)


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def one_output(graph: Graph, value: Value) -> Graph:
    graph.output(value, "y")
    return graph
