"""Rearrangements that turn rows into columns, of sizes that are known when the program runs."""

from __future__ import annotations

from weft.ir import INDEX, Var
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import f32
from weft.targets import cpu
from weft.te import placeholder, to_program


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
