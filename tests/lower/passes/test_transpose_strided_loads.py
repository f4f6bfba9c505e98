"""Strided loads of an unrolled loop are transposed in registers, and only where all of them are certain to run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codegen.llvm.harness import TARGETS, call, machine_for
from tests.codegen.llvm.test_memory import at_end_of_page, numbers
from tests.lower.running import before_and_after, check_equal

from weft.codegen import backend_of
from weft.ir import Broadcast, Expr, Ramp, Select, Shuffle, Var, const, index, post_order
from weft.loop import (
    Buffer,
    Export,
    Function,
    If,
    Load,
    LoopKind,
    Program,
    Stmt,
    Store,
    for_,
    loads,
    parse_program,
    print_program,
    verify,
)
from weft.lower.loops.transpose_strided_loads import transpose_strided_loads
from weft.support.dtypes import DType, f16, f32, f64, i8, i64
from weft.targets import cpu

EVERYWHERE = pytest.mark.parametrize("name", TARGETS)
M, N = Var("m"), Var("n")
Golden = Callable[[str], None]


def transposed(f: Function, name: str) -> Function:
    """*f* after the pass, by way of its text."""
    made = transpose_strided_loads(Program((f,)), TARGETS[name])
    verify(made)
    assert print_program(parse_program(print_program(made))) == print_program(made)
    return made.entry


def is_shuffled(f: Function) -> bool:
    """Whether *f* has shuffles, and all of its loads are of neighbours."""
    steps = [s for n in loads(f.body) for s in steps_of(n)]
    return any(isinstance(n, Shuffle) for n in post_order(f.body)) and all(s is index(1) for s in steps)


def steps_of(n: Load) -> list[Expr]:
    return [i.stride for i in n.indices if isinstance(i, Ramp)]


def has_vectors(name: str, dtype: DType, lanes: int) -> bool:
    return 16 <= lanes * dtype.bytes <= TARGETS[name].isa.vector_bits // 8


def transposition(dtype: DType, lanes: int, unroll: int, m: Expr, n: Expr, kind: str = "plain") -> Function:
    """y[j, i] = x[i, j], in vectors along i, with *unroll* columns j at a time."""
    x, y = Buffer("x", [m * n], dtype), Buffer("y", [m * n], dtype)
    i, jo, u = Var("i"), Var("jo"), Var("u")
    j = jo * unroll + u
    value: Expr = Load(x, (Ramp(i * lanes * n + j, n, lanes),))
    if kind == "select":
        value = Select(u < 3, value, const(0, value.dtype))
    body: Stmt = Store(y, (Ramp(j * m + i * lanes, index(1), lanes),), value, None)
    if kind == "if":
        body = If(u < 3, body, None)
    nest = for_(jo, n // unroll, for_(i, m // lanes, for_(u, unroll, body, LoopKind.UNROLLED)))
    sizes = [s for s in (m, n) if isinstance(s, Var)]
    return Function("f", (x, y, *sizes), nest, (Export(),))


@pytest.mark.sampled(6)
@EVERYWHERE
@pytest.mark.parametrize("dtype", [i8, f16, f32, i64, f64], ids=str)
def test_tiles_are_transposed(name: str, dtype: DType) -> None:
    for lanes in sorted({16 // dtype.bytes, TARGETS[name].lanes(dtype.bits)} - {64, 32}):
        a = at_end_of_page(np.arange(6 * lanes * lanes).astype(dtype.numpy).reshape(-1)).reshape(2 * lanes, 3 * lanes)
        for m, n, sizes in ((index(a.shape[0]), index(a.shape[1]), ()), (M, N, a.shape)):
            f, got = transposed(transposition(dtype, lanes, lanes, m, n), name), np.zeros(a.shape[::-1], dtype.numpy)
            call(machine_for([f], TARGETS[name]), "f", a, got, *sizes)
            np.testing.assert_array_equal(got, a.T)
            assert is_shuffled(f) == has_vectors(name, dtype, lanes)


@pytest.mark.sampled(6)
@EVERYWHERE
@pytest.mark.parametrize("unroll", [2, 4, 6, 8])
def test_unrolling_by_other_numbers_computes_the_same(name: str, unroll: int) -> None:
    a = numbers(8 * 24, f32).reshape(8, 24)
    f = transposed(transposition(f32, 4, unroll, index(8), index(24)), name)
    got = np.zeros((24, 8), np.float32)
    call(machine_for([f], TARGETS[name]), "f", a, got)
    np.testing.assert_array_equal(got, a.T)


@pytest.mark.parametrize("kind", ["if", "select"])
def test_columns_that_may_not_be_read_are_not(kind: str) -> None:
    """Only three columns are asked for; the fourth would lie outside."""
    f = transposed(transposition(f32, 4, 4, index(4), index(4), kind), "sse4")
    a, got = at_end_of_page(numbers(15, f32)), np.zeros((4, 4), np.float32)
    call(machine_for([f], TARGETS["sse4"]), "f", a, got)
    np.testing.assert_array_equal(got[:3], np.append(a, 0).reshape(4, 4).T[:3])


@EVERYWHERE
@pytest.mark.parametrize(("columns", "kept"), [(4, 3), (3, 4), (3, 1), (2, 2)])
def test_parts_of_tiles_are_transposed(name: str, columns: int, kept: int) -> None:
    """Lanes that are known to be masked are rows that are not read, and neither is what is beyond the last column."""
    row, lanes, u = 5, Ramp(index(0), index(1), 4), Var("u")
    x, y = Buffer("x", [4 * row], f32), Buffer("y", [4 * columns], f32)
    load = Load(x, (Ramp(u, index(row), 4),))
    value = Select(lanes < Broadcast(index(kept), 4), load, const(0, load.dtype))
    body = for_(u, columns, Store(y, (Ramp(u * 4, index(1), 4),), value, None), LoopKind.UNROLLED)
    f = transposed(Function("f", (x, y), body, (Export(),)), name)
    a, got = numbers(kept * row, f32), np.ones((columns, 4), np.float32)
    call(machine_for([f], TARGETS[name]), "f", at_end_of_page(a[: (kept - 1) * row + columns]), got)
    np.testing.assert_array_equal(got[:, :kept], a.reshape(kept, row)[:, :columns].T)
    assert not got[:, kept:].any()
    whole = columns == 4 or TARGETS[name].isa.masked_memory
    assert is_shuffled(f) == (whole and has_vectors(name, f32, 4))


def test_lanes_that_differ_between_iterations_are_gathered() -> None:
    """Three of the first column, and one less of each that follows."""
    x, y, u = Buffer("x", [16], f32), Buffer("y", [16], f32), Var("u")
    inside = Ramp(u, index(1), 4) < Broadcast(index(3), 4)
    value = Select(inside, Load(x, (Ramp(u, index(4), 4),)), const(0, f32.with_lanes(4)))
    body = for_(u, 4, Store(y, (Ramp(u * 4, index(1), 4),), value, None), LoopKind.UNROLLED)
    f = transposed(Function("f", (x, y), body, (Export(),)), "sse4")
    a, got = at_end_of_page(numbers(9, f32)), np.ones((4, 4), np.float32)
    call(machine_for([f], TARGETS["sse4"]), "f", a, got)
    whole = np.append(a, np.zeros(7, np.float32)).reshape(4, 4)
    want = [[whole[r, k] if k + r < 3 else 0 for r in range(4)] for k in range(4)]
    np.testing.assert_array_equal(got, want)


def test_a_store_between_is_seen() -> None:
    """The columns are of the memory that is written: none may be read ahead of its store."""
    x, u = Buffer("x", [64], f32), Var("u")
    value = Load(x, (Ramp(u, index(8), 4),)) + const(1.0, f32.with_lanes(4))
    body = for_(u, 4, Store(x, (Ramp(u * 8 + 1, index(1), 4),), value, None), LoopKind.UNROLLED)
    f = transposed(Function("f", (x,), body, (Export(),)), "sse4")
    got, want = np.arange(64, dtype=np.float32), np.arange(64, dtype=np.float32)
    call(machine_for([f], TARGETS["sse4"]), "f", got)
    for k in range(4):
        want[k * 8 + 1 : k * 8 + 5] = want[k : k + 32 : 8][:4] + 1
    np.testing.assert_array_equal(got, want)


def test_the_network_is_as_small_as_can_be() -> None:
    """Sixteen vectors of sixteen take four rounds of sixteen shuffles."""
    made = transpose_strided_loads(Program((transposition(f32, 16, 16, index(16), index(16)),)), cpu("avx512"))
    assert len([n for n in post_order(made.entry.body) if isinstance(n, Shuffle)]) == 64
    text = backend_of(cpu("avx512")).listing(made, cpu("avx512"))
    lines = [line.split()[0] for line in text.splitlines() if line.strip().startswith(("vunpck", "vshuf", "vperm"))]
    assert len(lines) == 64


def test_a_part_of_an_expression_may_be_transposed() -> None:
    x, y, u = Buffer("x", [64], f32), Buffer("y", [16], f32), Var("u")
    column = Load(x, (Ramp(u, index(16), 4),))
    value = column * column
    body = for_(u, 4, Store(y, (Ramp(u * 4, index(1), 4),), value, None), LoopKind.UNROLLED)
    f = transposed(Function("f", (x, y), body, (Export(),)), "sse4")
    assert is_shuffled(f)
    a, got = numbers(64, f32), np.zeros(16, np.float32)
    call(machine_for([f], TARGETS["sse4"]), "f", a, got)
    np.testing.assert_array_equal(got.reshape(4, 4), a.reshape(4, 16)[:, :4].T ** 2)


TILE = """
def main(A: f32[4, 30], C: f32[30, 4]):
    A_flat = view(A, 0, f32[120])
    C_flat = view(C, 0, f32[120])
    for i in range(0, 5):
        for u in unrolled(0, 6):
            C_flat[ramp(i * 24 + u * 4, 1, 4)] = A_flat[ramp(i * 6 + u, 30, 4)] * broadcast(2.0, 4)
"""


@pytest.mark.parametrize("level", ["sse4", "avx2"])
def test_transpose_strided_loads(golden: Golden, level: str) -> None:
    """The two columns that are left over are gathered where there are no masks."""
    golden(before_and_after(TILE, lambda p: transpose_strided_loads(p, cpu(level))))


MEMORY = """
def main(A: f32[64], B: f32[64], C: f32[16]):
    X = view(A, 0, f32[64])
    for u in unrolled(0, 4):
        C[ramp(u * 4, 1, 4)] = A[ramp(u, 16, 4)] + B[ramp(u, 16, 4)]
        X[ramp(u * 4, 1, 4)] = C[ramp(u * 4, 1, 4)]
"""


def test_memory_that_is_written_is_not_read_ahead() -> None:
    """Here through a view of it."""
    after = transpose_strided_loads(parse_program(MEMORY), cpu("sse4"))
    check_equal(parse_program(MEMORY), after)
    strided = {
        n.buffer.name
        for n in loads(after.entry.body)
        if isinstance(n.indices[0], Ramp) and n.indices[0].stride is not index(1)
    }
    assert strided == {"A"}


TOLD = """
def main(A: f32[64], P: i64[1], C: f32[16]):
    for u in unrolled(0, 4):
        C[ramp(u * 4, 1, 4)] = A[ramp(min(max(P[0], 0), 1) * 4 + u, 16, 4)]
        {0}
"""


@pytest.mark.parametrize(("also", "is_turned"), [("", True), ("P[0] = u", False)])
def test_rows_that_data_tells_are_turned_unless_that_changes(also: str, is_turned: bool) -> None:
    before = parse_program(TOLD.format(also))
    after = transpose_strided_loads(before, cpu("sse4"))
    check_equal(before, after)
    strided = [
        n for n in loads(after.entry.body) if isinstance(n.indices[0], Ramp) and n.indices[0].stride is not index(1)
    ]
    assert (not strided) == is_turned


@pytest.mark.parametrize("name", [n for n in TARGETS if TARGETS[n].has("vector_extensions")])
def test_c_has_shuffles(name: str) -> None:
    f = transposed(transposition(f32, 4, 4, index(4), index(8)), name)
    assert backend_of(TARGETS[name]).listing(Program((f,)), TARGETS[name]).count("WEFT_SHUFFLE(") == 8


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    level=st.sampled_from(["sse4", "avx2", "avx512"]),
    dtype=st.sampled_from([f32, f64, i8, i64]),
    lanes=st.sampled_from([2, 3, 4, 8, 16]),
    columns=st.integers(1, 20),
    stride=st.integers(1, 24),
    begin=st.integers(0, 3),
    data=st.data(),
)
def test_any_tile_is_the_same(
    level: str, dtype: DType, lanes: int, columns: int, stride: int, begin: int, data: st.DataObject
) -> None:
    """Nothing outside of what was read before is read: the input ends with the last element of the last row that is wanted."""
    kept = data.draw(st.integers(1, lanes))
    x = Buffer("x", [begin + columns + (kept - 1) * stride], dtype)
    y, u = Buffer("y", [lanes * columns], dtype), Var("u")
    load = Load(x, (Ramp(u, index(stride), lanes),))
    inside = Ramp(index(0), index(1), lanes) < Broadcast(index(kept), lanes)
    other = data.draw(st.sampled_from([0, 1]))
    value = Select(inside, load, const(other, load.dtype)) if kept < lanes else load
    where = (Ramp((u - begin) * lanes, index(1), lanes),)
    before = Program((Function("f", (x, y), for_(u, columns, Store(y, where, value, None), LoopKind.UNROLLED, begin)),))
    after = transpose_strided_loads(before, cpu(level))
    verify(after)
    check_equal(before, after)
