"""The loop IR: buffers, memory accesses, statements, blocks, functions, programs.

A `Program` is a set of functions; a function's body is one statement. The grammar:

    stmt  ::= For(var, begin, extent, kind, body) | While(cond, body) | If(cond, then, other?) | Let(var, value, body)
            | Alloc(buffer, body) | View(buffer, source, offset, body) | Store(buffer, indices, value)
            | Block(name, axes, bindings, predicate, reads, writes, init?, body)
            | Call(callee, args) | Assert(cond, message) | Eval(value) | Seq(body...)

A *block* is a unit of computation that a schedule moves as a whole: its body speaks of its own axes only, and
`bindings` give the instance that runs in terms of the loops around it (Feng et al., "TensorIR", 2023, section 3). Loops are known
by their variable and blocks by their name, so a reference stays good while the program is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from weft.ir import ADDRESSES, BRANCHES, INDEX, ONE, READS, ZERO, Expr, ExprLike, Node, Var, as_expr, node
from weft.loop.buffer import Buffer
from weft.loop.notes import Note
from weft.support.dtypes import DType, handle
from weft.support.errors import TypeMismatch


@node
class Load(Expr):
    """The value of *buffer* at *indices*; one index may be a vector, which loads a vector of elements."""

    trait = READS
    __derived__ = ("dtype",)
    buffer: Buffer
    indices: tuple[Expr, ...]

    def derive(self) -> tuple[DType]:
        """Returns the buffer's type, with the lanes of the indices."""
        return (access_type(self.buffer, self.indices),)


@node
class Address(Expr):
    """The address of an element of *buffer*, to be passed to a callee."""

    trait = ADDRESSES
    __derived__ = ("dtype",)
    buffer: Buffer
    indices: tuple[Expr, ...]

    def derive(self) -> tuple[DType]:
        """Returns the handle type."""
        access_type(self.buffer, self.indices)
        return (handle,)


def access_type(buffer: Buffer, indices: tuple[Expr, ...]) -> DType:
    """Returns the type of the value at *indices* of *buffer*; raises `TypeMismatch` for a wrong number or type of indices."""
    if len(indices) != buffer.rank:
        raise TypeMismatch(f"{buffer.name} has {buffer.rank} dimensions, but {len(indices)} indices were given")
    lanes = 1
    for i in indices:
        if i.dtype.element is not INDEX:
            raise TypeMismatch(f"an index of {buffer.name} is of type {i.dtype}, not {INDEX}", hint="cast it")
        if i.dtype.lanes != 1:
            if lanes != 1 and lanes != i.dtype.lanes:
                raise TypeMismatch(f"two indices of {buffer.name} are vectors of different lengths")
            lanes = i.dtype.lanes
    return buffer.dtype.with_lanes(buffer.dtype.lanes * lanes)


class LoopKind(StrEnum):
    """How the iterations of a loop are run."""

    SERIAL = "range"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    BOUND = "bound"


class AxisKind(StrEnum):
    """The kinds of a block's axes, which decide how its instances may be reordered.

    Instances along *spatial* axes write different elements; along *reduce* axes they combine into one by a
    commutative reducer; along an *ordered* axis each must follow the one before; of an *opaque* axis nothing is known.
    Along *unordered* axes they update elements whose places are data, several the same one by a commutative operation, or one
    alone: in any order, but one after another.
    """

    SPATIAL = "spatial"
    REDUCE = "reduce"
    ORDERED = "ordered"
    UNORDERED = "unordered"
    OPAQUE = "opaque"


@node
class Axis(Node):
    """An axis of a block: its variable, which takes the values 0 .. extent - 1, and its kind."""

    var: Var
    extent: Expr
    kind: AxisKind


@node
class Range(Node):
    """The indices `begin .. begin + extent - 1` of one dimension."""

    begin: Expr
    extent: Expr


@node
class Region(Node):
    """A box of a buffer: one range for each dimension."""

    buffer: Buffer
    ranges: tuple[Range, ...]


class Stmt(Node):
    """A statement; the slots cache the results of `stmt_outline.outline` and `stmt_outline.mentioned`."""

    is_body = True
    __slots__ = ("mentioned", "outlined")

    if TYPE_CHECKING:

        def bodies(self) -> tuple[Stmt, ...]:
            """Returns the statements directly inside, in field order."""


@node
class For(Stmt):
    """Runs *body* for each value `begin .. begin + extent - 1` of *var*, as *kind* says."""

    var: Var
    begin: Expr
    extent: Expr
    kind: LoopKind
    body: Stmt
    notes: tuple[Note, ...]


@node
class While(Stmt):
    """Runs *body* as long as *cond* holds."""

    cond: Expr
    body: Stmt


@node
class If(Stmt):
    """Runs *then* where *cond* holds, else *other*, if there is one."""

    trait = BRANCHES
    cond: Expr
    then: Stmt
    other: Stmt | None


@node
class Let(Stmt):
    """Binds *var* to *value* in *body*."""

    var: Var
    value: Expr
    body: Stmt


@node
class Alloc(Stmt):
    """Gives *buffer* memory, with undefined contents, while *body* runs."""

    buffer: Buffer
    body: Stmt


@node
class View(Stmt):
    """Makes *buffer* a name for memory inside *source*, beginning *offset* elements of *source* in; the types may differ."""

    buffer: Buffer
    source: Buffer
    offset: Expr
    body: Stmt


@node
class Store(Stmt):
    """Writes *value* to *buffer* at *indices*; with a *mask*, only in the lanes where it holds."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    mask: Expr | None

    def check(self) -> None:
        """Refuses a value of another type than the buffer's."""
        expected = access_type(self.buffer, self.indices)
        if self.value.dtype is not expected:
            raise TypeMismatch(
                f"a store to {self.buffer.name} takes {expected}, not {self.value.dtype}", hint="cast it"
            )


@node
class Block(Stmt):
    """A unit of computation: *axes* bound to *bindings*, run where *predicate* holds.

    *body* (and *init*, which starts a reduction before its first instance) use no loop variable of the surroundings, only
    the axes. *reads* and *writes* bound the elements that the body accesses. Invariant: as many bindings as axes.
    """

    name: str
    axes: tuple[Axis, ...]
    bindings: tuple[Expr, ...]
    predicate: Expr
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    init: Stmt | None
    body: Stmt
    notes: tuple[Note, ...]


@node
class Call(Stmt):
    """Calls a function of the program, or an effectful intrinsic that the target declares."""

    callee: str
    args: tuple[Expr, ...]


@node
class Assert(Stmt):
    """Stops the whole entry with an error unless *cond* holds; *message* may name the *values* as {0}, {1} ..."""

    cond: Expr
    message: str
    values: tuple[Expr, ...]


@node
class Eval(Stmt):
    """Evaluates *value* and drops it."""

    value: Expr


@node
class Seq(Stmt):
    """Runs the statements of *body* in order; never empty but for `NOTHING`, never nested: build it by `seq`."""

    body: tuple[Stmt, ...]


NOTHING: Final = Seq(())


def seq(*parts: Stmt) -> Stmt:
    """Returns the statements in order, with nested sequences made flat; one statement stays itself."""
    flat: list[Stmt] = []
    for p in parts:
        if isinstance(p, Seq):
            flat += p.body
        else:
            flat.append(p)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def for_(var: Var, extent: ExprLike, body: Stmt, kind: LoopKind = LoopKind.SERIAL, begin: ExprLike = 0) -> For:
    """Returns a loop of *extent* iterations from *begin*, with no notes."""
    return For(var, as_expr(begin), as_expr(extent), kind, body, ())


def store(buffer: Buffer, indices: Iterable[ExprLike], value: ExprLike) -> Store:
    """Returns a store without a mask."""
    return Store(buffer, tuple([as_expr(i) for i in indices]), as_expr(value, buffer.dtype), None)


def load(buffer: Buffer, *indices: ExprLike) -> Expr:
    """Returns a load of *buffer*."""
    return Load(buffer, tuple([as_expr(i) for i in indices]))


def point(buffer: Buffer, indices: Iterable[Expr]) -> Region:
    """Returns the region of a single element."""
    return Region(buffer, tuple([Range(i, ONE) for i in indices]))


def full_region(buffer: Buffer) -> Region:
    """Returns the whole of *buffer*."""
    return Region(buffer, tuple([Range(ZERO, s) for s in buffer.shape]))


Param: TypeAlias = Buffer | Var


@dataclass(frozen=True, eq=False)
class Function:
    """A function: *params* are buffers and scalar variables; symbolic sizes are scalar parameters too."""

    name: str
    params: tuple[Param, ...]
    body: Stmt
    notes: tuple[Note, ...] = ()

    def with_body(self, body: Stmt) -> Function:
        """Returns the function with another body; itself if the body is the same."""
        return self if body is self.body else Function(self.name, self.params, body, self.notes)


@dataclass(frozen=True, eq=False)
class Program:
    """Functions by name; the first is the entry."""

    functions: tuple[Function, ...]

    @property
    def entry(self) -> Function:
        """The first function."""
        return self.functions[0]

    def __getitem__(self, name: str) -> Function:
        for f in self.functions:
            if f.name == name:
                return f
        raise KeyError(name)

    def with_function(self, function: Function) -> Program:
        """Returns the program with the function of the same name replaced."""
        return Program(tuple([function if f.name == function.name else f for f in self.functions]))
