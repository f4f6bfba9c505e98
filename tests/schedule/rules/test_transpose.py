"""Rearrangements that turn rows into columns, and what is computed of their elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.running import same_results

from weft.ir import INDEX, Expr, Var, maximum
from weft.loop import Program
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import f32
from weft.targets import cpu
from weft.te import compute, placeholder, to_program


def scheduled(rows_of: int) -> str:
    """Returns the schedule of channels unpacked from blocks, of images of every *rows_of*-th row and column of larger ones."""
    n, m = Var("n", INDEX), Var("m", INDEX)
    x = placeholder((1, 2, n // rows_of, m // rows_of, 16), f32, "x")
    made = OPERATORS["unpack_channels"]([x], {"channels": 32})
    return str(schedule_program(to_program([x], made, sizes=[n, m]), cpu("avx512")))


def test_images_that_may_be_empty_are_transposed_row_by_row() -> None:
    """Half of a size may be none: what is a row's length can't be divided by, nor be proved to tell elements apart."""
    assert "vectorized" in scheduled(2)
    assert "i2_i3" not in scheduled(2)
    assert "i2_i3" in scheduled(1)


def computed(of: Callable[[Expr, Expr], Expr], rows: int = 35, columns: int = 50) -> Program:
    """Returns a program that computes with the transpose of one matrix and with another, element by element."""
    x, y = placeholder((rows, columns), f32, "x"), placeholder((columns, rows), f32, "y")
    return to_program([x, y], [compute((columns, rows), lambda i, j: of(x[j, i], y[i, j]), "z")])


@pytest.mark.parametrize(
    "of",
    [lambda x, y: x + y, lambda x, y: x * maximum(x, y) + x, lambda x, _: maximum(x, 0.0)],
    ids=["a sum", "read twice", "of it alone"],
)
def test_what_is_computed_of_turned_elements_is_computed_in_tiles(of: Callable[[Expr, Expr], Expr]) -> None:
    program = computed(of)
    made = schedule_program(program, cpu("avx512")).program
    assert "unrolled(0, 16)" in str(made)
    same_results(program, made)


def test_two_matrices_that_are_turned_alike_are_transposed_in_tiles() -> None:
    x, y = (placeholder((40, 35), f32, name) for name in "xy")
    program = to_program([x, y], [compute((35, 40), lambda i, j: x[j, i] + y[j, i], "z")])
    made = schedule_program(program, cpu("avx512")).program
    assert "unrolled(0, 16)" in str(made)
    same_results(program, made)


def test_cubes_that_are_turned_in_two_ways_are_read_row_by_row() -> None:
    x, y = (placeholder((40, 40, 40), f32, name) for name in "xy")
    program = to_program([x, y], [compute((40, 40, 40), lambda i, j, k: x[k, i, j] + y[k, j, i], "z")])
    assert "unrolled" not in str(schedule_program(program, cpu("avx512")))


@pytest.mark.parametrize("channels", [3, 4])
def test_few_channels_that_are_last_are_read_with_the_places_before_them(channels: int) -> None:
    """A tile's rows are the channels of several places, which lie side by side."""
    x = placeholder((2, 21, 13, channels), f32, "x")
    program = to_program([x], OPERATORS["transpose"]([x], {"perm": (0, 3, 2, 1)}))
    made = schedule_program(program, cpu("avx512")).program
    assert "unrolled(0, 16)" in str(made)
    same_results(program, made)


@pytest.mark.parametrize("isa", ["avx512", "avx2", "sse4"])
@pytest.mark.parametrize("places", [(6, 10, 2), (7, 3, 4), (5, 2, 8), (3, 16, 4), (4, 5, 6), (2, 3, 16), (8, 12, 20)])
def test_places_of_volumes_are_turned_whatever_their_sizes(places: tuple[int, ...], isa: str) -> None:
    """Pieces of three fused axes are told apart by all three digits, or the first stays a loop of its own."""
    x, target = placeholder((1, 2, *places, 16), f32, "x"), cpu(isa)
    program = to_program([x], OPERATORS["unpack_channels"]([x], {"channels": 27}))
    made = schedule_program(program, target).program
    assert f"unrolled(0, {target.lanes(32)})" in str(made)
    same_results(program, made)


@pytest.mark.parametrize("perm", [(1, 2, 0), (2, 0, 1), (2, 1, 0), (0, 2, 1)])
@pytest.mark.parametrize("size", [32, 20])
def test_cubes_are_turned_in_any_order_of_tiles(perm: tuple[int, ...], size: int) -> None:
    x = placeholder((size, size, size), f32, "x")
    program = to_program([x], OPERATORS["transpose"]([x], {"perm": perm}))
    made = schedule_program(program, cpu("avx512").having(page=1024)).program
    assert "unrolled(0, 16)" in str(made)
    same_results(program, made)
