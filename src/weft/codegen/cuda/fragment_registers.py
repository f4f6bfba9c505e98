"""Distributes the matrices of a warp over registers of its threads, in the layout of `mma` operands.

    P = alloc("fragment", f16[2048])                          P = alloc("register", f16[64])
    P[ty * 128 + tx * 2 + r * 1024 + k] = ...          ->     P[(r * 1024 + k) % 1024 // 16 * 8 + ...] = ...
    call("cuda.wgmma_registers_f16", C.at(0), P.at(...), ...)

A thread has, of each 16 terms, 2 * t and 2 * t + 1 and those 8 further on, in rows g and g + 8 of its warp: 8 registers of 16
bits, of which pairs of terms are one of 32, those of row g first, then those of g + 8 ("Parallel Thread Execution ISA" 8.0,
section 9.7.15.5.1). Accesses of other elements than a thread's own are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.c_family.check_fragments import Around, placed_statements, product_error
from weft.cost import size_of
from weft.ir import ONE, ZERO, Bounds, Const, Expr, Ramp, Var, free_vars, index, prove, simplify, substitute
from weft.loop import (
    Address,
    Alloc,
    Buffer,
    Call,
    Function,
    Kernel,
    Program,
    Stmt,
    Store,
    find_note,
    loads,
    map_stmts,
    own_exprs,
    statements,
)
from weft.support.errors import LoweringError
from weft.targets import Target
from weft.targets.instructions import FRAGMENT, REGISTER_GROUP_INSTRUCTIONS

FRAGMENT_SCOPE = "fragment"
_PRODUCTS = frozenset(REGISTER_GROUP_INSTRUCTIONS.values())
REGISTERS = FRAGMENT.halves * FRAGMENT.depth // FRAGMENT.quads
"""The elements of a left factor that a thread has."""


def place_fragments(program: Program, target: Target) -> Program:
    """Returns *program* without the scope `fragment`; raises `LoweringError` for accesses that are not a thread's own."""
    made = [f if find_note(f.notes, Kernel) is None else _placed(f) for f in program.functions]
    return program if tuple(made) == program.functions else Program(tuple(made))


def _placed(kernel: Function) -> Function:
    sizes = _sizes(kernel)
    if not sizes:
        return kernel
    registers = {b: Buffer(b.name, (index(n * REGISTERS),), b.dtype, "register") for b, n in sizes.items()}
    changed: dict[Stmt, Stmt] = {}
    for s, around, bounds in placed_statements(kernel):
        place = _Place(kernel, s, around, bounds, registers)
        if isinstance(s, Store) and s.buffer in registers:
            changed[s] = place.store(s)
        elif isinstance(s, Call) and s.callee in _PRODUCTS:
            changed[s] = place.product(s)
        elif any(x.buffer in registers for e in own_exprs(s) for x in loads(e)):
            raise place.error("is read, which products alone do")

    def change(s: Stmt) -> Stmt | None:
        return Alloc(registers[s.buffer], s.body) if isinstance(s, Alloc) and s.buffer in registers else changed.get(s)

    return kernel.with_body(map_stmts(kernel.body, change))


def _sizes(kernel: Function) -> dict[Buffer, int]:
    """Returns the matrices of warps, each with the number of products along one of its rows."""
    found: dict[Buffer, int] = {}
    for s in statements(kernel.body):
        if isinstance(s, Call) and s.callee in _PRODUCTS:
            left, step = s.args[1], s.args[4]
            assert isinstance(left, Address)
            if not isinstance(step, Const) or int(step.value) % (FRAGMENT.groups * FRAGMENT.depth):
                raise product_error(kernel, s, "has a left factor whose rows are not whole products apart")
            found[left.buffer] = int(step.value) // (FRAGMENT.groups * FRAGMENT.depth)
    for s in statements(kernel.body):
        if isinstance(s, Alloc) and s.buffer.scope == FRAGMENT_SCOPE and s.buffer not in found:
            raise LoweringError(f"{s.buffer.name} is in registers of warps, but no product takes it", where=kernel.name)
    return found


@dataclass(frozen=True, eq=False)
class _Place:
    """A statement, its context, and the registers that replace matrices."""

    kernel: Function
    stmt: Stmt
    around: Around
    bounds: Bounds
    registers: dict[Buffer, Buffer]

    def store(self, s: Store) -> Store:
        """Returns the store to registers, of one element or of neighbours."""
        (at,), buffer = s.indices, self.registers[s.buffer]
        lanes = at.dtype.lanes
        if isinstance(at, Ramp) and at.stride is ONE and lanes == FRAGMENT.pairs and s.mask is None:
            first = self.register(s.buffer, at.base, pairs=True)
            return Store(buffer, (Ramp(first, ONE, lanes),), s.value, None)
        if lanes > 1:
            raise self.error("is written in vectors other than of a pair")
        return Store(buffer, (self.register(s.buffer, at, pairs=False),), s.value, s.mask)

    def product(self, s: Call) -> Call:
        """Returns the product with its left factor in registers."""
        sums, left, *rest = s.args
        assert isinstance(left, Address)
        if rest[3] is not ONE:
            raise product_error(self.kernel, s, "has a left factor whose terms are not side by side")
        at = self.own(left.buffer, left.indices[0], x=0)
        buffer = self.registers[left.buffer]
        term = simplify(at // index(FRAGMENT.depth) * index(REGISTERS), self.bounds)
        width = self.width(left.buffer)
        if not prove(at < index(width), self.bounds) or simplify(at % index(FRAGMENT.depth), self.bounds) is not ZERO:
            raise product_error(self.kernel, s, "takes a left factor that is not a whole one")
        return Call(s.callee, (sums, Address(buffer, (term,)), *rest))

    def width(self, b: Buffer) -> int:
        """Returns the elements of a row of a matrix."""
        return size_of(self.registers[b].shape[0]) // REGISTERS * FRAGMENT.depth

    def own(self, b: Buffer, at: Expr, *, x: int) -> Expr:
        """Returns the offset of an element from the first element of its thread."""
        threads, width = self.around.threads, self.width(b)
        if not self.around.are_warps:
            raise self.error(f"is not accessed by {FRAGMENT.quads} x {FRAGMENT.groups} threads along x and y")
        first = self.around.value(at)
        steps = {"threadIdx.x": x, "threadIdx.y": width, "threadIdx.z": FRAGMENT.rows * width}
        known: dict[Var, Expr] = {threads[a].var: ZERO for a in steps if a in threads}
        whole = substitute(first, known)
        for axis, n in steps.items():
            if axis in threads:
                first = first - threads[axis].var * index(n)
        rest = simplify(first, self.bounds)
        if set(known) & set(free_vars(rest)) and simplify(first - whole, self.bounds) is not ZERO:
            raise self.error("is accessed by other threads than those that have it in registers")
        return simplify(whole, self.bounds)

    def register(self, b: Buffer, at: Expr, *, pairs: bool) -> Expr:
        """Returns the register of a thread's own element, or of the first of two."""
        width, f = self.width(b), FRAGMENT
        own = self.own(b, at, x=f.pairs)
        half, column = own // index(f.groups * width), own % index(f.groups * width)
        pair = simplify(column % index(f.columns), self.bounds)
        inside_ = prove(column < index(width), self.bounds) and prove(half < index(f.halves), self.bounds)
        if not inside_ or not prove(pair < index(1 if pairs else f.pairs), self.bounds):
            raise self.error("is accessed by other threads than those that have it in registers")
        of_step = column // index(f.columns) * index(f.halves) + half
        return simplify(of_step * index(f.pairs) + pair, self.bounds)

    def error(self, told: str) -> LoweringError:
        """Returns an error about the statement's matrix."""
        names = [b.name for b in self.registers]
        return LoweringError(
            f"a matrix of a warp ({', '.join(names)}) {told}",
            where=self.kernel.name,
            hint="schedule it as `schedule/rewriting/attention_groups.py` does",
        )
