"""Inputs from a seed, tolerances, and how long the unscheduled loops take."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tune.measure.programs import product

from weft.loop import parse_program
from weft.targets import host
from weft.tune.measure.expected_outputs import ExpectedOutput, Reference, count_steps, reduction_depth, tolerance
from weft.tune.measure.kernel_arguments import KernelArguments, index_bounds

GATHER = (
    "def gather(T: f32[50, 8], I: i64[16], J: i32[16], C: f32[16, 8]):\n    for i in range(0, 16):\n"
    "        for j in range(0, 8):\n            C[i, j] = T[I[i], j] + T[i64(J[i]) * 3, j]\n"
)
ROOTS = "def roots(A: f32[16], C: f32[16]):\n    for i in range(0, 16):\n        C[i] = sqrt(A[i])\n"


def test_inputs_are_small_whole_numbers_and_the_same_for_a_seed() -> None:
    function = parse_program(product()).entry
    first, again, other = (KernelArguments(function, seed) for seed in (0, 0, 1))
    values = [m.values for m in first.inputs]
    assert len(values) == 2
    assert len(first.outputs) == 1
    for x, y, z in zip(values, again.inputs, other.inputs, strict=True):
        assert set(np.unique(x)) == {-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0}
        assert np.array_equal(x, y.values)
        assert not np.array_equal(x, z.values)


def test_indices_are_in_range() -> None:
    function = parse_program(GATHER).entry
    assert {b.name: n for b, n in index_bounds(function).items()} == {"I": 50, "J": 2}
    _, whole, computed = KernelArguments(function, 0).inputs
    assert 2 < whole.values.max() < 50
    assert set(np.unique(computed.values)) == {0, 1}


def test_inputs_are_positive_where_others_have_no_results() -> None:
    program = parse_program(ROOTS)
    found = Reference(program, ROOTS, host(), 0)
    assert found.arguments.inputs[0].values.min() > 0
    assert np.isfinite(found.outputs[0]).all()


def test_damage_is_seen() -> None:
    arguments = KernelArguments(parse_program(product()).entry, 0)
    assert arguments.damage() is None
    arguments.inputs[0].values[7] += 1
    assert arguments.damage() == "it writes to its inputs"
    arguments.arrays([100])[-1][:] = 0
    arguments.inputs[0].values[7] -= 1
    assert arguments.damage() is None


def test_workspaces_grow_and_stay() -> None:
    arguments = KernelArguments(parse_program(product()).entry, 0)
    assert [a.size for a in arguments.arrays([64, 128])[3:]] == [64, 128]
    large = arguments.arrays([256])[3:]
    assert [a.size for a in large] == [256]
    assert arguments.arrays([64, 128])[3].ctypes.data == large[0].ctypes.data


def test_steps_and_depth_are_counted() -> None:
    function = parse_program(product(32)).entry
    assert reduction_depth(function) == 32
    assert 32**3 <= count_steps(function) <= 2 * 32**3


def relative_error(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], depth: int) -> float:
    return ExpectedOutput(wanted, depth).relative_error(found)


@given(st.integers(1, 4096), st.integers(0, 2**32 - 1))
def test_sums_in_any_order_are_right(depth: int, seed: int) -> None:
    terms = np.random.default_rng(seed).standard_normal((8, depth)).astype(np.float32)
    forward = np.cumsum(terms, axis=1, dtype=np.float32)[:, -1]
    backward = np.cumsum(terms[:, ::-1], axis=1, dtype=np.float32)[:, -1]
    scale = np.float32(np.sqrt(depth))  # that of the results, whatever cancels in these
    assert relative_error(np.append(backward, scale), np.append(forward, scale), depth) <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_a_missing_term_is_an_error(dtype: type) -> None:
    wanted = np.random.default_rng(0).integers(-4, 5, (64, 100)).sum(axis=1).astype(dtype)
    found = wanted.copy()
    found[5] += dtype(4)
    assert relative_error(found, wanted, 100) > 1
    assert relative_error(wanted.copy(), wanted, 100) == 0
    assert tolerance(np.dtype(dtype), 100) < 0.2


def test_what_is_no_number_is_at_the_same_places() -> None:
    wanted = np.array([1.0, np.nan, np.inf, 2.0], np.float32)
    near = np.array([np.nextafter(np.float32(1), np.float32(2)), np.nan, np.inf, 2.0], np.float32)
    assert 0 < relative_error(near, wanted, 1) < 1
    for n, other in ((0, np.nan), (1, 1.0), (2, -np.inf)):
        found = wanted.copy()
        found[n] = other
        assert relative_error(found, wanted, 1) == float("inf")


def test_results_that_are_all_zero_have_no_error_but_zero() -> None:
    wanted = np.zeros((2, 3), np.float32)
    assert relative_error(-wanted, wanted, 5) == 0
    assert relative_error(wanted + np.float32(1e-6), wanted, 5) > 1


def test_integers_are_equal_but_for_quantized_floats() -> None:
    assert relative_error(np.array([3], np.int8), np.array([4], np.int8), 1) == 1
    assert relative_error(np.array([3], np.int8), np.array([5], np.int8), 1) > 1
    assert relative_error(np.array([3], np.int64), np.array([4], np.int64), 1) == float("inf")
