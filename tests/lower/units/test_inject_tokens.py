"""Tokens between units: where they are put, that nothing races with them, and that none is too many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from tests.lower.simulator import Deadlock, Stream, instructions, races, run_in_some_order, simulate
from tests.support.sampling import tried

from weft.codegen.interp import ExecutionError, run
from weft.ir import ONE, Expr, Var, index
from weft.loop import (
    Buffer,
    Function,
    If,
    LoopKind,
    Program,
    Stmt,
    for_,
    parse_program,
    print_program,
    seq,
    store,
    verify,
)
from weft.loop.nodes import load
from weft.lower import lower
from weft.lower.units.inject_tokens import inject_tokens
from weft.support.dtypes import f32, i64
from weft.support.errors import LoweringError
from weft.targets import cpu
from weft.targets.instructions.gemm_unit import GEMM_UNIT_TARGET

HEAD = 'def main(X: f32[16], Y: f32[16], I: buffer("inp", f32[8]), A: buffer("acc", f32[8]), n: i64):\n'
READABLE = {0: "load", 1: "execute", 2: "store", 3: "host"}


def with_tokens(body: str) -> Program:
    """The program of *body*, with tokens; it is checked to be in order, and free of races."""
    lines = "".join([f"    {line}\n" for line in body.strip("\n").splitlines()])
    before = parse_program(HEAD + lines)
    verify(before, flat=True)
    after = inject_tokens(before, GEMM_UNIT_TARGET)
    verify(after, flat=True)
    check(before, after)
    return after


def check(before: Program, after: Program, sizes: tuple[int, ...] = (0, 1, 2)) -> None:
    """Fails unless *after* computes what *before* does, whatever unit is ahead."""
    for n in sizes:
        wanted = values(before, n)
        run(before, wanted)
        given = values(after, n)
        run(after, given)
        same(given, wanted, after)
        assert races(instructions(after, GEMM_UNIT_TARGET, values(after, n))) == [], print_program(after)
        for seed in range(4):
            given = values(after, n)
            run_in_some_order(instructions(after, GEMM_UNIT_TARGET, given), np.random.default_rng(seed))
            same(given, wanted, after)


def values(program: Program, n: int) -> dict[str, Any]:
    """Small integers for the buffers of *program*, and *n* for its size."""
    made = np.random.default_rng(1)
    return {
        p.name: made.integers(-3, 4, int(p.shape[0].value)).astype(np.float32) if isinstance(p, Buffer) else n  # type: ignore[attr-defined]
        for p in program.entry.params
    }


def same(given: dict[str, Any], wanted: dict[str, Any], program: Program) -> None:
    for name, v in wanted.items():
        np.testing.assert_array_equal(given[name], v, err_msg=f"{name} of\n{print_program(program)}")


def shown(program: Program) -> str:
    """The text of a program, its units by name."""
    text = print_program(program)
    for a, x in READABLE.items():
        for b, y in READABLE.items():
            text = text.replace(f'_token", {a}, {b})', f'_token", {x}, {y})')
    return text


# -- where they are put --------------------------------------------------------------------------------------------------

ONCE = """
I[0] = X[0]
A[0] = A[0] + I[0]
Y[0] = A[0]
"""

LOOP = """
for k in range(0, 8):
    I[0] = X[k]
    A[0] = A[0] + I[0]
Y[0] = A[0]
"""

TILES = """
for i in range(0, 4):
    A[0] = 0.0
    for k in range(0, 4):
        I[0] = X[i * 4 + k]
        A[0] = A[0] + I[0]
    Y[i] = A[0]
"""

TURNS = """
for k in range(0, 4):
    I[0] = X[k * 2]
    I[1] = X[k * 2 + 1]
    A[0] = A[0] + I[0]
    A[1] = A[1] + I[1]
"""

NEST = """
for i in range(0, 4):
    for j in range(0, 4):
        I[j] = X[i + j]
    for j_1 in range(0, 4):
        A[j_1] = A[j_1] + I[j_1]
"""

MAYBE = """
for i in range(0, 4):
    if i < n:
        I[0] = X[i]
        A[0] = A[0] + I[0]
    Y[i] = A[0]
"""

PERHAPS_NEVER = """
I[0] = X[0]
for k in range(0, n):
    I[1] = X[k]
    A[1] = A[1] + I[1]
A[0] = A[0] + I[0]
"""

SURELY = """
I[0] = X[0]
for k in range(0, 4):
    I[1] = X[k]
    A[1] = A[1] + I[1]
A[0] = A[0] + I[0]
"""

HOST = """
for i in range(0, 4):
    X[i] = Y[i]
for i_1 in range(0, 4):
    I[0] = X[i_1]
    A[0] = I[0]
    Y[i_1 + 4] = A[0]
for i_2 in range(0, 4):
    X[i_2 + 8] = Y[i_2 + 4]
"""

BACK = """
for i in range(0, 3):
    I[0] = Y[i]
    A[0] = I[0]
    Y[i + 1] = A[0]
"""


@pytest.mark.parametrize(
    "name", ["ONCE", "LOOP", "TILES", "TURNS", "NEST", "MAYBE", "PERHAPS_NEVER", "SURELY", "BACK", "HOST"]
)
def test_tokens(name: str, golden: Callable[[str], None]) -> None:
    golden(shown(with_tokens(globals()[name])))


def test_units_that_share_nothing_need_none() -> None:
    after = with_tokens("I[0] = X[0]\nA[0] = A[0] + I[4]\nfor k in range(0, 4):\n    I[k] = X[k]\n    A[k] = I[k + 4]")
    assert "token" not in str(after)


def test_a_machine_without_units_needs_none() -> None:
    program = parse_program(HEAD + "    X[0] = Y[0]\n")
    assert inject_tokens(program, cpu("avx2")) is program


def test_refused_for_a_statement_of_no_unit(golden: Callable[[str], None]) -> None:
    with pytest.raises(LoweringError) as caught:
        lower(
            parse_program(HEAD + "    I[0] = X[0]\n    Y[0] = X[1]\n"),
            replace(GEMM_UNIT_TARGET, units=GEMM_UNIT_TARGET.units[:3]),
        )
    golden(f"{caught.value}\n")


# -- any program -----------------------------------------------------------------------------------------------------------


class Maker:
    """Draws programs of four units, or of two, over a few small memories."""

    def __init__(self, draw: Callable[..., Any], *, units: int = 4, nested: bool = True) -> None:
        self.draw, self.units, self.nested = draw, units, nested
        self.x, self.y = Buffer("X", (6,), f32), Buffer("Y", (6,), f32)
        self.inp = [Buffer(f"I{k}", (6,), f32, "inp") for k in range(2)]
        self.acc = [Buffer(f"A{k}", (6,), f32, "acc") for k in range(2)]
        self.n = Var("n", i64)

    def program(self) -> Program:
        params: tuple[Buffer | Var, ...] = (self.x, self.y, *self.inp, *self.acc, self.n)
        return Program((Function("main", params, self.body((), 0)),))

    def body(self, around: tuple[Var, ...], depth: int) -> Stmt:
        count = self.draw(st.integers(1, 4 if self.nested else 9))
        return seq(*[self.statement(around, depth) for _ in range(count)])

    def statement(self, around: tuple[Var, ...], depth: int) -> Stmt:
        kind = self.draw(st.sampled_from("leesh" + "fffi" * (self.nested and depth < 3)))
        if kind == "f":
            var = Var("i")
            extent = self.draw(st.sampled_from([index(1), index(2), index(3), self.n]))
            return for_(var, extent, self.body((*around, var), depth + 1), LoopKind.SERIAL)
        if kind == "i":
            cond = (self.draw(st.sampled_from([self.n, *around])) if around else self.n) < ONE
            other = self.body(around, depth + 1) if self.draw(st.booleans()) else None
            return If(cond, self.body(around, depth + 1), other)
        return self.assignment(kind, around)

    def assignment(self, kind: str, around: tuple[Var, ...]) -> Stmt:
        inp, acc = self.draw(st.sampled_from(self.inp)), self.draw(st.sampled_from(self.acc))
        at, of = self.at(around), self.at(around)
        if kind == "l":
            source = self.draw(st.sampled_from([self.x, self.y] if self.units == 4 else [self.x]))
            return store(inp, [at], load(source, of))
        if kind == "s" and self.units == 4:
            return store(self.y, [at], load(acc, of))
        if kind == "h" and self.units == 4:
            return store(self.x, [at], load(self.y, of))
        return store(acc, [at], load(acc, at) + load(inp, of))

    def at(self, around: tuple[Var, ...]) -> Expr:
        offset = index(self.draw(st.integers(0, 3)))
        return self.draw(st.sampled_from(around)) + offset if around and self.draw(st.booleans()) else offset


@tried(15, 60, st.data())
def test_no_unit_overtakes_what_it_needs(data: st.DataObject) -> None:
    before = Maker(data.draw).program()
    after = inject_tokens(before, GEMM_UNIT_TARGET)
    verify(after, flat=True)
    check(before, after, (0, 2))


@tried(20, 80, st.data())
def test_between_two_units_no_token_is_too_many(data: st.DataObject) -> None:
    """Each push and its pop, taken out of a program without loops, leave a race."""
    after = inject_tokens(Maker(data.draw, units=2, nested=False).program(), GEMM_UNIT_TARGET)
    stream = instructions(after, GEMM_UNIT_TARGET, values(after, 1))
    for a, b in pairs(stream):
        assert races(stream.without(a, b)), print_program(after)


def pairs(stream: Stream) -> list[tuple[int, int]]:
    """The numbers of each push and of the pop that gets its token."""
    found = []
    for q in {i.queue for i in stream.all if i.queue is not None}:
        pushes, pops = ([n for n, i in enumerate(stream.all) if i.queue == q and i.name == w] for w in ("push", "pop"))
        found += list(zip(pushes, pops, strict=True))
    return found


# -- what the interpreter and the simulator say of wrong programs -----------------------------------------------------------


def test_the_interpreter_finds_a_token_that_nothing_pushes(golden: Callable[[str], None]) -> None:
    program = parse_program(HEAD + '    call("weft.pop_token", 0, 1)\n    A[0] = I[0]\n')
    with pytest.raises(ExecutionError) as caught:
        run(program, values(program, 1))
    golden(f"{caught.value}\n")


def test_the_interpreter_finds_a_token_that_is_left() -> None:
    program = parse_program(HEAD + '    I[0] = X[0]\n    call("weft.push_token", 0, 1)\n')
    with pytest.raises(ExecutionError, match="a token from unit 0 to unit 1 is left that nothing has taken"):
        run(program, values(program, 1))


def test_a_missing_push_is_a_deadlock() -> None:
    after = with_tokens(LOOP)
    stream = instructions(after, GEMM_UNIT_TARGET, values(after, 1))
    first = next(n for n, i in enumerate(stream.all) if i.name == "push" and i.unit == 0)
    with pytest.raises(Deadlock, match="execute for load, store for execute wait"):
        simulate(stream.without(first))


def test_a_missing_wait_is_a_race_and_a_wrong_result() -> None:
    after = with_tokens(ONCE)
    stream = instructions(after, GEMM_UNIT_TARGET, values(after, 1))
    for a, b in pairs(stream):
        assert races(stream.without(a, b))
    (load_to_execute,) = [p for p in pairs(stream) if stream.all[p[0]].unit == 0]
    found = set()
    for seed in range(10):
        given = values(after, 1)
        given["I"][0], given["X"][0], given["A"][0] = 50, 2, 3
        stream = instructions(after, GEMM_UNIT_TARGET, given).without(*load_to_execute)
        run_in_some_order(stream, np.random.default_rng(seed))
        found.add(int(given["Y"][0]))
    assert found == {5, 53}  # what was in the memory before, where the load comes late
