"""`cache_write`: a block writes to a buffer of its own, from which its result is copied."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, matmul, symbolic_matmul, two_outputs
from tests.schedule.refusing import refused
from tests.schedule.running import check, refusal, transition

from weft.loop import parse_program
from weft.schedule import Schedule


def written(name: str, block: str) -> Schedule:
    """One of the common cases with a block that writes to a copy, checked."""
    case = CASES[name]()
    s = Schedule(case.program)
    s.cache_write(s.block(block), "local")
    check(case, s.program)
    return s


# Which results


def test_an_output(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    copy = s.cache_write(s.block("C"), "register")
    assert copy == s.block("C_write")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_an_intermediate_result_is_still_read_where_it_was() -> None:
    s = written("bias_relu", "C")
    assert [b.name for b in s.blocks()] == ["C", "C_write", "D", "E"]


def test_a_result_with_several_readers() -> None:
    written("two_outputs", "A")


def test_one_of_two_outputs() -> None:
    case = two_outputs()
    s = Schedule(case.program)
    s.cache_write(s.block("B"), "local")
    check(case, s.program)


def test_a_padding() -> None:
    written("conv2d", "P")


def test_a_reduction_over_windows() -> None:
    written("conv2d", "Y")


def test_a_gathered_result() -> None:
    written("gather", "B")


def test_a_reduction_starts_in_its_own_buffer() -> None:
    s = written("matmul", "C")
    assert "C_local[vi, vj] = 0.0" in str(s)


@pytest.mark.parametrize("scope", ["global", "shared", "local", "register", "warp", "acc"])
def test_into_a_memory(scope: str) -> None:
    case = matmul()
    s = Schedule(case.program)
    s.cache_write(s.block("C"), scope)
    assert f'C_{scope} = alloc("{scope}"' in str(s)
    check(case, s.program)


def test_twice_by_way_of_two_memories() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.cache_write(s.block("C"), "shared")
    s.cache_write(s.block("C"), "register")
    assert [b.name for b in s.blocks()] == ["C", "C_shared_write", "C_write"]
    check(case, s.program)


def test_the_copy_may_have_a_copy() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.cache_write(s.cache_write(s.block("C"), "local"), "local")
    check(case, s.program)


# Symbolic


def test_symbolic_rows() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    s.cache_write(s.block("D"), "local")
    check(case, s.program)


def test_tiles_of_symbolic_rows() -> None:
    case = symbolic_matmul(7)
    s = Schedule(case.program)
    copy = s.cache_write(s.block("C"), "local")
    i0, _ = s.split(s.loops(s.block("C"))[0], [None, 4])
    s.reverse_compute_at(copy, i0)
    check_compiled(case, s.program)


# After other steps, and before them


def test_after_a_split_that_does_not_divide() -> None:
    case = matmul(5, 7, 3)
    s = Schedule(case.program)
    i0, _ = s.split(s.loops(s.block("C"))[0], [None, 2])
    s.reverse_compute_at(s.cache_write(s.block("C"), "local"), i0)
    check_compiled(case, s.program)


def test_after_reordering_the_reduction_outwards() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([k, i, j])
    s.cache_write(s.block("C"), "local")
    check(case, s.program)


def test_after_fusing() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    s.parallel(s.fuse([i, j]))
    s.cache_write(s.block("C"), "local")
    check(case, s.program)


def test_of_partial_results() -> None:
    case = matmul(4, 3, 6)
    s = Schedule(case.program)
    partial = s.rfactor(s.block("C"), s.split(s.loops(s.block("C"))[2], [None, 2])[1])
    s.compute_root(partial)
    s.cache_write(partial, "local")
    check(case, s.program)


def test_its_copy_ends_a_tile() -> None:
    case = matmul(8, 6, 4)
    s = Schedule(case.program)
    i0, j0, _, _ = s.tile(s.loops(s.block("C"))[:2], [4, 3])
    copy = s.cache_write(s.block("C"), "register")
    s.reverse_compute_at(copy, j0)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    s.parallel(i0)
    s.vectorize(s.loops(copy)[-1])
    check_compiled(case, s.program)


def test_the_copy_is_inlined_again() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.reverse_compute_inline(s.cache_write(s.block("E"), "local"))
    assert "E_local" not in str(s)
    check(case, s.program)


def test_of_a_block_of_loops() -> None:
    case = matmul(4, 6, 4)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    _, j1 = s.split(j, [None, 3])
    s.reorder([k, j1])
    outer = s.blockize(k)
    s.cache_write(outer, "local")
    s.parallel(i)
    check_compiled(case, s.program)


# Refused


def test_refused_where_the_nest_reads_it(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    s.compute_at(s.block("C"), s.loops(s.block("D"))[0])
    golden(refusal(lambda: s.cache_write(s.block("C"), "local")))


def test_refused_for_a_decomposed_reduction() -> None:
    s = Schedule(matmul().program)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    refused(
        lambda: s.cache_write(s.block("C"), "local"),
        "the block C_init writes the same buffer as C",
        'with block("C_init"',
        "place a block before decomposing its reduction",
    )


def test_refused_for_several_buffers() -> None:
    s = Schedule(CASES["argmax"]().program)
    refused(
        lambda: s.cache_write(s.block("top"), "local"),
        "top writes 2 buffers, not one",
        'with block("top"',
        "only a block with one result can write to a copy",
    )


@pytest.mark.parametrize(
    ("axes", "store"),
    [
        ("v=spatial(3, i)", "A[v] = 1.0"),
        ("v=spatial(4, i), where=i < 3", "A[v] = 1.0"),
        ("v=spatial(4, i)", "A[v] = A[v] + 1.0"),
        ("v=spatial(4, i)", "A[0] = 1.0"),
        ("v=spatial(4, i)", "if v > 1:\n                A[v] = 1.0"),
    ],
    ids=["fewer", "guarded", "update", "one place", "condition"],
)
def test_refused_for_a_part(axes: str, store: str) -> None:
    """The copy would overwrite the other elements with what happens to be in the new buffer."""
    n = 3 if "spatial(3" in axes else 4
    text = f'def main(A: f32[4]):\n    for i in range(0, {n}):\n        with block("A", {axes}):\n            {store}\n'
    s = Schedule(parse_program(text))
    refused(
        lambda: s.cache_write(s.block("A"), "local"),
        "A may not write all of A",
        'with block("A"',
        "the copy would overwrite the rest",
    )


def test_refused_for_what_is_no_memory() -> None:
    s = Schedule(matmul().program)
    refused(
        lambda: s.cache_write(s.block("C"), ""),
        "'' is not the name of a memory",
        None,
        "use one of global, shared, swizzled, dynamic, warp, fragment, local, register, or of an accelerator's own",
    )


def test_refused_for_steps_in_order() -> None:
    s = Schedule(parse_program(STEPS))
    refused(
        lambda: s.cache_write(s.block("S"), "local"),
        "the block S has ordered or opaque axes",
        'with block("S"',
        "only blocks with spatial and reduce axes can move",
    )


STEPS = """
def main(X: f32[4], S: f32[5]):
    for t in range(0, 4):
        with block("S", v=ordered(4, t)):
            S[v + 1] = S[v] + X[v]
"""
