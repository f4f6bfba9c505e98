"""The regions that a block reads and writes, derived from its body.

A block's regions depend on its axes only. An index that uses loops inside the body is widened to the range of values that it
takes there, if their number is a constant; any other index that the axes do not determine, to the whole dimension.

A reduction's update reads the element that it writes. With an `init`, that read is part of the reduction and is not listed;
without one, the block depends on the element's previous value, and the read is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from weft.ir import (
    EMPTY,
    ONE,
    TRUE,
    ZERO,
    Const,
    Expr,
    Node,
    Var,
    extremes,
    free_vars,
    post_order,
    reads_memory,
    simplify,
    substitute,
)
from weft.loop.buffer import Buffer
from weft.loop.nodes import (
    Address,
    Alloc,
    Axis,
    Block,
    For,
    Load,
    Range,
    Region,
    Stmt,
    Store,
    View,
    full_region,
)
from weft.loop.notes import Note
from weft.loop.visit import bound_vars, statements

Regions = tuple[Region, ...]


def block_regions(body: Stmt, init: Stmt | None = None) -> tuple[Regions, Regions]:
    """Returns the regions that a block of this *body* and *init* reads and writes, without those of its own buffers."""
    reads, writes, passed = touched_regions(body, init)
    return tuple(dict.fromkeys([*reads, *passed])), tuple(dict.fromkeys([*writes, *passed]))


def touched_regions(body: Stmt, init: Stmt | None = None) -> tuple[Regions, Regions, Regions]:
    """Returns the regions that *body* and *init* read and write themselves, and the buffers whose addresses they pass to callees.

    The maker of the block declares how those are accessed; by default they count as read and written.
    """
    parts = [body] if init is None else [body, init]
    inner = _Inner(parts)
    written = [(s.buffer, s.indices) for p in parts for s in statements(p) if isinstance(s, Store)]
    accumulated = _accumulated(parts) | set(written if init is not None else ())
    loads = [n for p in parts for n in _accesses(p) if isinstance(n, Load)]
    passed = [full_region(n.buffer) for p in parts for n in _accesses(p) if isinstance(n, Address)]
    read = [(n.buffer, n.indices) for n in loads if (n.buffer, n.indices) not in accumulated]
    reads = [inner.region(b, i) for b, i in read]
    writes = [inner.region(b, i) for b, i in written]
    return inner.outside(reads), inner.outside(writes), inner.outside(passed)


def _accumulated(parts: Sequence[Stmt]) -> set[tuple[Buffer, tuple[Expr, ...]]]:
    """Returns the elements that the reductions inside initialise and then update."""
    reductions = [s for p in parts for s in statements(p) if isinstance(s, Block) and s.init is not None]
    return {(x.buffer, x.indices) for r in reductions for x in statements(r) if isinstance(x, Store)}


def _accesses(root: Stmt) -> Iterator[Load | Address]:
    """Yields the accesses of *root* but stores, without those in the regions of blocks inside it."""
    stack: list[Node] = [root]
    seen: set[Node] = set()
    while stack:
        n = stack.pop()
        if n in seen or isinstance(n, Region):
            continue
        seen.add(n)
        if isinstance(n, Load | Address):
            yield n
        stack += reversed(n.children())


class _Inner:
    """The variables and buffers that are bound inside a block."""

    def __init__(self, parts: Sequence[Stmt]) -> None:
        inside = [s for p in parts for s in statements(p)]
        self.vars = {v for s in inside for v in bound_vars(s)}
        self.buffers = {s.buffer for s in inside if isinstance(s, Alloc | View)}
        self.sources = {s.buffer: s.source for s in inside if isinstance(s, View)}
        self.bounds = EMPTY
        self.axes: dict[Var, Expr] = {}
        for s in inside:
            if isinstance(s, For):
                begin, extent = substitute(s.begin, self.axes), substitute(s.extent, self.axes)
                self.bounds = self.bounds.bind(s.var, begin, begin + extent - ONE)
            elif isinstance(s, Block):
                resolved = [substitute(b, self.axes) for b in s.bindings]
                self.axes.update({a.var: b for a, b in zip(s.axes, resolved, strict=False)})

    def region(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Region:
        """Returns the region of an access; through a view, all of the memory that the view may name."""
        if buffer in self.sources:
            while buffer in self.sources:
                buffer = self.sources[buffer]
            return full_region(buffer)
        return Region(buffer, tuple([self.range(i, s) for i, s in zip(indices, buffer.shape, strict=True)]))

    def range(self, i: Expr, size: Expr) -> Range:
        """Returns the values that the index *i* of a dimension of *size* can take."""
        whole = Range(ZERO, size)
        if i.dtype.lanes > 1 or reads_memory(i):
            return whole
        if not self.vars.intersection(post_order(i)):
            return Range(i, ONE)
        outside = substitute(i, self.axes)
        found = extremes(outside, [v for v in free_vars(outside) if v in self.vars], self.bounds)
        if found is None:
            return whole
        width = simplify(found[1] - found[0] + ONE)
        return Range(found[0], width) if isinstance(width, Const) else whole

    def outside(self, regions: Iterable[Region]) -> Regions:
        """Drops the regions of the block's own buffers, and duplicates."""
        return tuple(dict.fromkeys(r for r in regions if r.buffer not in self.buffers))


def make_block(
    name: str,
    axes: Sequence[Axis],
    bindings: Sequence[Expr],
    body: Stmt,
    init: Stmt | None = None,
    predicate: Expr = TRUE,
    notes: tuple[Note, ...] = (),
) -> Block:
    """Returns a block whose reads and writes are derived from *body* and *init*."""
    reads, writes = block_regions(body, init)
    return Block(name, tuple(axes), tuple(bindings), predicate, reads, writes, init, body, notes)
