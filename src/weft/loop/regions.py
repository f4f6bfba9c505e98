"""What a block reads and writes, derived from its body.

A block's regions speak of its axes only. An access whose index uses a variable bound inside the body is widened to all
the values that the index can take there, and so is one that depends on data: to the whole dimension.

A reduction's update reads what it writes. With an `init`, that read is part of the reduction and is not listed; without
one, the block depends on what was there before, and the read is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.ir.expr import ONE, TRUE, ZERO, Expr
from weft.ir.node import Node
from weft.ir.rewrite import post_order
from weft.loop.nodes import (
    Address,
    Alloc,
    Annotation,
    Axis,
    Block,
    Buffer,
    Load,
    Range,
    Region,
    Stmt,
    Store,
    View,
    full_region,
)  # fmt: skip
from weft.loop.visit import bound_vars, statements

Regions = tuple[Region, ...]


def block_regions(body: Stmt, init: Stmt | None = None) -> tuple[Regions, Regions]:
    """Returns the regions that a block of this *body* and *init* reads and writes, without those of its own buffers."""
    parts = [body] if init is None else [body, init]
    inner = _Inner(parts)
    written = [(s.buffer, s.indices) for p in parts for s in statements(p) if isinstance(s, Store)]
    own = set(written) if init is not None else set()
    read = [(n.buffer, n.indices) for p in parts for n in _reading(p) if (n.buffer, n.indices) not in own]
    passed = [full_region(n.buffer) for p in parts for n in post_order(p) if isinstance(n, Address)]
    reads = [inner.region(b, i) for b, i in read] + passed
    writes = [inner.region(b, i) for b, i in written] + passed
    return inner.outside(reads), inner.outside(writes)


def _reading(root: Stmt) -> Iterable[Load]:
    """Yields the loads of *root* itself, not those in the regions of blocks inside it."""
    stack: list[Node] = [root]
    seen: set[Node] = set()
    while stack:
        n = stack.pop()
        if n in seen or isinstance(n, Region):
            continue
        seen.add(n)
        if isinstance(n, Load):
            yield n
        stack += reversed(n.children())


class _Inner:
    """The variables and buffers that are bound inside a block."""

    def __init__(self, parts: Sequence[Stmt]) -> None:
        inside = [s for p in parts for s in statements(p)]
        self.vars = {v for s in inside for v in bound_vars(s)}
        self.buffers = {s.buffer for s in inside if isinstance(s, Alloc | View)}
        self.sources = {s.buffer: s.source for s in inside if isinstance(s, View)}

    def region(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Region:
        """Returns the region of an access; through a view, all of the memory that the view may name."""
        if buffer in self.sources:
            while buffer in self.sources:
                buffer = self.sources[buffer]
            return full_region(buffer)
        return Region(buffer, tuple([self.range(i, s) for i, s in zip(indices, buffer.shape, strict=True)]))

    def range(self, i: Expr, size: Expr) -> Range:
        """Returns the values that the index *i* of a dimension of *size* can take."""
        known = i.dtype.lanes == 1 and not any(isinstance(n, Load) or n in self.vars for n in post_order(i))
        return Range(i, ONE) if known else Range(ZERO, size)

    def outside(self, regions: Iterable[Region]) -> Regions:
        """Drops the regions of the block's own buffers, and repetitions."""
        return tuple(dict.fromkeys(r for r in regions if r.buffer not in self.buffers))


def make_block(
    name: str,
    axes: Sequence[Axis],
    bindings: Sequence[Expr],
    body: Stmt,
    init: Stmt | None = None,
    predicate: Expr = TRUE,
    annotations: tuple[tuple[str, Annotation], ...] = (),
) -> Block:
    """Returns a block whose reads and writes are derived from *body* and *init*."""
    reads, writes = block_regions(body, init)
    return Block(name, tuple(axes), tuple(bindings), predicate, reads, writes, init, body, annotations)
