"""Refuses products of warps that the machine would not compute as they are declared.

An instruction is run by all 32 threads of a warp at once, each with rows and columns of its own (`instructions.warp_products`):

    for ty in bound(0, 8, thread="threadIdx.y"):
        for tx in bound(0, 4, thread="threadIdx.x"):
            ... under no condition on tx, on ty or on memory ...
                call("warp.mma_f16", P.at(...), A.at(a + ty * 2 * ta), B.at(b + tx * 2 * ub), tc, ta, ua, tb, ub)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.ir import (
    INDEX,
    ZERO,
    Bounds,
    Cast,
    Const,
    Expr,
    Node,
    Var,
    free_vars,
    index,
    map_nodes,
    reads_memory,
    simplify,
    substitute,
)
from weft.loop import (
    Address,
    Call,
    For,
    Function,
    If,
    Kernel,
    Let,
    Program,
    Stmt,
    Thread,
    While,
    find_note,
    sub_statements,
)
from weft.support.dtypes import i32
from weft.support.errors import LoweringError
from weft.targets import Target
from weft.targets.instructions import FRAGMENT, FRAGMENT_INSTRUCTIONS

_PRODUCTS = frozenset(FRAGMENT_INSTRUCTIONS.values())
SHAPE = {"threadIdx.x": FRAGMENT.quads, "threadIdx.y": FRAGMENT.groups}
"""The threads of a warp along the axes."""


@dataclass(frozen=True)
class Around:
    """The context of a statement: the thread loops by axis, the values of variables, and whether threads may diverge."""

    threads: dict[str, For]
    values: dict[Var, Expr]
    parting: bool = False

    @property
    def extents(self) -> dict[str, int]:
        """The constant extents of the thread loops, by axis."""
        return {axis: int(f.extent.value) for axis, f in self.threads.items() if isinstance(f.extent, Const)}

    @property
    def are_warps(self) -> bool:
        """Whether the threads are as many along x and y as those of a warp."""
        extents = self.extents
        return {axis: extents.get(axis) for axis in SHAPE} == SHAPE

    def value(self, e: Expr) -> Expr:
        """Returns *e* without variables that have a value."""
        return substitute(e, self.values) if self.values else e

    def parts(self, e: Expr) -> bool:
        """Tells whether *e* may differ between threads of a warp."""
        own = {self.threads[axis].var for axis in SHAPE if axis in self.threads}
        made = self.value(e)
        return reads_memory(made) or bool(own & set(free_vars(made)))


def check_fragments(program: Program, target: Target) -> Program:
    """Returns *program*; raises `LoweringError` for a product that no whole warp computes, or one of other elements."""
    for f in program.functions:
        if find_note(f.notes, Kernel) is not None:
            _check_kernel(f)
    return program


def _check_kernel(kernel: Function) -> None:
    for s, around, _ in placed_statements(kernel):
        if isinstance(s, Call) and s.callee in _PRODUCTS:
            _check(kernel, s, around)


def placed_statements(kernel: Function) -> Iterator[tuple[Stmt, Around, Bounds]]:
    """Yields the statements of a kernel, each with its context and the bounds of its loops."""
    stack: list[tuple[Stmt, Around, Bounds]] = [(kernel.body, Around({}, {}), Bounds())]
    while stack:
        s, around, bounds = stack.pop()
        yield s, around, bounds
        if isinstance(s, For):
            bounds = bounds.bind(s.var, s.begin, s.begin + s.extent - 1)
        stack += [(part, _inside(s, around), bounds) for part in sub_statements(s)]


def _inside(s: Stmt, around: Around) -> Around:
    """Returns the context of the sub-statements of *s*."""
    if isinstance(s, Let):
        return replace(around, values={**around.values, s.var: around.value(s.value)})
    if isinstance(s, For) and (thread := find_note(s.notes, Thread)) is not None:
        return replace(around, threads={**around.threads, thread.axis: s})
    conditions = [s.begin, s.extent] if isinstance(s, For) else [s.cond] if isinstance(s, If | While) else []
    return replace(around, parting=True) if any(map(around.parts, conditions)) else around


def _check(kernel: Function, call: Call, around: Around) -> None:
    _, a, b, *numbers = call.args
    assert isinstance(a, Address)
    assert isinstance(b, Address)
    if around.parting:
        raise product_error(kernel, call, "is under a condition that only some threads of a warp may meet")
    if not around.are_warps:
        raise product_error(kernel, call, f"is not made by {FRAGMENT.quads} x {FRAGMENT.groups} threads along x and y")
    strides = [int(n.value) for n in numbers if isinstance(n, Const)]
    if len(strides) != len(numbers):
        raise product_error(kernel, call, "has factors whose strides are not constant")
    _, ta, ua, tb, ub = strides
    x, y = [around.threads[axis].var for axis in SHAPE]
    for factor, own, step, along, row in ((a, y, FRAGMENT.halves * ta, ua, ta), (b, x, FRAGMENT.pairs * ub, tb, ub)):
        at = _wide(around.value(factor.indices[0]))
        first = substitute(at, {x: ZERO, y: ZERO})
        if simplify(at - first - own * index(step)) is not ZERO:
            raise product_error(kernel, call, f"takes other elements of {factor.buffer.name} than those of its threads")
        if along == 1 and (row % 2 or simplify(first % index(2)) is not ZERO):
            raise product_error(kernel, call, f"takes pairs of {factor.buffer.name} that begin at odd elements")


def _wide(e: Expr) -> Expr:
    """Returns an index computed in its own type, without the narrower one in which machines compute it faster."""

    def change(n: Node) -> Node | None:
        if isinstance(n, Cast) and n.a.dtype is INDEX:
            return n.a
        return index(int(n.value)) if isinstance(n, Const) and n.dtype is i32 else None

    return map_nodes(e, change)


def product_error(kernel: Function, call: Call, told: str) -> LoweringError:
    """Returns an error about a product."""
    return LoweringError(
        f"{call.callee} {told}", where=kernel.name, hint="schedule it as `schedule/rules/grid/fragment_tiles.py` does"
    )
