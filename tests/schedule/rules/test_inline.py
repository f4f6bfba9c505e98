"""What is computed where it is read, and what by itself."""

from __future__ import annotations

import pytest

from weft.cost import Choosing, Inline
from weft.ops import OPERATORS
from weft.schedule import carry_out, schedule_program
from weft.support.dtypes import bool_, f32
from weft.targets import Target, cpu, parse_target
from weft.te import placeholder, to_program

TARGET = cpu("avx512").having(l2=1 << 20)
GRID = parse_target("cuda -arch=sm_90")


def blocks_of(channels: int, size: int) -> list[str]:
    """Returns the blocks of a padded convolution of a plain image packed into channel blocks."""
    x = placeholder((1, channels, size, size), f32, "x")
    w = placeholder((1, channels // 16, 3, 3, 16, 16), f32, "w")
    (packed,) = OPERATORS["pack_channels"]([x], {"block": 16})
    made = OPERATORS["conv2d_blocked"]([packed, w], {"pads": (1, 1, 1, 1)})
    return [b.name for b in schedule_program(to_program([x, w], made), TARGET).blocks()]


@pytest.mark.parametrize(
    ("channels", "size", "alone"),
    [(64, 14, True), (64, 56, False), (32, 64, True), (128, 64, True)],
    ids=["stays in cache", "large", "small, a power of two apart", "large, a power of two apart"],
)
def test_images_are_packed_by_themselves_where_that_pays(channels: int, size: int, alone: bool) -> None:
    assert ("pack_channels" in blocks_of(channels, size)) is alone


@pytest.mark.parametrize(
    ("channels", "places", "outputs", "alone"),
    [(512, 4000, 512, True), (512, 1200, 64, False), (512, 200, 512, False), (64, 4000, 512, False)],
    ids=["many pages, many panels", "few panels", "in cache", "in cache, too"],
)
def test_images_are_packed_for_a_convolution(channels: int, places: int, outputs: int, alone: bool) -> None:
    """Each panel of weights goes through all of the image, whose planes lie in pages of their own."""
    x = placeholder((1, channels, 1, places), f32, "x")
    w = placeholder((outputs // 16, channels // 16, 1, 3, 16, 16), f32, "w")
    (packed,) = OPERATORS["pack_channels"]([x], {"block": 16})
    made = OPERATORS["conv2d_blocked"]([packed, w], {"strides": (1, 2)})
    s = schedule_program(to_program([x, w], made), TARGET)
    assert ("pack_channels" in [b.name for b in s.blocks()]) is alone


@pytest.mark.parametrize(("size", "target", "alone"), [(1024, TARGET, True), (96, TARGET, False), (1024, GRID, False)])
def test_a_left_factor_is_transposed(size: int, target: Target, alone: bool) -> None:
    """By itself where many panels go through its columns; threads of a grid read it as they fetch it."""
    x, w = placeholder((size, size), f32, "x"), placeholder((size, size), f32, "w")
    (turned,) = OPERATORS["transpose"]([x], {"perm": (1, 0)})
    made = OPERATORS["matmul"]([turned, w], {})
    planner = Choosing(target)
    carry_out(to_program([x, w], made), planner)
    found = [
        s.decision.inline for s in planner.plan.steps if isinstance(s.decision, Inline) and s.subject == "transpose"
    ]
    assert found == [not alone]


def test_dimensions_of_one_do_not_keep_a_pass_from_being_flat() -> None:
    x = placeholder((40, 1, 30), f32, "x")
    s = schedule_program(to_program([x], OPERATORS["relu"]([x], {})), TARGET)
    assert "i0_i1_i2" in str(s)


def blocks_of_sum(name: str, **attributes: object) -> list[str]:
    """Returns the blocks of a sum of what an operator makes."""
    x = placeholder((8, 64), f32, "x")
    (y,) = OPERATORS[name]([x], attributes)
    (z,) = OPERATORS["reduce_sum"]([y], {"axes": (1,)})
    return [b.name for b in schedule_program(to_program([x], [z]), TARGET).blocks()]


def test_what_a_sum_reads_once_is_computed_there() -> None:
    assert "exp" not in blocks_of_sum("exp")


def test_a_padding_is_not_part_of_the_loop_that_sums_it() -> None:
    assert "pad" in blocks_of_sum("pad", pads=(0, 3, 0, 5))


def test_a_number_repeated_is_read_where_it_is_chosen() -> None:
    x, c = placeholder((), f32, "x"), placeholder((4, 16), bool_, "c")
    (wide,) = OPERATORS["expand"]([x], {"shape": (4, 16)})
    (y,) = OPERATORS["where"]([c, wide, OPERATORS["neg"]([wide], {})[0]], {})
    assert "expand" not in [b.name for b in schedule_program(to_program([x, c], [y]), TARGET).blocks()]


def blocks_of_rows(name: str, shape: tuple[int, ...], perm: tuple[int, ...], **attributes: object) -> list[str]:
    """Returns the blocks of an operator over the last dimension of a transposed tensor."""
    x = placeholder(shape, f32, "x")
    (turned,) = OPERATORS["transpose"]([x], {"perm": perm})
    made = OPERATORS[name]([turned], attributes)
    return [b.name for b in schedule_program(to_program([x], made), TARGET).blocks()]


def test_columns_become_rows_before_these_are_normalized() -> None:
    """A row would be gathered from a column by each of the loops over it."""
    assert "transpose" in blocks_of_rows("softmax", (32, 48), (1, 0), axis=1)
    assert "transpose" not in blocks_of_rows("softmax", (2, 32, 48), (1, 0, 2), axis=2)


def test_a_reduction_by_itself_goes_along_columns() -> None:
    assert "transpose" not in blocks_of_rows("reduce_max", (32, 48), (1, 0), axes=(1,))


def test_columns_become_rows_before_they_are_added_up_with_rows() -> None:
    x, y = placeholder((32, 48), f32, "x"), placeholder((48, 32), f32, "y")
    (turned,) = OPERATORS["transpose"]([x], {"perm": (1, 0)})
    (both,) = OPERATORS["add"]([turned, y], {})
    (total,) = OPERATORS["reduce_sum"]([both], {"axes": (1,)})
    assert "add" in [b.name for b in schedule_program(to_program([x, y], [total]), TARGET).blocks()]
