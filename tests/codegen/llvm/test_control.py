"""Control flow, calls, parallel tasks and failure."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, is_llvm, machine_for
from tests.support.jit import Failed

from weft.codegen import compile_program, link_here
from weft.codegen.llvm.ir_module import llvm_text
from weft.codegen.objects.read_elf import undefined_symbols
from weft.ir import FALSE, TRUE, Broadcast, Cast, Expr, Ramp, Select, Var, const, eq, index, maximum, minimum, ne
from weft.loop import (
    Address,
    Alloc,
    Assert,
    Axis,
    AxisKind,
    Block,
    Buffer,
    Call,
    Export,
    Function,
    If,
    Let,
    LoopKind,
    Note,
    Program,
    Stmt,
    Task,
    While,
    for_,
    seq,
    store,
)
from weft.loop.nodes import load
from weft.support.dtypes import bool_, f32, f64, i8, i32, i64
from weft.support.errors import LoweringError
from weft.targets import cpu

EVERYWHERE = pytest.mark.parametrize("name", TARGETS)


def function(params: list[Buffer | Var], body: Stmt, name: str = "f", *notes: Note) -> Function:
    return Function(name, tuple(params), body, (Export(), *notes))


def start(buffer: Buffer, at: Expr | int = 0) -> Expr:
    return Address(buffer, (index(at) if isinstance(at, int) else at,))


@EVERYWHERE
def test_loops_run_as_often_as_they_say(name: str) -> None:
    n, begin, i, j = Var("n"), Var("begin"), Var("i"), Var("j")
    y = Buffer("y", [4], i64)
    add = for_(i, n, store(y, [0], load(y, 0) + i), begin=begin)
    nested = for_(i, n, for_(j, i, store(y, [1], load(y, 1) + 1)))
    rolled = for_(i, 3, for_(j, i * 2, store(y, [2], load(y, 2) + (i * 10 + j)), LoopKind.UNROLLED), LoopKind.UNROLLED)
    single = for_(i, 1, store(y, [3], i), begin=begin + 5)
    machine = machine_for([function([y, n, begin], seq(add, nested, rolled, single))], TARGETS[name])
    for count, first in ((0, 3), (-4, 2), (1, -7), (6, 10)):
        got = np.zeros(4, np.int64)
        call(machine, "f", got, count, first)
        steps = range(first, first + count)
        pairs = sum(i * 10 + j for i in range(3) for j in range(2 * i))
        assert got.tolist() == [sum(steps), sum(range(max(count, 0))), pairs, first + 5]


@EVERYWHERE
def test_let_in_unrolled_code_is_bound_anew(name: str) -> None:
    x, k, i, v, w = Buffer("x", [64], i64), Var("k"), Var("i"), Var("v"), Var("w", i64)
    y = Buffer("y", [32], i64)
    body = Let(v, i * 4, Let(w, load(x, v + k) * 3, store(y, [i * 8 + k], w + (v + k))))
    nest = for_(k, 8, for_(i, 4, body, LoopKind.UNROLLED))
    machine = machine_for([function([x, y], nest)], TARGETS[name])
    a, got = np.arange(64) ** 2, np.zeros(32, np.int64)
    call(machine, "f", a, got)
    assert got.tolist() == [3 * (4 * i + k) ** 2 + 4 * i + k for i in range(4) for k in range(8)]


@EVERYWHERE
def test_branches(name: str) -> None:
    i, y = Var("i"), Buffer("y", [10], i64)
    inner = If(eq(i % 2, 0), store(y, [i], 1), store(y, [i], 2))
    body = for_(i, 10, If(i < 6, inner, If(i < 8, store(y, [i], 3), None)))
    never = If(FALSE, store(y, [0], 99), store(y, [9], 4))
    machine = machine_for([function([y], seq(body, never, If(TRUE, store(y, [8], 5), None)))], TARGETS[name])
    got = np.zeros(10, np.int64)
    call(machine, "f", got)
    assert got.tolist() == [1, 2, 1, 2, 1, 2, 3, 3, 5, 4]


@EVERYWHERE
def test_while_runs_until_its_condition_fails(name: str) -> None:
    """Collatz steps: the condition is loaded anew each time round."""
    y, steps = Buffer("y", [1], i64), Buffer("steps", [1], i64)
    n = load(y, 0)
    step = store(y, [0], Select(eq(n % 2, 0), n // 2, n * 3 + 1))
    body = While(ne(n, 1), seq(step, store(steps, [0], load(steps, 0) + 1)))
    machine = machine_for([function([y, steps], body)], TARGETS[name])
    a, got = np.array([27]), np.zeros(1, np.int64)
    call(machine, "f", a, got)
    assert got[0] == 111


@EVERYWHERE
def test_scalars_of_other_types_are_passed_by_value(name: str) -> None:
    y, a, b, c, d = Buffer("y", [1], f64), Var("a", f32), Var("b", f64), Var("c", i32), Var("d", bool_)
    value = Cast(a, f64) + b + Cast(c, f64) + Select(d, const(0.5, f64), const(0.0, f64))
    machine = machine_for([function([y, a, b, c, d], store(y, [0], value))], TARGETS[name])
    got = np.zeros(1)
    args = [ctypes.c_float(1.5), ctypes.c_double(10.0), ctypes.c_int32(-3), ctypes.c_bool(True)]
    machine.call("f", ctypes.c_void_p(got.ctypes.data), *args)
    assert got[0] == 9.0


@EVERYWHERE
def test_calls_pass_addresses_and_numbers(name: str) -> None:
    x, y, n, i = Buffer("x", [4], f32), Buffer("y", [4], f32), Var("n"), Var("i")
    double = Function("double", (x, n), for_(i, n, store(x, [i], load(x, i) * 2.0)))
    f = function([y], seq(Call("double", (start(y), index(3))), Call("double", (start(y, 2), index(2)))))
    got = np.ones(4, np.float32)
    call(machine_for([f, double], TARGETS[name]), "f", got)
    assert got.tolist() == [2, 2, 4, 2]


def task_program(n: Expr) -> tuple[Function, Function]:
    """y[i] = x[i] * scale + shift over [0, n), in parallel, with arguments of several types."""
    begin, end, i, flag = Var("begin"), Var("end"), Var("i"), Var("flag", bool_)
    x, y, scale, shift = Buffer("x", [n], f32), Buffer("y", [n], f32), Var("scale", f32), Var("shift", i8)
    value = load(x, i) * scale + Select(flag, Cast(shift, f32), const(0.0, f32))
    work = for_(i, end - begin, store(y, [i], value), begin=begin)
    task = Function("work", (begin, end, x, y, scale, shift, flag), work, (Task(),))
    a, b = Buffer("a", [n], f32), Buffer("b", [n], f32)
    args = (index(0), n, start(a), start(b), const(2.0, f32), const(-3, i8), const(True, bool_))
    return function([a, b, *([n] if isinstance(n, Var) else [])], Call("work", args)), task


@EVERYWHERE
@pytest.mark.parametrize("pieces", [1, 3])
def test_tasks_run_over_their_whole_range(name: str, pieces: int) -> None:
    machine = machine_for(task_program(Var("n")), TARGETS[name], pieces)
    for count in (1, 2, 100):
        a, got = np.arange(count, dtype=np.float32), np.zeros(count, np.float32)
        call(machine, "f", a, got, count)
        np.testing.assert_array_equal(got, a * 2 - 3)
    assert machine.launches == [1, 2, 100]


@EVERYWHERE
def test_tasks_are_given_vectors(name: str) -> None:
    begin, end, i, y = Var("begin"), Var("end"), Var("i"), Buffer("y", [12], f32)
    low, high, scale = Var("low", f32.with_lanes(4)), Var("high", f32.with_lanes(4)), Var("scale", f32)
    value = low * Broadcast(scale, 4) + high
    work = for_(i, end - begin, store(y, [Ramp(i * 4, index(1), 4)], value), begin=begin)
    task = Function("work", (begin, end, low, scale, high, y), work, (Task(),))
    x, z = Buffer("x", [8], f32), Buffer("z", [12], f32)
    halves = [load(x, Ramp(index(at), index(1), 4)) for at in (0, 4)]
    call_ = Call("work", (index(0), index(3), halves[0], const(2.0, f32), halves[1], start(z)))
    got = np.zeros(12, np.float32)
    call(machine_for([function([x, z], call_), task], TARGETS[name], 3), "f", np.arange(8, dtype=np.float32), got)
    np.testing.assert_array_equal(got, np.tile([4, 7, 10, 13], 3))


@EVERYWHERE
def test_assertions_report_their_message_and_values(name: str) -> None:
    n, y = Var("n"), Buffer("y", [1], i64)
    check = Assert(n < 10, "n is {0}, its square {1}", (n, n * n))
    machine = machine_for([function([y, n], seq(check, store(y, [0], 1)))], TARGETS[name])
    got = np.zeros(1, np.int64)
    call(machine, "f", got, 9)
    assert got[0] == 1
    with pytest.raises(Failed) as failed:
        call(machine, "f", got, 12)
    assert (failed.value.status, failed.value.message) == (1, "n is {0}, its square {1}")
    assert failed.value.details[:2] == [12, 144]


@EVERYWHERE
def test_failure_gives_back_memory_and_reaches_the_caller(name: str) -> None:
    """A task fails inside a call inside two allocations."""
    n, begin, end, y = Var("n"), Var("begin"), Var("end"), Buffer("y", [1], i64)
    fail = Assert(end < 5, "too far", ())
    first, second, third = (Buffer(b, [n], f32, "local") for b in ("first", "second", "third"))
    task = Function("task", (begin, end, n), Alloc(third, fail), (Task(),))
    middle = Function("middle", (n,), Alloc(second, Call("task", (index(0), n, n))))
    f = function([y, n], Alloc(first, seq(Call("middle", (n,)), store(y, [0], 7))))
    machine = machine_for([f, middle, task], TARGETS[name])
    got = np.zeros(1, np.int64)
    with pytest.raises(Failed, match="too far"):
        call(machine, "f", got, 8)
    assert machine.live == []
    assert got[0] == 0
    call(machine, "f", got, 4)
    assert machine.live == []
    assert got[0] == 7


@EVERYWHERE
def test_no_memory_is_a_status(name: str) -> None:
    n, y = Var("n"), Buffer("y", [1], f32)
    big = Buffer("big", [n], f32, "local")
    f = function([y, n], Alloc(big, store(y, [0], 1.0)))
    machine = machine_for([f], TARGETS[name])
    machine.limit = 100
    with pytest.raises(Failed) as failed:
        call(machine, "f", np.zeros(1, np.float32), 1000)
    assert failed.value.status == 2


@EVERYWHERE
def test_functions_of_other_objects_are_linked(name: str) -> None:
    x, y, n, i = Buffer("x", [4], f32), Buffer("y", [4], f32), Var("n"), Var("i")
    kernel = Function("kernel", (x, n), for_(i, n, store(x, [i], load(x, i) + 0.1)))
    main = Function("main", (y,), seq(Call("kernel", (start(y), index(4))), Call("kernel", (start(y), index(2)))))
    objects = [compile_program(Program((f,)), TARGETS[name]) for f in (main, kernel)]
    if is_llvm(name):
        assert undefined_symbols(objects[0].data) == ["kernel"]
    image = link_here(objects, TARGETS[name])
    assert set(image.symbols) == {"main", "kernel"}


def test_index_arithmetic_folds_in_unrolled_code() -> None:
    """With i unrolled, `(i * 4 + k) // 4` and the bounds checks leave no instruction behind."""
    y, i, k = Buffer("y", [64], f32), Var("i"), Var("k")
    at = (i * 4 + k * 8) // 4 + maximum(i - 9, 0) + minimum(i, index(0))
    body = If(i + k < k + 4, store(y, [at], 1.0), store(y, [0], 2.0))
    text = llvm_text(Program((function([y], for_(k, 8, for_(i, 4, body, LoopKind.UNROLLED))),)), cpu("avx2"))
    assert not any(word in text for word in ("div", "smax", "smin", "select", "0x4000000000000000"))
    assert text.count("store float") == 4


REFUSED: list[tuple[Stmt, str]] = [
    (for_(Var("i"), 4, seq(), LoopKind.PARALLEL), "the loop over i is still parallel"),
    (for_(Var("i"), Var("n"), seq(), LoopKind.UNROLLED), "the variable n is used but not bound"),
    (
        Block("b", (Axis(Var("v"), index(4), AxisKind.SPATIAL),), (index(0),), TRUE, (), (), None, seq(), ()),
        "Block has no",
    ),
    (Alloc(Buffer("t", [2, 2], f32, "local"), seq()), "t has 2 dimensions"),
]


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_what_was_not_lowered_is_refused(body: Stmt, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        llvm_text(Program((function([], body),)), cpu("avx2"))


def test_a_call_with_other_types_is_refused() -> None:
    n = Var("n")
    callee = Function("g", (n,), seq())
    with pytest.raises(LoweringError, match="function f: g takes i64, not float"):
        llvm_text(Program((function([], Call("g", (const(1.0, f32),))), callee)), cpu("avx2"))


def test_many_nested_bindings() -> None:
    """More of them than Python lets calls nest."""
    y, n = Buffer("y", [1], i64), Var("n")
    variables = [n, *[Var(f"v{k}") for k in range(2000)]]
    body: Stmt = store(y, [0], variables[-1])
    for before, var in reversed(list(itertools.pairwise(variables))):
        body = Let(var, before + 1, body)
    got = np.zeros(1, np.int64)
    call(machine_for([function([y, n], body)], TARGETS["sse4"]), "f", got, 5)
    assert got[0] == 2005


def test_a_frame_holds_only_so_much() -> None:
    y = Buffer("y", [2], f32)
    parts = [Buffer(f"part{k}", [12 << 10], f32, "local") for k in range(2)]
    body: Stmt = seq(*[store(p, [0], 1.0) for p in parts], *[store(y, [k], load(p, 0)) for k, p in enumerate(parts)])
    for p in parts:
        body = Alloc(p, body)
    machine, got = machine_for([function([y], body)], TARGETS["sse4"]), np.zeros(2, np.float32)
    call(machine, "f", got)
    assert got.tolist() == [1, 1]
    assert machine.allocated == 48 << 10
