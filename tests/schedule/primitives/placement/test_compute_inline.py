"""`compute_inline`: a formula is computed wherever it is read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, case, conv2d, matmul, row_sums, rows, symbolic_rows, two_outputs
from tests.schedule.refusing import refused
from tests.schedule.running import check, refusal, same_results, transition

from weft import te
from weft.ir import Var, maximum
from weft.loop import parse_program
from weft.schedule import BlockRef, Schedule
from weft.support.dtypes import f32


def inlined(name: str, *blocks: str) -> Schedule:
    """One of the common cases with blocks inlined, checked."""
    case = CASES[name]()
    s = Schedule(case.program)
    for b in blocks:
        s.compute_inline(s.block(b))
        assert BlockRef(b) not in s.blocks()
    check(case, s.program)
    return s


# Into which readers


def test_into_a_reduction(golden: Callable[[str], None]) -> None:
    case = CASES["conv2d"]()
    s = Schedule(case.program)
    s.compute_inline(s.block("P"))
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_into_an_assignment() -> None:
    assert "alloc" not in str(inlined("blur", "A"))


def test_into_several_readers() -> None:
    s = inlined("two_outputs", "A")
    assert str(s).count("X[") == 4


def test_into_readers_on_both_sides_of_a_reduction() -> None:
    inlined("row_sums", "A")


def test_into_several_reads_of_one_reader() -> None:
    s = inlined("symmetric", "A")
    assert "X[vi, vj] * 2.0 - X[vj, vi] * 2.0" in str(s)


def test_into_the_start_of_a_reduction() -> None:
    text = """
def main(X: f32[4], B: f32[4]):
    A = alloc("global", f32[4])
    for i in range(0, 4):
        with block("A", v=spatial(4, i)):
            A[v] = X[v] * 2.0
    for i in range(0, 4):
        for k in range(0, 3):
            with block("B", v=spatial(4, i), vk=reduce(3, k)):
                with init():
                    B[v] = A[v]
                B[v] = B[v] + 1.0
"""
    s = Schedule(parse_program(text))
    before = s.program
    s.compute_inline(s.block("A"))
    same_results(before, s.program)


def test_into_a_reader_of_several_values() -> None:
    x, k = te.placeholder((3, 5), f32, "X"), te.reduce_axis(5, "k")
    a = te.compute((3, 5), lambda i, j: x[i, j] * 2.0, "A")
    at, top = te.compute_many((3,), lambda i: te.argmax((k, a[i, k]), [k]), "B")
    s = Schedule(te.to_program([x], [at, top]))
    before = s.program
    s.compute_inline(s.block("A"))
    same_results(before, s.program)


def test_a_chain() -> None:
    s = inlined("stencil", "A", "B")
    assert s.blocks() == (BlockRef("C"),)


def test_a_chain_from_its_end() -> None:
    inlined("stencil", "B", "A")


def test_what_is_never_read_goes_away() -> None:
    s = Schedule(parse_program(UNUSED))
    s.compute_inline(s.block("A"))
    assert "alloc" not in str(s)


UNUSED = """
def main(X: f32[4], B: f32[4]):
    A = alloc("global", f32[4])
    for i in range(0, 4):
        with block("A", v=spatial(4, i)):
            A[v] = X[v]
    for i in range(0, 4):
        with block("B", v=spatial(4, i)):
            B[v] = X[v] + 1.0
"""


# At which indices


def test_at_other_indices() -> None:
    x = te.placeholder((8,), f32, "X")
    a = te.compute((8,), lambda i: x[i] * 2.0, "A")
    c = case([x], [te.compute((4,), lambda i: a[7 - 2 * i], "B")], lambda v: [(v * 2)[::-2]])
    s = Schedule(c.program)
    s.compute_inline(s.block("A"))
    check(c, s.program)
    assert "X[7 - 2 * vi]" in str(s)


def test_of_another_rank() -> None:
    inlined("reshaped", "A", "B")


def test_at_a_constant() -> None:
    x = te.placeholder((3, 4), f32, "X")
    a = te.compute((3, 4), lambda i, j: x[i, j] + 1.0, "A")
    c = case([x], [te.compute((4,), lambda j: a[2, j] * 2.0, "B")], lambda v: [(v[2] + 1) * 2])
    s = Schedule(c.program)
    s.compute_inline(s.block("A"))
    check(c, s.program)


def test_a_place_read_from_memory() -> None:
    inlined("gather", "A")


def test_the_place_itself() -> None:
    inlined("gather", "S")


def test_a_producer_that_writes_in_another_order() -> None:
    text = """
def main(X: f32[4, 5], B: f32[5, 4]):
    A = alloc("global", f32[5, 4])
    for i in range(0, 4):
        for j in range(0, 5):
            with block("A", vi=spatial(4, i), vj=spatial(5, j)):
                A[vj, vi] = X[vi, vj]
    for i in range(0, 5):
        for j in range(0, 4):
            with block("B", vi=spatial(5, i), vj=spatial(4, j)):
                B[vi, vj] = A[vi, vj] + 1.0
"""
    s = Schedule(parse_program(text))
    before = s.program
    s.compute_inline(s.block("A"))
    same_results(before, s.program)


# Boundary


def test_axes_of_one_iteration() -> None:
    x = te.placeholder((1, 6), f32, "X")
    a = te.compute((1, 6), lambda u, i: x[u, i] * 2.0, "A")
    c = case([x], [te.compute((6,), lambda i: a[0, i] + 1.0, "B")], lambda v: [v[0] * 2 + 1])
    s = Schedule(c.program)
    s.compute_inline(s.block("A"))
    check(c, s.program)


def test_a_value_without_axes() -> None:
    x = te.placeholder((6,), f32, "X")
    a = te.compute((), lambda: x[3] * 2.0, "A")
    c = case([x], [te.compute((6,), lambda i: x[i] + a[()], "B")], lambda v: [v + v[3] * 2])
    s = Schedule(c.program)
    s.compute_inline(s.block("A"))
    check(c, s.program)


def test_a_guard_that_leaves_nothing_out() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.split(s.loops(s.block("D"))[1], [None, 4])
    s.compute_inline(s.block("D"))
    check(case, s.program)


# Symbolic


def test_symbolic() -> None:
    case = symbolic_rows()
    s = Schedule(case.program)
    s.compute_inline(s.block("A"))
    check(case, s.program)


def test_a_slice_of_symbolic_rows() -> None:
    n = Var("n")
    x = te.placeholder((n, 4), f32, "X")
    a = te.compute((n, 4), lambda i, j: maximum(x[i, j], 0.0), "A")
    out = te.compute((n, 2), lambda i, j: a[n - 1 - i, j * 2 + 1], "B")
    c = case([x], [out], lambda v: [np.maximum(v, 0)[::-1, 1::2]], n=3)
    s = Schedule(c.program)
    s.compute_inline(s.block("A"))
    check(c, s.program)


# After other steps


def test_after_its_loops_were_split() -> None:
    case = conv2d()
    s = Schedule(case.program)
    s.split(s.loops(s.block("P"))[2], [None, 3])
    s.compute_inline(s.block("P"))
    check(case, s.program)


def test_after_it_was_placed_in_its_readers_loop() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.compute_at(s.block("D"), s.loops(s.block("E"))[0])
    s.compute_inline(s.block("D"))
    check(case, s.program)


def test_after_its_loops_were_fused_and_reordered() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    i, j = s.loops(s.block("D"))
    s.reorder([j, i])
    s.parallel(s.fuse([j, i]))
    s.compute_inline(s.block("D"))
    check(case, s.program)


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_into_a_reader_in_a_loop_of_a_kind(kind: str) -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.apply(kind, s.loops(s.block("E"))[1])
    s.compute_inline(s.block("D"))
    check_compiled(case, s.program)


def test_of_a_copy() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.compute_inline(s.cache_read(s.block("C"), "A", "local"))
    check(case, s.program)


def test_of_a_result_in_another_layout() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.transform_layout(s.block("D"), "D", "i, j -> j, i")
    s.compute_inline(s.block("D"))
    check(case, s.program)


def test_into_a_decomposed_reduction() -> None:
    case = conv2d()
    s = Schedule(case.program)
    s.decompose_reduction(s.block("Y"), s.loops(s.block("Y"))[3])
    s.compute_inline(s.block("P"))
    check(case, s.program)


def test_into_a_block_of_loops() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    outer = s.blockize(s.loops(s.block("E"))[1])
    s.compute_inline(s.block("D"))
    assert "reads(C[vi_o, 0:7], T[0:7])" in str(s)
    assert s.loops(outer)
    check(case, s.program)


# Refused


def test_refused_for_a_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(rows().program)
    golden(refusal(lambda: s.compute_inline(s.block("total"))))


def test_refused_for_an_output(golden: Callable[[str], None]) -> None:
    s = Schedule(rows().program)
    golden(refusal(lambda: s.compute_inline(s.block("out"))))


def test_refused_for_one_of_two_outputs() -> None:
    s = Schedule(two_outputs().program)
    refused(
        lambda: s.compute_inline(s.block("B")),
        "B is an output of the function",
        'with block("B"',
        "only an intermediate result can move to its use",
    )


def changed(old: str, new: str) -> Schedule:
    """A block T, read by B after another block, with a part of its text replaced."""
    assert old in CHANGED
    return Schedule(parse_program(CHANGED.replace(old, new).replace("A[v] = 0.0", "B[v] = 0.0")))


CHANGED = """
def main(A: f32[4], B: f32[4]):
    T = alloc("global", f32[4])
    for i in range(0, 4):
        with block("T", v=spatial(4, i)):
            T[v] = A[v] * 2.0
    for u in range(0, 4):
        with block("Z", v=spatial(4, u)):
            A[v] = 0.0
    for j in range(0, 4):
        with block("B", v=spatial(4, j)):
            B[v] = T[v] + 1.0
"""


def test_refused_where_an_input_changes_in_between() -> None:
    s = Schedule(parse_program(CHANGED))
    refused(
        lambda: s.compute_inline(s.block("T")),
        "Z, which comes later, writes what T reads",
        'with block("Z"',
        "choose a place before it",
    )


@pytest.mark.parametrize(
    ("old", "new", "what", "hint"),
    [
        ("T[v] = A[v] * 2.0", "if A[v] > 1.0:\n                T[v] = A[v]", "T is not a single assignment",
         "only a block that is one unconditional assignment will do"),
        ("T[v] = A[v] * 2.0", "T[v] = A[v]\n            T[v] = A[v] * 2.0", "T is not a single assignment",
         "only a block that is one unconditional assignment will do"),
        ("v=spatial(4, i)", "v=spatial(4, i), where=i != 2", "T runs under a condition",
         "write the condition into the value, by select"),
        ("T[v] = A[v] * 2.0", "T[v] = T[v] * 2.0", "T reads what it writes", "a reduction can't be inlined"),
        ("T[v] = A[v] * 2.0", "T[3 - v] = A[v]", "T does not write T at its plain axes, each once",
         "only an assignment such as A[i, j] = ... can be inlined"),
        ("v=spatial(4, i)", "v=ordered(4, i)", "the block T has ordered or opaque axes",
         "only blocks with spatial and reduce axes can move"),
    ],
    ids=["if", "twice", "guard", "update", "reversed", "ordered"],
)  # fmt: skip
def test_refused_for_another_form(old: str, new: str, what: str, hint: str) -> None:
    s = changed(old, new)
    refused(lambda: s.compute_inline(s.block("T")), what, 'with block("T"', hint)


def test_refused_where_two_blocks_write_it() -> None:
    s = changed("A[v] = 0.0", "T[v] = 0.0")
    refused(
        lambda: s.compute_inline(s.block("T")),
        "the block Z writes the same buffer as T",
        'with block("Z"',
        "place a block before decomposing its reduction",
    )


def test_refused_where_the_reader_could_not_reach_its_inputs() -> None:
    """In a parallel loop each iteration has its own halo of A, which nothing outside can read."""
    s = Schedule(CASES["stencil"]().program)
    (i,) = s.loops(s.block("B"))
    s.compute_at(s.block("A"), i)
    s.parallel(i)
    refused(
        lambda: s.compute_inline(s.block("B")),
        "C would use A, which each iteration of another loop has for itself",
        'with block("C"',
        "take this step before making the other loop parallel",
    )


def test_refused_inside_a_block_of_loops() -> None:
    s = Schedule(row_sums().program)
    s.blockize(s.loops(s.block("A"))[1])
    refused(
        lambda: s.compute_inline(s.block("A")),
        "it is inside the block A_o",
        'with block("A"',
        "place A_o as a whole, or take this step before blockize",
    )
