"""Products of float32 in parts of bf16: their results, what stays whole, and when each is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.graph.checks import ops, random_inputs
from tests.graph.oracle import Oracle, run_graph
from tests.support.machines import AMX, SERVER

from weft import Dim
from weft.cost import Candidate, Choosing, FactorsInParts, FloatProduct, factors_in_parts_plans
from weft.graph import Graph, Parameter, verify_graph
from weft.graph.passes.pack_matrices import pack_matrices
from weft.graph.passes.pipeline import optimize
from weft.support.dtypes import f32
from weft.support.knobs import Switches
from weft.targets import Target
from weft.targets.scopes import CPU_SCOPES

WITH_TILES = SERVER.having(features=AMX.isa.features, scopes=AMX.scopes)
"""A server with matrix registers."""


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def product(rows: int | Dim = 32, depth: int = 96, columns: int = 40, *, trans: bool = False) -> Graph:
    g = Graph()
    w = g.constant(values(columns, depth) if trans else values(depth, columns), "w")
    n = g.bounded_dim("n", rows) if isinstance(rows, Dim) else rows
    g.output(g.add("gemm", [g.input("x", (n, depth), f32), w, g.constant(values(columns), "b")], trans_b=trans), "y")
    return g


def split(g: Graph, blocks: int = 1) -> Graph:
    """Returns *g* with its products in parts, even where vectors would be faster, in so many blocks of terms."""

    def choose(found: Sequence[Candidate[Any]]) -> Candidate[Any]:
        if isinstance(found[0].decision, FactorsInParts):
            return Candidate(FactorsInParts(blocks), 0.0)
        return min(found, key=lambda c: c.cycles)

    return pack_matrices(g, Choosing(WITH_TILES, choose), in_parts=True)


def machine_plans(problem: FloatProduct, machine: Target = WITH_TILES) -> FactorsInParts:
    return factors_in_parts_plans(problem, machine)[0].decision


@pytest.mark.parametrize(("depth", "trans", "blocks"), [(96, False, 1), (96, True, 3), (50, False, 1)])
def test_results_are_those_of_float32(depth: int, trans: bool, blocks: int) -> None:
    before = product(depth=depth, trans=trans)
    made, given = split(before, blocks), random_inputs(before)
    verify_graph(made)
    found = ops(made)
    assert (found.count("matmul_in_parts"), found.count("split_in_parts")) == (blocks, 1)
    (wanted,), (got,) = run_graph(before, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("least", [1, 64])
def test_any_number_of_rows_from_some_on(least: int) -> None:
    """A single row would read half as many bytes again."""
    before = product(Dim(least, 128))
    made, given = split(before), random_inputs(before, {"n": 99})
    verify_graph(made)
    assert ("matmul_in_parts" in ops(made)) is (least > 1)
    (wanted,), (got,) = run_graph(before, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-6 * np.abs(wanted).max())


def test_products_share_the_parts_of_what_they_read() -> None:
    g = Graph()
    x = g.input("x", (32, 96), f32)
    made = [g.add("matmul", [x, g.constant(values(96, 40, seed=n), f"w{n}")]) for n in range(2)]
    g.output(g.add("add", made), "y")
    assert ops(split(g)).count("split_in_parts") == 1


def test_parts_are_chosen_where_allowed() -> None:
    g = product(128, 768, 768)
    found = [ops(pack_matrices(g, Choosing(WITH_TILES), in_parts=allowed)) for allowed in (True, False)]
    assert ["matmul_in_parts" in made for made in found] == [True, False]


@pytest.mark.parametrize("precision", ["strict", "bf16", "tf32"])
def test_another_precision_has_no_parts(precision: str) -> None:
    made = optimize(product(128, 768, 768), WITH_TILES, Oracle(), Switches(precision=precision))
    assert "matmul_in_parts" not in ops(made)


def test_matrices_that_may_change_stay_whole() -> None:
    g = Graph()
    g.output(g.add("matmul", [g.input("x", (128, 768), f32), Parameter("w", values(768, 768))]), "y")
    g.output(g.add("matmul", [g.input("a", (128, 768), f32), g.input("b", (768, 768), f32)]), "z")
    assert "matmul_in_parts" not in ops(pack_matrices(g, Choosing(WITH_TILES), in_parts=True))


def test_few_rows_are_multiplied_whole() -> None:
    """Their time is that of reading the matrix, which is half as large again in parts."""
    assert [machine_plans(FloatProduct(rows, 768, 768)).blocks for rows in (1, 4, 16, 128)] == [0, 0, 0, 1]


def test_weights_that_memory_holds_are_not_made_larger_for_few_rows() -> None:
    assert [machine_plans(FloatProduct(rows, 4096, 4096)).blocks for rows in (1, 4, 16)] == [0, 0, 0]


def test_terms_are_cut_where_all_rows_would_leave_the_cache() -> None:
    assert [machine_plans(FloatProduct(128, depth, 768)).blocks for depth in (768, 3072)] == [1, 3]


def test_machines_without_matrix_registers_multiply_whole() -> None:
    vectors = SERVER.having(scopes=CPU_SCOPES)
    assert [c.decision for c in factors_in_parts_plans(FloatProduct(128, 768, 768), vectors)] == [FactorsInParts()]
