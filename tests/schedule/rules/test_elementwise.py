"""The rule for element-wise work: which loops are fused, and where vectors begin and end."""

from __future__ import annotations

import numpy as np
import pytest

from weft.cost import Choosing
from weft.driver.function import build_function
from weft.ir import Expr, cast
from weft.ops import OPERATORS
from weft.schedule import Schedule, schedule_program
from weft.schedule.rules.choose import carry_out
from weft.support.dtypes import DType, bf16, f32, f64
from weft.targets import cpu, parse_target
from weft.te import Tensor, compute, placeholder, to_program

ALONE = cpu("avx512").having(fork_cycles=1 << 40)
"""A machine whose loops are not worth sharing among threads."""


def scheduled(op: str, shape: tuple[int, ...], **attributes: object) -> tuple[Schedule, Tensor]:
    x = placeholder(shape, f32, "x")
    (y,) = OPERATORS[op]([x], attributes)
    return schedule_program(to_program([x], [y]), ALONE), y


def test_a_condition_on_the_place_keeps_rows_that_are_no_multiple_of_vectors() -> None:
    assert "//" not in str(scheduled("trilu", (3, 97, 131))[0].program)
    assert "//" in str(scheduled("relu", (3, 97, 131))[0].program)  # one flat pass
    assert "//" in str(scheduled("trilu", (3, 97, 3))[0].program)  # rows shorter than a vector


@pytest.mark.parametrize(("period", "splits"), [(13, True), (16, False), (32, False), (3, False)])
def test_vectors_do_not_cross_the_end_of_a_period(period: int, splits: bool) -> None:
    s, y = scheduled("tile", (5, period), repeats=(2, 6))
    assert (f"vectorized(0, {period})" in str(s.program)) is splits or period == 16
    x = np.random.default_rng(0).standard_normal((5, period)).astype(np.float32)
    found = np.empty((10, 6 * period), np.float32)
    build_function(schedule_program(to_program([y.op.inputs[0]], [y]), parse_target("cpu")).program)(x, found)
    np.testing.assert_array_equal(found, np.tile(x, (2, 6)))


def test_elements_are_narrowed_a_vector_of_the_wide_ones_at_a_time() -> None:
    x = placeholder((3, 2, 5, 16), f32, "x")
    y = compute((3, 5, 2, 16), lambda n, w, p, c: cast(x[n, p, w, c], bf16), "y")
    assert "vectorized(0, 16)" in str(schedule_program(to_program([x], [y]), ALONE).program)  # half a vector of bf16


def test_a_value_of_shared_operands_is_looked_through_once() -> None:
    x = placeholder((3, 131), f32, "x")

    def power(i: Expr, j: Expr) -> Expr:
        e: Expr = x[i, j]
        for _ in range(60):
            e = e * e
        return e

    y = compute((3, 131), power, "y")
    assert len(schedule_program(to_program([x], [y]), ALONE).blocks()) == 1


@pytest.mark.parametrize(
    ("op", "shape", "lanes"),
    [
        ("tanh", (8, 256), 64),  # 128 vectors of 16
        ("tanh", (7, 96), 32),  # 42
        ("tanh", (17, 144), 16),  # 153
        ("tanh", (5, 16, 5), 16),  # 25
        ("tanh", (3, 131), 16),  # no whole vectors
        ("relu", (8, 256), 16),  # a single instruction
    ],
)
def test_long_formulas_take_several_vectors_at_once(op: str, shape: tuple[int, ...], lanes: int) -> None:
    assert f"vectorized(0, {lanes})" in str(scheduled(op, shape)[0].program)


@pytest.mark.parametrize(("places", "asked"), [(7, False), (8, True)])
def test_vectors_at_once_go_along_whole_rows(places: int, asked: bool) -> None:
    """Of 7 x 7 places in blocks of 16 channels, pieces of 32 elements would end inside of a row of 112; of 8 x 8 none does."""
    x = placeholder((4, places, places, 16), f32, "x")
    (y,) = OPERATORS["tanh"]([x], {})
    planner = Choosing(ALONE)
    carry_out(to_program([x], [y]), planner)
    assert ("Jam(" in str(planner.plan)) is asked


def test_results_of_vectors_at_once() -> None:
    (y,) = OPERATORS["tanh"]([placeholder((6, 7, 32), f32, "x")], {})
    x = np.random.default_rng(0).standard_normal((6, 7, 32)).astype(np.float32)
    found = np.empty_like(x)
    build_function(schedule_program(to_program([y.op.inputs[0]], [y]), parse_target("cpu")).program)(x, found)
    np.testing.assert_allclose(found, np.tanh(x), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "lanes"), [(f32, 64), (bf16, 64), (f64, 32)])
def test_vectors_at_once_are_of_the_type_that_is_computed_in(dtype: DType, lanes: int) -> None:
    x = placeholder((8, 512), dtype, "x")
    (y,) = OPERATORS["tanh"]([x], {})
    assert f"vectorized(0, {lanes})" in str(schedule_program(to_program([x], [y]), ALONE).program)
