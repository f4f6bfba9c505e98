"""The invariants of loop programs; `verify` raises `VerifyError` naming the statement that breaks one.

A *flat* program, as backends take it, has no blocks, only one-dimensional dense buffers, no parallel or vectorized loops, and
bound loops in kernels only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

from weft.ir import EXPRESSIONS, INDEX, Const, Expr, Neg, Node, Not, Var, post_order
from weft.loop.buffer import Buffer, is_late_output
from weft.loop.moot_notes import is_moot
from weft.loop.nodes import (
    NOTHING,
    Address,
    Alloc,
    Assert,
    Block,
    Call,
    For,
    Function,
    If,
    Let,
    Load,
    LoopKind,
    Program,
    Region,
    Seq,
    Stmt,
    Store,
    View,
    While,
)
from weft.loop.notes import Kernel, Note, Place, Thread, buffers_in, find_note
from weft.loop.printer import excerpt
from weft.loop.regions import touched_regions
from weft.loop.visit import bound_vars, own_exprs, sub_statements
from weft.support.dtypes import DType, handle
from weft.support.errors import VerifyError


def verify(program: Program, *, flat: bool = False) -> None:
    """Raises `VerifyError` for the first broken invariant of *program*, which must be *flat* if asked for."""
    if not program.functions:
        raise VerifyError("a program has at least one function")
    functions: dict[str, Function] = {}
    for f in program.functions:
        if f.name in functions:
            raise VerifyError(f"two functions are named {f.name}")
        functions[f.name] = f
    for f in program.functions:
        _Verifier(f, functions, flat).function()


class _Verifier:
    """Walks one function, keeping track of the names in scope."""

    def __init__(self, function: Function, functions: Mapping[str, Function], flat: bool) -> None:
        self.f = function
        self.functions = functions
        self.flat = flat
        self.bound: set[Var | Buffer] = set()
        self.vars: set[Var] = set()
        self.buffers: set[Buffer] = set()
        self.blocks: set[str] = set()
        self.hidden: dict[Block, set[Var]] = {}
        self.always: set[Var] = set()  # parameters and symbolic sizes, which blocks may use too
        self.at: Stmt | None = None

    def fail(self, message: str, at: Stmt | None = None) -> NoReturn:
        """Raises the error, with the function shown around the offending statement."""
        shown = excerpt(self.f, self.at if at is None else at)
        raise VerifyError(f"{message}\n{shown}", where=f"in {self.f.name}")

    def require(self, holds: bool, message: str) -> None:
        """Fails unless *holds*."""
        if not holds:
            self.fail(message)

    def function(self) -> None:
        """Verifies the notes, the parameters and the body."""
        self.notes(self.f.notes, Place.FUNCTION)
        for p in self.f.params:
            self.require(p not in self.bound, f"the parameter {p.name} is listed twice")
            self.bound.add(p)
        buffers = [p for p in self.f.params if isinstance(p, Buffer)]
        sizes = [v for b in buffers for e in _sizes(b) for v in post_order(e) if isinstance(v, Var)]
        self.always = {*sizes, *[p for p in self.f.params if isinstance(p, Var)]}
        self.vars = set(self.always)
        self.bound |= self.always
        for b in buffers:
            self.declaration(b)
        self.buffers.update(buffers)
        self.walk()

    def walk(self) -> None:
        """Visits every statement, with the names that it binds in scope inside it."""
        stack: list[tuple[Stmt, bool]] = [(self.f.body, False)]
        while stack:
            s, done = stack.pop()
            self.at = s
            if done:
                self.leave(s)
                continue
            self.expressions(own_exprs(s))
            if (check := _CHECKS.get(type(s))) is not None:
                check(self, s)
            self.enter(s)
            stack.append((s, True))
            stack += [(k, False) for k in reversed(sub_statements(s))]

    def enter(self, s: Stmt) -> None:
        """Brings the variables and buffers that *s* binds into scope; a block hides all other variables but parameters."""
        for v in bound_vars(s):
            self.require(v not in self.bound, f"the variable {v.name} is bound twice")
            self.bound.add(v)
        if isinstance(s, Alloc | View):
            self.require(s.buffer not in self.bound, f"the buffer {s.buffer.name} is declared twice")
            self.bound.add(s.buffer)
            self.buffers.add(s.buffer)
        if isinstance(s, Block):
            self.hidden[s] = self.vars
            self.vars = set(self.always)
        self.vars.update(bound_vars(s))
        if isinstance(s, Block):
            _check_regions(self, s)

    def leave(self, s: Stmt) -> None:
        """Takes the variables and buffers that *s* binds out of scope."""
        self.vars.difference_update(bound_vars(s))
        if isinstance(s, Alloc | View):
            self.buffers.discard(s.buffer)
        if isinstance(s, Block):
            self.vars = self.hidden.pop(s)

    def expressions(self, exprs: Iterable[Expr]) -> None:
        """Verifies that the variables and buffers that expressions use are in scope, and of valid types."""
        seen: set[Node] = set()
        for root in exprs:
            for n in post_order(root):
                if n not in seen:
                    seen.add(n)
                    self.node(n)

    def node(self, n: Node) -> None:
        """Verifies one node of an expression."""
        if isinstance(n, Var):
            self.require(n in self.vars, f"the variable {n.name} is not in scope")
        elif isinstance(n, Load | Address):
            self.uses(n.buffer)
        elif isinstance(n, Not):
            self.require(not n.dtype.is_float, f"`not` does not take {n.dtype}")
        elif isinstance(n, Neg):
            self.require(n.dtype.is_int or n.dtype.is_float, f"`-` does not take {n.dtype}")
        elif type(n) not in EXPRESSIONS:
            self.fail(f"a {type(n).__name__} does not belong into a loop program")

    def uses(self, b: Buffer) -> None:
        """Verifies that a buffer is in scope."""
        self.require(b in self.buffers, f"the buffer {b.name} is not in scope")

    def declaration(self, b: Buffer) -> None:
        """Verifies the shape and the strides of a buffer."""
        self.expressions(_sizes(b))
        for e in _sizes(b):
            self.require(e.dtype is INDEX, f"a size or stride of {b.name} is of type {e.dtype}, not {INDEX}")
        strides = b.strides
        if strides is not None:
            wrong = f"{b.name} has {b.rank} dimensions, but {len(strides)} strides"
            self.require(len(strides) == b.rank, wrong)
        if self.flat:
            dense = strides is None or all(isinstance(s, Const) and s.value == 1 for s in strides)
            self.require(
                (b.rank == 1 or is_late_output(b)) and dense,
                f"{b.name} is not flat: a flat buffer has one dense dimension",
            )

    def index(self, e: Expr, what: str) -> None:
        """Verifies that *e* is a scalar index."""
        self.require(e.dtype is INDEX, f"{what} is of type {e.dtype}, not {INDEX}")

    def condition(self, e: Expr) -> None:
        """Verifies that *e* is a single bool."""
        self.require(e.dtype.is_bool and e.dtype.lanes == 1, f"a condition is a bool, not {e.dtype}")

    def notes(self, notes: tuple[Note, ...], place: Place) -> None:
        """Verifies that each note may stand on a *place*, makes sense, and is given once."""
        for k, n in enumerate(notes):
            where = " or a ".join(n.places)
            self.require(place in n.places, f"the note {n.keyword} stands on a {place}, but belongs on a {where}")
            problem = n.problem()
            self.require(problem is None, f"the note {n.keyword} is wrong: {problem}")
            given = any(n.is_about_the_same(other) for other in notes[:k])
            self.require(not given, f"the note {n.keyword} is given twice")


def _sizes(b: Buffer) -> tuple[Expr, ...]:
    return (*b.shape, *(b.strides or ()))


def _for(v: _Verifier, s: For) -> None:
    v.index(s.var, f"the loop variable {s.var.name}")
    v.index(s.begin, "the begin of a loop")
    v.index(s.extent, "the extent of a loop")
    v.notes(s.notes, Place.LOOP)
    is_bound = find_note(s.notes, Thread) is not None
    v.require(is_bound or s.kind is not LoopKind.BOUND, "a bound loop has a note of its thread axis")
    v.require(
        not is_bound or s.kind is LoopKind.BOUND,
        f"a loop with a note of its thread axis is bound, not of kind {s.kind.value}",
    )
    _check_buffers(v, s)
    if v.flat:
        in_grid = s.kind is LoopKind.BOUND and find_note(v.f.notes, Kernel) is not None
        v.require(
            in_grid or s.kind in (LoopKind.SERIAL, LoopKind.UNROLLED), f"a flat program has no {s.kind.value} loop"
        )
        is_known = s.kind is not LoopKind.UNROLLED or isinstance(s.extent, Const)
        v.require(is_known, "an unrolled loop has a constant number of iterations")


def _check_buffers(v: _Verifier, s: For) -> None:
    """Verifies that the buffers that a loop's notes name are in scope or declared in it; those of two places, in it."""
    visible = frozenset(v.buffers) if s.notes else frozenset()
    for n in s.notes:
        names = ", ".join([b.name for b in buffers_in(n)])
        where = "declared in the loop" if n.is_of_own_buffer else "known in the loop"
        v.require(not is_moot(n, s, visible), f"the note {n.keyword} names {names}, which is not {where}")


def _let(v: _Verifier, s: Let) -> None:
    same = s.var.dtype is s.value.dtype
    v.require(same, f"the variable {s.var.name} is {s.var.dtype}, but its value is {s.value.dtype}")


def _alloc(v: _Verifier, s: Alloc) -> None:
    v.declaration(s.buffer)


def _view(v: _Verifier, s: View) -> None:
    v.uses(s.source)
    v.index(s.offset, "the offset of a view")
    v.declaration(s.buffer)


def _store(v: _Verifier, s: Store) -> None:
    v.uses(s.buffer)
    if s.mask is not None:
        fits = s.mask.dtype.is_bool and s.mask.dtype.lanes in (1, s.value.dtype.lanes)
        v.require(fits, f"the mask of a store of {s.value.dtype} is {s.mask.dtype}")


def _block(v: _Verifier, s: Block) -> None:
    v.require(not v.flat, "a flat program has no blocks")
    v.require(s.name not in v.blocks, f"two blocks are named {s.name}")
    v.blocks.add(s.name)
    v.require(len(s.axes) == len(s.bindings), f"{s.name} has {len(s.axes)} axes, but {len(s.bindings)} bindings")
    for axis, binding in zip(s.axes, s.bindings, strict=True):
        v.index(axis.var, f"the axis {axis.var.name}")
        v.index(axis.extent, f"the extent of the axis {axis.var.name}")
        v.index(binding, f"the binding of the axis {axis.var.name}")
    v.condition(s.predicate)
    v.notes(s.notes, Place.BLOCK)


def _check_regions(v: _Verifier, s: Block) -> None:
    """Verifies the declared regions, and that they do not evidently miss elements that the body accesses."""
    for r in (*s.reads, *s.writes):
        v.uses(r.buffer)
        v.require(len(r.ranges) == r.buffer.rank, f"a region of {r.buffer.name} has {len(r.ranges)} dimensions")
        v.expressions([e for x in r.ranges for e in (x.begin, x.extent)])
    reads, writes, passed = touched_regions(s.body, s.init)
    effects = (("reads", s.reads, reads), ("writes", s.writes, writes), ("passes on", (*s.reads, *s.writes), passed))
    for word, declared, found in effects:
        for r in found:
            covered = any(r.buffer is d.buffer and not _is_apart(r, d) for d in declared)
            v.require(covered, f"{s.name} {word} {r.buffer.name} outside of the regions that it declares")


def _is_apart(a: Region, b: Region) -> bool:
    """Answers whether two regions evidently have no element in common: by constants, in some dimension.

    A buffer without elements has nothing that regions could be apart in: no statement that accesses it is ever run.
    """
    if any(isinstance(n, Const) and n.value == 0 for n in a.buffer.shape):
        return False
    for x, y in zip(a.ranges, b.ranges, strict=True):
        ends = [e.value for e in (x.begin, x.extent, y.begin, y.extent) if isinstance(e, Const)]
        if len(ends) == 4 and (ends[0] + ends[1] <= ends[2] or ends[2] + ends[3] <= ends[0]):
            return True
    return False


def _call(v: _Verifier, s: Call) -> None:
    callee = v.functions.get(s.callee)
    if callee is None:
        return  # an intrinsic of the target
    wrong = f"{s.callee} takes {len(callee.params)} arguments, not {len(s.args)}"
    v.require(len(callee.params) == len(s.args), wrong)
    for p, a in zip(callee.params, s.args, strict=True):
        expected: DType = handle if isinstance(p, Buffer) else p.dtype
        v.require(a.dtype is expected, f"{s.callee} takes {expected} for {p.name}, not {a.dtype}")


def _assert(v: _Verifier, s: Assert) -> None:
    v.condition(s.cond)
    try:
        s.message.format(*s.values)
    except (IndexError, KeyError, ValueError):
        v.fail(f"the message of a check does not fit its {len(s.values)} values")


def _seq(v: _Verifier, s: Seq) -> None:
    flat = len(s.body) > 1 and not any(isinstance(x, Seq) for x in s.body)
    v.require(flat or s is NOTHING, "a sequence is flat and has two statements or more: build it by seq()")


_CHECKS: Final[dict[type[Stmt], Callable[[_Verifier, Any], None]]] = {
    For: _for,
    Let: _let,
    Alloc: _alloc,
    View: _view,
    Store: _store,
    Block: _block,
    Call: _call,
    Assert: _assert,
    Seq: _seq,
    If: lambda v, s: v.condition(s.cond),
    While: lambda v, s: v.condition(s.cond),
}
