"""Elements of register buffers are SSA values in the text, with phis where control joins; what needs an address is memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, is_llvm, machine_for

from weft.codegen.interp import run
from weft.codegen.llvm.ir_module import llvm_text
from weft.ir import Broadcast, Expr, Ramp, Var, const, eq, index
from weft.loop import (
    Alloc,
    Buffer,
    Export,
    For,
    Function,
    If,
    Load,
    LoopKind,
    Param,
    Program,
    Stmt,
    Store,
    While,
    for_,
    seq,
    store,
)
from weft.loop.nodes import load
from weft.support.dtypes import f32, i32
from weft.targets import cpu

N, X, Y = Var("n"), Buffer("x", [64], f32), Buffer("y", [4], f32)


def text(body: Stmt, params: Sequence[Param] = (X, Y, N)) -> str:
    return llvm_text(Program((Function("f", tuple(params), body, (Export(),)),)), cpu("avx512"))


def vector(i: Expr | int, lanes: int) -> tuple[Expr]:
    return (Ramp(index(0) + i, index(1), lanes),)


def sums(registers: Buffer, lanes: int) -> Stmt:
    """Sums of each of four rows of x, held in *registers*, and their first element stored."""
    i, j, k = Var("i"), Var("j"), Var("k")
    zero = Broadcast(const(0.0, f32), lanes)
    start = for_(i, 4, Store(registers, vector(i * lanes, lanes), zero, None), LoopKind.UNROLLED)
    row = Load(X, vector(k * lanes, lanes))
    old = Load(registers, vector(j * lanes, lanes))
    add = for_(k, 8, for_(j, 4, Store(registers, vector(j * lanes, lanes), old + row, None), LoopKind.UNROLLED))
    out = Store(Buffer("z", [lanes], f32), vector(0, lanes), Load(registers, vector(lanes, lanes)), None)
    return Alloc(registers, seq(start, add, Alloc(out.buffer, out)))


def test_sums_over_a_loop_are_phis() -> None:
    made = text(sums(Buffer("T", [32], f32, "register"), 8))
    assert made.count("alloca") == 1, "that of z alone"
    assert made.count("= phi <8 x float>") == 4


def test_a_value_that_is_not_read_has_no_phi() -> None:
    t, k = Buffer("T", [2], f32, "register"), Var("k")
    branch = If(N > 0, store(t, [1], load(X, 0)), store(t, [0], load(X, 1)))
    loop = for_(k, 8, seq(store(t, [0], load(X, k)), branch, store(Y, [0], load(t, 0))))
    made = text(Alloc(t, seq(store(t, [0], 1.0), store(t, [1], 2.0), loop)))
    assert made.count("= phi float") == 1, "of the first element, behind the branch; none at the loop"


def test_more_branches_than_calls_can_nest() -> None:
    t, count = Buffer("T", [1], f32, "register"), 1200
    branches = [If(index(k) < N, store(t, [0], load(X, k % 64)), None) for k in range(count)]
    made = text(Alloc(t, seq(store(t, [0], 1.0), *branches, store(Y, [0], load(t, 0)))))
    assert made.count("= phi float") == count


@pytest.mark.parametrize("why", ["an index", "two lengths", "across vectors", "a loop whose end is not known"])
def test_what_has_no_number_is_memory(why: str) -> None:
    t, i, lanes = Buffer("T", [8], f32, "register"), Var("i"), 4
    written = Store(t, vector(0, lanes), Load(X, vector(0, lanes)), None)
    uses: dict[str, Stmt] = {
        "an index": store(Y, [0], load(t, N)),
        "two lengths": store(Y, [0], load(t, 3)),
        "across vectors": Store(Y, vector(0, lanes), Load(t, vector(2, lanes)), None),
        "a loop whose end is not known": While(
            load(Y, 0) < 1.0, Store(Y, vector(0, lanes), Load(t, vector(0, 4)), None)
        ),
    }
    assert "alloca" in text(Alloc(t, for_(i, 2, seq(written, uses[why]))))


T = Buffer("T", [4], i32, "register")
A, B = Buffer("a", [64], i32), Buffer("b", [4], i32)


class Writer:
    """Writes random statements on four registers: copies, sums, branches, and loops, some of which may never run."""

    def __init__(self, seed: int) -> None:
        self.random, self.counters = Random(seed), [N]

    def element(self) -> Expr:
        return load(T, self.random.randrange(4))

    def condition(self) -> Expr:
        return eq(self.random.choice(self.counters) % 2, index(self.random.randrange(2)))

    def change(self) -> Stmt:
        value = self.element()
        if self.random.random() < 0.7:
            value = value * const(3, i32) + load(A, self.random.choice(self.counters) + self.random.randrange(40))
        return store(T, [self.random.randrange(4)], value)

    def branch(self, depth: int) -> Stmt:
        other = self.statements(depth - 1) if self.random.random() < 0.5 else None
        return If(self.condition(), self.statements(depth - 1), other)

    def loop(self, depth: int) -> Stmt:
        var = Var("i")
        self.counters.append(var)
        body = self.statements(depth - 1)
        self.counters.pop()
        extent = self.random.choice([index(0), index(1), index(3), N, N - 1])
        return For(var, index(0), extent, LoopKind.SERIAL, body, ())

    def statements(self, depth: int) -> Stmt:
        kinds: list[Callable[[], Stmt]] = (
            [self.change, lambda: self.branch(depth), lambda: self.loop(depth)] if depth else [self.change]
        )
        return seq(*[self.random.choice(kinds)() for _ in range(self.random.randrange(1, 5))])

    def function(self, name: str) -> Function:
        first = seq(*[store(T, [k], const(k + 1, i32)) for k in range(4)])
        last = seq(*[store(B, [k], load(T, k)) for k in range(4)])
        return Function(name, (A, B, N), Alloc(T, seq(first, self.statements(3), last)), (Export(),))


@pytest.mark.parametrize("name", [n for n in TARGETS if is_llvm(n)][-1:])
def test_random_control_leaves_the_values_that_the_interpreter_has(name: str) -> None:
    made = [Writer(seed).function(f"f{seed}") for seed in range(40)]
    assert "alloca" not in llvm_text(Program(tuple(made)), cpu("avx512"))
    machine = machine_for(made, TARGETS[name])
    a = np.arange(64, dtype=np.int32) * 7 % 31
    for f in made:
        for n in (0, 1, 2, 3):
            want, got = np.zeros(4, np.int32), np.zeros(4, np.int32)
            run(Program((f,)), [a, want, n])
            call(machine, f.name, a, got, n)
            np.testing.assert_array_equal(got, want, f"{f}, n = {n}")
