"""`stream_attention`: right for every tile, without races, the scores in no global memory; refused for anything else."""

from __future__ import annotations

import re

import pytest
from tests.schedule.attentions import Shape, attention, check_attention
from tests.schedule.programs import matmul

from weft.ir import Var
from weft.loop import Alloc, Program, statements
from weft.lower import lower
from weft.schedule import Schedule
from weft.schedule.rules.grid.streamed_attention import inline_all
from weft.support.dtypes import DType, f16
from weft.support.errors import ScheduleError
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import OPENCL, WITHOUT_SHUFFLES
from weft.targets.instructions import FRAGMENT

OF_GROUPS = (FRAGMENT.groups, FRAGMENT.quads, FRAGMENT.halves, 16, 4, 2)
"""A group of four warps, 64 keys at a time."""


def streamed(
    program: Program,
    y: int = 2,
    x: int = 4,
    rows: int = 2,
    keys: int = 2,
    warps: int = 0,
    copies: int = 0,
    splits: int = 1,
) -> Program:
    s = Schedule(program)
    inline_all(s)
    s.stream_attention(s.block("s"), y, x, rows, keys, warps, copies, splits)
    return s.program


@pytest.mark.sampled(6)
@pytest.mark.parametrize("y", [2, 4])
@pytest.mark.parametrize("x", [4, 8])
@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("keys", [1, 2])
@pytest.mark.parametrize(("height", "width"), [(9, 21), (16, 32), (1, 40)])
def test_every_tile(y: int, x: int, rows: int, keys: int, height: int, width: int) -> None:
    a = Shape(rows=height, keys=width)
    check_attention(a, streamed(attention(a), y, x, rows, keys), WITHOUT_SHUFFLES)


@pytest.mark.parametrize("mask", ["bias", "causal"])
def test_masks(mask: str) -> None:
    """Also where the first blocks of keys are hidden from a row."""
    a = Shape(rows=21)
    check_attention(a, streamed(attention(a, mask=mask)), WITHOUT_SHUFFLES, mask=mask)


@pytest.mark.parametrize(("depth", "columns"), [(6, 5), (8, 12), (20, 7), (16, 32)])
def test_sizes_of_keys_and_values(depth: int, columns: int) -> None:
    a = Shape(depth=depth, columns=columns)
    check_attention(a, streamed(attention(a)), OPENCL)


def test_halves_whose_heads_are_joined() -> None:
    a = Shape(rows=10)
    made = streamed(attention(a, dtype=f16, joined=True))
    check_attention(a, made, WITHOUT_SHUFFLES, dtype=f16, joined=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("warps", [2, 1])
@pytest.mark.parametrize("keys", [4, 8])
@pytest.mark.parametrize("mask", ["bias", ""])
def test_fragments(warps: int, keys: int, mask: str) -> None:
    """The threads of a warp multiply together, and the program means the same thread by thread."""
    a = Shape(heads=1, rows=21, keys=40, depth=16, columns=16)
    program = attention(a, dtype=f16, mask=mask)
    made = streamed(program, FRAGMENT.groups, FRAGMENT.quads, FRAGMENT.halves, keys, warps)
    assert "warp.mma_f16" in str(made)
    check_attention(a, made, cuda("sm_90"), dtype=f16, mask=mask)


@pytest.mark.parametrize("copies", [1, 2])
def test_memory_that_a_launch_asks_for(copies: int) -> None:
    """With several copies of keys and values, the next are on their way."""
    a = Shape(rows=10, depth=16, columns=12)
    made = streamed(attention(a, mask="bias"), copies=copies)
    check_attention(a, made, cuda("sm_90"), mask="bias")
    flat = str(lower(made, cuda("sm_90")))
    assert 'alloc("dynamic"' in flat
    assert ("weft.copy.async" in flat) == (copies > 1)


@pytest.mark.parametrize("splits", [2, 4, 16])
@pytest.mark.parametrize("mask", ["", "bias", "causal"])
@pytest.mark.parametrize("columns", [8, 70])
def test_splits_of_keys(splits: int, mask: str, columns: int) -> None:
    """Each block has a part of the keys; also where a mask hides all of them, or a block has none."""
    a = Shape(rows=3, keys=37, columns=columns)
    made = streamed(attention(a, mask=mask), 2, 8, 1, 1, splits=splits)
    check_attention(a, made, cuda("sm_90"), mask=mask)


def test_splits_are_of_a_constant_number() -> None:
    a = Shape()
    with pytest.raises(ScheduleError, match="only keys of constant number are split"):
        streamed(attention(a, keys=Var("n")), splits=2)


@pytest.mark.parametrize(
    ("mask", "rows", "keys", "dtype"),
    [
        pytest.param("bias", 20, 70, f16, marks=pytest.mark.slow),
        pytest.param("causal", 70, 200, f16, marks=pytest.mark.slow),
        pytest.param("", 64, 130, f16, marks=pytest.mark.slow),
    ],
)
def test_groups_of_warps(mask: str, rows: int, keys: int, dtype: DType) -> None:
    """Queries and weights are in registers of the warps; a block waits as one once for each block of keys."""
    a = Shape(heads=1, rows=rows, keys=keys, depth=64, columns=64)
    made = streamed(attention(a, dtype=dtype, mask=mask), *OF_GROUPS)
    assert "cuda.wgmma_registers_f16" in str(made)
    told = check_attention(a, made, cuda("sm_90"), dtype=dtype, mask=mask)
    assert told.barriers == -(-rows // 64) * -(-keys // 64)


def test_groups_store_pairs_of_neighbours() -> None:
    """A thread has two columns of each fragment: one word of two results."""
    a = Shape(heads=1, rows=64, keys=64, depth=64, columns=64)
    flat = str(lower(streamed(attention(a, dtype=f16, joined=True), *OF_GROUPS), cuda("sm_90")))
    stores = re.findall(r"^ +y\[(.*)\] = ", flat, re.MULTILINE)
    assert stores
    assert all(at.startswith("ramp(") and at.endswith(", 1, 2)") for at in stores)


def test_groups_take_whole_pieces() -> None:
    """Of 16 bytes of neighbouring elements."""
    for a in (Shape(depth=64, columns=40), Shape(depth=48, columns=64)):
        with pytest.raises(ScheduleError, match="no matrices that groups of warps multiply"):
            streamed(attention(a, dtype=f16), *OF_GROUPS)


def test_fragments_are_whole_and_of_halves() -> None:
    shape = (FRAGMENT.groups, FRAGMENT.quads, FRAGMENT.halves, 4, 1)
    for program in (attention(Shape(depth=16)), attention(Shape(), dtype=f16)):
        with pytest.raises(ScheduleError, match="no matrices of 16-bit floats in whole fragments"):
            streamed(program, *shape)


def test_heads_that_share_keys() -> None:
    a = Shape(heads=4, shared=2)
    check_attention(a, streamed(attention(a)), WITHOUT_SHUFFLES)


def test_sizes_that_a_call_tells() -> None:
    a = Shape()
    check_attention(a, streamed(attention(a, rows=Var("m"), keys=Var("n"))), WITHOUT_SHUFFLES)


def test_scores_are_in_no_global_memory() -> None:
    """And a block waits three times for each of its steps along the keys, and twice at the end and before."""
    a = Shape(heads=1, rows=8, keys=32)
    made = streamed(attention(a), 4, 4, 2, 2)
    assert all(s.buffer.scope != "global" for s in statements(made.entry.body) if isinstance(s, Alloc))
    steps = 32 // 8
    assert check_attention(a, made, WITHOUT_SHUFFLES).barriers <= 3 * steps + 2


def test_other_programs_are_refused() -> None:
    s = Schedule(matmul(8, 8, 8).program)
    with pytest.raises(ScheduleError, match="has 1 blocks, not those of an attention"):
        s.stream_attention(s.block("C"), 2, 4, 2, 2)
    s = Schedule(attention(Shape()))
    with pytest.raises(ScheduleError, match="inline all other blocks first"):
        s.stream_attention(s.block("s"), 2, 4, 2, 2)
