"""The rule for windows: whatever their sizes, strides and borders, the result is that of the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from tests.support.machines import SERVER
from tests.support.sampling import tried

from weft.codegen.interp import run
from weft.codegen.llvm.object_code import assembly
from weft.driver.function import build_function
from weft.loop import AxisKind, Buffer, verify
from weft.lower import lower
from weft.ops import OPERATORS
from weft.schedule import Schedule, blocks_in, schedule_program
from weft.schedule.rules.sliding_window import sliding_axes
from weft.support.dtypes import f32
from weft.targets import cpu
from weft.te import Tensor, placeholder, to_program

LEVELS = ("avx512", "avx2", "sse4")


def depthwise(draw: st.DataObject) -> tuple[str, list[Tensor | None], dict[str, Any]]:
    kernel = draw.draw(st.tuples(st.integers(1, 5), st.integers(1, 4)))
    attributes = window(draw)
    shape = [draw.draw(st.integers(1, 2)), draw.draw(st.integers(1, 2)), *size(draw, kernel, attributes), 4]
    w = placeholder((shape[1], *kernel, 4), f32, "w")
    return "depthwise_conv2d_blocked", [placeholder(tuple(shape), f32, "x"), w], attributes


def rows(draw: st.DataObject) -> tuple[str, list[Tensor | None], dict[str, Any]]:
    kernel = draw.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    attributes = window(draw)
    channels = draw.draw(st.integers(1, 3))
    x = placeholder((1, channels, *size(draw, kernel, attributes)), f32, "x")
    return "conv2d", [x, placeholder((channels, 1, *kernel), f32, "w")], {**attributes, "group": channels}


def pool(draw: st.DataObject) -> tuple[str, list[Tensor | None], dict[str, Any]]:
    kernel = draw.draw(st.tuples(st.integers(1, 4), st.integers(1, 3)))
    attributes = window(draw)
    attributes["pads"] = tuple(min(p, k - 1) for p, k in zip(attributes["pads"], (*kernel, *kernel), strict=True))
    x = placeholder((1, 2, *size(draw, kernel, attributes), 4), f32, "x")
    return "max_pool2d", [x], {**attributes, "kernel": kernel}


def window(draw: st.DataObject) -> dict[str, Any]:
    pair = st.tuples(st.integers(1, 2), st.integers(1, 2))
    pads = draw.draw(st.tuples(*[st.integers(0, 2)] * 4))
    return {"strides": draw.draw(pair), "dilations": draw.draw(pair), "pads": pads}


def size(draw: st.DataObject, kernel: tuple[int, int], attributes: dict[str, Any]) -> list[int]:
    least = [d * (k - 1) + 1 for d, k in zip(attributes["dilations"], kernel, strict=True)]
    return [n + draw.draw(st.integers(0, 11)) for n in least]


@tried(10, 40, st.sampled_from([depthwise, rows, pool]), st.sampled_from(LEVELS), st.data())
def test_it_means_the_same(make: Any, level: str, data: st.DataObject) -> None:
    name, inputs, attributes = make(data)
    given_ = [x for x in inputs if x is not None]
    program = to_program(given_, OPERATORS[name](inputs, attributes))
    scheduled = schedule_program(program, cpu(level)).program
    verify(scheduled)
    rng = np.random.default_rng(1)
    arrays = [
        rng.integers(-4, 5, [int(getattr(s, "value", 0)) for s in b.shape]).astype(np.float32)
        for b in program.entry.params
        if isinstance(b, Buffer)
    ]
    outputs = []
    for p in (program, scheduled):
        copies = [a.copy() for a in arrays]
        run(p, copies)
        outputs.append(copies[-1])
    compiled = [a.copy() for a in arrays]
    build_function(scheduled)(*compiled)
    np.testing.assert_array_equal(outputs[1], outputs[0])
    np.testing.assert_array_equal(compiled[-1], outputs[0])


def test_borders_are_part_of_the_window() -> None:
    x, w = placeholder((1, 2, 14, 14, 16), f32, "x"), placeholder((2, 3, 3, 16), f32, "w")
    made = OPERATORS["depthwise_conv2d_blocked"]([x, w], {"pads": (1, 1, 1, 1)})
    names = [b.name for b in blocks_in(schedule_program(to_program([x, w], made), cpu("avx512")).function.body)]
    assert not [n for n in names if "pad" in n]


@pytest.mark.parametrize(("op", "shapes"), [("matmul", [(8, 8), (8, 8)]), ("conv2d", [(1, 4, 8, 8), (4, 4, 3, 3)])])
def test_contractions_are_no_windows(op: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = [placeholder(s, f32, f"x{n}") for n, s in enumerate(shapes)]
    s = Schedule(to_program(inputs, OPERATORS[op](list(inputs), {})))
    reductions = [b for b in blocks_in(s.function.body) if any(a.kind is AxisKind.REDUCE for a in b.axes)]
    assert reductions
    assert not [b for b in reductions if sliding_axes(b)]


@pytest.mark.parametrize(("width", "kernel"), [(33, (5, 5)), (62, (3, 3)), (27, (7, 7)), (20, (1, 5))])
def test_what_is_left_of_a_row_is_computed_in_registers(width: int, kernel: tuple[int, int]) -> None:
    """Sums in some lanes of a vector are kept where whole vectors are: never on the stack, nor one by one."""
    target = cpu("avx512")
    x, w = placeholder((1, 3, 23, width), f32, "x"), placeholder((3, 1, *kernel), f32, "w")
    made = OPERATORS["conv2d"]([x, w], {"group": 3})
    text = assembly(lower(schedule_program(to_program([x, w], made), target).program, target), target)
    assert "vfmadd" in text
    assert not [line for line in text.splitlines() if "vfmadd" in line and ("ss\t" in line or "{%k" in line)]
    sums = [line for line in text.splitlines() if "vmova" in line and "zmm" in line and "rsp" in line]
    assert not sums


@pytest.mark.parametrize(
    ("level", "size", "copied"), [("avx512", 18, False), ("avx2", 64, False), ("avx2", 18, True), ("sse4", 64, True)]
)
def test_borders_inside_of_vectors_are_masks(level: str, size: int, copied: bool) -> None:
    """Where masks take registers of vectors, and the borders meet many of the tiles, a padded copy is made; or without masks."""
    x, w = placeholder((1, 2, size, size), f32, "x"), placeholder((2, 1, 3, 3), f32, "w")
    made = OPERATORS["conv2d"]([x, w], {"pads": (1, 1, 1, 1), "strides": (1, 1), "group": 2})
    names = [b.name for b in blocks_in(schedule_program(to_program([x, w], made), cpu(level)).function.body)]
    assert ("pad" in names) == copied


@pytest.mark.parametrize(("width", "kernel"), [(28, (3, 3)), (32, (3, 3)), (19, (3, 3)), (24, (5, 1))])
def test_strides_along_rows_are_picked_from_vectors(width: int, kernel: tuple[int, int]) -> None:
    """Nothing is gathered one by one, what is left of a row included."""
    target = cpu("avx512")
    x, w = placeholder((1, 2, 2 * width + 1, 2 * width + 1), f32, "x"), placeholder((2, 1, *kernel), f32, "w")
    made = OPERATORS["conv2d"]([x, w], {"strides": (2, 2), "group": 2})
    text = assembly(lower(schedule_program(to_program([x, w], made), target).program, target), target)
    assert "gather" not in text
    assert [line for line in text.splitlines() if "vfmadd" in line and "ps" in line and "zmm" in line]


@pytest.mark.parametrize(
    ("size", "kernel", "dilation", "copied"),
    [
        ((13, 11), 7, 1, True),
        ((73, 31), 7, 2, True),
        ((73, 10), 7, 2, False),  # a tile is a whole row
        ((14, 14), 3, 1, False),
        ((7, 7), 3, 1, False),
        ((56, 56), 5, 1, False),
    ],
)
def test_borders_wider_than_tiles_are_padded_first(
    size: tuple[int, int], kernel: int, dilation: int, copied: bool
) -> None:
    """Where a loop over taps meets a border in all of its tiles, or each tile another part of it, the input is padded."""
    pad = kernel // 2 * dilation
    x, w = placeholder((1, 2, *size, 16), f32, "x"), placeholder((2, kernel, kernel, 16), f32, "w")
    attributes = {"pads": (pad,) * 4, "dilations": (dilation, dilation)}
    made = OPERATORS["depthwise_conv2d_blocked"]([x, w], attributes)
    names = [b.name for b in blocks_in(schedule_program(to_program([x, w], made), SERVER).function.body)]
    assert ("pad" in names) == copied
