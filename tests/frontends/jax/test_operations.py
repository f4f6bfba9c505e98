"""Operations of StableHLO, interpreted, and compared with what JAX computes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
from tests.frontends.jax.functions import CASES, Array

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph


def assert_equal(got: Array, wanted: Array) -> None:
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted)
        return
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * largest)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", CASES)
def test_operation_equals_jax(name: str) -> None:
    function, given = CASES[name]
    jitted = jax.jit(function, keep_unused=True)
    wanted = [np.asarray(v) for v in jax.tree.leaves(jitted(*given))]
    graph = to_graph(jitted.lower(*given))
    got = run_graph(graph, {v.name: a for v, a in zip(graph.inputs, given, strict=True)})
    assert len(got) == len(wanted)
    for y, w in zip(got, wanted, strict=True):
        assert_equal(y, w)


def test_rows_of_a_scan_are_not_copied() -> None:
    """The sequence stays outside of the loop, which has one state, and gives the rows."""
    function, given = CASES["scan"]
    graph = to_graph(jax.jit(function).lower(*given))
    (loop,) = [n for n in graph.nodes if n.operator.name == "loop"]
    assert (loop.attribute("states"), loop.attribute("scans"), loop.attribute("counted")) == (1, 1, True)
