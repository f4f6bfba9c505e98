"""Moving a buffer's elements to another layout: the accesses of blocks, and the nests that write it anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import ZERO, Bounds, Expr, Node, Var, const, map_nodes, post_order, select
from weft.loop import (
    Address,
    Axis,
    AxisKind,
    Block,
    Buffer,
    Function,
    Load,
    Stmt,
    Store,
    View,
    block_regions,
    for_,
    make_block,
    statements,
    store,
)
from weft.schedule.cursors.state import refuse
from weft.schedule.cursors.tree import bounds_on
from weft.schedule.rewriting.index_map import IndexMap

Value = Callable[[Sequence[Expr]], Expr]
"""The value of an element, given its indices in the old layout."""


def with_layout(block: Block, old: Buffer, new: Buffer, layout: IndexMap, bounds: Bounds) -> Block:
    """Returns *block* accessing *new* where it accesses *old*, with its regions derived anew."""
    inside = bounds
    for s in statements(block):
        if isinstance(s, Block):
            _check_plain(s, old)
            for a in s.axes:
                inside = inside.bind(a.var, ZERO, a.extent - 1)

    def change(n: Node) -> Node | None:
        match n:
            case Load(buffer, indices) if buffer is old:
                return Load(new, layout(indices, inside))
            case Store(buffer, indices, value, mask) if buffer is old:
                return Store(new, layout(indices, inside), value, mask)
            case Block(name, axes, bindings, predicate, reads, writes, init, body, notes) if _touches(n, old):
                reads, writes = block_regions(body, init)
                return Block(name, axes, bindings, predicate, reads, writes, init, body, notes)
        return None

    return map_nodes(block, change)


def _touches(block: Block, buffer: Buffer) -> bool:
    return any(r.buffer is buffer for r in (*block.reads, *block.writes))


def _check_plain(block: Block, buffer: Buffer) -> None:
    """Refuses a block that uses *buffer* other than element by element."""
    if not _touches(block, buffer):
        return
    parts = [p for p in (block.init, block.body) if p is not None]
    for n in [n for p in parts for n in post_order(p)]:
        vector = isinstance(n, Load | Store) and n.buffer is buffer and any(i.dtype.lanes > 1 for i in n.indices)
        passed = (isinstance(n, Address) and n.buffer is buffer) or (isinstance(n, View) and n.source is buffer)
        if vector or passed:
            refuse(f"{block.name} takes more of {buffer.name} at once than one element", block, "choose layouts first")


def layout_nest(fn: Function, target: Buffer, layout: IndexMap, name: str, value: Value, pad: int | float) -> Stmt:
    """Returns loops over *target* and the block that writes to each element the result of *value* for its old indices.

    The padding is filled with *pad*. Every instance of the block may run, so moving it later needs no guard.
    """
    axes = [Axis(Var(f"v{d}"), s, AxisKind.SPATIAL) for d, s in enumerate(target.shape)]
    loops = [Var(f"ax{d}") for d in range(target.rank)]
    where = tuple([a.var for a in axes])
    bounds = bounds_on((), fn)
    for a in axes:
        bounds = bounds.bind(a.var, ZERO, a.extent - 1)
    old = layout.inverse(where, bounds)
    written = select(layout.is_inside(old, bounds), value(old), const(pad, target.dtype))
    body: Stmt = make_block(name, axes, loops, store(target, where, written))
    for v, a in zip(reversed(loops), reversed(axes), strict=True):
        body = for_(v, a.extent, body)
    return body
