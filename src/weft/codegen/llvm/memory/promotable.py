"""Register buffers that can be promoted to SSA values: once loops are unrolled, all their indices are constants.

LLVM's SROA and mem2reg would find the same, from a text twice as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from weft.codegen.llvm.core.ir_types import memory_type
from weft.ir import INDEX, Const, Expr, Ramp, Var, accesses, poly_of
from weft.loop import Address, Alloc, Buffer, For, Load, LoopKind, Stmt, Store, View, While, own_exprs
from weft.support.dtypes import DType

MAX_REGISTERS: Final = 64
"""Serial loops up to this long are unrolled where their variable indexes a buffer of scope "register"."""


class _Place(NamedTuple):
    """A statement, the variables of unrolled loops around it, and whether it is in a `While`."""

    stmt: Stmt
    numbered: frozenset[Var]
    in_while: bool


_Access: TypeAlias = "tuple[Buffer, tuple[Expr, ...], DType] | Buffer"
"""An access as buffer, indices and type of the value; a buffer alone for any other use of it."""


def promotable(root: Stmt) -> dict[Buffer, str]:
    """Returns the register buffers allocated in *root* whose elements can be values, with the LLVM type of these.

    All accesses to one are of vectors of the same length, at multiples of it, in loops that are unrolled.
    """
    types: dict[Buffer, DType | None] = {}
    for place in _places(root):
        if isinstance(place.stmt, Alloc) and place.stmt.buffer.in_registers:
            types[place.stmt.buffer] = None
        for access in _accesses(place.stmt) if types else ():
            buffer = access if isinstance(access, Buffer) else access[0]
            if buffer not in types:
                continue
            value = None if isinstance(access, Buffer) or place.in_while else access[2]
            if value is None or not _is_numbered(access, place.numbered) or types[buffer] not in (None, value):
                del types[buffer]
            else:
                types[buffer] = value
    return {b: memory_type(t) for b, t in types.items() if t is not None}


def _places(root: Stmt) -> Iterator[_Place]:
    """Yields every statement of *root*, a parent before its children."""
    stack = [_Place(root, frozenset(), in_while=False)]
    while stack:
        place = stack.pop()
        yield place
        s, numbered, in_while = place
        if isinstance(s, For) and is_written_out(s):
            numbered |= {s.var}
        stack += [_Place(k, numbered, in_while=in_while or isinstance(s, While)) for k in s.bodies()[::-1]]


def is_written_out(s: For) -> bool:
    """Tells whether a loop's variable is a number in each iteration, provided that a serial one indexes a register buffer."""
    if not isinstance(s.begin, Const) or not isinstance(s.extent, Const):
        return False
    return s.kind is LoopKind.UNROLLED or (s.kind is LoopKind.SERIAL and int(s.extent.value) <= MAX_REGISTERS)


def _accesses(s: Stmt) -> Iterator[_Access]:
    if isinstance(s, Store):
        yield s.buffer, s.indices, s.value.dtype
    if isinstance(s, View):
        yield s.source
    for e in own_exprs(s):
        for n in accesses(e):
            if isinstance(n, Load):
                yield n.buffer, n.indices, n.dtype
            elif isinstance(n, Address):
                yield n.buffer


def _is_numbered(access: _Access, numbered: frozenset[Var]) -> bool:
    """Tells whether an access is of one vector, at a multiple of its length, that the variables in *numbered* tell."""
    if isinstance(access, Buffer) or len(access[1]) != 1 or access[2] is INDEX:
        return False
    [index], lanes = access[1], access[1][0].dtype.lanes
    if isinstance(index, Ramp):
        if not isinstance(index.stride, Const) or index.stride.value != 1:
            return False
        index = index.base
    if index.dtype is not INDEX:
        return False
    terms = poly_of(index).items()
    return all(
        c % lanes == 0 and all(v in numbered for v in variables[:1]) and len(variables) < 2 for variables, c in terms
    )
