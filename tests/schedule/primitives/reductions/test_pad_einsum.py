"""`pad_einsum`: a contraction runs over axes that are rounded up, on copies of its inputs with zeros behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.products import product, tiled
from tests.schedule.programs import (
    Array,
    Case,
    argmax,
    bias_relu,
    case,
    conv2d,
    matmul,
    pool,
    recurrence,
    stencil,
    symbolic_matmul,
    symbolic_rows,
)
from tests.schedule.running import check, refusal, transition

from weft import te
from weft.codegen.interp import run
from weft.ir import Expr
from weft.loop import parse_program
from weft.schedule import BlockRef, Schedule
from weft.support.dtypes import f32, i32
from weft.support.errors import ScheduleError

Golden = Callable[[str], None]


def test_a_product(golden: Golden) -> None:
    c = matmul(5, 8, 3)
    s = Schedule(c.program)
    assert s.pad_einsum(s.block("C"), [4, 1, 4]) == (BlockRef("A_pad"), BlockRef("B_pad"), BlockRef("C_pad"))
    check_compiled(c, s.program)
    golden(transition(c.program, s.program))


@pytest.mark.parametrize("padding", [[8, 1, 1], [1, 8, 1], [1, 1, 8], [2, 3, 5], [7, 7, 7], [64, 64, 64], [1, 1, 1]])
def test_any_axes(padding: list[int]) -> None:
    c = matmul(5, 7, 3)
    s = Schedule(c.program)
    made = s.pad_einsum(s.block("C"), padding)
    assert len(made) == len([p for p in ((0, 2), (2, 1), (0, 1)) if any(padding[a] > 1 for a in p)])
    check_compiled(c, s.program)


def test_extents_that_are_multiples_already() -> None:
    """The steps of a schedule are the same then, so that it can be replayed on other shapes."""
    c = matmul(4, 8, 4)
    s = Schedule(c.program)
    assert len(s.pad_einsum(s.block("C"), [4, 4, 4])) == 3
    assert "select" not in str(s)
    check_compiled(c, s.program)


def test_only_the_reduction_needs_no_copy_of_the_result() -> None:
    c = matmul(4, 4, 3)
    s = Schedule(c.program)
    assert s.pad_einsum(s.block("C"), [1, 1, 4]) == (BlockRef("A_pad"), BlockRef("B_pad"))
    check_compiled(c, s.program)


def test_symbolic(golden: Golden) -> None:
    for n in (1, 4, 5):
        c = symbolic_matmul(n)
        s = Schedule(c.program)
        s.pad_einsum(s.block("C"), [4, 1, 4])
        check_compiled(c, s.program)
    golden(str(s))


def test_a_symbolic_reduction() -> None:
    """`n` is rounded up inside the program; rows that are none add nothing."""
    c = symbolic_rows(3, 5)
    s = Schedule(c.program)
    s.pad_einsum(s.block("S"), [2, 4])
    check_compiled(c, s.program)


def test_whole_numbers() -> None:
    c = product(5, 19, 6)
    s = Schedule(c.program)
    s.pad_einsum(s.block("C"), [1, 16, 4])
    check_compiled(c, s.program)


def test_a_factor_that_does_not_depend_on_the_reduction() -> None:
    """For whole numbers zero times it is zero."""
    a, b = te.placeholder((5, 3), i32, "A"), te.placeholder((5,), i32, "B")
    k = te.reduce_axis(3, "k")
    y = te.compute((5,), lambda i: te.sum_(a[i, k] * b[i] * 2, [k]), "Y")
    c = case([a, b], [y], lambda x, z: [x.sum(1) * z * 2])
    s = Schedule(c.program)
    s.pad_einsum(s.block("Y"), [4, 4])
    check_compiled(c, s.program)


def batched() -> Case:
    x, w = te.placeholder((2, 5, 3), f32, "X"), te.placeholder((2, 6, 3), f32, "W")
    k = te.reduce_axis(3, "k")
    y = te.compute((2, 5, 6), lambda b, i, j: te.sum_(x[b, i, k] * w[b, j, k], [k]), "Y")
    return case([x, w], [y], lambda u, v: [u @ v.transpose(0, 2, 1)])


def test_a_batch_of_products() -> None:
    c = batched()
    s = Schedule(c.program)
    s.pad_einsum(s.block("Y"), [1, 4, 8, 4])
    check_compiled(c, s.program)


def test_one_input_read_twice() -> None:
    x, k = te.placeholder((5, 3), f32, "X"), te.reduce_axis(3, "k")
    y = te.compute((5, 5), lambda i, j: te.sum_(x[i, k] * x[j, k], [k]), "Y")
    c = case([x], [y], lambda v: [v @ v.T])
    s = Schedule(c.program)
    assert len(s.pad_einsum(s.block("Y"), [4, 4, 2])) == 2
    check_compiled(c, s.program)


def test_channels_of_a_convolution() -> None:
    """Windows overlap, so that their axes stay; the channels do not."""
    c = conv2d(3, 5, 6, 5)
    s = Schedule(c.program)
    names = [a.name for a in s.pad_einsum(s.block("Y"), [4, 1, 1, 4, 1, 1])]
    assert names == ["P_pad", "F_pad", "Y_pad"]
    check_compiled(c, s.program)


def test_an_elementwise_block() -> None:
    c = bias_relu(5, 7, 3)
    s = Schedule(c.program)
    s.pad_einsum(s.block("D"), [4, 4])
    check_compiled(c, s.program)


def test_results_of_a_maximum() -> None:
    c = pool()
    s = Schedule(c.program)
    with pytest.raises(ScheduleError, match="does not read P at the whole of an axis"):
        s.pad_einsum(s.block("Y"), [4, 1, 1, 1])
    x, k = te.placeholder((5, 3), f32, "X"), te.reduce_axis(3, "k")
    y = te.compute((5,), lambda i: te.max_(x[i, k], [k]), "Y")
    m = case([x], [y], lambda v: [v.max(1)])
    t = Schedule(m.program)
    t.pad_einsum(t.block("Y"), [4, 1])
    check_compiled(m, t.program)


# -- with other primitives ---------------------------------------------------------------------------------------------


def test_what_pads_can_be_placed_and_inlined_afterwards() -> None:
    c = bias_relu(5, 7, 3)
    s = Schedule(c.program)
    a, b, y = s.pad_einsum(s.block("C"), [4, 4, 4])
    i, j, k = s.loops(s.block("C"))
    i0, j0, i1, j1 = s.tile([i, j], [4, 4])
    s.compute_at(b, j0)
    s.compute_inline(a)
    s.compute_inline(s.block("D"))
    s.reverse_compute_inline(s.block("E"))
    s.decompose_reduction(s.block("C"), k)
    s.vectorize(j1)
    s.unroll(i1)
    s.parallel(i0)
    assert y.name == "C_pad"
    check_compiled(c, s.program)


def test_after_caches_and_other_orders_of_loops() -> None:
    c = matmul(5, 7, 3)
    s = Schedule(c.program)
    s.cache_read(s.block("C"), "A", "local")
    s.cache_write(s.block("C"), "local")
    i, j, k = s.loops(s.block("C"))
    s.reorder([k, j, i])
    s.parallel(j)
    assert [b.name for b in s.pad_einsum(s.block("C"), [4, 8, 2])] == ["A_local_pad", "B_pad", "C_local_pad"]
    check_compiled(c, s.program)


def test_in_a_loop_that_repeats_it() -> None:
    c = matmul(5, 7, 3)
    s = Schedule(c.program)
    s.add_unit_loop(s.block("C"))
    s.pad_einsum(s.block("C"), [4, 4, 4])
    check_compiled(c, s.program)


def test_so_that_an_instruction_fits() -> None:
    """A product of 5 x 19 x 6 on an instruction for 16 columns and 4 steps."""
    c = product(5, 19, 6)
    s = Schedule(c.program)
    s.pad_einsum(s.block("C"), [1, 16, 4])
    block, j1 = tiled(s, 16, 4)
    s.pack(block, "B_pad", "k, j -> j // 16, k // 4, j % 16, k % 4", "local")
    s.decompose_reduction(block, s.loops(block)[2])
    s.tensorize(j1, "x86.dot_u8i8_16x4")
    check(c, s.program)


def test_the_trace_repeats_it_on_another_shape() -> None:
    s = Schedule(matmul(5, 7, 3).program)
    _, _, crop = s.pad_einsum(s.block("C"), [4, 4, 4])
    s.parallel(s.loops(crop)[0])
    other = matmul(8, 3, 9)
    again = Schedule(other.program)
    exec(str(s.trace), {"s": again})
    assert str(again.trace) == str(s.trace)
    check_compiled(other, again.program)


# -- infinity, and what is refused ---------------------------------------------------------------------------------------


def test_infinities_meet_no_zeros() -> None:
    """Where nothing is padded infinity stays; the products of padding are zeros times zeros."""
    s = Schedule(matmul(2, 2, 3).program)
    s.pad_einsum(s.block("C"), [4, 4, 4])
    a, b, c = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32), np.zeros((2, 2), np.float32)
    a[0, 2] = np.inf
    run(s.program, [a, b, c])
    np.testing.assert_array_equal(c, np.array([[np.inf, np.inf], [3, 3]], np.float32))


def test_refused_where_infinity_times_zero_would_be_added(golden: Golden) -> None:
    a, b, k = te.placeholder((5, 3), f32, "A"), te.placeholder((5,), f32, "B"), te.reduce_axis(3, "k")
    y = te.compute((5,), lambda i: te.sum_(a[i, k] * b[i], [k]), "Y")
    s = Schedule(te.to_program([a, b], [y]))
    golden(refusal(lambda: s.pad_einsum(s.block("Y"), [1, 4])))


@pytest.mark.parametrize(
    "term",
    [
        lambda a, i, k: a[i, k] + 1.0,
        lambda a, i, k: a[i, k] * a[i, 0] + a[i, 1],
        lambda a, i, k: a[i, 1] * 2.0,
    ],
)
def test_refused_for_what_is_not_zero(term: Callable[[Any, Expr, Expr], Expr]) -> None:
    a, k = te.placeholder((5, 3), f32, "A"), te.reduce_axis(3, "k")
    y = te.compute((5,), lambda i: te.sum_(term(a, i, k), [k]), "Y")
    s = Schedule(te.to_program([a], [y]))
    with pytest.raises(ScheduleError, match="Y does not add zero where its axis vk is padded"):
        s.pad_einsum(s.block("Y"), [1, 2])


def test_refused_for_a_maximum(golden: Golden) -> None:
    x, k = te.placeholder((5, 3), f32, "X"), te.reduce_axis(3, "k")
    y = te.compute((5,), lambda i: te.max_(x[i, k], [k]), "Y")
    s = Schedule(te.to_program([x], [y]))
    golden(refusal(lambda: s.pad_einsum(s.block("Y"), [1, 4])))


def test_refused_for_a_quotient() -> None:
    """A division by what is behind the inputs would stop the program."""
    x, z = te.placeholder((5,), i32, "X"), te.placeholder((5,), i32, "Z")
    y = te.compute((5,), lambda i: x[i] // z[i], "Y")
    s = Schedule(te.to_program([x, z], [y]))
    with pytest.raises(ScheduleError, match="is not made of sums and products of elements: it has `X"):
        s.pad_einsum(s.block("Y"), [4])


def test_refused_for_windows(golden: Golden) -> None:
    s = Schedule(stencil().program)
    golden(refusal(lambda: s.pad_einsum(s.block("B"), [4])))


def test_refused_after_a_split(golden: Golden) -> None:
    s = Schedule(matmul().program)
    s.split(s.loops(s.block("C"))[0], [None, 4])
    golden(refusal(lambda: s.pad_einsum(s.block("C"), [4, 4, 4])))


def test_refused_after_its_start_was_taken_apart() -> None:
    s = Schedule(matmul().program)
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    with pytest.raises(ScheduleError, match="writes the same buffer as C"):
        s.pad_einsum(s.block("C"), [4, 4, 4])


def test_refused_for_other_numbers(golden: Golden) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.pad_einsum(s.block("C"), [4, 4])))
    with pytest.raises(ScheduleError, match="is not one multiple, 1 or more, for each axis"):
        s.pad_einsum(s.block("C"), [4, 4, 0])


def test_refused_for_several_results_and_for_time() -> None:
    s = Schedule(argmax().program)
    with pytest.raises(ScheduleError, match="is not a single assignment"):
        s.pad_einsum(s.block("top"), [4, 1])
    t = Schedule(recurrence().program)
    with pytest.raises(ScheduleError, match="ordered or opaque axes"):
        t.pad_einsum(t.block("S"), [4, 1])


IN_PLACE = """
def main(A: f32[5], B: f32[5]):
    for i in range(0, 5):
        with block("B", vi=spatial(5, i)):
            reads({reads}, A[vi])
            writes(B[vi])
            B[vi] = {value} + A[vi]
"""


@pytest.mark.parametrize(("reads", "value"), [("B[vi]", "B[vi]"), ("B[0]", "B[0]")])
def test_refused_for_what_depends_on_its_result_before(reads: str, value: str) -> None:
    s = Schedule(parse_program(IN_PLACE.format(reads=reads, value=value)))
    with pytest.raises(ScheduleError, match="B uses what was in B before"):
        s.pad_einsum(s.block("B"), [4])


def test_refused_for_one_input_padded_in_two_ways() -> None:
    x, k = te.placeholder((4, 4), f32, "X"), te.reduce_axis(4, "k")
    y = te.compute((4, 4), lambda i, j: te.sum_(x[i, k] * x[k, j], [k]), "Y")
    s = Schedule(te.to_program([x], [y]))
    with pytest.raises(ScheduleError, match="Y would need X padded in two ways"):
        s.pad_einsum(s.block("Y"), [3, 1, 1])


def test_refused_for_a_part_of_a_buffer() -> None:
    x, k = te.placeholder((6, 4), f32, "X"), te.reduce_axis(4, "k")
    y = te.compute((5,), lambda i: te.sum_(x[i, k], [k]), "Y")
    s = Schedule(te.to_program([x], [y]))
    with pytest.raises(ScheduleError, match="Y does not read X at the whole of an axis that is padded: `vi`"):
        s.pad_einsum(s.block("Y"), [4, 1])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(20))
def test_random_products(seed: int) -> None:
    """Any operands of a sum of products, at any axes, in any order."""
    r = np.random.default_rng(seed)
    extents = {name: int(r.integers(1, 7)) for name in "ijkl"}
    spatial, reduced = (["i", "j"], ["k", "l"]) if seed % 2 else (["i", "j", "k"], ["l"])
    letters = [["l", *r.permutation(list("ijk"))[: r.integers(1, 4)]] for _ in range(2)]
    letters = [[str(x) for x in r.permutation(names)] for names in letters]
    if len(reduced) == 2:
        letters = [names if "k" in names else [*names, "k"] for names in letters]
    inputs = [te.placeholder(tuple(extents[x] for x in names), f32, f"A{n}") for n, names in enumerate(letters)]
    axes = {x: te.reduce_axis(extents[x], x) for x in reduced}

    def formula(*at: Expr) -> Any:
        where = {**dict(zip(spatial, at, strict=True)), **axes}
        first, second = (x[tuple(where[n] for n in names)] for x, names in zip(inputs, letters, strict=True))
        return te.sum_(first * second, list(axes.values()))

    y = te.compute(tuple(extents[x] for x in spatial), formula, "Y")

    def oracle(*arrays: Array) -> list[Array]:
        ones = np.ones([extents[x] for x in spatial], np.float32)
        text = ",".join(["".join(names) for names in letters])
        return [np.einsum(f"{text},{''.join(spatial)}->{''.join(spatial)}", *arrays, ones)]

    c = case(inputs, [y], oracle)
    s = Schedule(c.program)
    s.pad_einsum(s.block("Y"), [int(r.choice([1, 2, 3, 4])) for _ in range(len(spatial) + len(reduced))])
    check_compiled(c, s.program, seed)
