"""Computes indices in 32 bits where they are proven to fit, for machines whose integers of 64 bits are slow.

    for t in bound(0, 256, thread="threadIdx.x"):      for t in bound(0, 256, thread="threadIdx.x"):
        if b * 256 + t < n * 96:                           if i32(b) * 256 + i32(t) < i32(n) * 96:
            Y[b * 256 + t] = ...                ->             Y[i64(i32(b) * 256 + i32(t))] = ...

Each step of a computation is narrowed by itself, from the operands on: where its range is in 32 bits, and those of its operands
are, it is exact in 32 bits. Ranges are known of loop variables, of `Let` bindings, and of sizes: a buffer has at most as many
bytes as the machine lets a kernel take (`Grid.buffer_bytes`), and each factor of its size is at least one.
"""

from __future__ import annotations

from typing import Final

from weft.ir import (
    INDEX,
    ZERO,
    Add,
    Bounds,
    Cast,
    Const,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Node,
    Select,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    cast,
    const,
    map_nodes,
)
from weft.loop import Buffer, For, Function, Kernel, Let, Program, find_note
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, size_bounds
from weft.support.dtypes import i32
from weft.targets import Target

LOW, HIGH = i32.int_range
"""The least and the largest number of 32 bits."""

_ARITHMETIC: Final = (Add, Sub, Mul, FloorDiv, FloorMod, TruncDiv, TruncMod, Min, Max)
_COMPARISONS: Final = (Lt, Le, Eq, Ne)


def narrow_indices(program: Program, target: Target) -> Program:
    """Returns *program* with kernels that compute indices in i32 where they fit, where the target's indices are of 32 bits."""
    if target.grid is None or target.grid.index_bits > i32.bits:
        return program
    most = target.grid.buffer_bytes
    made = [
        f if find_note(f.notes, Kernel) is None else f.with_body(_Narrow(_bounds(f, most)).rewrite(f.body))
        for f in program.functions
    ]
    return program if tuple(made) == program.functions else Program(tuple(made))


def _bounds(f: Function, most: int | None) -> Bounds:
    """Returns the ranges of sizes on entry to a kernel none of whose buffers has more than *most* bytes."""
    bounds = size_bounds(f)
    for p in f.params if most is not None else ():
        if isinstance(p, Buffer) and most is not None:
            for v, high in _limits(p.shape[0], most // p.dtype.bytes):
                known = bounds.of(v).hi
                bounds = bounds.bind(v, 1, high if known is None else min(known, high))
    return bounds


def _limits(size: Expr, most: int) -> list[tuple[Var, int]]:
    """Returns the most that each factor of a buffer's *size* can be, all being at least one, where there are *most* elements."""
    match size:
        case Var():
            return [(size, most)]
        case Mul(a, Const() as c) | Mul(Const() as c, a):
            return _limits(a, most // max(1, int(c.value)))
        case Mul(a, b):
            return [*_limits(a, most), *_limits(b, most)]
        case FloorDiv(a, Const() as c):
            return _limits(a, most * int(c.value) + int(c.value) - 1)
        case Add(a, Const() as c) if int(c.value) >= 0:
            return _limits(a, most)
        case _:
            return []


def narrowed(e: Expr) -> Expr | None:
    """Returns an i64 as i32 where it was widened from that, or is a constant that fits."""
    if isinstance(e, Const):
        return const(int(e.value), i32) if LOW <= int(e.value) <= HIGH else None
    return e.a if isinstance(e, Cast) and e.dtype is INDEX and e.a.dtype is i32 else None


class _Narrow(BoundedRewriter):
    """Narrows expressions, with the ranges of the variables around them."""

    def expr(self, e: Expr) -> Expr:
        return map_nodes(e, self._change)

    def _change(self, n: Node) -> Node | None:
        if not isinstance(n, Expr) or n.dtype.lanes > 1:
            return None
        if isinstance(n, Cast) and n.a.dtype is INDEX:
            return self._cast(n)
        if isinstance(n, _COMPARISONS) and n.a.dtype is INDEX:
            sides = narrowed(n.a), narrowed(n.b)
            return None if sides[0] is None or sides[1] is None else type(n)(sides[0], sides[1])
        if n.dtype is not INDEX or isinstance(n, Const) or narrowed(n) is not None or not self._fits(n):
            return None
        return cast(self._in_32_bits(n), INDEX)

    def _cast(self, n: Cast) -> Expr | None:
        """Converts an integer that was made wider as it was before."""
        inner = narrowed(n.a)
        return None if inner is None else inner if n.dtype is i32 else cast(inner, n.dtype)

    def _fits(self, e: Expr) -> bool:
        low, high = self.bounds.of(e)
        return low is not None and high is not None and low >= LOW and high <= HIGH

    def _in_32_bits(self, n: Expr) -> Expr:
        """Returns *n*, which fits, as an i32: computed as one where its operands are, else cut off."""
        if isinstance(n, _ARITHMETIC):
            a, b = narrowed(n.a), narrowed(n.b)
            if a is not None and b is not None:
                return type(n)(a, b)
        if isinstance(n, Neg) and (a := narrowed(n.a)) is not None:
            return Neg(a)
        if isinstance(n, Select):
            a, b = narrowed(n.then), narrowed(n.other)
            if a is not None and b is not None:
                return Select(n.cond, a, b)
        return cast(n, i32)

    def visit_for(self, s: For) -> Steps:
        begin, extent = self.expr(s.begin), self.expr(s.extent)
        if begin is not ZERO and not self._fits(s.begin + s.extent):  # where the loop ends must fit as well
            begin, extent = s.begin, s.extent
        body = yield from self.loop_body(s)
        return For(s.var, begin, extent, s.kind, body, s.notes)

    def visit_let(self, s: Let) -> Steps:
        value, outer = self.expr(s.value), self.bounds
        if s.var.dtype is INDEX:
            low, high = outer.of(value)
            self.bounds = outer.bind(s.var, low, high)
        body = yield s.body
        self.bounds = outer
        return Let(s.var, value, body)
