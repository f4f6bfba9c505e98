"""Gives every buffer one dimension: an index becomes the sum of index * stride.

    def f(A: f32[4, 8]):                            def f(A: f32[32]):
        alloc T[4, 8]                                   alloc T[32]
        for i in range(4):                     ->       for i in range(4):
            for j in range(8):                              for j in range(8):
                T[i, j] = A[i, j]                               T[i * 8 + j] = A[i * 8 + j]

A view of the same type as its source is resolved into indices of the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.ir import ONE, ZERO, Bounds, Expr, Var, as_ramp, assume, reads_memory, simplify
from weft.loop import Alloc, Buffer, Function, If, Program, View
from weft.lower.access_rewriter import Access, AccessRewriter
from weft.lower.stmt_rewriter import Steps, size_bounds


def flatten_buffers(program: Program) -> Program:
    """Returns *program* with one-dimensional, row-major buffers only, its parameters included."""
    functions = tuple([_Flatten(f).run(f) for f in program.functions])
    return program if functions == program.functions else Program(functions)


@dataclass(frozen=True, eq=False)
class Flat:
    """The location of a buffer's elements: in *buffer*, from *offset* on, with a stride for each dimension."""

    buffer: Buffer
    offset: Expr
    strides: tuple[Expr, ...]

    def at(self, indices: tuple[Expr, ...], bounds: Bounds) -> tuple[Expr]:
        """Returns the one index of the element at *indices*."""
        total: Expr = self.offset
        for i, stride in zip(indices, self.strides, strict=True):
            total = total + i * stride
        made = simplify(total, bounds)
        return (made if made.dtype.lanes == 1 else simplify(as_ramp(made), bounds),)


def flat_size(b: Buffer) -> Expr:
    """Returns how many elements lie from the first to the last of *b*."""
    size: Expr = ONE
    if b.strides is None:
        for s in b.shape:
            size = size * s
        return simplify(size)
    for s, stride in zip(b.shape, b.strides, strict=True):
        size = size + (s - ONE) * stride
    return simplify(size)


def is_flat(b: Buffer) -> bool:
    """Answers whether *b* has one dimension, its elements side by side."""
    return b.rank == 1 and (b.strides is None or b.strides[0] is ONE)


def flat_buffer(b: Buffer) -> Flat:
    """Returns the one-dimensional form of *b*; itself if it is that already."""
    buffer = b if is_flat(b) else Buffer(b.name, (flat_size(b),), b.dtype, b.scope)
    return Flat(buffer, ZERO, tuple([simplify(s) for s in b.row_major_strides()]))


class _Flatten(AccessRewriter):
    """Carries the flat form of each buffer in scope."""

    def __init__(self, function: Function) -> None:
        super().__init__(size_bounds(function))
        self.flat = {p: flat_buffer(p) for p in function.params if isinstance(p, Buffer)}

    def run(self, f: Function) -> Function:
        """Returns the function with flat parameters and a flat body."""
        body = self.rewrite(f.body)
        params = tuple([p if isinstance(p, Var) else self.flat[p].buffer for p in f.params])
        return f if body is f.body and params == f.params else Function(f.name, params, body, f.notes)

    def moved(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Access:
        flat = self.flat[buffer]
        return flat.buffer, flat.at(indices, self.bounds)

    def renamed(self) -> Mapping[Buffer, Buffer]:
        return {b: flat.buffer for b, flat in self.flat.items()}

    def visit_if(self, s: If) -> Steps:
        """Flattens indices by what holds where they are used: of rows in groups, those of a tile are in one.

        Nothing is known of what memory has: the statements may change it.
        """
        cond, outer, memo = self.expr(s.cond), self.bounds, self.memo
        if not reads_memory(cond):
            self.bounds, self.memo = assume(cond, outer), {}
        then = yield s.then
        self.bounds, self.memo = outer, memo
        return If(cond, then, None if s.other is None else (yield s.other))

    def visit_alloc(self, s: Alloc) -> Steps:
        flat = self.flat[s.buffer] = flat_buffer(s.buffer)
        body = yield s.body
        return Alloc(flat.buffer, body)

    def visit_view(self, s: View) -> Steps:
        source, own = self.flat[s.source], flat_buffer(s.buffer)
        offset = self.expr(s.offset)
        if s.buffer.dtype is s.source.dtype:
            self.flat[s.buffer] = Flat(source.buffer, source.offset + offset, own.strides)
            return (yield s.body)
        self.flat[s.buffer] = own
        body = yield s.body
        return View(own.buffer, source.buffer, source.offset + offset, body)
