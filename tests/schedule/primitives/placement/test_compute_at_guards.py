"""`compute_at` where the consumer is guarded: what its guard leaves out is not needed."""

from __future__ import annotations

from tests.schedule.programs import stencil
from tests.schedule.running import check, loop, same_results

from weft.ir import conjuncts
from weft.loop import parse_program, print_program
from weft.lower.buffers.place_allocations import place_allocations
from weft.schedule import Schedule, blocks_in


def test_what_a_guard_leaves_out_is_not_computed() -> None:
    """The tile of 5 is split by 3: its guard keeps the box at 5, not 6."""
    case = stencil()
    s = Schedule(case.program)
    outer, inner = s.split(s.loops(s.block("C"))[0], [None, 5])
    s.split(inner, [None, 3])
    s.compute_at(s.block("B"), outer)
    assert s.extent(s.loops(s.block("B"))[-1]) == 7  # 5 and the halo of 2
    check(case, s.program)


def test_whole_vectors_where_a_guard_leaves_some_out() -> None:
    """Aligned to 4, the box of 7 is computed as 8; to 16, the box ends with the axis."""
    for align, length in ((1, 7), (4, 8), (16, 11)):
        case = stencil()
        s = Schedule(case.program)
        outer, inner = s.split(s.loops(s.block("C"))[0], [None, 5])
        s.split(inner, [None, 3])
        s.compute_at(s.block("B"), outer, align=align)
        assert s.extent(s.loops(s.block("B"))[-1]) == length
        check(case, s.program)


GROUPS = """
def main(X: f32[21], B: f32[21]):
    A = alloc("global", f32[21])
    for i in range(0, 21):
        with block("A", vi=spatial(21, i)):
            A[vi] = X[vi] * 2.0
    for j in range(0, 21):
        with block("B", vj=spatial(21, j)):
            B[vj] = A[vj] + 1.0
"""


def test_what_the_guard_of_its_consumer_leaves_out_is_not_computed() -> None:
    """Three groups of seven, each by three: what is beyond the last three of a group is of the next one."""
    before = parse_program(GROUPS)
    s = Schedule(before)
    _, inside = s.split(loop(s, "j"), [None, 7])
    outer, _ = s.split(inside, [None, 3])
    s.compute_at(s.block("A"), outer)
    guards = {x.name: len(conjuncts(x.predicate)) for x in blocks_in(s.function.body)}
    assert guards == {"A": 1, "B": 1}
    text = print_program(place_allocations(s.program))
    assert text.index("j_1_0 in") < text.index("alloc")
    same_results(before, s.program)


STRIDED = """
def main(X: f32[2, 16], B: f32[2, 7]):
    A = alloc("global", f32[2, 16])
    for n in range(0, 2):
        for i in range(0, 16):
            with block("A", vn=spatial(2, n), vi=spatial(16, i)):
                A[vn, vi] = X[vn, vi] * 2.0
    for m in range(0, 2):
        for j in range(0, 7):
            for k in range(0, 3):
                with block("B", vn=spatial(2, m), vj=spatial(7, j), vk=reduce(3, k)):
                    with init():
                        B[vn, vj] = 0.0
                    B[vn, vj] = B[vn, vj] + A[vn, vj * 2 + vk]
"""


def test_what_a_guard_cuts_off_may_be_read_by_another_window() -> None:
    """The guard keeps out j = 7, which reads A[14] first; but j = 6 reads A[14], too, as the last of its window."""
    before = parse_program(STRIDED)
    s = Schedule(before)
    s.split(loop(s, "j"), [None, 4])
    s.compute_at(s.block("A"), loop(s, "m"))
    assert [s.extent(f) for f in s.loops(s.block("A"))] == [2, 15]
    same_results(before, s.program)


def test_boxes_are_whole_where_guards_are_not_asked() -> None:
    """A is computed for rows that B leaves out, of which it has enough: without a guard of its own."""
    text = """
def main(X: f32[24], B: f32[21]):
    A = alloc("global", f32[24])
    for i in range(0, 24):
        with block("A", vi=spatial(24, i)):
            A[vi] = X[vi] * 2.0
    for j in range(0, 21):
        with block("B", vj=spatial(21, j)):
            B[vj] = A[vj] + 1.0
"""
    before = parse_program(text)
    for guarded in (True, False):
        s = Schedule(before)
        outer, _ = s.split(loop(s, "j"), [None, 8])
        s.compute_at(s.block("A"), outer, guarded=guarded)
        made = {x.name: len(conjuncts(x.predicate)) for x in blocks_in(s.function.body)}
        assert made == {"A": int(guarded), "B": 1}
        same_results(before, s.program)


PANELS = """
def main(X: f32[3, 24], B: f32[61]):
    A = alloc("global", f32[3, 24])
    for p in range(0, 3):
        for i in range(0, 24):
            with block("A", vp=spatial(3, p), vi=spatial(24, i)):
                A[vp, vi] = X[vp, vi] * 2.0
    for j in range(0, 61):
        with block("B", vj=spatial(61, j)):
            B[vj] = A[vj // 24, vj % 24] + 1.0
"""


def test_the_last_of_panels_is_computed_as_far_as_it_is_read_in_whole_vectors() -> None:
    """Of the third panel 13 columns are read: two vectors of 8; the allocation moves into the loop over panels all the same."""
    before = parse_program(PANELS)
    for align, end in ((8, "64"), (4, "64"), (6, "66"), (12, None)):
        s = Schedule(before)
        outer, _ = s.split(loop(s, "j"), [None, 24])
        s.compute_at(s.block("A"), outer, align=align)
        [guard] = [str(x.predicate) for x in blocks_in(s.function.body) if x.name == "A"]
        assert guard.endswith(f"< {end}") if end else guard == "True"
        text = print_program(place_allocations(s.program))
        assert text.index("j_0 in") < text.index("alloc")
        same_results(before, s.program)
