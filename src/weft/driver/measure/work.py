"""How much a kernel has to do, whatever its schedule: counted over the loops that its formulas stand for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from weft.graph import dim_text
from weft.ir import INDEX, Add, Apply, Cast, Const, Div, Expr, Max, Min, Mul, Neg, Node, Sub
from weft.loop import Buffer, For, Function, Let, Load, Stmt, Store, sub_statements
from weft.support.dtypes import DType, u8
from weft.support.errors import InputError

MOST_NARROW_BITS = 16
"""Bits of a factor that instructions take several of where one of 32 bits would be."""

ARITHMETIC = (Add, Sub, Mul, Div, Min, Max, Neg)
"""Nodes that count as one operation; functions count as the arithmetic they are expanded to, comparing and choosing as none."""


@dataclass(frozen=True)
class Work:
    """The operations of a kernel, and the bytes it can't do without moving, by parameter: each is read or written once.

    Of a parameter of which only some elements are read, such as a table of rows, only those count. Some of the operations may be
    products of *narrow* factors and their sums, by the type of the first factor: machines may have instructions for those.
    """

    operations: float
    moved: Mapping[str, float]
    narrow: Mapping[DType, float] = field(default_factory=dict)

    @property
    def nbytes(self) -> float:
        """All bytes moved."""
        return sum(self.moved.values())


def count_work(function: Function) -> Work:
    """Returns the work of *function*, unscheduled loops of constant extents whose functions are expanded.

    Raises `InputError` for loops of symbolic extents.
    """
    params = {p for p in function.params if isinstance(p, Buffer)}
    operations, touched = 0.0, dict.fromkeys(params, 0.0)
    narrow: dict[DType, float] = defaultdict(float)
    stack: list[tuple[Stmt, float]] = [(function.body, 1.0)]
    while stack:
        s, times = stack.pop()
        seen: set[Node] = set()
        if isinstance(s, Store | Let):
            operations += times * _operations(s.value, seen)
        for factors in filter(None, map(_narrow_factors, seen)):
            narrow[factors] += 2 * times
        for load in [n for n in seen if isinstance(n, Load) and n.buffer in params]:
            touched[load.buffer] += times
        inner = times * _constant(s.extent) if isinstance(s, For) else times
        stack += [(b, inner) for b in sub_statements(s)]
    sizes = {p: prod(_constant(x) for x in p.shape) for p in params}
    moved = {p.name: p.dtype.bytes * (min(sizes[p], touched[p]) if touched[p] else sizes[p]) for p in params}
    return Work(operations, moved, narrow)


def _narrow_factors(n: Node) -> DType | None:
    """Returns the type of the factors of a product of numbers that are converted from less than 32 bits; of bytes, u8."""
    kinds = [x.a.dtype for x in (n.a, n.b) if isinstance(x, Cast)] if isinstance(n, Mul) else []
    if len(kinds) < 2 or any(k.bits > MOST_NARROW_BITS for k in kinds):
        return None
    return u8 if all(k.bits == u8.bits for k in kinds) else kinds[0]


def _operations(e: Expr, seen: set[Node]) -> int:
    """Counts the arithmetic in *e* that is not in *seen*, without that of indices, and adds all to *seen*."""
    count, stack = 0, list[Node]([e])
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        if isinstance(n, ARITHMETIC) and n.dtype is not INDEX:
            count += 1
        elif isinstance(n, Apply):
            count += 2 if n.fn == "fma" else 1
        stack += [] if isinstance(n, Load) else n.children()
    return count


def _constant(e: Expr) -> int:
    if not isinstance(e, Const):
        raise InputError(
            f"the work is not known while the dimension {dim_text(e)} is dynamic",
            hint="fix the sizes of the model's inputs",
        )
    return int(e.value)
