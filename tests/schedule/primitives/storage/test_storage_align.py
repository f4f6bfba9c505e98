"""`storage_align`: the rows of an intermediate buffer move apart, so that they do not all fall on the same lines of a cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping

import pytest
from tests.schedule.compiling import check_compiled, lowered
from tests.schedule.programs import Case, bias_relu, blur, case, matmul
from tests.schedule.running import refusal, transition

from weft import te
from weft.codegen.interp.machine import evaluate
from weft.ir import Var
from weft.loop import Alloc, For, Program, Stmt, loads, statements
from weft.schedule import Schedule
from weft.support.dtypes import f32


def transposed(n: int, m: int) -> Case:
    """A matrix is doubled, then read by columns."""
    x = te.placeholder((n, m), f32, "X")
    t = te.compute((n, m), lambda i, j: x[i, j] * 2.0, "T")
    y = te.compute((m, n), lambda j, i: t[i, j] + 1.0, "Y")
    return case([x], [y], lambda v: [(2 * v + 1).T])


def test_of_rows(golden: Callable[[str], None]) -> None:
    case = transposed(4, 8)
    s = Schedule(case.program)
    s.storage_align(s.block("T"), 0, 16)
    check_compiled(case, s.program)
    golden(transition(case.program, s.program))


def test_lowered(golden: Callable[[str], None]) -> None:
    s = Schedule(transposed(4, 8).program)
    s.storage_align(s.block("T"), 0, 8, 1)
    golden(str(lowered(s.program)))


def test_of_an_outer_dimension() -> None:
    x = te.placeholder((2, 3, 5), f32, "X")
    t = te.compute((2, 3, 5), lambda i, j, k: x[i, j, k] * 2.0, "T")
    y = te.compute((5, 3, 2), lambda k, j, i: t[i, j, k] + 1.0, "Y")
    of_three = case([x], [y], lambda v: [(2 * v + 1).transpose(2, 1, 0)])
    s = Schedule(of_three.program)
    s.storage_align(s.block("T"), 1, 4, 2)
    assert "strides=(18, 6, 1)" in str(s)
    check_compiled(of_three, s.program)


def test_strides_stay_when_the_box_shrinks() -> None:
    case = blur(4, 8)
    s = Schedule(case.program)
    s.storage_align(s.block("A"), 0, 8, 4)
    s.compute_at(s.block("A"), s.loops(s.block("B"))[0])
    flat = check_compiled(case, s.program)
    sizes = [str(b.buffer.shape[0]) for b in statements(flat.entry.body) if isinstance(b, Alloc)]
    assert sizes == ["32"]  # 3 rows of 8, 12 elements apart


def columns_missed(program: Program, buffer: str) -> int:
    """How often a lowered loop misses a first-level cache, 8 ways of 64 lines of 64 bytes, in its loads of *buffer*."""
    sets: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(64)]
    missed = 0
    for index in _walk(program.entry.body, buffer, {}):
        line = index * 4 // 64
        ways = sets[line % 64]
        if line in ways:
            ways.move_to_end(line)
            continue
        missed += 1
        ways[line] = None
        if len(ways) > 8:
            ways.popitem(last=False)
    return missed


def _walk(s: Stmt, buffer: str, at: Mapping[Var, int]) -> Iterator[int]:
    """Yields the indices of *buffer* that are loaded, in the order of the loops."""
    if isinstance(s, For):
        begin = evaluate(s.begin, at)
        for k in range(begin, begin + evaluate(s.extent, at)):
            yield from _walk(s.body, buffer, {**at, s.var: k})
        return
    inner = [k for k in s.children() if isinstance(k, Stmt)]
    for part in inner:
        yield from _walk(part, buffer, at)
    if not inner:
        for n in loads(s):
            if n.buffer.name == buffer:
                yield evaluate(n.indices[0], at)


def test_columns_of_rows_4_kib_apart_no_longer_share_a_set() -> None:
    """32 rows of 4 KiB fall on one set of 8 ways: each of the 16 columns of a line fetches it again."""
    missed = []
    for padded in (False, True):
        s = Schedule(transposed(32, 1024).program)
        if padded:
            s.storage_align(s.block("T"), 0, 1024, 16)
        missed.append(columns_missed(lowered(s.program), "T"))
    assert missed == [32 * 1024, 32 * 1024 // 16]


def test_rows_that_are_aligned_already_stay() -> None:
    s = Schedule(transposed(4, 16).program)
    s.storage_align(s.block("T"), 0, 16)
    assert "strides=(16, 1)" in str(s)


def test_symbolic_rows() -> None:
    n = Var("n")
    x = te.placeholder((3, n), f32, "X")
    t = te.compute((3, n), lambda i, j: x[i, j] * 2.0, "T")
    of_rows = case([x], [te.compute((n, 3), lambda j, i: t[i, j], "Y")], lambda v: [2 * v.T], n=5)
    s = Schedule(of_rows.program)
    s.storage_align(s.block("T"), 0, 8)
    check_compiled(of_rows, s.program)


def test_of_a_copy_and_of_a_result() -> None:
    of_product = matmul(4, 6, 5)
    s = Schedule(of_product.program)
    s.storage_align(s.cache_read(s.block("C"), "B", "local"), 0, 8)
    s.cache_write(s.block("C"), "local")
    s.storage_align(s.block("C"), 0, 4, 1)
    check_compiled(of_product, s.program)


def test_in_a_parallel_loop() -> None:
    of_rows = bias_relu()
    s = Schedule(of_rows.program)
    i, _ = s.loops(s.block("D"))
    s.compute_at(s.block("C"), i)
    s.parallel(i)
    s.storage_align(s.block("C"), 0, 16)
    check_compiled(of_rows, s.program)


def test_before_another_memory_is_chosen() -> None:
    of_rows = bias_relu()
    s = Schedule(of_rows.program)
    s.storage_align(s.block("C"), 0, 16)
    s.set_scope(s.block("C"), "local")
    assert 'alloc("local", f32[5, 7], strides=(16, 1))' in str(s)
    check_compiled(of_rows, s.program)


def test_refused_twice(golden: Callable[[str], None]) -> None:
    s = Schedule(transposed(4, 8).program)
    s.storage_align(s.block("T"), 0, 16)
    golden(refusal(lambda: s.storage_align(s.block("T"), 0, 16)))


def test_refused_for_an_output(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.storage_align(s.block("C"), 0, 16)))


@pytest.mark.parametrize(
    ("axis", "factor", "offset"), [(2, 4, 0), (0, 0, 0), (0, 4, 4)], ids=["axis", "factor", "offset"]
)
def test_refused_numbers(axis: int, factor: int, offset: int, golden: Callable[[str], None]) -> None:
    s = Schedule(bias_relu().program)
    golden(refusal(lambda: s.storage_align(s.block("C"), axis, factor, offset)))
