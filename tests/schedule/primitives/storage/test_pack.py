"""`pack`: an input is copied to another layout, in the order of that layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.products import product
from tests.schedule.programs import CASES, conv2d, matmul, symbolic_matmul
from tests.schedule.running import check, refusal, transition

from weft import te
from weft.codegen.interp import run
from weft.ir import EMPTY, index, simplify
from weft.loop import parse_program
from weft.schedule import Schedule
from weft.schedule.rewriting.index_map import parse_index_map
from weft.support.dtypes import f32
from weft.support.errors import ScheduleError


def test_groups_of_columns(golden: Callable[[str], None]) -> None:
    case = product(3, 8, 6)
    s = Schedule(case.program)
    copy = s.pack(s.block("C"), "B", "k, j -> j // 4, k // 2, j % 4, k % 2", "local")
    assert copy == s.block("B_packed")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_a_panel_at_a_time() -> None:
    case = product(3, 8, 6)
    s = Schedule(case.program)
    block = s.block("C")
    copy = s.pack(block, "B", "k, j -> j // 4, k, j % 4", "local")
    i, j, k = s.loops(block)
    j0, j1 = s.split(j, [None, 4])
    s.reorder([j0, i, j1, k])
    s.compute_at(copy, j0)
    check(case, s.program)
    assert [s.extent(f) for f in s.loops(copy)] == [2, 6, 4]


@pytest.mark.parametrize("pad", [None, 0, 3])
def test_padding(pad: int | None, golden: Callable[[str], None]) -> None:
    case = product(3, 7, 5)
    s = Schedule(case.program)
    s.pack(s.block("C"), "B", "k, j -> j // 4, k // 2, j % 4, k % 2", "local", pad)
    check(case, s.program)
    golden(f"{s}\n")


def test_padding_is_filled() -> None:
    a = te.placeholder((5,), f32, "A")
    s = Schedule(te.to_program([a], [te.compute((5,), lambda i: a[i] * 2.0, "C")]))
    s.pack(s.block("C"), "A", "i -> i // 4, i % 4", "local", 9.0)
    text = (
        str(s)
        .replace('A_packed = alloc("local", f32[2, 4])', "")
        .replace("C: f32[5]", "C: f32[5], A_packed: f32[2, 4]")
    )
    made = np.zeros((2, 4), np.float32)
    run(parse_program(text), [np.arange(5, dtype=np.float32), np.zeros(5, np.float32), made])
    np.testing.assert_array_equal(made.reshape(-1), [0, 1, 2, 3, 4, 9, 9, 9])


def test_symbolic_rows() -> None:
    case = symbolic_matmul(n=5)
    s = Schedule(case.program)
    s.pack(s.block("C"), "A", "i, k -> k, i", "local")
    check(case, s.program)
    s = Schedule(case.program)
    s.pack(s.block("C"), "A", "i, k -> i // 4, k, i % 4", "local", 0)
    check(case, s.program)


def test_an_intermediate_result() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.pack(s.block("D"), "C", "i, j -> j, i", "local")
    assert [b.name for b in s.blocks()] == ["C", "C_packed", "D", "E"]
    check(case, s.program)


def test_only_the_block_that_is_named_reads_the_copy() -> None:
    case = CASES["two_outputs"]()
    s = Schedule(case.program)
    s.pack(s.block("B"), "A", "i, j -> j, i", "local")
    assert "A_packed[vi_1, vj_1]" in str(s)
    check(case, s.program)


def test_all_reads_of_a_block() -> None:
    case = CASES["symmetric"]()
    s = Schedule(case.program)
    s.pack(s.block("B"), "A", "i, j -> i * 5 + j", "local")
    check(case, s.program)


def test_a_filter_in_blocks_of_channels() -> None:
    case = conv2d(4, 5, 6, 8)
    s = Schedule(case.program)
    s.pack(s.block("Y"), "F", "o, c, a, b -> o // 4, c, a, b, o % 4", "local")
    check_compiled(case, s.program)


def test_both_operands() -> None:
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    s.pack(s.block("C"), "A", "i, k -> i // 2, k, i % 2", "local")
    s.pack(s.block("C"), "B", "k, j -> j // 3, k, j % 3", "local")
    check_compiled(case, s.program)


def test_a_packed_copy_of_a_packed_copy() -> None:
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    s.pack(s.block("C"), "B", "k, j -> j // 3, k, j % 3", "shared")
    again = s.pack(s.block("C"), "B_packed", "p, k, j -> k, p, j", "local")
    assert again.name == "B_packed_packed"
    check(case, s.program)


def test_rows_before_a_consumer_in_tiles() -> None:
    case = matmul(5, 6, 8)
    s = Schedule(case.program)
    i0, _ = s.split(s.loops(s.block("C"))[0], [None, 2])
    copy = s.pack(s.block("C"), "A", "i, k -> k, i", "local")
    s.compute_at(copy, i0)
    check_compiled(case, s.program)


MAPS = [
    ("i, j -> j, i", (6, 8)),
    ("i, j -> i * 8 + j", (6, 8)),
    ("i, j -> (i * 8 + j) // 16, (i * 8 + j) % 16", (6, 8)),
    ("i, j -> i // 3, j // 4, (i % 3) * 4 + j % 4", (6, 8)),
    ("i, j -> i // 4, j, i % 4", (6, 8)),
    ("i, j -> j // 4 // 2, i, (j // 4) % 2, j % 4", (6, 24)),
    ("i, j -> 5 - i, j", (6, 8)),
    ("i -> i // 12, (i // 4) % 3, i % 4", (30,)),
]


@pytest.mark.parametrize(("text", "shape"), MAPS)
def test_a_map_has_an_inverse(text: str, shape: tuple[int, ...]) -> None:
    sizes = [index(n) for n in shape]
    layout = parse_index_map(text, sizes, EMPTY)
    seen = set()
    for where in np.ndindex(*shape):
        there = layout([index(n) for n in where], EMPTY)
        assert [simplify(i) for i in layout.inverse(there, EMPTY)] == [index(n) for n in where]
        seen.add(there)
    assert len(seen) == np.prod(shape)
    assert all(0 <= int(str(i)) < int(str(n)) for there in seen for i, n in zip(there, layout.to, strict=True))
    assert layout.is_padded == (int(np.prod([int(str(n)) for n in layout.to])) > np.prod(shape))


WRONG = [
    ("i, j -> i", "`i, j -> i` is not one-to-one on a buffer of shape (3, 7)"),
    ("i, j -> i, i", "is not one-to-one"),
    ("i, j -> i // 2, j", "is not one-to-one"),
    ("i, j -> i + 1, j", "is not one-to-one"),
    ("i, j -> i * j, j", "is not one-to-one"),
    ("i -> i, i", "does not map 2 indices\n"),
    ("i, j", "does not map 2 indices\n"),
    ("i, j -> i, l", "can't be read: `l` is not defined here"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_refused_for_another_map(text: str, message: str) -> None:
    s = Schedule(matmul(5, 7, 3).program)
    with pytest.raises(ScheduleError) as caught:
        s.pack(s.block("C"), "B", text, "local")
    assert message in str(caught.value)


def test_refused_for_what_is_not_read(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.pack(s.block("C"), "C", "i, j -> j, i", "local")))


def test_refused_for_what_the_nest_makes(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    s.compute_at(s.block("C"), s.loops(s.block("D"))[0])
    golden(refusal(lambda: s.pack(s.block("D"), "C", "i, j -> j, i", "local")))


def test_refused_after_taking_vectors() -> None:
    s = Schedule(product(4, 32, 8).program)
    copy = s.pack(s.block("C"), "B", "k, j -> j // 16, k // 4, j % 16, k % 4", "local")
    s.tensorize(s.loops(copy)[2], "interleave_i8_16x4")
    with pytest.raises(ScheduleError, match="B_packed takes more of B at once than one element"):
        s.pack(copy, "B", "k, j -> j, k", "local")
