"""Strided loads of an unrolled loop are transposed in registers, and only where all of them are certain to run."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, is_llvm, machine_for
from tests.codegen.llvm.test_memory import at_end_of_page, numbers

from weft.codegen.llvm.ir_module import llvm_text
from weft.codegen.llvm.object_code import assembly
from weft.ir import Broadcast, Expr, Ramp, Select, Var, const, index
from weft.loop import Buffer, Export, Function, If, Load, LoopKind, Program, Stmt, Store, for_
from weft.support.dtypes import DType, f16, f32, f64, i8, i64
from weft.targets import cpu

EVERYWHERE = pytest.mark.parametrize("name", TARGETS)
M, N = Var("m"), Var("n")


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


@EVERYWHERE
@pytest.mark.parametrize("dtype", [i8, f16, f32, i64, f64], ids=str)
def test_tiles_are_transposed(name: str, dtype: DType) -> None:
    for lanes in sorted({16 // dtype.bytes, TARGETS[name].lanes(dtype.bits)} - {64, 32}):
        a = at_end_of_page(np.arange(6 * lanes * lanes).astype(dtype.numpy).reshape(-1)).reshape(2 * lanes, 3 * lanes)
        for m, n, sizes in ((index(a.shape[0]), index(a.shape[1]), ()), (M, N, a.shape)):
            f, got = transposition(dtype, lanes, lanes, m, n), np.zeros(a.shape[::-1], dtype.numpy)
            call(machine_for([f], TARGETS[name]), "f", a, got, *sizes)
            np.testing.assert_array_equal(got, a.T)
            assert not is_llvm(name) or "gather" not in llvm_text(Program((f,)), TARGETS[name])


@EVERYWHERE
@pytest.mark.parametrize("unroll", [2, 4, 6, 8])
def test_unrolling_by_other_numbers_computes_the_same(name: str, unroll: int) -> None:
    a = numbers(8 * 24, f32).reshape(8, 24)
    f, got = transposition(f32, 4, unroll, index(8), index(24)), np.zeros((24, 8), np.float32)
    call(machine_for([f], TARGETS[name]), "f", a, got)
    np.testing.assert_array_equal(got, a.T)


@pytest.mark.parametrize("kind", ["if", "select"])
def test_columns_that_may_not_be_read_are_not(kind: str) -> None:
    """Only three columns are asked for; the fourth would lie outside."""
    f = transposition(f32, 4, 4, index(4), index(4), kind)
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
    f = Function("f", (x, y), body, (Export(),))
    a, got = numbers(kept * row, f32), np.ones((columns, 4), np.float32)
    call(machine_for([f], TARGETS[name]), "f", at_end_of_page(a[: (kept - 1) * row + columns]), got)
    np.testing.assert_array_equal(got[:, :kept], a.reshape(kept, row)[:, :columns].T)
    assert not got[:, kept:].any()
    transposed = columns == 4 or TARGETS[name].isa.masked_memory
    assert not is_llvm(name) or ("gather" not in llvm_text(Program((f,)), TARGETS[name])) == transposed


def test_lanes_that_differ_between_iterations_are_gathered() -> None:
    """Three of the first column, and one less of each that follows."""
    x, y, u = Buffer("x", [16], f32), Buffer("y", [16], f32), Var("u")
    inside = Ramp(u, index(1), 4) < Broadcast(index(3), 4)
    value = Select(inside, Load(x, (Ramp(u, index(4), 4),)), const(0, f32.with_lanes(4)))
    body = for_(u, 4, Store(y, (Ramp(u * 4, index(1), 4),), value, None), LoopKind.UNROLLED)
    f = Function("f", (x, y), body, (Export(),))
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
    f = Function("f", (x,), body, (Export(),))
    got, want = np.arange(64, dtype=np.float32), np.arange(64, dtype=np.float32)
    call(machine_for([f], TARGETS["sse4"]), "f", got)
    for k in range(4):
        want[k * 8 + 1 : k * 8 + 5] = want[k : k + 32 : 8][:4] + 1
    np.testing.assert_array_equal(got, want)


def test_the_network_is_as_small_as_can_be() -> None:
    """Sixteen vectors of sixteen take four rounds of sixteen shuffles."""
    text = assembly(Program((transposition(f32, 16, 16, index(16), index(16)),)), cpu("avx512"))
    lines = [line.split()[0] for line in text.splitlines() if line.strip().startswith(("vunpck", "vshuf", "vperm"))]
    assert len(lines) == 64


def test_a_part_of_an_expression_may_be_transposed() -> None:
    x, y, u = Buffer("x", [64], f32), Buffer("y", [16], f32), Var("u")
    column = Load(x, (Ramp(u, index(16), 4),))
    value = column * column
    body = for_(u, 4, Store(y, (Ramp(u * 4, index(1), 4),), value, None), LoopKind.UNROLLED)
    f = Function("f", (x, y), body, (Export(),))
    a, got = numbers(64, f32), np.zeros(16, np.float32)
    call(machine_for([f], TARGETS["sse4"]), "f", a, got)
    np.testing.assert_array_equal(got.reshape(4, 4), a.reshape(4, 16)[:, :4].T ** 2)
    assert "gather" not in llvm_text(Program((f,)), TARGETS["sse4"])
