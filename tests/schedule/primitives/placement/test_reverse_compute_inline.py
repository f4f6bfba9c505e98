"""`reverse_compute_inline`: a formula is applied where its argument is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, Case, case, symbolic_matmul, two_outputs
from tests.schedule.refusing import refused
from tests.schedule.running import check, refusal, same_results, transition

from weft import te
from weft.ir import Expr, Var, select
from weft.loop import parse_program
from weft.schedule import BlockRef, Schedule
from weft.support.dtypes import f32
from weft.te import Tensor


def reader(
    made: Sequence[int], read: Sequence[int], formula: Callable[..., Expr], oracle: Callable[..., object]
) -> Case:
    """T is twice X, of shape *made*; B, of shape *read*, is a *formula* of T and indices."""
    x = te.placeholder(tuple(made), f32, "X")
    t = te.compute(tuple(made), lambda *i: x[i] * 2.0, "T")
    b = te.compute(tuple(read), lambda *i: formula(t, *i), "B")
    return case([x], [b], lambda v: [np.asarray(oracle(v * 2))])


def inlined(c: Case) -> Schedule:
    """Inlines the block B; the result must be the same, interpreted and as machine code."""
    s = Schedule(c.program)
    s.reverse_compute_inline(s.block("B"))
    assert s.blocks() == (BlockRef("T"),)
    check_compiled(c, s.program)
    return s


# Which reads


def test_at_the_same_indices(golden: Callable[[str], None]) -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.reverse_compute_inline(s.block("E"))
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_into_another_order_of_axes() -> None:
    inlined(reader((4, 5), (5, 4), lambda t, i, j: t[j, i] + 1.0, lambda v: v.T + 1))


def test_a_reshape_to_fewer_axes() -> None:
    s = inlined(reader((4, 6), (24,), lambda t, i: t[i // 6, i % 6] + 1.0, lambda v: v.reshape(-1) + 1))
    assert "B[vi0 * 6 + vi1]" in str(s)


def test_a_reshape_to_more_axes() -> None:
    inlined(reader((24,), (4, 3, 2), lambda t, i, j, k: t[i * 6 + j * 2 + k], lambda v: v.reshape(4, 3, 2)))


def test_blocks_of_columns() -> None:
    inlined(
        reader((4, 6), (3, 4, 2), lambda t, o, i, j: t[i, o * 2 + j], lambda v: v.reshape(4, 3, 2).transpose(1, 0, 2))
    )


def test_from_the_other_end() -> None:
    s = inlined(reader((7,), (7,), lambda t, i: t[6 - i] + 1.0, lambda v: v[::-1] + 1))
    assert "B[6 - vi0]" in str(s)


def test_the_same_read_twice() -> None:
    inlined(reader((7,), (7,), lambda t, i: t[i] * t[i] + 1.0, lambda v: v * v + 1))


def test_a_read_under_a_condition() -> None:
    inlined(reader((7,), (7,), lambda t, i: select(t[i] > 0.0, t[i], 0.0), lambda v: np.maximum(v, 0)))


def test_the_index_in_the_formula() -> None:
    def formula(t: Tensor, i: Expr, j: Expr) -> Expr:
        return select(j < i, t[i, j], 0.0)

    inlined(reader((4, 4), (4, 4), formula, lambda v: np.tril(v, -1)))


# Parts


def test_the_first_ones() -> None:
    s = inlined(reader((6,), (4,), lambda t, i: t[i] + 1.0, lambda v: v[:4] + 1))
    assert "where=(i0 < 4)" in str(s)


def test_a_slice(golden: Callable[[str], None]) -> None:
    c = reader((6, 5), (3, 5), lambda t, i, j: t[i + 2, j] + 1.0, lambda v: v[2:5] + 1)
    s = inlined(c)
    golden(transition(c.program, s.program))


def test_a_slice_backwards() -> None:
    inlined(reader((8,), (3,), lambda t, i: t[5 - i], lambda v: v[5:2:-1]))


def test_a_reshaped_slice() -> None:
    inlined(reader((12,), (2, 3), lambda t, i, j: t[i * 3 + j + 4], lambda v: v[4:10].reshape(2, 3)))


# Boundary


def test_an_axis_of_one_iteration_less() -> None:
    inlined(reader((1, 6), (6,), lambda t, i: t[0, i] + 1.0, lambda v: v[0] + 1))


def test_an_axis_of_one_iteration_more() -> None:
    inlined(reader((6,), (1, 6), lambda t, u, i: t[i] + 1.0, lambda v: v[None] + 1))


def test_an_axis_of_one_iteration_at_a_constant() -> None:
    inlined(reader((1, 6), (1, 6), lambda t, u, i: t[0, i] + 1.0, lambda v: v + 1))


def test_one_of_several_rows() -> None:
    inlined(reader((4, 6), (6,), lambda t, i: t[2, i] + 1.0, lambda v: v[2] + 1))


def test_a_single_element() -> None:
    inlined(reader((4,), (), lambda t: t[3] + 1.0, lambda v: v[3] + 1))


# Symbolic


def test_a_copy_of_symbolic_rows() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    s.cache_write(s.block("D"), "local")
    s.reverse_compute_inline(s.block("D_write"))
    check(case, s.program)


def test_symbolic_rows_transposed() -> None:
    n, m = Var("n"), Var("m")
    x = te.placeholder((n, m), f32, "X")
    t = te.compute((n, m), lambda i, j: x[i, j] * 2.0, "T")
    c = case([x], [te.compute((m, n), lambda i, j: t[j, i] + 1.0, "B")], lambda v: [v.T * 2 + 1], n=3, m=4)
    inlined(c)


# Other inputs


def test_with_another_input_made_before() -> None:
    a, b = te.placeholder((4, 5), f32, "A"), te.placeholder((4, 5), f32, "B")
    left = te.compute((4, 5), lambda i, j: a[i, j] * 2.0, "L")
    right = te.compute((4, 5), lambda i, j: b[i, j] + 1.0, "R")
    before = te.to_program([a, b], [te.compute((4, 5), lambda i, j: left[i, j] - right[i, j], "S")])
    s = Schedule(before)
    s.reverse_compute_inline(s.block("S"))
    assert [x.name for x in s.blocks()] == ["L", "R"]
    same_results(before, s.program)


# After other steps


@pytest.mark.parametrize("which", ["T", "B"])
def test_after_splitting(which: str) -> None:
    c = reader((5, 7), (7, 5), lambda t, i, j: t[j, i] + 1.0, lambda v: v.T + 1)
    s = Schedule(c.program)
    s.split(s.loops(s.block(which))[0], [None, 2])
    s.reverse_compute_inline(s.block("B"))
    check(c, s.program)


def test_in_loops_that_both_share() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.compute_at(s.block("D"), s.loops(s.block("E"))[1])
    s.reverse_compute_inline(s.block("E"))
    check(case, s.program)


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_into_a_loop_of_a_kind(kind: str) -> None:
    c = reader((6, 8), (3, 8), lambda t, i, j: t[i + 2, 7 - j] + 1.0, lambda v: v[2:5, ::-1] + 1)
    s = Schedule(c.program)
    s.apply(kind, s.loops(s.block("T"))[1])
    s.reverse_compute_inline(s.block("B"))
    check_compiled(c, s.program)


def test_a_chain_from_its_end() -> None:
    case = CASES["reshaped"]()
    s = Schedule(case.program)
    s.reverse_compute_inline(s.block("C"))
    s.reverse_compute_inline(s.block("B"))
    assert s.blocks() == (BlockRef("A"),)
    check(case, s.program)


def test_what_is_left_is_scheduled_further() -> None:
    c = reader((6, 8), (3, 8), lambda t, i, j: t[i + 2, j] + 1.0, lambda v: v[2:5] + 1)
    s = inlined(c)
    i, j = s.loops(s.block("T"))
    s.tile([i, j], [4, 3])
    s.parallel(s.loops(s.block("T"))[0])
    check_compiled(c, s.program)


# Refused


def test_refused_for_a_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    golden(refusal(lambda: s.reverse_compute_inline(s.block("D"))))


def test_refused_with_other_readers(golden: Callable[[str], None]) -> None:
    s = Schedule(two_outputs().program)
    golden(refusal(lambda: s.reverse_compute_inline(s.block("C"))))


def test_refused_at_several_indices(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["stencil"]().program)
    golden(refusal(lambda: s.reverse_compute_inline(s.block("C"))))


@pytest.mark.parametrize(
    ("read", "formula"),
    [
        ((4,), lambda t, i: t[i * 2]),
        ((4, 3), lambda t, i, j: t[i]),
        ((6,), lambda t, i: t[i // 2]),
        ((8,), lambda t, i: t[i % 4]),
        ((3, 3), lambda t, i, j: t[i + j]),
        ((8,), lambda t, i: t[(i * i) % 8]),
    ],
    ids=["every other", "repeated", "each twice", "around", "overlapping", "not linear"],
)
def test_refused_for_other_reads(read: tuple[int, ...], formula: Callable[..., Expr]) -> None:
    s = Schedule(reader((8,), read, formula, lambda v: v).program)
    refused(
        lambda: s.reverse_compute_inline(s.block("B")),
        "B does not read each element of a box of T once",
        'with block("B"',
        "inline the producer into it, or compute it in the producer's loops",
    )


BETWEEN = """
def main(A: f32[4], D: f32[4], S: f32[4]):
    L = alloc("global", f32[4])
    R = alloc("global", f32[4])
    for i in range(0, 4):
        with block("L", v=spatial(4, i)):
            L[v] = A[v] * 2.0
    for j in range(0, 4):
        with block("R", v=spatial(4, j)):
            R[v] = A[v] + 1.0
    for k in range(0, 4):
        with block("S", v=spatial(4, k)):
            S[v] = L[v] - R[v]
    for u in range(0, 4):
        with block("D", v=spatial(4, u)):
            D[v] = R[v]
"""


@pytest.mark.parametrize(
    ("old", "new", "what", "at", "hint"),
    [
        ("", "", "R, which comes later, makes what S reads", "R", "move that block first, or choose a later place"),
        (
            "R[v] = A[v] + 1.0",
            "R[v] = A[v] + S[v]",
            "R, which comes before S, uses S too",
            "R",
            "move that block first",
        ),
        (
            "v=spatial(4, k)",
            "v=spatial(4, k), where=k != 1",
            "S runs under a condition",
            "S",
            "write the condition into the value, by select",
        ),
        (
            'range(0, 4):\n        with block("S"',
            'range(0, 3):\n        with block("S"',
            "S may run some of its instances never",
            "S",
            "only a block that runs over all of its axes can be inlined",
        ),
        (
            "S[v] = L[v] - R[v]",
            "S[v] = L[v]\n            S[v] = R[v]",
            "S is not a single assignment",
            "S",
            "only a block that is one unconditional assignment will do",
        ),
        (
            "L[v] = A[v] * 2.0",
            "L[v] = L[v] * 2.0",
            "L is a reduction",
            "L",
            "reverse_compute_at runs it in the loops of the reduction",
        ),
    ],
    ids=["input", "used before", "guard", "part", "twice", "update"],
)
def test_refused_for_another_program(old: str, new: str, what: str, at: str, hint: str) -> None:
    s = Schedule(parse_program(BETWEEN.replace(old, new)))
    refused(lambda: s.reverse_compute_inline(s.block("S")), what, f'with block("{at}"', hint)


def test_refused_without_a_producer() -> None:
    s = Schedule(CASES["stencil"]().program)
    refused(
        lambda: s.reverse_compute_inline(s.block("A")),
        "nothing makes what A reads",
        'with block("A"',
        "only a block that reads an intermediate result has a producer",
    )


def test_refused_for_an_output_as_the_producer() -> None:
    x = te.placeholder((4,), f32, "X")
    t = te.compute((4,), lambda i: x[i] * 2.0, "T")
    s = Schedule(te.to_program([x], [t, te.compute((4,), lambda i: t[i] + 1.0, "B")]))
    refused(
        lambda: s.reverse_compute_inline(s.block("B")),
        "T is an output of the function",
        'with block("T"',
        "only an intermediate result can move to its use",
    )


def test_refused_inside_a_block_of_loops() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    s.blockize(s.loops(s.block("E"))[1])
    refused(
        lambda: s.reverse_compute_inline(s.block("E")),
        "it is inside the block E_o",
        'with block("E"',
        "place E_o as a whole, or take this step before blockize",
    )


def test_refused_into_a_block_of_loops() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    s.blockize(s.loops(s.block("D"))[1])
    refused(
        lambda: s.reverse_compute_inline(s.block("E")),
        "D_o is not a single assignment",
        'with block("D_o"',
        "only a block that is one unconditional assignment will do",
    )
