"""Hypothesis strategies for typed expressions and for runnable loop programs.

Expressions are total: no division by zero, no shift by too many bits, no index outside of its buffer, so that they may be
evaluated by anything. Draw them with `exprs(dtype, variables)`, programs with `programs()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from weft import ir
from weft.ir import INDEX, INTRINSICS, Expr, Var, const, index
from weft.loop import (
    THREAD_AXES,
    Alloc,
    Assert,
    Axis,
    AxisKind,
    Buffer,
    Eval,
    For,
    Function,
    If,
    Let,
    Load,
    LoopKind,
    Note,
    Prefetch,
    Program,
    Stmt,
    Store,
    Thread,
    UserNote,
    View,
    make_block,
    seq,
)
from weft.support.dtypes import DType, bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64

INTS = (i8, i16, i32, i64, u8, u16, u32, u64)
FLOATS = (f16, bf16, f32, f64)
SCALARS = (bool_, *INTS, *FLOATS)
ARITHMETIC = (ir.Add, ir.Sub, ir.Mul, ir.Min, ir.Max)
COMPARISONS = (ir.Lt, ir.Le, ir.Eq, ir.Ne)
Draw = Callable[[st.SearchStrategy[Any]], Any]
Maker = Callable[[list[Var], int], Stmt]


def dtypes() -> st.SearchStrategy[DType]:
    """Scalar types."""
    return st.sampled_from(SCALARS)


def constants(dtype: DType, *, special: bool = True) -> st.SearchStrategy[Expr]:
    """Constants of *dtype*; floats include nan, infinities and both zeros if *special*."""
    if dtype.is_bool:
        return st.booleans().map(lambda v: const(v, dtype))
    if dtype.is_int:
        low, high = dtype.int_range
        small = st.integers(max(low, -20), 20)
        return (small | st.sampled_from([low, high]) if special else small).map(lambda v: const(v, dtype))
    limit = 8.0
    plain = st.floats(-limit, limit, width=16)
    extreme = st.sampled_from([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-30, float(np.float32(0.1))])
    return (plain | extreme if special else plain).map(lambda v: _round(v, dtype))


def _round(value: float, dtype: DType) -> Expr:
    with np.errstate(all="ignore"):
        return const(value, dtype)


@st.composite
def exprs(draw: Draw, dtype: DType, variables: Sequence[Expr] = (), depth: int = 3, *, special: bool = True) -> Expr:
    """Expressions of *dtype* over *variables* (any scalar expressions), at most *depth* operators deep."""
    return _Builder(draw, variables, special).make(dtype, depth)


class _Builder:
    """Draws an expression top-down."""

    def __init__(self, draw: Draw, variables: Sequence[Expr], special: bool) -> None:
        self.draw = draw
        self.variables = variables
        self.special = special

    def make(self, dtype: DType, depth: int) -> Expr:
        leaves = [v for v in self.variables if v.dtype is dtype]
        if depth == 0 or self.draw(st.integers(0, 5)) == 0:
            if leaves and self.draw(st.integers(0, 3)):
                return self.any(st.sampled_from(leaves))
            return self.any(constants(dtype, special=self.special))
        made: Expr = self.pick(self.choices(dtype))(dtype, depth - 1)
        return made

    def any(self, strategy: st.SearchStrategy[Expr]) -> Expr:
        made: Expr = self.draw(strategy)
        return made

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def choices(self, dtype: DType) -> list[Callable[[DType, int], Expr]]:
        shared = [self.select, self.cast]
        if dtype.is_bool:
            return [*shared, self.compare, self.compare, self.logic, self.negate_bool]
        if dtype.is_int:
            return [*shared, self.arithmetic, self.arithmetic, self.divide, self.bits, self.shift, self.unary]
        return [*shared, self.arithmetic, self.arithmetic, self.unary, self.divide_floats, self.apply]

    def select(self, dtype: DType, depth: int) -> Expr:
        return ir.Select(self.make(bool_, depth), self.make(dtype, depth), self.make(dtype, depth))

    def cast(self, dtype: DType, depth: int) -> Expr:
        if dtype.is_int:  # a float that is too large has no defined value as an integer
            source = self.pick([bool_, *INTS])
        else:
            source = self.pick(SCALARS)
        return ir.Cast(self.make(source, depth), dtype)

    def compare(self, dtype: DType, depth: int) -> Expr:
        operand = self.pick((*INTS, *FLOATS))
        return self.pick(COMPARISONS)(self.make(operand, depth), self.make(operand, depth))  # type: ignore[no-any-return]

    def logic(self, dtype: DType, depth: int) -> Expr:
        cls = self.pick([ir.And, ir.Or, ir.BitXor, ir.Eq, ir.Ne])
        return cls(self.make(bool_, depth), self.make(bool_, depth))  # type: ignore[no-any-return]

    def negate_bool(self, dtype: DType, depth: int) -> Expr:
        return ir.Not(self.make(bool_, depth))

    def arithmetic(self, dtype: DType, depth: int) -> Expr:
        if dtype in (i32, i64):  # overflow is taken not to happen: keep the operands small
            a, b = self.small(dtype, depth), self.small(dtype, depth)
        else:
            a, b = self.make(dtype, depth), self.make(dtype, depth)
        return self.pick(ARITHMETIC)(a, b)  # type: ignore[no-any-return]

    def small(self, dtype: DType, depth: int) -> Expr:
        return ir.FloorMod(self.make(dtype, depth), const(self.pick([7, 100]), dtype))

    def divide(self, dtype: DType, depth: int) -> Expr:
        divisors = [1, 2, 3, 7, 16] + ([-3] if dtype.kind == "int" else [])
        cls = self.pick([ir.FloorDiv, ir.FloorMod, ir.TruncDiv, ir.TruncMod])
        return cls(self.make(dtype, depth), const(self.pick(divisors), dtype))  # type: ignore[no-any-return]

    def bits(self, dtype: DType, depth: int) -> Expr:
        return self.pick([ir.BitAnd, ir.BitOr, ir.BitXor])(self.make(dtype, depth), self.make(dtype, depth))  # type: ignore[no-any-return]

    def shift(self, dtype: DType, depth: int) -> Expr:
        count = const(self.pick([0, 1, dtype.bits - 1]), dtype)
        if dtype in (i32, i64):
            return ir.ShiftRight(self.make(dtype, depth), count)
        return self.pick([ir.ShiftLeft, ir.ShiftRight])(self.make(dtype, depth), count)  # type: ignore[no-any-return]

    def unary(self, dtype: DType, depth: int) -> Expr:
        if dtype.is_float:
            return ir.Neg(self.make(dtype, depth))
        a = self.small(dtype, depth)
        return self.pick([ir.Neg, ir.Not])(a)  # type: ignore[no-any-return]

    def divide_floats(self, dtype: DType, depth: int) -> Expr:
        return ir.Div(self.make(dtype, depth), self.make(dtype, depth))

    def apply(self, dtype: DType, depth: int) -> Expr:
        fn = self.pick(["floor", "ceil", "trunc", "sqrt", "copysign", "abs", "round_even"])
        return ir.Apply(fn, tuple([self.make(dtype, depth) for _ in range(INTRINSICS[fn].arity)]))


SIZE = 8
"""Of every dimension of the buffers of `programs`."""


@st.composite
def programs(draw: Draw, *, blocks: bool = True) -> Program:
    """Programs of one function over A: f32[8, 8], B: f32[8], C: i32[8] that run without a fault."""
    buffers = [Buffer("A", (SIZE, SIZE), f32), Buffer("B", (SIZE,), f32), Buffer("C", (SIZE,), i32)]
    maker = _ProgramBuilder(draw, blocks)
    maker.buffers += buffers
    return Program((Function("main", tuple(buffers), maker.suite([], 3)),))


class _ProgramBuilder:
    """Draws statements; *scope* are the variables they may use."""

    def __init__(self, draw: Draw, blocks: bool) -> None:
        self.draw = draw
        self.blocks = blocks
        self.buffers: list[Buffer] = []
        self.count = 0

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def expr(self, dtype: DType, scope: list[Var], depth: int = 2) -> Expr:
        leaves: list[Expr] = [*scope]
        for b in self.buffers:
            leaves.append(Load(b, self.indices(b, scope)))
        return _Builder(self.draw, leaves, special=False).make(dtype, depth)

    def indices(self, b: Buffer, scope: list[Var]) -> tuple[Expr, ...]:
        return tuple([self.index(scope) for _ in b.shape])

    def index(self, scope: list[Var]) -> Expr:
        usable = [v for v in scope if v.dtype is INDEX]
        base: Expr = self.pick(usable) if usable else index(3)
        if self.draw(st.booleans()):
            return ir.FloorMod(base, index(SIZE))
        return ir.FloorMod(base * self.draw(st.integers(1, 3)) + self.draw(st.integers(0, 9)), index(SIZE))

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def suite(self, scope: list[Var], depth: int) -> Stmt:
        return seq(*[self.statement(scope, depth) for _ in range(self.draw(st.integers(1, 2)))])

    def statement(self, scope: list[Var], depth: int) -> Stmt:
        leaves: list[Maker] = [self.store, self.eval, self.check]
        nests: list[Maker] = [
            self.loop,
            self.loop,
            self.let,
            self.alloc,
            self.view,
            self.branch,
            *([self.block] * 2 * self.blocks),
        ]
        options = leaves[:1] * 2 + leaves if depth == 0 else nests
        made: Stmt = self.pick(options)(scope, depth - 1)
        return made

    def store(self, scope: list[Var], depth: int) -> Stmt:
        b = self.pick(self.buffers)
        mask = self.expr(bool_, scope) if self.draw(st.integers(0, 3)) == 0 else None
        return Store(b, self.indices(b, scope), self.expr(b.dtype, scope), mask)

    def eval(self, scope: list[Var], depth: int) -> Stmt:
        return Eval(self.expr(self.pick(SCALARS), scope))

    def check(self, scope: list[Var], depth: int) -> Stmt:
        return Assert(ir.TRUE, "never {0}", (self.expr(INDEX, scope),))

    def loop(self, scope: list[Var], depth: int) -> Stmt:
        v = Var(self.pick(["i", "j", "for"]))
        begin, extent = index(self.draw(st.integers(0, 2))), index(self.draw(st.integers(0, 3)))
        notes: tuple[Note, ...] = (
            (UserNote("note", self.pick([1, "x", 0.5, True])),) if self.draw(st.booleans()) else ()
        )
        kind = self.pick(list(LoopKind))
        if self.draw(st.booleans()):
            notes = (*notes, Prefetch(self.pick(self.buffers), self.draw(st.integers(1, 2))))
        if kind is LoopKind.BOUND:
            notes = (*notes, Thread(self.pick(THREAD_AXES)))
        return For(v, begin, extent, kind, self.suite([*scope, v], depth), notes)

    def let(self, scope: list[Var], depth: int) -> Stmt:
        value = self.expr(self.pick(SCALARS), scope)
        v = Var("x", value.dtype)
        return Let(v, value, self.suite([*scope, v], depth))

    def alloc(self, scope: list[Var], depth: int) -> Stmt:
        b = Buffer(self.pick(["t", "A"]), (SIZE,), self.pick([f32, i32, u8, f64]), "local")
        fill = Var("z")
        start = For(fill, ir.ZERO, index(SIZE), LoopKind.SERIAL, Store(b, (fill,), const(1, b.dtype), None), ())
        self.buffers.append(b)
        body = self.suite(scope, depth)
        self.buffers.remove(b)
        return Alloc(b, seq(start, body))

    def view(self, scope: list[Var], depth: int) -> Stmt:
        source = next(b for b in self.buffers if b.name == "A" and b.rank == 2)
        b = Buffer("v", (SIZE, SIZE), f32, source.scope, self.pick([None, (1, SIZE), (0, 1)]))
        self.buffers.append(b)
        body = self.suite(scope, depth)
        self.buffers.remove(b)
        return View(b, source, ir.ZERO, body)

    def branch(self, scope: list[Var], depth: int) -> Stmt:
        other = self.suite(scope, depth) if self.draw(st.booleans()) else None
        return If(self.expr(bool_, scope), self.suite(scope, depth), other)

    def block(self, scope: list[Var], depth: int) -> Stmt:
        """A block whose axes are loops of its own."""
        loops = [Var(n) for n in ("p", "q")]
        axes = [
            Axis(Var(f"v{v.name}"), index(3), k)
            for v, k in zip(loops, (AxisKind.SPATIAL, AxisKind.REDUCE), strict=True)
        ]
        inside = [a.var for a in axes]
        predicate = self.expr(bool_, [*scope, *loops], 1) if self.draw(st.booleans()) else ir.TRUE
        target = self.pick([b for b in self.buffers if b.dtype is f32])
        init = (
            Store(target, self.indices(target, inside[:1]), const(0, f32), None) if self.draw(st.booleans()) else None
        )
        body = self.store(inside, 0)
        made: Stmt = make_block(self.name("block "), axes, loops, body, init, predicate)
        for v in reversed(loops):
            made = For(v, ir.ZERO, index(3), LoopKind.SERIAL, made, ())
        return made
