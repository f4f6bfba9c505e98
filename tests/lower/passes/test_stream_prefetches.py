"""What a loop asks for ahead is spread over all that an iteration does, and is all of what the next one reads, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from tests.schedule.compiling import HERE, check_compiled
from tests.schedule.primitives.storage.test_prefetch import hints
from tests.schedule.programs import Case, matmul

from weft.codegen.llvm.object_code import assembly
from weft.ir import Const, Expr, Var, index, simplify, substitute
from weft.loop import PREFETCH, Address, Call, For, If, Program, Stmt, parse_program, sub_statements
from weft.lower import PASSES, lower, run_passes
from weft.schedule import LoopRef, Schedule

LINE = HERE.caches.line // 4


def panels(rows: int, depth: int, tile: int, width: int = 32, count: int = 3) -> tuple[Case, Schedule]:
    """A product whose right factor is read in *count* panels of *width* columns, each by tiles of some rows."""
    case = matmul(rows, count * width, depth)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.pack(s.block("C"), "B", f"i, j -> j // {width}, i, j % {width}", "global")
    j0, j1 = s.split(j, [None, width])
    i0, i1 = s.split(i, [None, tile])
    s.reorder([j0, i0, k, i1, j1])
    s.decompose_reduction(s.block("C"), k)
    s.unroll(i1)
    s.vectorize(j1)
    return case, s


def loop(s: Schedule, number: int) -> LoopRef:
    return s.loops(s.block("C"))[number]


def asked(program: Program) -> Iterator[tuple[int, int]]:
    """The panel in which each address is asked for, and the address, in order of time."""
    yield from _asked(program.entry.body, {}, -1)


def _asked(s: Stmt, known: Mapping[Var, Expr], panel: int) -> Iterator[tuple[int, int]]:
    if isinstance(s, For):
        for n in range(_value(s.begin, known), _value(s.begin, known) + _value(s.extent, known)):
            first = not known and s.var.name.startswith("j")
            yield from _asked(s.body, {**known, s.var: index(n)}, n if first else panel)
    elif isinstance(s, Call) and s.callee == PREFETCH:
        (at,) = s.args[0].indices if isinstance(s.args[0], Address) else ()
        yield panel, _value(at, known)
    else:
        for x in sub_statements(s):
            yield from _asked(x, known, panel)
    assert not isinstance(s, If) or s.other is None


def _value(e: Expr, known: Mapping[Var, Expr]) -> int:
    made = simplify(substitute(e, known))
    assert isinstance(made, Const)
    return int(made.value)


@pytest.mark.parametrize(("rows", "tile"), [(8, 4), (9, 3), (7, 4), (20, 4), (16, 2)])
def test_all_of_the_next_panel_is_asked_for_in_order(rows: int, tile: int) -> None:
    case, s = panels(rows, depth=12, tile=tile)
    s.prefetch(loop(s, 0), "B_packed", 1)
    found = list(asked(lower(s.program, HERE)))
    tiles = -(-rows // tile)
    for panel in range(3):
        lines = [at // LINE for p, at in found if p == panel]
        begin, length = (panel + 1) * 12 * 32 // LINE, 12 * 32 // LINE
        assert lines == sorted(lines)
        assert set(lines) >= set(range(begin, begin + length))
        assert max(lines) < begin + length + -(-length // tiles), "no more than another piece"
    check_compiled(case, s.program)


def test_lowered(golden: Callable[[str], None]) -> None:
    _, s = panels(8, depth=12, tile=4)
    s.prefetch(loop(s, 0), "B_packed", 1)
    s.prefetch(loop(s, 2), "B_packed", 4)
    upto = next(n for n, p in enumerate(PASSES) if p.name == "stream_prefetches")
    golden(str(run_passes(PASSES[: upto + 1], s.program, HERE)))


def test_it_goes_to_the_second_level() -> None:
    _, s = panels(8, depth=12, tile=4)
    s.prefetch(loop(s, 0), "B_packed", 1)
    text = assembly(lower(s.program, HERE), HERE)
    assert "prefetcht1" in text
    assert "prefetcht0" not in text


def test_whole_lines_are_asked_for_at_once_where_the_reduction_has_an_outer_loop() -> None:
    """A quarter of 16 elements is no line: four steps of the inner loop together ask for one."""
    case, s = panels(16, depth=12, tile=4, width=LINE)
    k = loop(s, 2)
    s.split(k, [None, 4])
    s.prefetch(loop(s, 0), "B_packed", 1)
    found = list(asked(lower(s.program, HERE)))
    assert len(found) == 3 * 12
    assert [at for p, at in found if p == 0] == [12 * LINE + n * LINE for n in range(12)]
    check_compiled(case, s.program)


def test_columns_apart_are_streams_of_their_own() -> None:
    """Two panels at once: of each, the next but one is asked for."""
    case = matmul(8, 64, 12)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.pack(s.block("C"), "B", "i, j -> j // 16, i, j % 16", "global")
    j0, j1, j2 = s.split(j, [None, 2, 16])
    i0, i1 = s.split(i, [None, 4])
    s.reorder([j0, i0, k, i1, j1, j2])
    s.decompose_reduction(s.block("C"), k)
    for f in (i1, j1):
        s.unroll(f)
    s.vectorize(j2)
    s.prefetch(j0, "B_packed", 1)
    lines = {at // LINE for p, at in asked(lower(s.program, HERE)) if p == 0}
    begin, length = 2 * 12 * 16 // LINE, 2 * 12 * 16 // LINE
    assert lines >= set(range(begin, begin + length))
    check_compiled(case, s.program)


def test_a_way_that_is_not_in_order_is_asked_for_where_it_is_read() -> None:
    """The plain matrix is read by columns: a step goes to another row."""
    case = matmul(8, 64, 12)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    j0, j1 = s.split(j, [None, 32])
    s.reorder([j0, i, j1, k])
    s.prefetch(j0, "B", 1)
    flat = check_compiled(case, s.program)
    (hint,) = hints(flat)
    assert "+ 32" in hint
    assert hint.endswith(", 1)")


def test_tiles_that_are_cut_apart_ask_for_a_part_each() -> None:
    """The first tile has code of its own; it and the others still ask for each line of the next panel once."""
    case, s = panels(16, depth=12, tile=4, width=LINE * 4)
    s.prefetch(loop(s, 0), "B_packed", 1)
    s.partition(loop(s, 1), [1, 3])
    found = [at for p, at in asked(lower(s.program, HERE)) if p == 0]
    assert found == [12 * 4 * LINE + n * LINE for n in range(12 * 4)]
    check_compiled(case, s.program)


def test_panels_of_one_iteration_are_asked_for_one_after_another() -> None:
    """Two panels to an iteration, cut apart: while the first is used the second one is asked for, then the next first one."""
    case, s = panels(8, depth=12, tile=4, count=4)
    j0, j1 = s.split(loop(s, 0), [None, 2])
    s.prefetch(j0, "B_packed", 1)
    s.partition(j1, [1])
    flat = lower(s.program, HERE)
    lines = [at // LINE for p, at in asked(flat) if p == 0]
    length = 12 * 32 // LINE
    assert set(lines) == set(range(length, 3 * length))
    assert lines == sorted(lines)
    check_compiled(case, s.program)


def test_taps_that_are_written_out_are_steps_of_the_way() -> None:
    """The outer loop of the reduction is unrolled: each of its copies asks for its own part."""
    case, s = panels(8, depth=12, tile=4)
    outer, _ = s.split(loop(s, 2), [3, None])
    s.unroll(outer)
    s.prefetch(loop(s, 0), "B_packed", 1)
    lines = [at // LINE for p, at in asked(lower(s.program, HERE, unroll=True)) if p == 0]
    begin, length = 12 * 32 // LINE, 12 * 32 // LINE
    assert lines == sorted(lines)
    assert set(lines) == set(range(begin, begin + length))
    check_compiled(case, s.program)


def test_readers_side_by_side_each_ask_for_their_own() -> None:
    """Two rows of panels that one loop reads together: both are asked for, each for the next iteration."""
    text = """
def main(B: f32[4096], C: f32[1]):
    for j in range(0, 4, prefetch=(B, 1)):
        for k in range(0, 8):
            C[0] = C[0] + B[j * 256 + k * 32] * B[j * 256 + k * 32 + 2048]
"""
    alone = next(p for p in PASSES if p.name == "stream_prefetches")
    found = list(asked(run_passes([alone], parse_program(text), HERE)))
    for panel in range(4):
        runs = [(panel + 1) * 256, (panel + 1) * 256 + 2048]
        assert {at // LINE for p, at in found if p == panel} == {(r + n) // LINE for r in runs for n in range(256)}
