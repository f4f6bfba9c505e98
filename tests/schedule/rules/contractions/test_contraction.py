"""Products scheduled without search: the order in which their tiles are gone through."""

from __future__ import annotations

import pytest
from tests.support.machines import SERVER

from weft.codegen.llvm.object_code import assembly
from weft.lower import lower
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import f32
from weft.targets import cpu
from weft.te import placeholder, to_program


@pytest.mark.parametrize(("k", "n", "near"), [(6, 961, True), (512, 961, False), (40, 130, True)])
def test_whole_rows_are_written_where_all_panels_stay_near(k: int, n: int, near: bool) -> None:
    """A matrix that fits the first-level cache is gone through for each tile of rows; else all rows are for each panel of it."""
    a, b = placeholder((400, 50, k), f32, "a"), placeholder((400, k, n), f32, "b")
    s = schedule_program(to_program([a, b], OPERATORS["matmul"]([a, b], {})), cpu("avx512"))
    names = [f.var.name for f in s.loops(s.blocks()[-1])]
    assert (names.index("ax1_0") < names.index("ax2_0")) == near


@pytest.mark.parametrize(("channels", "near"), [(210, True), (30, False)])
def test_whole_images_are_written_where_not_one_of_them_stays_near(channels: int, near: bool) -> None:
    """Small images that give large ones are gone through for each tile of channels; else all tiles are for each row."""
    x, w = placeholder((2, 2, 73, 73), f32, "x"), placeholder((channels, 2, 4, 4), f32, "w")
    target = SERVER.having(l1=32 << 10, l2=1 << 20)
    s = schedule_program(to_program([x, w], OPERATORS["conv2d"]([x, w], {})), target)
    order = " ".join(f.var.name for f in s.loops(s.block("conv2d")))
    assert (order.index("ax1_0") < order.index("ax2")) == near


@pytest.mark.parametrize(("channels", "each", "size"), [(3, 67, 6), (2, 16, 11), (4, 5, 24)])
def test_groups_share_what_they_read(channels: int, each: int, size: int) -> None:
    """The input of a group is loaded once for several of its output channels, the last ones of a group included."""
    target = cpu("avx512")
    x, w = placeholder((1, channels, size, size), f32, "x"), placeholder((channels * each, 1, 3, 3), f32, "w")
    made = OPERATORS["conv2d"]([x, w], {"group": channels})
    text = assembly(lower(schedule_program(to_program([x, w], made), target).program, target), target).splitlines()
    products = [line for line in text if "vfmadd" in line]
    broadcasts = [line for line in text if "vbroadcastss" in line and "mm" in line.split(",")[-1]]
    assert len(products) >= 2 * len(broadcasts) > 0
    assert not [line for line in products if "ss\t" in line]
    assert not [line for line in text if "vblend" in line]  # masked loads leave zeros already
