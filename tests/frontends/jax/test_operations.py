"""Operations of StableHLO, interpreted, and compared with what JAX computes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
from jax import export
from tests.frontends.jax.functions import CASES, FACTORS, Array
from tests.frontends.jax.further_functions import FUNCTIONS

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph


def assert_equal(got: Array, wanted: Array) -> None:
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted)
        return
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * largest)


def check(lowered: object, given: list[Array], wanted: list[Array]) -> None:
    graph = to_graph(lowered)
    got = run_graph(graph, {v.name: a for v, a in zip(graph.inputs, given, strict=True)})
    assert len(got) == len(wanted)
    for y, w in zip(got, wanted, strict=True):
        assert_equal(y, w)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [*CASES, *FACTORS, *FUNCTIONS])
def test_operation_equals_jax(name: str) -> None:
    function, given = (CASES | FACTORS | FUNCTIONS)[name]
    jitted = jax.jit(function, keep_unused=True)
    check(jitted.lower(*given), given, [np.asarray(v) for v in jax.tree.leaves(jitted(*given))])


@pytest.mark.parametrize("name", ["cholesky", "triangles from the left", "triangles from the right"])
def test_factors_by_operations_of_stablehlo(name: str) -> None:
    """As they are lowered for other devices than a CPU."""
    function, given = FACTORS[name]
    jitted = jax.jit(function)
    exported = export.export(jitted, platforms=["tpu"])(*given)
    check(exported, given, [np.asarray(v) for v in jax.tree.leaves(jitted(*given))])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FACTORS)
def test_factors_of_doubles(name: str) -> None:
    function, given = FACTORS[name]
    doubles, jitted = [a.astype(np.float64) for a in given], jax.jit(function)
    with jax.enable_x64(True):
        lowered, wanted = jitted.lower(*doubles), [np.asarray(v) for v in jax.tree.leaves(jitted(*doubles))]
    check(lowered, doubles, wanted)


def test_rows_of_a_scan_are_not_copied() -> None:
    """The sequence stays outside of the loop, which has one state, and gives the rows."""
    function, given = CASES["scan"]
    graph = to_graph(jax.jit(function).lower(*given))
    (loop,) = [n for n in graph.nodes if n.operator.name == "loop"]
    assert (loop.attribute("states"), loop.attribute("scans"), loop.attribute("counted")) == (1, 1, True)
