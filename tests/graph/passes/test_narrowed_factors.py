"""Products on factors in bf16: their results, what is left in float32, and when they are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.checks import ops, random_inputs
from tests.graph.oracle import run_graph

import weft
from weft.cli.onnx_builder import GraphBuilder, gemm
from weft.cost import Choosing, FloatProduct, narrow_factor_plans
from weft.graph import Graph, verify_graph
from weft.graph.passes.pack_matrices import pack_matrices
from weft.support.dtypes import bf16, f16, f32
from weft.targets import Target, cpu
from weft.targets.cuda_machines import cuda
from weft.targets.scopes import CPU_SCOPES

BF16_EPS = 2.0**-8
"""The most that rounding to bf16 changes a number by, as a part of it."""

FAST = cpu("avx512").having(features=tuple(sorted({*cpu("avx512").isa.features, "+avx512bf16"})), bf16_dot_cycles=1.0)
FAST = FAST.having(scopes=CPU_SCOPES)


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def product(depth: int = 64, *, bias: bool = False, rows: int = 48) -> Graph:
    g = Graph()
    w, b = g.constant(values(depth, 40), "w"), g.constant(values(40, seed=1), "b") if bias else None
    g.output(g.add("gemm", [g.input("x", (rows, depth), f32), w, b]), "y")
    return g


def narrowed(g: Graph, machine: Target = FAST) -> Graph:
    return pack_matrices(g, Choosing(machine), "bf16")


@pytest.mark.parametrize("bias", [False, True])
def test_factors_are_rounded_and_sums_are_not(bias: bool) -> None:
    made = narrowed(product(bias=bias))
    assert sorted(ops(made)) == [*["add"] * bias, "cast", "cast", "matmul_grouped", "pack_matrix_groups"]
    assert made.outputs[0].dtype is f32
    assert {n.output.dtype for n in made.nodes if n.op == "cast"} == {bf16}


def test_results_are_those_of_float32_within_the_rounding_of_factors() -> None:
    before = product(bias=True)
    made, given = narrowed(before), random_inputs(before)
    verify_graph(made)
    (wanted,), (got,) = run_graph(before, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, atol=4 * BF16_EPS * np.abs(wanted).max())
    assert np.abs(got - wanted).max() > 0, "factors are rounded"


def test_float32_stays_where_nothing_is_gained() -> None:
    odd = narrowed(product(depth=63))
    assert "matmul_grouped" not in ops(odd), "pairs of terms have no odd one"
    slow = FAST.having(bf16_dot_cycles=8.0)
    assert "matmul_grouped" not in ops(narrowed(product(), slow))
    assert "matmul_grouped" not in ops(narrowed(product(), cpu("sse4")))
    assert "matmul_grouped" not in ops(pack_matrices(product(), Choosing(FAST)))


def test_a_row_is_narrowed_for_what_it_reads() -> None:
    problem = FloatProduct(1, 4096, 4096)
    slow = FAST.having(bf16_dot_cycles=4.0)
    assert narrow_factor_plans(problem, slow)[0].decision.panel > 0, "half the bytes are read"


def test_a_model_in_bf16() -> None:
    g = GraphBuilder("mlp")
    x = g.input("x", (32, 64))
    for _ in range(2):
        x = g.op("Relu", gemm(g, x, (64, 64)))
    g.output(g.op("Softmax", x, axis=-1), "y")
    model, given = g.model(), values(32, 64)
    wanted = np.asarray(weft.compile(model)(given))
    got = np.asarray(weft.compile(model, precision="bf16")(given))
    np.testing.assert_allclose(got, wanted, atol=4 * BF16_EPS * np.abs(wanted).max())


def test_factors_in_float16_are_rounded_too() -> None:
    g, w = Graph(), values(64, 40).astype(np.float16)
    g.output(g.add("matmul", [g.input("x", (48, 64), f16), g.constant(w, "w")]), "y")
    made, given = narrowed(g), random_inputs(g)
    verify_graph(made)
    assert "matmul_grouped" in ops(made)
    assert made.outputs[0].dtype is f16
    (wanted,), (got,) = run_graph(g, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, atol=4 * BF16_EPS * np.abs(wanted).max())


@pytest.mark.parametrize("precision", ["model", "strict"])
def test_factors_in_bf16_are_multiplied_as_they_are(precision: str) -> None:
    g = Graph()
    w, b = (g.constant(values(*shape).astype(bf16.numpy), n) for shape, n in (((64, 40), "w"), ((40,), "b")))
    g.output(g.add("gemm", [g.input("x", (48, 64), bf16), w, b]), "y")
    made, given = pack_matrices(g, Choosing(FAST), precision), random_inputs(g)
    verify_graph(made)
    assert ("matmul_grouped" in ops(made)) is (precision == "model")
    assert made.outputs[0].dtype is bf16
    (wanted,), (got,) = run_graph(g, given), run_graph(made, given)
    np.testing.assert_allclose(got.astype(np.float32), wanted.astype(np.float32), rtol=2 * BF16_EPS)


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_what_stays_in_float32_on_a_grid_is_not_packed(precision: str) -> None:
    """Panels are for vector registers: threads read matrices as they lie."""
    assert ops(pack_matrices(product(rows=1040, depth=65), Choosing(cuda("sm_90")), precision)) == ["gemm"]


@pytest.mark.parametrize(("precision", "op"), [("model", "gemm"), ("tf32", "gemm"), ("bf16", "matmul_summed")])
def test_a_vector_takes_the_columns_of_a_matrix_on_a_grid(precision: str, op: str) -> None:
    """The time is that of reading the matrix, which is half as large in bf16; the vector is not rounded."""
    g = Graph()
    w = g.constant(values(768, 1000), "w")
    g.output(g.add("gemm", [g.input("x", (1, 768), f32), w, g.constant(values(1000), "b")]), "y")
    made, given = pack_matrices(g, Choosing(cuda("sm_90")), precision), random_inputs(g)
    verify_graph(made)
    (found,) = [n for n in made.nodes if n.op == op]
    assert found.attribute("trans" if op == "matmul_summed" else "trans_b")
    assert found.inputs[0] in made.inputs
    (wanted,), (got,) = run_graph(g, given), run_graph(made, given)
    np.testing.assert_allclose(got, wanted, atol=(BF16_EPS if precision == "bf16" else 1e-6) * np.abs(wanted).max())


def test_a_matrix_that_others_read_too_is_not_transposed() -> None:
    g = Graph()
    x, w = g.input("x", (1, 768), f32), g.constant(values(768, 1000), "w")
    g.output(g.add("matmul", [x, w]), "y")
    g.output(g.add("relu", [w]), "z")
    assert "transpose" not in ops(pack_matrices(g, Choosing(cuda("sm_90"))))
