"""Every kind of access reads and writes the right elements and touches no memory outside its buffer."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, Array, call, is_llvm, machine_for

from weft.codegen.llvm.ir_module import llvm_text
from weft.codegen.llvm.object_code import assembly
from weft.ir import Broadcast, Cast, Expr, Ramp, Select, Var, const, index
from weft.loop import (
    Alloc,
    Buffer,
    Eval,
    Export,
    Function,
    If,
    Let,
    Load,
    MayAlias,
    Program,
    Stmt,
    Store,
    View,
    for_,
    seq,
    store,
)
from weft.loop.nodes import load
from weft.support.dtypes import DType, bool_, f16, f32, f64, i8, i32, i64
from weft.support.errors import LoweringError
from weft.targets import cpu

EVERYWHERE = pytest.mark.parametrize("name", TARGETS)
TYPES = pytest.mark.parametrize("dtype", [bool_, i8, f16, f32, i64, f64], ids=str)
_KEPT: list[object] = []


def at_end_of_page(values: Array) -> Array:
    """A copy of *values* that ends where unreadable memory begins."""
    page = mmap.PAGESIZE
    size = -(-values.nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    _KEPT.append(memory)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(page), 0) == 0
    made = np.frombuffer(memory, values.dtype, values.size, size - values.nbytes)
    made[:] = values
    return made


def numbers(count: int, dtype: DType) -> Array:
    return (np.arange(count) % 2 == 0) if dtype.is_bool else (np.arange(count) % 100 + 1).astype(dtype.numpy)


def function(buffers: Sequence[Buffer | Var], body: Stmt) -> Function:
    return Function("f", tuple(buffers), body, (Export(),))


def vload(buffer: Buffer, base: Expr | int, lanes: int, stride: Expr | int = 1) -> Expr:
    base = index(base) if isinstance(base, int) else base
    stride = index(stride) if isinstance(stride, int) else stride
    return Load(buffer, (Ramp(base, stride, lanes),))


def vstore(buffer: Buffer, base: Expr | int, value: Expr, stride: int = 1, mask: Expr | None = None) -> Store:
    base = index(base) if isinstance(base, int) else base
    return Store(buffer, (Ramp(base, index(stride), value.dtype.lanes),), value, mask)


@pytest.mark.sampled(16)
@EVERYWHERE
@TYPES
@pytest.mark.parametrize("stride", [-2, -1, 0, 1, 2, 3, 4, 5])
def test_strided_loads_end_with_their_last_element(name: str, dtype: DType, stride: int) -> None:
    for lanes in (2, 8, 16):
        span = (lanes - 1) * abs(stride) + 1
        first = span - 1 if stride < 0 else 0
        x, y = Buffer("x", [span], dtype), Buffer("y", [lanes], dtype)
        machine = machine_for([function([x, y], vstore(y, 0, vload(x, first, lanes, stride)))], TARGETS[name])
        a, got = at_end_of_page(numbers(span, dtype)), np.zeros(lanes, dtype.numpy)
        call(machine, "f", a, got)
        np.testing.assert_array_equal(got, a[first + stride * np.arange(lanes)])


@pytest.mark.sampled(8)
@EVERYWHERE
@TYPES
@pytest.mark.parametrize("stride", [2, 3, 4])
def test_strided_loads_under_a_mask_read_what_it_wants_alone(name: str, dtype: DType, stride: int) -> None:
    """The array ends, and with it the page, with the last element that the mask leaves."""
    for lanes, wanted in ((8, 5), (16, 9), (16, 1)):
        x, y = Buffer("x", [(lanes - 1) * stride + 1], dtype), Buffer("y", [lanes], dtype)
        some = Ramp(index(0), index(1), lanes) < Broadcast(index(wanted), lanes)
        zeros = Broadcast(const(0, dtype), lanes)
        picked = Select(some, vload(x, 0, lanes, stride), zeros)
        machine = machine_for([function([x, y], vstore(y, 0, picked))], TARGETS[name])
        a, got = at_end_of_page(numbers((wanted - 1) * stride + 1, dtype)), np.ones(lanes, dtype.numpy)
        call(machine, "f", a, got)
        np.testing.assert_array_equal(got[:wanted], a[::stride])
        assert not got[wanted:].any()


@pytest.mark.sampled(10)
@EVERYWHERE
@TYPES
@pytest.mark.parametrize("stride", [-1, 0, 1, 2, 7])
def test_strided_stores(name: str, dtype: DType, stride: int) -> None:
    lanes = 8
    span = (lanes - 1) * abs(stride) + 1
    first = span - 1 if stride < 0 else 0
    x, y = Buffer("x", [lanes], dtype), Buffer("y", [span], dtype)
    machine = machine_for([function([x, y], vstore(y, first, vload(x, 0, lanes), stride))], TARGETS[name])
    a, got, want = numbers(lanes, dtype), np.zeros(span, dtype.numpy), np.zeros(span, dtype.numpy)
    for k in range(lanes):
        want[first + stride * k] = a[k]
    call(machine, "f", a, got)
    np.testing.assert_array_equal(got, want)


@pytest.mark.sampled(8)
@EVERYWHERE
@TYPES
def test_any_vector_index_gathers_and_scatters(name: str, dtype: DType) -> None:
    x, picks, y = Buffer("x", [32], dtype), Buffer("picks", [8], i32), Buffer("y", [64], dtype)
    where = Cast(vload(picks, 0, 8), i64.with_lanes(8))
    gathered = Load(x, (where + Broadcast(index(3), 8),))
    body = Store(y, (where * Broadcast(index(2), 8) + Broadcast(index(1), 8),), gathered, None)
    machine = machine_for([function([x, picks, y], body)], TARGETS[name])
    a, p = numbers(32, dtype), np.array([0, 5, 2, 28, 7, 9, 1, 3], np.int32)
    got, want = np.zeros(64, dtype.numpy), np.zeros(64, dtype.numpy)
    want[p * 2 + 1] = a[p + 3]
    call(machine, "f", a, p, got)
    np.testing.assert_array_equal(got, want)


@pytest.mark.sampled(8)
@EVERYWHERE
@TYPES
@pytest.mark.parametrize("lanes", [4, 16])
def test_masked_tail_touches_no_more_than_there_is(name: str, dtype: DType, lanes: int) -> None:
    n, i = Var("n"), Var("i")
    x, y = Buffer("x", [n], dtype), Buffer("y", [n], dtype)
    inside = Ramp(i * lanes, index(1), lanes) < Broadcast(n, lanes)
    value = Select(inside, vload(x, i * lanes, lanes), const(0, dtype.with_lanes(lanes)))
    body = for_(i, (n + (lanes - 1)) // lanes, vstore(y, i * lanes, value, mask=inside))
    machine = machine_for([function([x, y, n], body)], TARGETS[name])
    for count in (0, 1, lanes - 1, lanes, lanes + 1, 3 * lanes - 2):
        a, got = at_end_of_page(numbers(count, dtype)), at_end_of_page(np.zeros(count, dtype.numpy))
        call(machine, "f", a, got, count)
        np.testing.assert_array_equal(got, a)


@pytest.mark.sampled(8)
@EVERYWHERE
@TYPES
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_a_store_of_the_first_lanes_touches_no_others(name: str, dtype: DType, lanes: int) -> None:
    """How many they are is known, so that stores of fewer lanes may do without a mask."""
    counts = range(1, lanes)
    x, ys = Buffer("x", [lanes], dtype), [Buffer(f"y{n}", [n], dtype) for n in counts]
    some = [Ramp(index(0), index(1), lanes) < Broadcast(index(n), lanes) for n in counts]
    body = seq(*[vstore(y, 0, vload(x, 0, lanes), mask=m) for y, m in zip(ys, some, strict=True)])
    machine = machine_for([function([x, *ys], body)], TARGETS[name])
    a, got = numbers(lanes, dtype), [at_end_of_page(np.zeros(n, dtype.numpy)) for n in counts]
    call(machine, "f", a, *got)
    for found in got:
        np.testing.assert_array_equal(found, a[: found.size])


def test_a_store_of_six_lanes_is_one_of_four_and_one_of_two() -> None:
    """Where masks have no registers of their own, a store under one takes longer."""
    x, y = Buffer("x", [8], f32), Buffer("y", [6], f32)
    six = Ramp(index(0), index(1), 8) < Broadcast(index(6), 8)
    program = Program((function([x, y], vstore(y, 0, vload(x, 0, 8), mask=six)),))
    assert "masked.store" not in llvm_text(program, cpu("avx2"))
    assert "masked.store" in llvm_text(program, cpu("avx512"))


@EVERYWHERE
@pytest.mark.parametrize("lanes", [1, 8])
def test_guarded_load_of_a_padded_row(name: str, lanes: int) -> None:
    x, y, i = Buffer("x", [10], f32), Buffer("y", [16], f32), Var("i")
    where = Ramp(i * lanes - 3, index(1), lanes) if lanes > 1 else i - 3
    inside = (where >= 0) & (where < 10)
    value = Select(inside, Load(x, (where,)), const(-1.0, f32.with_lanes(lanes)))
    out = Ramp(i * lanes, index(1), lanes) if lanes > 1 else i
    machine = machine_for([function([x, y], for_(i, 16 // lanes, Store(y, (out,), value, None)))], TARGETS[name])
    a, got = at_end_of_page(numbers(10, f32)), np.zeros(16, np.float32)
    call(machine, "f", a, got)
    np.testing.assert_array_equal(got, np.concatenate([[-1] * 3, a, [-1] * 3]))


@EVERYWHERE
def test_guards_nest_and_scalar_loads_obey_vector_guards(name: str) -> None:
    """`a[i]` is read where `n > i`, and `b[0]` only if any of those lanes is 3 or more."""
    n = Var("n")
    a, b, y = Buffer("a", [n], f32), Buffer("b", [1], f32), Buffer("y", [8], f32)
    lanes = Ramp(index(0), index(1), 8)
    some = Broadcast(load(b, 0), 8)
    inner = Select(Broadcast(index(2), 8) < lanes, some, vload(a, 0, 8))
    value = Select(lanes < Broadcast(n, 8), inner, const(0.0, f32.with_lanes(8)))
    machine = machine_for([function([a, b, y, n], vstore(y, 0, value))], TARGETS[name])
    for count in (0, 2, 3, 8):
        given, got = at_end_of_page(numbers(count, f32)), np.full(8, 9.0, np.float32)
        last = np.array([50.0], np.float32) if count > 3 else at_end_of_page(np.zeros(0, np.float32))
        call(machine, "f", given, last, got, count)
        want = [0.0 if k >= count else 50.0 if k > 2 else k + 1.0 for k in range(8)]
        np.testing.assert_array_equal(got, want)


@EVERYWHERE
def test_division_is_guarded_like_a_load(name: str) -> None:
    x, y, i = Buffer("x", [8], i32), Buffer("y", [16], i32), Var("i")
    v = vload(x, 0, 8)
    ten = const(100, i32.with_lanes(8))
    zero = const(0, i32.with_lanes(8))
    whole = vstore(y, 0, Select(v < zero, ten // v, zero))
    s = load(x, i)
    each = for_(i, 8, store(y, [i + 8], Select(s < const(0, i32), const(100, i32) // s, const(0, i32))))
    machine = machine_for([function([x, y], seq(whole, each))], TARGETS[name])
    a, got = np.array([0, -1, 5, -7, 0, 3, -100, -101], np.int32), np.zeros(16, np.int32)
    call(machine, "f", a, got)
    want = [100 // int(k) if k < 0 else 0 for k in a]
    np.testing.assert_array_equal(got, want + want)


@EVERYWHERE
def test_and_stops_before_a_load_that_would_fault(name: str) -> None:
    n, i = Var("n"), Var("i")
    x, y = Buffer("x", [n], i32), Buffer("y", [8], i32)
    both = (i < n) & (load(x, i) < const(3, i32))
    either = (n <= i) | (load(x, i) < const(3, i32))
    total = Cast(both, i32) + Cast(either, i32) * 2
    lanes = Ramp(index(0), index(1), 8)
    inside, small = lanes < Broadcast(n, 8), Load(x, (lanes,)) < const(3, i32.with_lanes(8))
    wide = Cast(inside & small, i32.with_lanes(8)) + Cast((Broadcast(n, 8) <= lanes) | small, i32.with_lanes(8)) * 2
    z = Buffer("z", [8], i32)
    body = seq(for_(i, 8, store(y, [i], total)), vstore(z, 0, wide))
    machine = machine_for([function([x, y, z, n], body)], TARGETS[name])
    a = at_end_of_page(np.array([1, 4, 2, 9, 0], np.int32))
    got, vector = np.zeros(8, np.int32), np.zeros(8, np.int32)
    call(machine, "f", a, got, vector, 5)
    np.testing.assert_array_equal(got, [3, 0, 3, 0, 3, 2, 2, 2])
    np.testing.assert_array_equal(vector, got)


@EVERYWHERE
def test_a_load_after_a_store_sees_it(name: str) -> None:
    x, y, i = Buffer("x", [4], i32), Buffer("y", [4], i32), Var("i")
    bump = store(x, [0], load(x, 0) + const(1, i32))
    body = for_(i, 4, seq(bump, store(y, [i], load(x, 0)), bump))
    machine = machine_for([function([x, y], body)], TARGETS[name])
    a, got = np.array([10, 0, 0, 0], np.int32), np.zeros(4, np.int32)
    call(machine, "f", a, got)
    np.testing.assert_array_equal(got, [11, 13, 15, 17])
    assert a[0] == 18


@EVERYWHERE
@pytest.mark.parametrize("may_alias", [0, 1])
def test_overlapping_parameters_are_honoured_where_declared(name: str, may_alias: int) -> None:
    x, y, z = Buffer("x", [1], i32), Buffer("y", [1], i32), Buffer("z", [1], i32)
    body = seq(store(z, [0], load(x, 0)), store(y, [0], const(5, i32)), store(z, [0], load(x, 0) + load(z, 0)))
    f = Function("f", (x, y, z), body, (Export(), *[MayAlias()] * may_alias))
    machine = machine_for([f], TARGETS[name])
    a, got = np.array([2], np.int32), np.zeros(1, np.int32)
    if may_alias:
        call(machine, "f", a, a, got)
        assert got[0] == 7
    assert ("noalias" in llvm_text(Program((f,)), TARGETS[name])) == (not may_alias)


@EVERYWHERE
def test_views_are_windows_with_an_offset_and_their_own_type(name: str) -> None:
    arena, y, i = Buffer("arena", [256], i8), Buffer("y", [8], f32), Var("i")
    inner, other = Buffer("inner", [8], f32, "local"), Buffer("other", [4], f32, "local")
    body = seq(for_(i, 8, store(inner, [i], Cast(i, f32))), View(other, inner, index(2), store(other, [1], 50.0)))
    copy = for_(i, 8, store(y, [i], load(inner, i)))
    f = function([arena, y], View(inner, arena, index(64), seq(body, copy)))
    machine = machine_for([f], TARGETS[name])
    memory, got = np.zeros(256, np.int8), np.zeros(8, np.float32)
    call(machine, "f", memory, got)
    np.testing.assert_array_equal(got, [0, 1, 2, 50, 4, 5, 6, 7])
    np.testing.assert_array_equal(memory[64:96].view(np.float32), got)
    assert not memory[:64].any()
    assert not memory[96:].any()


@EVERYWHERE
def test_horizontal_sum_by_halves_stays_in_registers(name: str) -> None:
    x, y, i = Buffer("x", [64], f32), Buffer("y", [1], f32), Var("i")
    acc = Buffer("acc", [16], f32, "register")
    total = vstore(acc, 0, vload(acc, 0, 16) + vload(x, i * 16, 16))
    halves: list[Stmt] = [vstore(acc, 0, vload(acc, 0, h) + vload(acc, h, h)) for h in (8, 4, 2)]
    last = store(y, [0], load(acc, 0) + load(acc, 1))
    body = seq(vstore(acc, 0, const(0.0, f32.with_lanes(16))), for_(i, 4, total), *halves, last)
    f = function([x, y], Alloc(acc, body))
    a, got = numbers(64, f32), np.zeros(1, np.float32)
    call(machine_for([f], TARGETS[name]), "f", a, got)
    assert got[0] == a.sum()
    assert not is_llvm(name) or "%rsp" not in assembly(Program((f,)), TARGETS[name])


@EVERYWHERE
def test_small_memory_is_in_the_frame_and_large_memory_is_asked_for(name: str) -> None:
    n, i = Var("n"), Var("i")
    y, small = Buffer("y", [4], f32), Buffer("small", [64], f32, "local")
    large, dynamic = Buffer("large", [1 << 17], f32, "local"), Buffer("dynamic", [n], f32, "local")
    fill = seq(
        for_(i, 64, store(small, [i], 1.0)),
        for_(i, 1 << 17, store(large, [i], 2.0)),
        for_(i, n, store(dynamic, [i], 3.0)),
    )
    lasts = [load(small, 63), load(large, (1 << 17) - 1), load(dynamic, n - 1)]
    out = seq(*[store(y, [k], last) for k, last in enumerate(lasts)])
    f = function([y, n], Alloc(small, Alloc(large, Alloc(dynamic, seq(fill, out)))))
    machine, got = machine_for([f], TARGETS[name]), np.zeros(4, np.float32)
    call(machine, "f", got, 1000)
    np.testing.assert_array_equal(got, [1, 2, 3, 0])
    assert machine.allocated == (4 << 17) + 4000
    assert machine.live == []


def test_equal_loads_in_unrolled_code_are_written_once() -> None:
    x, y, i, j = Buffer("x", [8], f32), Buffer("y", [8], f32), Var("i"), Var("j")
    twice = Let(j, index(2), seq(Eval(load(x, j)), store(y, [i], load(x, j) + load(x, 2))))
    f = function([x, y, i], If(i < 4, twice, None))
    assert llvm_text(Program((f,)), cpu("avx2")).count("load float") == 1


def test_two_indices_are_refused() -> None:
    x = Buffer("x", [2, 2], f32)
    f = function([x], store(x, [0, 0], 1.0))
    with pytest.raises(
        LoweringError, match=r"function f: x is accessed with 2 indices\n  hint: flatten buffers before"
    ):
        llvm_text(Program((f,)), cpu("avx2"))


def test_memory_from_nowhere_is_refused() -> None:
    x = Buffer("x", [2], f32)
    with pytest.raises(LoweringError, match="the buffer x is neither a parameter nor allocated here"):
        llvm_text(Program((function([], store(x, [0], 1.0)),)), cpu("avx2"))


@EVERYWHERE
def test_a_serial_loop_over_registers_is_unrolled(name: str) -> None:
    x, y, i, k = Buffer("x", [64], f32), Buffer("y", [1], f32), Var("i"), Var("k")
    acc = Buffer("acc", [4], f32, "register")
    add = for_(i, 16, vstore(acc, 0, vload(acc, 0, 4) + vload(x, i * 4, 4)))
    last = for_(k, 4, store(y, [0], load(y, 0) + load(acc, k)))
    f = function([x, y], Alloc(acc, seq(vstore(acc, 0, const(0.0, f32.with_lanes(4))), add, last)))
    a, got = numbers(64, f32), np.zeros(1, np.float32)
    call(machine_for([f], TARGETS[name]), "f", a, got)
    assert got[0] == a.sum()
    assert not is_llvm(name) or "%rsp" not in assembly(Program((f,)), TARGETS[name])


@EVERYWHERE
def test_elements_chosen_by_what_they_are(name: str) -> None:
    """What is zero where a condition on it does not hold has been loaded for the condition, in all lanes."""
    x, y = Buffer("x", [16], f32), Buffer("y", [16], f32)
    value, two, zero = vload(x, 0, 16), Broadcast(const(2.0, f32), 16), Broadcast(const(0.0, f32), 16)
    body = vstore(y, 0, Select(two < value, value, zero))
    machine = machine_for([function([x, y], body)], TARGETS[name])
    a, made = np.linspace(-8, 8, 16, dtype=np.float32), np.zeros(16, np.float32)
    call(machine, "f", a, made)
    np.testing.assert_array_equal(made, np.where(a > 2, a, 0))
